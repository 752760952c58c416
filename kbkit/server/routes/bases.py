"""Routes for knowledge bases and their documents."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any

from fastapi import Depends, Path, Query, Response
from pydantic import BaseModel, ConfigDict, Field, StrictBool, WithJsonSchema

from kbkit import models
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models.server import Scope
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec
from kbkit.server import parameters
from kbkit.server.access import ADMIN, WRITE, Caller, Kb, KbPath, WorkspaceOf, base_of, holder_of
from kbkit.server.responses import Created, IfMatch, Paged, Wait, answer
from kbkit.server.routing import Routes, Work

routes = Routes("/api/knowledge", "knowledge bases")

_SLUG = {"type": "string", "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$"}
Slug = Annotated[str, WithJsonSchema({**_SLUG, "not": {"enum": ["files", "entries"]}})]


class NewBase(parameters.Body):
    """A new knowledge base."""

    name: Slug
    """A slug: lower-case letters, digits and hyphens."""
    description: str = ""
    """Description of its topic."""
    embedding: AnyEmbedding | str | None = None
    """Embedding of its chunks, as in a recipe, or a preset (`minilm`)."""
    spec: KnowledgeBaseSpec | None = None
    """Settings."""


class BaseChange(parameters.Body):
    """Changes of a knowledge base; omitted fields stay."""

    name: Slug | None = None
    description: str | None = None
    """Description of its topic."""


class NewName(parameters.Options):
    """New name of a deleted knowledge base."""

    to: Slug | None = None
    """By default the old name."""


class Stats(BaseModel):
    """Figures of a knowledge base."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    info: models.KnowledgeBaseInfo
    """Documents, chunks, types, states, embedder, times."""
    tags: dict[str, int]
    """Number of documents by tag, the most frequent first."""
    folders: dict[str, int]
    """Number of documents by folder of their URI."""
    frames: dict[str, int]
    """Number of annotations by statement type."""
    annotations: int
    ratings: int
    sources: int


@routes.get("/bases")
def list_bases(
    workspace: WorkspaceOf, caller: Caller, paging: parameters.PagingOf
) -> Paged[models.KnowledgeBaseInfo]:
    """List the knowledge bases, in order of name, with their figures."""
    infos = {info.name: info for info in workspace.list()}
    return paging.of([infos[name] for name in caller.visible(infos)])


@routes.post("/bases", ADMIN)
def create_base(
    body: NewBase, workspace: WorkspaceOf, caller: Caller
) -> Created[models.KnowledgeBaseInfo]:
    """Create an empty knowledge base."""
    caller.require_kb(body.name)
    kb = workspace.create(**dict(body))
    return Created(kb.info(), f"/api/knowledge/bases/{kb.name}")


@routes.get("/bases/{name}")
def read_base(kb: Kb) -> models.KnowledgeBaseInfo:
    """Return figures of a knowledge base: documents, chunks, types, states, embedder, times."""
    return kb.info()


@routes.get("/bases/{name}/stats", model=Stats)
def read_base_stats(
    kb: Kb, depth: Annotated[int, Query(description="Levels of folders to count.", ge=0, le=20)] = 2
) -> dict[str, Any]:
    """Return figures of a knowledge base, with documents by tag and folder."""
    return {
        "info": kb.info(),
        "tags": kb.documents.tags(),
        "folders": kb.documents.folders(depth=depth),
        "frames": kb.annotations.statement_types,
        "annotations": len(kb.annotations),
        "ratings": len(kb.ratings),
        "sources": len(kb.sources),
    }


@routes.patch("/bases/{name}", ADMIN)
def change_base(
    kb: Kb, body: BaseChange, workspace: WorkspaceOf, caller: Caller, expected: IfMatch
) -> models.KnowledgeBaseInfo:
    """Rename or describe a knowledge base."""
    if body.name is not None:
        caller.require_kb(body.name)
        kb = workspace.rename(kb.name, to=body.name, if_match=expected)
        expected = None
    if body.description is not None:
        kb = workspace.describe(kb.name, description=body.description, if_match=expected)
    return kb.info()


