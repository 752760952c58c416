"""Hits as text for a language model: quoted passages, each with its source."""

from __future__ import annotations

from datetime import UTC, datetime

from kbkit.models import Hits
from kbkit.models.plain import quotation_mark
from kbkit.retrieval.citations import citation_of, source_lines
from kbkit.retrieval.quoting import NOTHING, fenced, harmless, instructions


def quoted(hits: Hits) -> str:
    """Hits as a text that keeps apart what kbkit says and what documents say."""
    mark, now = quotation_mark(), datetime.now(UTC)
    found = f"{len(hits)} passages, best first." if hits else NOTHING
    # a note may repeat what a service of a stranger answered
    parts = [("note", note) for note in hits.notes]
    parts += [
        (str(number), f"{source_lines(citation_of(hit, now))}\n\n{hit.chunk.text}")
        for number, hit in enumerate(hits, 1)
    ]
    quotes = [fenced(mark, name, harmless(text)) for name, text in parts]
    return "\n\n".join([f"{found} {instructions(mark)}", *quotes] if quotes else [found])
