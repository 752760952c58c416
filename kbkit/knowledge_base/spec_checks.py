"""Whether what a recipe names is there, before a knowledge base is to work by it."""

from __future__ import annotations

from kbkit import plugins
from kbkit.recipes import KnowledgeBaseSpec, PluginAnnotation
from kbkit.retrieval.postprocess import check_installed
from kbkit.text import analyzer


def check_spec(spec: KnowledgeBaseSpec) -> None:
    """Whether searches and ingests will find what they need; nothing of others is imported.

    Raises:
        ConfigError: The language is unknown, or there is no such annotator.
        PostprocessorError: The package of a postprocessor is not installed.
    """
    analyzer(spec.language)
    for postprocessor in spec.retrieval.postprocessors:
        check_installed(postprocessor)
    if isinstance(spec.annotation, PluginAnnotation):
        plugins.find(plugins.ANNOTATORS, spec.annotation.name)
