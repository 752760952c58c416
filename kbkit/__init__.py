"""kbkit: turn documentation into knowledge bases that answer, and publish them.

The public names are loaded when they are first used, so that importing kbkit costs next to
nothing.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from kbkit.builder import BuildReport, build
    from kbkit.errors import KbkitError
    from kbkit.feedback.judgements import Judgements
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.models import (
        Chunk,
        Document,
        DocumentType,
        Filters,
        Hit,
        Hits,
        IngestReport,
        Mode,
    )
    from kbkit.recipes import (
        CrawlSource,
        FilesSource,
        JsonlSource,
        KnowledgeBaseSpec,
        MirrorSource,
        OpenApiSource,
        PackageSource,
        PageSource,
        Question,
        Recipe,
        RetrievalSpec,
        load_recipe,
    )
    from kbkit.sources.html.fidelity_report import FidelityReport, fidelity
    from kbkit.workspace import Workspace

__version__ = "0.1.0"

_HOME = {
    "BuildReport": "builder",
    "Chunk": "models",
    "CrawlSource": "recipes",
    "Document": "models",
    "DocumentType": "models",
    "FidelityReport": "sources.html.fidelity_report",
    "FilesSource": "recipes",
    "Filters": "models",
    "Hit": "models",
    "Hits": "models",
    "IngestReport": "models",
    "JsonlSource": "recipes",
    "Judgements": "feedback.judgements",
    "KbkitError": "errors",
    "KnowledgeBase": "knowledge_base",
    "KnowledgeBaseSpec": "recipes",
    "MirrorSource": "recipes",
    "Mode": "models",
    "OpenApiSource": "recipes",
    "PackageSource": "recipes",
    "PageSource": "recipes",
    "Question": "recipes",
    "Recipe": "recipes",
    "RetrievalSpec": "recipes",
    "Workspace": "workspace",
    "build": "builder",
    "fidelity": "sources.html.fidelity_report",
    "load_recipe": "recipes",
}

__all__ = [
    "BuildReport",
    "Chunk",
    "CrawlSource",
    "Document",
    "DocumentType",
    "FidelityReport",
    "FilesSource",
    "Filters",
    "Hit",
    "Hits",
    "IngestReport",
    "JsonlSource",
    "Judgements",
    "KbkitError",
    "KnowledgeBase",
    "KnowledgeBaseSpec",
    "MirrorSource",
    "Mode",
    "OpenApiSource",
    "PackageSource",
    "PageSource",
    "Question",
    "Recipe",
    "RetrievalSpec",
    "Workspace",
    "build",
    "fidelity",
    "load_recipe",
    "open",
]


def open(path: str | Path | None = None) -> Workspace:
    """Open a workspace, made when missing.

    Args:
        path: Its folder; by default ``KBKIT_WORKSPACE``, else ``./kb``.

    Raises:
        WorkspaceError: The folder cannot be used.
    """
    from kbkit.workspace import Workspace

    return Workspace(path)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """What ``%load_ext kbkit`` calls: the magics ``%kb`` and ``%%kb``."""
    import_module("kbkit.ipython").load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """What ``%unload_ext kbkit`` calls."""
    import_module("kbkit.ipython").unload(shell)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'kbkit' has no attribute {name!r}")
    value = getattr(import_module(f"kbkit.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
