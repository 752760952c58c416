"""Tools for collections: knowledge bases that agents own."""

from typing import Annotated, Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import Field, WrapValidator
from typing_extensions import TypedDict

from kbkit.errors import ConflictError, NotFoundError
from kbkit.mcp import submissions
from kbkit.mcp.core import Passages, search_page
from kbkit.mcp.replies import Budget, Reply, listing, short
from kbkit.mcp.submissions import GivenDocument, LongWork
from kbkit.mcp.tools import Limit, Tools
from kbkit.models import Document, IngestReport, Problem
from kbkit.models.server import Scope
from kbkit.models.values import BUILT_IN, pluralize
from kbkit.retrieval.delimiting import cut, one_line

CollectionName = Annotated[
    str, Field(description="Lower-case letters, digits and hyphens.", max_length=200)
]
DocumentsArgument = Annotated[
    str | list[str | GivenDocument],
    WrapValidator(lambda value, _: value),  # `kbkit.mcp.submissions` checks it
    Field(description="Markdown, a list of texts or objects, or paths in allowed folders."),
]
_MAX_IDS = 1_000


class CollectionDocument(TypedDict):
    """A document of a collection."""

    id: str
    title: str


class Collection(TypedDict):
    """Contents of a collection."""

    note: str
    collection_name: str
    description: str
    documents_in_all: int
    chunks: int
    updated_at: str
    documents: list[CollectionDocument]
    next_cursor: str


class AddedDocuments(TypedDict):
    """Result of adding documents."""

    collection_name: str
    new: int
    changed: int
    same: int
    chunks: int
    left_out: list[str]


class DroppedCollection(TypedDict):
    """A deleted collection."""

    collection_name: str


class DeletedDocuments(TypedDict):
    """Number of documents moved to the trash."""

    collection_name: str
    deleted: int


def add(tools: Tools) -> None:
    @tools.write(AddedDocuments, destructive=False, idempotent=False, scope=Scope.ADMIN)
    def create_kb_collection(
        *,
        collection_name: CollectionName,
        documents: DocumentsArgument = "",
        description: Annotated[str, Field(description="Its topic.")] = "",
        context: Context[Any, Any],
    ) -> Reply:
        """Create a collection, a knowledge base of your own, with optional documents."""
        return _create(tools, collection_name, documents, description, LongWork(context))

    @tools.write(
        AddedDocuments, destructive=True, idempotent=True
    )  # replaces documents of the same source
    def add_kb_documents(
        *, collection_name: CollectionName, documents: DocumentsArgument, context: Context[Any, Any]
    ) -> Reply:
        """Add documents to a collection, searchable at once; the same source is replaced."""
        work = LongWork(context)
        kb = tools.workspace[_collection_name(tools, collection_name)]
        submission = submissions.read(documents, tools, work)
        report = submissions.store(kb, submission.documents, work)
        return _added_reply(collection_name, report, submission.skipped)

    @tools.read(Passages)
    def search_kb(
        *,
        query: str,
        collection_name: Annotated[str, Field(description="Empty for all.")] = "",
        limit: Limit = 5,
        budget: Budget,
    ) -> Reply:
        """Find passages of collections that answer a question, best first, with sources."""
        kbs = tools.kbs(collection_name) if collection_name else _collections(tools)
        return search_page(tools, query, kbs, limit, budget)

    @tools.read(Collection)
    def describe_kb_collection(*, collection_name: CollectionName, budget: Budget) -> Reply:
        """Describe a collection: its topic, figures, and documents with their ids."""
        kb = tools.workspace[_check_name(tools, collection_name)]
        info = kb.info()
        description, updated = short(info.description), f"{info.updated_at:%Y-%m-%d}"
        figures = f"{pluralize(info.documents, 'document')}, {pluralize(info.chunks, 'chunk')}"
        return listing(
            map(_document, kb.documents.list()),
            name="documents",
            above=f"{info.name}: {figures}, updated {updated}.\n",
            about=description,
            nothing=f"{info.name} contains no documents yet.",
            budget=budget,
            more={
                "collection_name": info.name,
                "description": description,
                "documents_in_all": info.documents,
                "chunks": info.chunks,
                "updated_at": updated,
            },
        )

    @tools.write(DroppedCollection, destructive=True, idempotent=False, scope=Scope.ADMIN)
    def drop_kb_collection(*, collection_name: CollectionName) -> Reply:
        """Move a collection to the trash, from which a person can restore it."""
        tools.workspace.delete(_collection_name(tools, collection_name))
        message = f"{collection_name} is in the trash; a person can restore it."
        return Reply(message, DroppedCollection(collection_name=collection_name))

    @tools.write(DeletedDocuments, destructive=True, idempotent=False)
    def delete_kb_documents(
        *,
        collection_name: CollectionName,
        ids: Annotated[
            list[str],
            Field(
                description="Ids or sources of its documents.", min_length=1, max_length=_MAX_IDS
            ),
        ],
    ) -> Reply:
        """Move documents of a collection to the trash; none if one does not exist."""
        from kbkit.knowledge_base.documents import delete_together

        kb = tools.workspace[_collection_name(tools, collection_name)]
        deleted = delete_together(kb.documents, ids)
        values = DeletedDocuments(collection_name=collection_name, deleted=deleted)
        return Reply(f"{deleted} of {collection_name} in the trash.", values)