@routes.delete("/bases/{name}", ADMIN)
def delete_base(
    name: KbPath,
    workspace: WorkspaceOf,
    caller: Caller,
    expected: IfMatch,
    forever: Annotated[bool, Query(description="Delete without the trash.")] = False,
) -> None:
    """Move a knowledge base to the trash."""
    caller.require_kb(name)
    workspace.delete(name, forever=forever, if_match=expected)


@routes.get("/trash")
def list_deleted_bases(
    workspace: WorkspaceOf, caller: Caller, paging: parameters.PagingOf
) -> Paged[models.DeletedKnowledgeBase]:
    """List deleted knowledge bases that can be restored, newest first."""
    deleted = workspace.trash()
    names = set(caller.visible(each.name for each in deleted))
    return paging.of([each for each in deleted if each.name in names])


@routes.post("/trash/{name}/undelete", ADMIN)
def undelete_base(
    name: KbPath, body: NewName, workspace: WorkspaceOf, caller: Caller
) -> models.KnowledgeBaseInfo:
    """Restore a deleted knowledge base, by name or id."""
    deleted = [each.name for each in workspace.trash() if name in (each.name, each.id)]
    caller.require_kb(deleted[0] if deleted else name)
    to = body.to or ""
    if to:
        caller.require_kb(to)
    return workspace.undelete(name, to=to).info()


@routes.post("/compact", ADMIN)
def compact_workspace(workspace: WorkspaceOf, caller: Caller) -> models.Compaction:
    """Empty the trash, of all kinds, and make the workspace smaller."""
    caller.require_all_kbs()
    return workspace.compact()


@routes.get("/bases/{name}/spec")
def read_base_spec(kb: Kb) -> KnowledgeBaseSpec:
    """Return the settings: chunking, embedding, retrieval, storage, site."""
    return kb.spec


document_routes = Routes("/api/knowledge", "documents")

_LENGTH = 1_000_000_000

# kbkit strips whitespace before it checks that a text is not empty
Words = Annotated[str, WithJsonSchema({"type": "string", "pattern": r"[^\s]"})]
Tags = Annotated[list[str], Field(max_length=parameters.MAX)]
Name = Annotated[str, Path(description="Id or URI of a document.", min_length=1, max_length=4_000)]


class _DocumentFacts(parameters.Body):
    document_type: parameters.AnyType = None
    tags: Tags | None = None
    """Free labels."""
    metadata: dict[str, Any] | None = None
    """JSON values."""


class DocumentBody(_DocumentFacts):
    """A document of Markdown text."""

    kb: parameters.KbName
    title: Words
    content: Words
    """Markdown."""
    source: str = ""
    """URI that identifies it; by default `text:` and the title."""


class DocumentChange(_DocumentFacts):
    """Changes of a document; omitted fields stay."""

    title: Words | None = None
    content: Words | None = None
    """Markdown."""


class DocumentName(parameters.Body):
    """A document."""

    document: Annotated[str, Field(min_length=1, max_length=4_000)]
    """Its id or URI."""


class NewExpansion(parameters.Options):
    """Options of text that a language model writes about documents."""

    llm: Annotated[str, Field(min_length=1, max_length=1_000)] | None = None
    """Model as in a recipe (needs the scope admin); by default the recipe's."""
    questions: Annotated[int, Field(ge=0, le=10)] | None = None
    """Number of questions for a document; by default the recipe's, else 5."""
    estimate: StrictBool = False
    """Only estimate the requests."""
    wait: Wait = True


_CONDITION = "Condition: see the filters of a search."
Condition = Annotated[str | None, Query(description=_CONDITION)]
Moment = Annotated[
    Condition,
    WithJsonSchema({"anyOf": [{"type": "string", "format": f} for f in ("date-time", "date")]}),
]
Types = Annotated[list[models.DocumentType] | None, Query(description=_CONDITION)]
States = Annotated[list[models.DocumentState] | None, Query(description=_CONDITION)]
SeveralTags = Annotated[list[str] | None, Query(description=_CONDITION, max_length=100)]


@dataclass(frozen=True)
class DocumentConditions:
    """Conditions on listed documents."""

    document_type: Types = None
    tags: SeveralTags = None
    source: Condition = None
    path: Condition = None
    version: Condition = None
    after: Moment = None
    before: Moment = None
    state: States = None


