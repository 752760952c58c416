"""Optional packages and imports on first use, with errors that name what to install.

Modules import the packages of an extra inside `extra`, so that kbkit works without them.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from kbkit.errors import MissingExtraError

Extra = Literal[
    "panels",
    "site",
    "office",
    "plots",
    "browser",
    "firecrawl",
    "multilingual",
    "lab",
    "server",
    "mcp",
    "postgres",
    "dask",
    "sign",
    "parquet",
]


@contextmanager
def extra(name: Extra | None, package: str, ability: str) -> Iterator[None]:
    """Convert import errors of an optional package in the block.

    ::

        with extra("office", "mammoth", "Reading DOCX files"):
            import mammoth
    """
    try:
        yield
    except ImportError as error:
        module = (error.name or "").partition(".")[0]
        if module == "kbkit":
            raise  # a bug in kbkit
        raise missing(name, package or module, ability) from error


def whole(ability: str) -> AbstractContextManager[None]:
    return extra(None, "", ability)


def missing(name: Extra | None, package: str, ability: str) -> MissingExtraError:
    from kbkit.errors import MissingExtraError  # importing kbkit must be fast

    command = f'pip install "kbkit[{name}]"'
    if name is None:
        package, command = f"{package}, which comes with all of kbkit", "pip install kbkit"
    return MissingExtraError(f"{ability} needs {package}: {command}")


def lazy_names(
    package: str, around: Callable[[str], AbstractContextManager[Any]] = nullcontext
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Return ``__getattr__``, ``__dir__`` and ``__all__`` of a package, from its stub.

    The stub (``__init__.pyi``) has a line for each name, which type checkers read too.

    Args:
        package: Name of the package.
        around: A context for the import of a name, such as one that explains a missing extra.
    """
    place, _, _ = str(sys.modules[package].__file__).rpartition(".")
    with open(f"{place}.pyi", encoding="utf-8") as stub:  # noqa: PTH123 - pathlib imports slowly
        home = {name: module for module, name in _EXPORT.findall(stub.read())}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with around(name):
            value = getattr(import_module(home[name]), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sorted({*vars(sys.modules[package]), *home}), sorted(home)


_EXPORT = re.compile(r"(?m)^from (\S+) import (\w+) as \2$")
