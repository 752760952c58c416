"""Documents and knowledge bases to export."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from kbkit.models import Document, DocumentState, DocumentType, KnowledgeBaseInfo

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)

_numbers = itertools.count()


def make_document(
    uri: str,
    content: str = "",
    *,
    title: str | None = None,
    tags: tuple[str, ...] = (),
    state: DocumentState = DocumentState.CURRENT,
) -> Document:
    return Document(
        id=f"d{next(_numbers)}",
        uri=uri,
        title=uri if title is None else title,
        content=content,
        document_type=DocumentType.REFERENCE,
        tags=tags,
        metadata={},
        state=state,
        fetched_at=NOW,
        content_hash="",
    )


def make_info(name: str = "notes", *, description: str = "", documents: int = 1):
    return KnowledgeBaseInfo(
        id=name,
        name=name,
        description=description,
        source_types=("crawl", "package"),
        documents=documents,
        chunks=3210,
        embedder="static",
        dimensions=256,
        collection=name,
        created_at=NOW,
        updated_at=NOW,
        states={"current": documents, "gone": 2},
        document_types={"reference": documents},
        pending=0,
    )


@pytest.fixture(scope="session")
def document() -> Callable[..., Document]:
    return make_document


@pytest.fixture(scope="session")
def info() -> Callable[..., KnowledgeBaseInfo]:
    return make_info


@pytest.fixture(scope="session")
def hostile() -> Document:
    """A document that tries everything."""
    path = Path(__file__).with_name("hostile.yaml")
    values = yaml.safe_load(path.read_text(encoding="utf-8"))
    return make_document(
        values["uri"], values["content"], title=values["title"], tags=tuple(values["tags"])
    )
