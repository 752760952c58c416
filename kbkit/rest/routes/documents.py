"""Routes for documents."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Response
from pydantic import Field, WithJsonSchema

from kbkit.models import DeletedDocument, Document, DocumentInfo, DocumentPart
from kbkit.models.filters import OF_DOCUMENTS
from kbkit.rest.access import READ, WRITE, Caller, WorkspaceOf, base_of, holder_of
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.parameters import (
    MAX,
    AnyType,
    Body,
    Cursor,
    KbName,
    KbPath,
    KbQuery,
    Limit,
    SomeKb,
    boolean,
    filters_of,
    integer,
    part_of,
    read_cursor,
    write_cursor,
)
from kbkit.rest.responses import IfMatch, answer, documented, no_content, page

router = APIRouter(prefix="/api/knowledge", tags=["documents"], dependencies=[KNOWN_QUERY])

_LENGTH = 1_000_000_000
"""Maximum characters of a range; requests may have fewer."""
_MAX_CHUNKS = 1_000_000

# Python strips titles and texts before it looks whether anything is left
Words = Annotated[str, WithJsonSchema({"type": "string", "pattern": r"[^\s]"})]
Tags = Annotated[list[str], Field(max_length=MAX)]
Name = Annotated[str, Path(description="Id or URI of a document.", min_length=1, max_length=4_000)]


class NewDocument(Body):
    """A document of Markdown text."""

    kb: KbName
    title: Words
    """Its title."""
    content: Words
    """Its text, Markdown."""
    source: str = ""
    """URI of where it comes from, which identifies it; by default `text:` and the title."""
    document_type: AnyType = None
    tags: Tags | None = None
    """Free labels."""
    metadata: dict[str, Any] | None = None
    """JSON values to keep with it."""


class DocumentChange(Body):
    """Changes of a document; omitted fields stay."""

    title: Words | None = None
    """Its title."""
    content: Words | None = None
    """Its text, Markdown."""
    document_type: AnyType = None
    tags: Tags | None = None
    """Free labels."""
    metadata: dict[str, Any] | None = None
    """JSON values to keep with it."""


class DocumentName(Body):
    """A document."""

    document: Annotated[str, Field(min_length=1, max_length=4_000)]
    """Its id or URI."""


@router.post(
    "/documents",
    status_code=201,
    dependencies=[WRITE],
    responses=documented(DocumentInfo, 201, refusals=(404, 409, 422, 503)),
)
def add_document(body: NewDocument, workspace: WorkspaceOf, caller: Caller) -> Response:
    """Add a document, or replace the one with the same source; it is searchable then."""
    added = base_of(workspace, caller, body.kb).add(
        body.title,
        body.content,
        source=body.source,
        document_type=body.document_type,
        tags=body.tags,
        metadata=body.metadata,
    )
    place = {"Location": f"/api/knowledge/documents/{added.id}?kb={body.kb}"}
    return answer(added, 201, version=added.content_hash, headers=place)


@router.get(
    "/documents",
    dependencies=[READ],
    responses=documented(Document, many=True, refusals=(404, 422)),
)
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
) -> Response:
    """List documents in order of URI."""
    (after,) = read_cursor(cursor, str) or (behind,)
    documents = base_of(workspace, caller, kb).documents
    found = documents.list(filters=filters, after=after, limit=limit, content=content)
    return page(found, write_cursor(found[-1].uri) if len(found) == limit else None)


@router.get(
    "/documents/{document:path}",
    dependencies=[READ],
    responses=documented(DocumentPart, refusals=(404, 422)),
)
def read_document(
    *,
    document: Name,
    workspace: WorkspaceOf,
    caller: Caller,
    start: Annotated[int, integer("start", "Characters to leave out at the begin.", 0, _LENGTH, 0)],
    end: Annotated[
        int | None, integer("end", "Span of characters in the response.", 0, _LENGTH, None)
    ],
    first: Annotated[
        int | None,
        integer("first_chunk", "Place of the first chunk, from 0.", 0, _MAX_CHUNKS, None),
    ],
    last: Annotated[
        int | None, integer("last_chunk", "Place of the last chunk.", 0, _MAX_CHUNKS, None)
    ],
    kb: SomeKb = None,
    section: Annotated[
        str, Query(description="Only below this heading, by its text or anchor.", max_length=1_000)
    ] = "",
) -> Response:
    """Read a document: whole, a section, a range of characters, or of chunks."""
    chunks = None
    if first is not None or last is not None:
        chunks = first or 0, _MAX_CHUNKS if last is None else last
    found = holder_of(workspace, caller, kb, lambda base: base.documents[document])
    part = found.documents.part(document, section=section, start=start, end=end, chunks=chunks)
    return answer(part, version=part.document.content_hash)


@router.put(
    "/documents/{document:path}",
    dependencies=[WRITE],
    responses=documented(DocumentInfo, refusals=(404, 409, 412, 422, 503)),
)
def update_document(
    *,
    document: Name,
    body: DocumentChange,
    workspace: WorkspaceOf,
    caller: Caller,
    if_match: IfMatch,
    kb: SomeKb = None,
) -> Response:
    """Change a document; omitted fields stay. The change is searchable at once."""
    found = holder_of(workspace, caller, kb, lambda base: base.documents[document])
    changed = found.documents.update(
        document,
        title=body.title,
        content=body.content,
        document_type=body.document_type,
        tags=body.tags,
        metadata=body.metadata,
        if_match=if_match,
    )
    return answer(changed, version=changed.content_hash)


@router.delete(
    "/documents/{document:path}",
    status_code=204,
    dependencies=[WRITE],
    responses=documented(status=204, refusals=(404, 412, 422)),
)
def delete_document(
    *, document: Name, workspace: WorkspaceOf, caller: Caller, if_match: IfMatch, kb: SomeKb = None
) -> Response:
    """Move a document to the trash."""
    found = holder_of(workspace, caller, kb, lambda base: base.documents[document])
    found.documents.delete(document, if_match=if_match)
    return no_content()


@router.get(
    "/bases/{name}/trash",
    dependencies=[READ],
    responses=documented(DeletedDocument, many=True, refusals=(404, 422)),
)
def list_deleted_documents(
    *, name: KbPath, workspace: WorkspaceOf, caller: Caller, limit: Limit, cursor: Cursor = ""
) -> Response:
    """List the deleted documents that can be brought back, the last first."""
    return part_of(base_of(workspace, caller, name).documents.trash(), limit, cursor)


@router.post(
    "/bases/{name}/trash/undelete",
    dependencies=[WRITE],
    responses=documented(DocumentInfo, refusals=(404, 409, 422, 503)) | documented(status=204),
)
def undelete_document(
    name: KbPath, body: DocumentName, workspace: WorkspaceOf, caller: Caller
) -> Response:
    """Restore a deleted document; if its text is gone, the next refresh brings it (204)."""
    found = base_of(workspace, caller, name).documents.undelete(body.document)
    return no_content() if found is None else answer(found, version=found.content_hash)
