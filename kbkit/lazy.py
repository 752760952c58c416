"""Load the public names of a package on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from importlib import import_module
from typing import Any


def lazy_names(
    package: str,
    names: Mapping[str, str],
    around: Callable[[str], AbstractContextManager[Any]] = nullcontext,
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package.

    The package has a stub (``__init__.pyi``) for type checkers; `tests/test_api.py` compares them.

    Args:
        package: Name of the package.
        names: Names by module, separated by spaces.
        around: A context for the import of a name, such as one that explains a missing extra.
    """
    home = {name: module for module, several in names.items() for name in several.split()}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with around(name):
            value = getattr(import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *home}), sorted(home)
