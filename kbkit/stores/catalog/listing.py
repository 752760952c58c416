"""Lists documents without their text, out of an index. Functions of the caller's transaction."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime

import sqlalchemy as sa

from kbkit.models import Document, DocumentState, DocumentType

_LISTED = (
    "SELECT id, uri, title, document_type, tags, metadata, state, fetched_at, content_hash"
    " FROM documents INDEXED BY documents_shown WHERE kb_id = ? ORDER BY uri"
)


def iter_listed(connection: sa.Connection, kb_id: str) -> Iterator[Document]:
    """All documents of a knowledge base in order of URI; their ``content`` is left empty.

    Rows come as SQLite gives them: for 20,000 documents, types of SQLAlchemy take longer than all
    the rest.
    """
    types = {str(each): each for each in DocumentType}
    states = {str(each): each for each in DocumentState}
    for row in connection.exec_driver_sql(_LISTED, (kb_id,)):
        known_as, uri, title, document_type, tags, metadata, state, fetched_at, digest = row
        yield Document(
            known_as,
            uri,
            title,
            "",
            types[document_type],
            () if tags == "[]" else tuple(json.loads(tags)),
            {} if metadata == "{}" else json.loads(metadata),
            states[state],
            datetime.fromisoformat(fetched_at).replace(tzinfo=UTC),
            digest,
        )