def _create(tools: Tools, name: str, documents: Any, description: str, work: LongWork) -> Reply:
    """Create a collection, unless its documents cannot be stored."""
    from kbkit.recipes import check_name

    workspace = tools.workspace
    try:
        check_name(_check_name(tools, name))
    except ValueError as error:
        raise ToolError(f"collection_name: {error}") from None
    if name in workspace:
        raise ConflictError(
            f"a collection named {name!r} exists; choose another name, or add to it with "
            "add_kb_documents"
        )
    submission = submissions.read(documents, tools, work) if documents else submissions.Submission()
    kb = workspace.create(name, description=description)
    try:
        report = submissions.store(kb, submission.documents, work)
    except Exception:
        workspace.delete(name, forever=True)
        raise
    return _added_reply(name, report, submission.skipped)


def _collections(tools: Tools) -> list[str]:
    # knowledge bases of people have sources
    infos = [each for each in tools.list() if each.id not in BUILT_IN and not each.source_types]
    if infos:
        return [info.name for info in infos]
    raise NotFoundError(
        "there is no collection yet; create one with create_kb_collection, or search all knowledge "
        "bases with search_knowledge_base"
    )


def _collection_name(tools: Tools, name: str) -> str:
    if kinds := tools.workspace[_check_name(tools, name)].info().source_types:
        raise ConflictError(
            f"{name}: is not a collection but a knowledge base of people, which reads sources "
            f"({', '.join(kinds)}); a person changes it with `kbkit add {name}`, and deletes it "
            f"with `kbkit delete {name}`"
        )
    return name


def _check_name(tools: Tools, name: str) -> str:
    if not name:
        raise NotFoundError("collection_name: is empty")
    tools.kbs(name)  # raises for another's
    return name


_ID_TOKENS = 120
_MAX_SKIPPED = 5


def _added_reply(name: str, report: IngestReport, skipped: list[Problem]) -> Reply:
    problems = [*skipped, *report.failed, *report.skipped]
    left_out = [short(f"{each.uri}: {each.reason}") for each in problems[:_MAX_SKIPPED]]
    if len(problems) > _MAX_SKIPPED:
        left_out.append(f"and {len(problems) - _MAX_SKIPPED:,} more")
    new, changed, same, chunks = report.new, report.changed, report.same, report.chunks_added
    text = f"{name}: {pluralize(new, 'new document')}, {changed:,} changed, {same:,} unchanged; "
    text += f"{pluralize(chunks, 'chunk')} to search now."
    if left_out:
        text += "\nLeft out:\n" + "\n".join(f"- {line}" for line in left_out)
    values = AddedDocuments(
        collection_name=name, new=new, changed=changed, same=same, chunks=chunks, left_out=left_out
    )
    return Reply(text, values)


def _document(info: Document) -> tuple[str, CollectionDocument]:
    known_as = one_line(info.uri)
    if cut(known_as, _ID_TOKENS) != known_as:
        known_as = info.id
    title = short(info.title)
    return f"- {known_as}: {title}", CollectionDocument(id=known_as, title=title)
