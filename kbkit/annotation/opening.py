"""The annotator that a recipe names."""

from __future__ import annotations

from kbkit.annotation.base import Annotator
from kbkit.plugins import ANNOTATORS, make
from kbkit.recipes import AnyAnnotation, LlmAnnotation, NoAnnotation, PluginAnnotation
from kbkit.stores.catalog.database import Database


def annotator_of(spec: AnyAnnotation, database: Database, kb_id: str) -> Annotator | None:
    """Open the annotator that a recipe names.

    Args:
        spec: The recipe's ``annotation``.
        database: The catalog, where answers that were paid for are kept.
        kb_id: The knowledge base whose chunks it is to annotate.

    Returns:
        It; ``None`` where nothing is to be annotated.

    Raises:
        ConfigError: A plugin is missing, does not take its options, or is no annotator.
        LanguageModelError: There is no such model, its package is not installed, or its arguments
            do not fit.
    """
    if isinstance(spec, NoAnnotation):
        return None
    if isinstance(spec, PluginAnnotation):
        plugin: Annotator = make(ANNOTATORS, spec.name, spec.options, ("fingerprint", "annotate"))
        return plugin
    if isinstance(spec, LlmAnnotation):
        from kbkit.annotation.language_model import open_annotator

        return open_annotator(spec, database, kb_id)
    from kbkit.annotation.rules import RulesAnnotator

    return RulesAnnotator()
