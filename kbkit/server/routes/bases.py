"""Routes for knowledge bases."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, WithJsonSchema

from kbkit.errors import ConfigError
from kbkit.models import Compaction, DeletedKnowledgeBase, KnowledgeBaseInfo
from kbkit.recipes import AnyEmbedding, KnowledgeBaseSpec
from kbkit.server.access import ADMIN, Caller, Kb, KbPath, WorkspaceOf
from kbkit.server.parameters import Body, Cursor, Limit, Options, boolean, integer, offset_page
from kbkit.server.responses import IfMatch, Paged
from kbkit.server.routing import Created, Routes

routes = Routes("/api/knowledge", "knowledge bases")

SLUG = {
    "type": "string",
    "pattern": "^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$",
    "not": {"enum": ["files", "entries"]},
}
Slug = Annotated[Any, WithJsonSchema(SLUG)]
MaybeSlug = Annotated[Any, WithJsonSchema({"anyOf": [SLUG, {"type": "null"}]})]


class NewBase(Body):
    """A new knowledge base."""

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
    description: str | None = None
    """Description of its topic."""


class NewName(Options):
    """New name of a deleted knowledge base."""

    to: MaybeSlug = None
    """By default the old name."""


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
    ratings: int
    sources: int


@routes.get("/bases")
def list_bases(
    workspace: WorkspaceOf, caller: Caller, limit: Limit, cursor: Cursor = ""
) -> Paged[KnowledgeBaseInfo]:
    """List the knowledge bases, in order of name, with their figures."""
    infos = {info.name: info for info in workspace.list()}
    return offset_page([infos[name] for name in caller.visible(infos)], limit, cursor)


@routes.post("/bases", ADMIN)
def create_base(
    body: NewBase, workspace: WorkspaceOf, caller: Caller
) -> Created[KnowledgeBaseInfo]:
    """Create an empty knowledge base."""
    if not isinstance(body.name, str):
        raise ConfigError(f"name={body.name!r:.80}: give a text")
    caller.require_kb(body.name)
    kb = workspace.create(**dict(body))
    return Created(kb.info(), f"/api/knowledge/bases/{kb.name}")


@routes.get("/bases/{name}")
def read_base(kb: Kb) -> KnowledgeBaseInfo:
    """Return figures of a knowledge base: documents, chunks, types, states, embedder, times."""
    return kb.info()


@routes.get("/bases/{name}/stats", model=Stats)
def read_base_stats(
    kb: Kb, depth: Annotated[int, integer("depth", "Levels of folders to count.", 0, 20, 2)]
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
) -> KnowledgeBaseInfo:
    """Rename or describe a knowledge base."""
    if body.name is not None:
        caller.require_kb(_text(body.name))
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
    forever: Annotated[bool, boolean("forever", "Delete without the trash.")],
) -> None:
    """Move a knowledge base to the trash."""
    caller.require_kb(name)
    workspace.delete(name, forever=forever, if_match=expected)


@routes.get("/trash")
def list_deleted_bases(
    workspace: WorkspaceOf, caller: Caller, limit: Limit, cursor: Cursor = ""
) -> Paged[DeletedKnowledgeBase]:
    """List deleted knowledge bases that can be restored, newest first."""
    deleted = workspace.trash()
    names = set(caller.visible(each.name for each in deleted))
    return offset_page([each for each in deleted if each.name in names], limit, cursor)


@routes.post("/trash/{name}/undelete", ADMIN)
def undelete_base(
    name: KbPath, body: NewName, workspace: WorkspaceOf, caller: Caller
) -> KnowledgeBaseInfo:
    """Restore a deleted knowledge base, by name or id."""
    deleted = [each.name for each in workspace.trash() if name in (each.name, each.id)]
    caller.require_kb(deleted[0] if deleted else name)
    to = "" if body.to is None else _text(body.to)
    if to:
        caller.require_kb(to)
    return workspace.undelete(name, to=to).info()


@routes.post("/compact", ADMIN)
def compact_workspace(workspace: WorkspaceOf, caller: Caller) -> Compaction:
    """Empty the trash, of all kinds, and make the workspace smaller."""
    caller.require_all_kbs()
    return workspace.compact()


@routes.get("/bases/{name}/spec")
def read_base_spec(kb: Kb) -> KnowledgeBaseSpec:
    """Return the settings: chunking, embedding, retrieval, storage, site."""
    return kb.spec


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ConfigError(f"{value!r:.80}: give a text")
    return value
