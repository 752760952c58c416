"""The annotator that needs no model: rules of language, and the names of the gazetteer."""

from __future__ import annotations

from collections.abc import Sequence

from kbkit.annotation.base import Gazetteer, Passage
from kbkit.markdown.plain_text import plain_text
from kbkit.models import Annotation


class RulesAnnotator:
    """Finds known names."""

    fingerprint = "rules:0"

    def annotate(
        self, passages: Sequence[Passage], gazetteer: Gazetteer
    ) -> Sequence[Sequence[Annotation]]:
        """One annotation for each passage, of all of it."""
        return [(self._annotation(passage, gazetteer),) for passage in passages]

    def _annotation(self, passage: Passage, gazetteer: Gazetteer) -> Annotation:
        text = passage.chunk.text
        names = dict.fromkeys(mention.name for mention in gazetteer.find(text))
        return Annotation(text, plain_text(text), entities=tuple(sorted(names)), end=len(text))