class DeletedExpansions(BaseModel):
    """Number of documents whose text was deleted."""

    documents: int = Field(description="Number of documents.")


def _holder(
    document: Name, workspace: WorkspaceOf, caller: Caller, kb: parameters.SomeKb = None
) -> KnowledgeBase:
    return holder_of(workspace, caller, kb, lambda base: base.documents[document])


Holder = Annotated[KnowledgeBase, Depends(_holder)]
"""Parameter: the knowledge base that has the document of the path."""


@document_routes.post("/documents", WRITE)
def add_document(
    body: DocumentBody, workspace: WorkspaceOf, caller: Caller
) -> Created[models.DocumentInfo]:
    """Add a document, or replace the one with the same source; searchable at once."""
    values = body.model_dump(exclude={"kb", "title", "content"})
    added = base_of(workspace, caller, body.kb).add(body.title, body.content, **values)
    return Created(added, f"/api/knowledge/documents/{added.id}?kb={body.kb}")


@document_routes.get("/documents")
def list_documents(
    *,
    kb: parameters.KbQuery,
    workspace: WorkspaceOf,
    caller: Caller,
    conditions: Annotated[DocumentConditions, Depends()],
    content: Annotated[bool, Query(description="Whether to include their text.")] = False,
    paging: parameters.PagingOf,
) -> Paged[models.Document]:
    """List documents in order of URI."""
    (after,) = paging.place(str) or ("",)
    documents = base_of(workspace, caller, kb).documents
    result = documents.list(
        filters=asdict(conditions), after=after, limit=paging.limit, content=content
    )
    return paging.ending(result, lambda last: (last.uri,))


@document_routes.get("/documents/{document:path}")
def read_document(
    *,
    document: Name,
    kb: Holder,
    start: Annotated[int, Query(description="First character, from 0.", ge=0, le=_LENGTH)] = 0,
    end: Annotated[
        int | None, Query(description="Character after the last.", ge=0, le=_LENGTH)
    ] = None,
    section: Annotated[
        str, Query(description="Only below this heading, by its text or anchor.", max_length=1_000)
    ] = "",
) -> models.DocumentPart:
    """Read a document: whole, a section, or a range of characters."""
    return kb.documents.part(document, section=section, start=start, end=end)


@document_routes.put("/documents/{document:path}", WRITE)
def update_document(
    document: Name, kb: Holder, body: DocumentChange, if_match: IfMatch
) -> models.DocumentInfo:
    """Change a document; omitted fields stay. Searchable at once."""
    return kb.documents.update(document, **body.model_dump(), if_match=if_match)


@document_routes.delete("/documents/{document:path}", WRITE)
def delete_document(document: Name, kb: Holder, if_match: IfMatch) -> None:
    """Move a document to the trash."""
    kb.documents.delete(document, if_match=if_match)


@document_routes.get("/bases/{name}/trash")
def list_deleted_documents(kb: Kb, paging: parameters.PagingOf) -> Paged[models.DeletedDocument]:
    """List deleted documents that can be restored, newest first."""
    return paging.of(kb.documents.trash())


@document_routes.post("/bases/{name}/trash/undelete", WRITE)
def undelete_document(kb: Kb, body: DocumentName) -> models.DocumentInfo | None:
    """Restore a deleted document; if its text is gone, at the next refresh (204)."""
    return kb.documents.undelete(body.document)


@document_routes.post("/bases/{name}/expansions", WRITE, work=models.Expansion)
def expand_documents(kb: Kb, body: NewExpansion, caller: Caller, work: Work) -> Response:
    """Write summaries and questions with a language model, for documents without them."""
    if body.llm is not None:
        caller.require(Scope.ADMIN)
    if body.estimate:
        return answer(kb.documents.expand(body.llm, questions=body.questions, estimate=True))
    return work.run("expand", body, kb=kb.name)


@document_routes.delete("/bases/{name}/expansions", WRITE, model=DeletedExpansions)
def unexpand_documents(kb: Kb) -> dict[str, int]:
    """Delete text that language models wrote about documents."""
    return {"documents": kb.documents.unexpand()}
