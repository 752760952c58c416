"""kbkit: turn documentation into knowledge bases that answer, and publish them.

Public names are loaded on first use, so that importing kbkit is fast.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from importlib import import_module
from typing import TYPE_CHECKING

from kbkit.extras import lazy_names

if TYPE_CHECKING:
    from pathlib import Path

    from IPython.core.interactiveshell import InteractiveShell

    from kbkit.workspace import Workspace

__version__ = "0.1.0"


def open(path: str | Path | None = None) -> Workspace:
    from kbkit.extras import whole

    with whole("A workspace in a folder"):
        from kbkit.workspace import Workspace
    return Workspace(path)


def load_ipython_extension(shell: InteractiveShell) -> None:
    import_module("kbkit.ipython").load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    import_module("kbkit.ipython").unload(shell)


def _explained(name: str) -> AbstractContextManager[None]:
    from kbkit.extras import whole

    return whole(f"kbkit.{name}")


# `open` is left out: a star import would shadow the builtin
__getattr__, __dir__, __all__ = lazy_names(__name__, _explained)
