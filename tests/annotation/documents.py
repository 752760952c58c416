"""Documents and passages for tests of annotations."""

from __future__ import annotations

from datetime import UTC, datetime

from kbkit.models import Document, DocumentState, DocumentType


def document(content, title="A page", uri="http://docs.invalid/page.html", tags=(), **metadata):
    return Document(
        "d1", uri, title, content, DocumentType.MANUAL, tuple(tags), metadata,
        DocumentState.CURRENT, datetime(2026, 1, 1, tzinfo=UTC), "hash",
    )  # fmt: skip
