"""Routes for documents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Path, Query, Response
from pydantic import BaseModel, Field, StrictBool, WithJsonSchema

from kbkit.access import Scope
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import DeletedDocument, Document, DocumentInfo, DocumentPart, Expansion
from kbkit.models.searches import OF_DOCUMENTS
from kbkit.server.access import WRITE, Caller, Kb, WorkspaceOf, base_of, holder_of
from kbkit.server.parameters import (
    MAX,
    AnyType,
    Body,
    Cursor,
    KbName,
    KbQuery,
    Limit,
    Options,
    SomeKb,
    boolean,
    filters_of,
    integer,
    keyset_page,
    offset_page,
    read_cursor,
)
from kbkit.server.responses import IfMatch, Paged, Wait, answer
from kbkit.server.routing import Created, Routes, Work

routes = Routes("/api/knowledge", "documents")

_LENGTH = 1_000_000_000
_MAX_CHUNKS = 1_000_000

# kbkit strips whitespace before it checks that a text is not empty
Words = Annotated[str, WithJsonSchema({"type": "string", "pattern": r"[^\s]"})]
Tags = Annotated[list[str], Field(max_length=MAX)]
Name = Annotated[str, Path(description="Id or URI of a document.", min_length=1, max_length=4_000)]


class DocumentBody(Body):
    """A document of Markdown text."""

    kb: KbName
    title: Words
    content: Words
    """Markdown."""
    source: str = ""
    """URI that identifies it; by default `text:` and the title."""
    document_type: AnyType = None
    tags: Tags | None = None
    """Free labels."""
    metadata: dict[str, Any] | None = None
    """JSON values."""


class DocumentChange(Body):
    """Changes of a document; omitted fields stay."""

    title: Words | None = None
    content: Words | None = None
    """Markdown."""
    document_type: AnyType = None
    tags: Tags | None = None
    """Free labels."""
    metadata: dict[str, Any] | None = None
    """JSON values."""


class DocumentName(Body):
    """A document."""

    document: Annotated[str, Field(min_length=1, max_length=4_000)]
    """Its id or URI."""


class NewExpansion(Options):
    """Options of text that a language model writes about documents."""

    llm: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    """Model as in a recipe (needs the scope admin); by default the recipe's."""
    questions: Annotated[int, Field(ge=0, le=10)] | None = None
    """Number of questions for a document; by default the recipe's, else 5."""
    estimate: StrictBool = False
    """Only estimate the requests."""
    wait: Wait = True


class DeletedExpansions(BaseModel):
    """Number of documents whose text was deleted."""

    documents: int = Field(description="Number of documents.")


def _holder(
    document: Name, workspace: WorkspaceOf, caller: Caller, kb: SomeKb = None
) -> KnowledgeBase:
    return holder_of(workspace, caller, kb, lambda base: base.documents[document])


Holder = Annotated[KnowledgeBase, Depends(_holder)]
"""Parameter: the knowledge base that has the document of the path."""


@routes.post("/documents", WRITE)
def add_document(
    body: DocumentBody, workspace: WorkspaceOf, caller: Caller
) -> Created[DocumentInfo]:
    """Add a document, or replace the one with the same source; searchable at once."""
    values = body.model_dump(exclude={"kb", "title", "content"})
    added = base_of(workspace, caller, body.kb).add(body.title, body.content, **values)
    return Created(added, f"/api/knowledge/documents/{added.id}?kb={body.kb}")


@routes.get("/documents")
def list_documents(
    *,
    kb: KbQuery,
    workspace: WorkspaceOf,
    caller: Caller,
    filters: Annotated[dict[str, Any], filters_of(*OF_DOCUMENTS)],
    content: Annotated[bool, boolean("content", "Whether to include their text.")],
    limit: Limit,
    behind: Annotated[
        str, Query(description="Only those whose URIs come after this one.", max_length=4_000)
    ] = "",
    cursor: Cursor = "",
) -> Paged[Document]:
    """List documents in order of URI."""
    (after,) = read_cursor(cursor, str) or (behind,)
    documents = base_of(workspace, caller, kb).documents
    listed = documents.list(filters=filters, after=after, limit=limit, content=content)
    return keyset_page(listed, limit, lambda last: (last.uri,))


@routes.get("/documents/{document:path}")
def read_document(
    *,
    document: Name,
    kb: Holder,
    start: Annotated[int, integer("start", "First character, from 0.", 0, _LENGTH, 0)],
    end: Annotated[int | None, integer("end", "Character after the last.", 0, _LENGTH, None)],
    first: Annotated[
        int | None,
        integer("first_chunk", "Position of the first chunk, from 0.", 0, _MAX_CHUNKS, None),
    ],
    last: Annotated[
        int | None, integer("last_chunk", "Position of the last chunk.", 0, _MAX_CHUNKS, None)
    ],
    section: Annotated[
        str, Query(description="Only below this heading, by its text or anchor.", max_length=1_000)
    ] = "",
) -> DocumentPart:
    """Read a document: whole, a section, or a range of characters or chunks."""
    chunks = None
    if first is not None or last is not None:
        chunks = first or 0, _MAX_CHUNKS if last is None else last
    return kb.documents.part(document, section=section, start=start, end=end, chunks=chunks)


@routes.put("/documents/{document:path}", WRITE)
def update_document(
    document: Name, kb: Holder, body: DocumentChange, if_match: IfMatch
) -> DocumentInfo:
    """Change a document; omitted fields stay. Searchable at once."""
    return kb.documents.update(document, **body.model_dump(), if_match=if_match)


@routes.delete("/documents/{document:path}", WRITE)
def delete_document(document: Name, kb: Holder, if_match: IfMatch) -> None:
    """Move a document to the trash."""
    kb.documents.delete(document, if_match=if_match)


@routes.get("/bases/{name}/trash")
def list_deleted_documents(kb: Kb, limit: Limit, cursor: Cursor = "") -> Paged[DeletedDocument]:
    """List deleted documents that can be restored, newest first."""
    return offset_page(kb.documents.trash(), limit, cursor)


@routes.post("/bases/{name}/trash/undelete", WRITE)
def undelete_document(kb: Kb, body: DocumentName) -> DocumentInfo | None:
    """Restore a deleted document; if its text is gone, at the next refresh (204)."""
    return kb.documents.undelete(body.document)


@routes.post("/bases/{name}/expansions", WRITE, work=Expansion)
def expand_documents(kb: Kb, body: NewExpansion, caller: Caller, work: Work) -> Response:
    """Write summaries and questions with a language model, for documents without them."""
    if body.llm is not None:
        caller.require(Scope.ADMIN)
    if body.estimate:
        return answer(kb.documents.expand(body.llm, questions=body.questions, estimate=True))
    arguments = {"kb": kb.name, "llm": body.llm, "questions": body.questions}
    return work.start("expand", arguments, wait=body.wait)


@routes.delete("/bases/{name}/expansions", WRITE, model=DeletedExpansions)
def unexpand_documents(kb: Kb) -> dict[str, int]:
    """Delete text that language models wrote about documents."""
    return {"documents": kb.documents.unexpand()}
