"""kbkit: turn documentation into knowledge bases that answer, and publish them.

The public names are loaded when they are first used, so that importing kbkit costs next to
nothing.
"""

from __future__ import annotations

import logging
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from kbkit.builder import BuildReport, build
    from kbkit.client import connect
    from kbkit.errors import KbkitError
    from kbkit.feedback.evaluation_report import Evaluation
    from kbkit.feedback.judgements import Judgements
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.migration import migrate
    from kbkit.models import (
        Answer,
        Chunk,
        Document,
        DocumentInfo,
        DocumentType,
        Expansion,
        ExportReport,
        Filters,
        Hit,
        Hits,
        Improvement,
        IngestReport,
        KnowledgeBaseInfo,
        Mode,
        Rating,
        SourceInfo,
        Target,
    )
    from kbkit.publishing.published_index import PublishedIndex
    from kbkit.recipes import (
        ChunkingSpec,
        CrawlSource,
        ExpandSpec,
        FilesSource,
        JsonlSource,
        KnowledgeBaseSpec,
        LearningSpec,
        LlamaIndexEmbedding,
        MirrorSource,
        MultilingualEmbedding,
        OnnxEmbedding,
        OpenApiSource,
        PackageSource,
        PageSource,
        ParquetSource,
        PluginEmbedding,
        PluginSource,
        PostprocessorSpec,
        Question,
        Recipe,
        RetrievalSpec,
        SiteSpec,
        StaticEmbedding,
        StorageSpec,
        load_recipe,
    )
    from kbkit.sources.html.fidelity_report import FidelityReport, fidelity
    from kbkit.workspace import Workspace

__version__ = "0.1.0"

# quiet until a program says where logs go
logging.getLogger(__name__).addHandler(logging.NullHandler())

_HOME = {
    "Answer": "models",
    "BuildReport": "builder",
    "Chunk": "models",
    "ChunkingSpec": "recipes",
    "CrawlSource": "recipes",
    "Document": "models",
    "DocumentInfo": "models",
    "DocumentType": "models",
    "Evaluation": "feedback.evaluation_report",
    "ExpandSpec": "recipes",
    "Expansion": "models",
    "ExportReport": "models",
    "FidelityReport": "sources.html.fidelity_report",
    "FilesSource": "recipes",
    "Filters": "models",
    "Hit": "models",
    "Hits": "models",
    "Improvement": "models",
    "IngestReport": "models",
    "JsonlSource": "recipes",
    "Judgements": "feedback.judgements",
    "KbkitError": "errors",
    "KnowledgeBase": "knowledge_base",
    "KnowledgeBaseInfo": "models",
    "KnowledgeBaseSpec": "recipes",
    "LlamaIndexEmbedding": "recipes",
    "MirrorSource": "recipes",
    "Mode": "models",
    "MultilingualEmbedding": "recipes",
    "OnnxEmbedding": "recipes",
    "OpenApiSource": "recipes",
    "PackageSource": "recipes",
    "PageSource": "recipes",
    "ParquetSource": "recipes",
    "PluginEmbedding": "recipes",
    "PluginSource": "recipes",
    "PostprocessorSpec": "recipes",
    "PublishedIndex": "publishing.published_index",
    "Question": "recipes",
    "Rating": "models",
    "Recipe": "recipes",
    "RetrievalSpec": "recipes",
    "SiteSpec": "recipes",
    "SourceInfo": "models",
    "StaticEmbedding": "recipes",
    "LearningSpec": "recipes",
    "StorageSpec": "recipes",
    "Target": "models",
    "Workspace": "workspace",
    "build": "builder",
    "connect": "client",
    "fidelity": "sources.html.fidelity_report",
    "load_recipe": "recipes",
    "migrate": "migration",
}

# `open` is left out: a star import would shadow the builtin
__all__ = [
    "Answer",
    "BuildReport",
    "Chunk",
    "ChunkingSpec",
    "CrawlSource",
    "Document",
    "DocumentInfo",
    "DocumentType",
    "Evaluation",
    "ExpandSpec",
    "Expansion",
    "ExportReport",
    "FidelityReport",
    "FilesSource",
    "Filters",
    "Hit",
    "Hits",
    "Improvement",
    "IngestReport",
    "JsonlSource",
    "Judgements",
    "KbkitError",
    "KnowledgeBase",
    "KnowledgeBaseInfo",
    "KnowledgeBaseSpec",
    "LearningSpec",
    "LlamaIndexEmbedding",
    "MirrorSource",
    "Mode",
    "MultilingualEmbedding",
    "OnnxEmbedding",
    "OpenApiSource",
    "PackageSource",
    "PageSource",
    "ParquetSource",
    "PluginEmbedding",
    "PluginSource",
    "PostprocessorSpec",
    "PublishedIndex",
    "Question",
    "Rating",
    "Recipe",
    "RetrievalSpec",
    "SiteSpec",
    "SourceInfo",
    "StaticEmbedding",
    "StorageSpec",
    "Target",
    "Workspace",
    "build",
    "connect",
    "fidelity",
    "load_recipe",
    "migrate",
]


def open(path: str | Path | None = None) -> Workspace:
    from kbkit.extras import whole

    with whole("A workspace in a folder"):
        from kbkit.workspace import Workspace
    return Workspace(path)


def load_ipython_extension(shell: InteractiveShell) -> None:
    import_module("kbkit.ipython").load(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    import_module("kbkit.ipython").unload(shell)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'kbkit' has no attribute {name!r}")
    from kbkit.extras import whole

    with whole(f"kbkit.{name}"):
        value = getattr(import_module(f"kbkit.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
