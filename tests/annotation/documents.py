"""Documents and passages for tests of annotations."""

from datetime import UTC, datetime

from kbkit.annotation import Passage
from kbkit.models import Chunk, Document, DocumentState, DocumentType


def document(content, title="A page", uri="http://docs.invalid/page.html", tags=(), **metadata):
    stored = (DocumentState.CURRENT, datetime(2026, 1, 1, tzinfo=UTC), "hash")
    return Document("d1", uri, title, content, DocumentType.MANUAL, tuple(tags), metadata, *stored)


def passage(text, path=(), **about):
    chunk = Chunk("c1", "d1", 0, 0, len(text), text, tuple(path), "", None)
    return Passage(chunk, document("", **about))
