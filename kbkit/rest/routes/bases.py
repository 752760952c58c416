"""Routes for knowledge bases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, WithJsonSchema

from kbkit.errors import ConfigError
from kbkit.models import Compaction, DeletedKnowledgeBase, KnowledgeBaseInfo
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec
from kbkit.rest.access import ADMIN, READ, Caller, WorkspaceOf, base_of
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.parameters import Body, Cursor, KbPath, Limit, boolean, integer, left_out, part_of
from kbkit.rest.responses import IfMatch, answer, documented, no_content

router = APIRouter(prefix="/api/knowledge", tags=["knowledge bases"], dependencies=[KNOWN_QUERY])

SLUG = {
    "type": "string",
    "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
    "not": {"enum": ["files", "entries"]},
}
"""Pattern of a name, for OpenAPI."""
Slug = Annotated[Any, WithJsonSchema(SLUG)]
MaybeSlug = Annotated[Any, WithJsonSchema({"anyOf": [SLUG, {"type": "null"}]})]


class NewBase(Body):
    """A knowledge base that is to be made."""

    name: Slug
    """A slug: lower-case letters, digits and hyphens."""
    description: str = ""
    """Description of its topic."""
    embedding: AnyEmbedding | str | None = None
    """Embedding of its chunks, as in a recipe, or a preset (`minilm`)."""
    spec: KnowledgeBaseSpec | None = None
    """Settings."""


class BaseChange(Body):
    """Changes of a knowledge base; omitted fields stay."""

    name: MaybeSlug = None
    """Its name."""
    description: str | None = None
    """Description of its topic."""


class NewName(Body):
    """New name of a deleted knowledge base."""

    to: MaybeSlug = None
    """Its name; by default as it was."""


class Stats(BaseModel):
    """Figures of a knowledge base."""

    model_config = ConfigDict(use_attribute_docstrings=True)

    info: KnowledgeBaseInfo
    """Documents, chunks, types, states, embedder, times."""
    tags: dict[str, int]
    """Number of documents by tag, the most frequent first."""
    folders: dict[str, int]
    """Number of documents by folder of their URI."""
    frames: dict[str, int]
    """Number of annotations by statement type."""
    annotations: int
    """Number of annotations."""
    ratings: int
    """Number of ratings."""
    sources: int
    """Number of sources."""


@router.get(
    "/bases",
    dependencies=[READ],
    responses=documented(KnowledgeBaseInfo, many=True, refusals=(404, 422)),
)
def list_bases(
    workspace: WorkspaceOf, caller: Caller, limit: Limit, cursor: Cursor = ""
) -> Response:
    """List the knowledge bases, in order of name, with their figures."""
    found = {info.name: info for info in workspace.list()}
    return part_of([found[name] for name in caller.visible(found)], limit, cursor)


@router.post(
    "/bases",
    status_code=201,
    dependencies=[ADMIN],
    responses=documented(KnowledgeBaseInfo, 201, refusals=(409, 422, 501, 503)),
)
def create_base(body: NewBase, workspace: WorkspaceOf, caller: Caller) -> Response:
    """Create an empty knowledge base."""
    if not isinstance(body.name, str):
        raise ConfigError(f"name={body.name!r:.80}: give a text")
    caller.require_kb(body.name)
    made = workspace.create(
        body.name, description=body.description, spec=body.spec, embedding=body.embedding
    )
    place = {"Location": f"/api/knowledge/bases/{made.name}"}
    return _figures(made.info(), 201, headers=place)


@router.get(
    "/bases/{name}", dependencies=[READ], responses=documented(KnowledgeBaseInfo, refusals=(404,))
)
def read_base(name: KbPath, workspace: WorkspaceOf, caller: Caller) -> Response:
    """Figures of a knowledge base: documents, chunks, types, states, embedder, times."""
    return _figures(base_of(workspace, caller, name).info())


@router.get(
    "/bases/{name}/stats", dependencies=[READ], responses=documented(Stats, refusals=(404, 422))
)
def read_base_stats(
    name: KbPath,
    workspace: WorkspaceOf,
    caller: Caller,
    depth: Annotated[int, integer("depth", "Folders within folders counted apart.", 0, 20, 2)],
) -> Response:
    """Return figures of a knowledge base, with documents by tag and folder."""
    found = base_of(workspace, caller, name)
    figures = {
        "info": found.info(),
        "tags": found.documents.tags(),
        "folders": found.documents.folders(depth=depth),
        "frames": found.annotations.frames,
        "annotations": len(found.annotations),
        "ratings": len(found.ratings),
        "sources": len(found.sources),
    }
    return answer(figures)


@router.patch(
    "/bases/{name}",
    dependencies=[ADMIN],
    responses=documented(KnowledgeBaseInfo, refusals=(404, 409, 412, 422)),
)
def change_base(
    name: KbPath, body: BaseChange, workspace: WorkspaceOf, caller: Caller, expected: IfMatch
) -> Response:
    """Rename or describe a knowledge base; all else stays."""
    found = base_of(workspace, caller, name)
    if body.name is not None:
        caller.require_kb(_text(body.name))
        found = workspace.rename(name, to=body.name, if_match=expected)
        expected = None
    if body.description is not None:
        found = workspace.describe(found.name, description=body.description, if_match=expected)
    return _figures(found.info())


@router.delete(
    "/bases/{name}",
    status_code=204,
    dependencies=[ADMIN],
    responses=documented(status=204, refusals=(404, 409, 412, 422)),
)
def delete_base(
    *,
    name: KbPath,
    workspace: WorkspaceOf,
    caller: Caller,
    expected: IfMatch,
    forever: Annotated[bool, boolean("forever", "Leave nothing, not even in the trash.")],
) -> Response:
    """Move a knowledge base to the trash."""
    caller.require_kb(name)
    workspace.delete(name, forever=forever, if_match=expected)
    return no_content()


@router.get(
    "/trash",
    dependencies=[READ],
    responses=documented(DeletedKnowledgeBase, many=True, refusals=(404, 422)),
)
def list_deleted_bases(
    workspace: WorkspaceOf, caller: Caller, limit: Limit, cursor: Cursor = ""
) -> Response:
    """List the deleted knowledge bases that can be brought back, the last first."""
    found = workspace.trash()
    names = set(caller.visible(each.name for each in found))
    return part_of([each for each in found if each.name in names], limit, cursor)


@router.post(
    "/trash/{name}/undelete",
    dependencies=[ADMIN],
    responses=documented(KnowledgeBaseInfo, refusals=(404, 409, 422)),
)
def undelete_base(
    name: KbPath,
    body: Annotated[NewName, left_out(NewName)],
    workspace: WorkspaceOf,
    caller: Caller,
) -> Response:
    """Restore a deleted knowledge base, by name or id."""
    deleted = [each.name for each in workspace.trash() if name in (each.name, each.id)]
    caller.require_kb(deleted[0] if deleted else name)
    to = "" if body.to is None else _text(body.to)
    if to:
        caller.require_kb(to)
    return _figures(workspace.undelete(name, to=to).info())


@router.post("/compact", dependencies=[ADMIN], responses=documented(Compaction, refusals=(503,)))
def compact_workspace(workspace: WorkspaceOf, caller: Caller) -> Response:
    """Empty the trash, of all kinds, and make the workspace smaller."""
    caller.require_all_kbs()
    return answer(workspace.compact())


@router.get(
    "/bases/{name}/spec",
    dependencies=[READ],
    responses=documented(KnowledgeBaseSpec, refusals=(404,)),
)
def read_base_spec(name: KbPath, workspace: WorkspaceOf, caller: Caller) -> Response:
    """Return the settings: chunking, embedding, retrieval, storage, site."""
    spec = base_of(workspace, caller, name).spec
    return answer(spec.model_dump(mode="json"), version=spec.version)


def _figures(
    info: KnowledgeBaseInfo, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    return answer(info, status, version=info.version, headers=headers)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{value!r:.80}: give a text")
    return value
