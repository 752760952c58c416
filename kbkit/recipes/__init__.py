"""Recipes: YAML files that describe a knowledge base from its sources to its site."""

from __future__ import annotations

from kbkit.recipes.base import Spec
from kbkit.recipes.loading import golden_questions, load_questions, load_recipe, parse_source
from kbkit.recipes.schema import (
    AnyEmbedding,
    ChunkingSpec,
    KnowledgeBaseSpec,
    LlamaIndexEmbedding,
    OnnxEmbedding,
    PluginEmbedding,
    PostprocessorSpec,
    Question,
    Recipe,
    RetrievalSpec,
    SiteSpec,
    StaticEmbedding,
    StorageSpec,
    check_name,
)
from kbkit.recipes.sources import (
    AnySource,
    CrawlSource,
    FetchSpec,
    FilesSource,
    JsonlSource,
    MirrorSource,
    OpenApiSource,
    PackageSource,
    PageSource,
    PluginSource,
    SourceSpec,
)

__all__ = [
    "AnyEmbedding",
    "AnySource",
    "ChunkingSpec",
    "CrawlSource",
    "FetchSpec",
    "FilesSource",
    "JsonlSource",
    "KnowledgeBaseSpec",
    "LlamaIndexEmbedding",
    "MirrorSource",
    "OnnxEmbedding",
    "OpenApiSource",
    "PackageSource",
    "PageSource",
    "PluginEmbedding",
    "PluginSource",
    "PostprocessorSpec",
    "Question",
    "Recipe",
    "RetrievalSpec",
    "SiteSpec",
    "SourceSpec",
    "Spec",
    "StaticEmbedding",
    "StorageSpec",
    "check_name",
    "golden_questions",
    "load_questions",
    "load_recipe",
    "parse_source",
]
