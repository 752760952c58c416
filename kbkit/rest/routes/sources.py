"""Routes for sources and settings of knowledge bases."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Path, Response
from pydantic import Field, GetJsonSchemaHandler, StrictBool, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kbkit.access import Caller as AccessCaller
from kbkit.access import Scope
from kbkit.errors import ConfigError, ForbiddenError, ImpossibleError
from kbkit.models import ImportReport, Improvement, SourceInfo
from kbkit.recipes import AnyEmbedding, AnySource, KnowledgeBaseSpec, parse_source
from kbkit.rest.access import ADMIN, READ, WRITE, Caller, JobsOf, WorkspaceOf, base_of
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.middleware import Once
from kbkit.rest.parameters import MAX, Body, Cursor, KbPath, Limit, boolean, left_out, part_of
from kbkit.rest.responses import (
    IfMatch,
    Wait,
    answer,
    documented,
    documented_work,
    no_content,
    refused,
    run_as_job,
)

router = APIRouter(prefix="/api/knowledge", tags=["sources"], dependencies=[KNOWN_QUERY])

_OF_WEB = ("crawl", "page", "openapi")

SourceName = Annotated[
    str, Path(description="Id of a source, or its place.", min_length=1, max_length=4_000)
]


class _AsSource:
    """Documents a source in OpenAPI; Python validates it."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(TypeAdapter(AnySource).core_schema)


SourceValues = Annotated[dict[str, Any], _AsSource()]


class Ingest(Body):
    """Sources, as recipes have them, and documents, as llama-index's `to_dict` gives them."""

    sources: Annotated[list[SourceValues], Field(max_length=MAX)] = Field(default_factory=list)
    """Sources to read."""
    documents: Annotated[list[dict[str, Any]], Field(max_length=100_000)] = Field(
        default_factory=list
    )
    """Documents; each replaces the one with its URI."""
    remember: StrictBool = True
    """Whether refreshes read the sources again."""
    sync: StrictBool = False
    """The sources are all that a recipe names: those that it named before go."""
    wait: Wait = True


class Refresh(Body):
    """Sources to read again."""

    local: StrictBool = False
    """Only those that read on the server's disk."""
    wait: Wait = True


class Configuration(Body):
    """New settings of a knowledge base."""

    spec: KnowledgeBaseSpec
    """All of it."""
    description: str | None = None
    """Description of its topic."""
    wait: Wait = True


class Improve(Body):
    """Models to embed and annotate with."""

    embedding: AnyEmbedding | str | None = None
    """New embedding of the chunks, which needs the scope admin."""
    estimate: StrictBool = False
    """Only estimate."""
    background: StrictBool = False
    """Start, and return what is left."""
    wait: Wait = True


class NewSources(Body):
    """Sources that are to be remembered, without being read now."""

    sources: Annotated[list[SourceValues], Field(min_length=1, max_length=MAX)]
    """Sources as in a recipe."""


class SourceChange(Body):
    """Changes of a source; omitted fields stay."""

    enabled: StrictBool | None = None
    """Whether refreshes read it."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options as in a recipe; null restores the default."""


def check_source(caller: AccessCaller, source: AnySource) -> None:
    """Check that a caller may use a source: only admins read files or packages of the server.

    Raises:
        ForbiddenError: They may not, or it names a path of the server.
    """
    if getattr(source, "path", None):
        raise ForbiddenError(
            f"a source of the type {source.type} names a path, and a server reads none of its own "
            "for a caller; send the files to /api/knowledge/import/file"
        )
    if source.type not in _OF_WEB or getattr(source, "allow_private", False):
        caller.require(Scope.ADMIN)
    if getattr(source, "provider", None) == "browser":
        caller.require(Scope.ADMIN)


@router.post("/bases/{name}/ingest", dependencies=[WRITE], responses=documented_work(ImportReport))
def ingest_sources(
    *,
    name: KbPath,
    body: Annotated[Ingest, left_out(Ingest)],
    workspace: WorkspaceOf,
    caller: Caller,
    jobs: JobsOf,
    once: Once,
) -> Response:
    """Read sources as a recipe has them; files, packages and plugins of the server need admin."""
    base_of(workspace, caller, name)
    sources = [parse_source(each) for each in body.sources]
    for source in sources:
        check_source(caller, source)
    arguments = {
        "kb": name,
        "sources": [source.model_dump(mode="json") for source in sources],
        "documents": body.documents,
        "remember": body.remember,
        "sync": body.sync,
    }
    return once(
        body.model_dump(mode="json"),
        lambda: run_as_job(jobs, caller, "import", arguments, wait=body.wait),
    )


@router.post("/bases/{name}/refresh", dependencies=[WRITE], responses=documented_work(ImportReport))
def refresh_base(
    *,
    name: KbPath,
    body: Annotated[Refresh, left_out(Refresh)],
    workspace: WorkspaceOf,
    caller: Caller,
    jobs: JobsOf,
    once: Once,
) -> Response:
    """Read all sources of a knowledge base again and store changes."""
    base_of(workspace, caller, name)
    arguments = {"kb": name, "local": body.local}
    return once(arguments, lambda: run_as_job(jobs, caller, "refresh", arguments, wait=body.wait))


@router.put(
    "/bases/{name}/spec",
    dependencies=[ADMIN],
    responses=documented_work(ImportReport) | refused(412),
)
def configure_base(
    *,
    name: KbPath,
    body: Configuration,
    workspace: WorkspaceOf,
    caller: Caller,
    jobs: JobsOf,
    expected: IfMatch,
) -> Response:
    """Change the settings; documents are split and embedded again if needed."""
    base_of(workspace, caller, name).spec.check_version(expected)
    arguments = {
        "kb": name,
        "spec": body.spec.model_dump(mode="json"),
        "description": body.description,
        "if_match": expected,
    }
    return run_as_job(jobs, caller, "configure", arguments, wait=body.wait)


@router.post("/bases/{name}/improve", dependencies=[WRITE], responses=documented_work(Improvement))
def improve_base(
    name: KbPath,
    body: Annotated[Improve, left_out(Improve)],
    workspace: WorkspaceOf,
    caller: Caller,
    jobs: JobsOf,
) -> Response:
    """Embed and annotate with models; return what is left."""
    found = base_of(workspace, caller, name)
    embedding: Any = body.embedding
    if embedding is not None:
        caller.require(Scope.ADMIN)
    if body.estimate or body.background:
        left = found.improve(
            embedding=embedding,
            estimate=body.estimate,
            background=body.background,
            on_progress=_silent,
        )
        return answer(left)
    if embedding is not None and not isinstance(embedding, str):
        embedding = embedding.model_dump(mode="json")
    arguments = {"kb": name, "embedding": embedding}
    return run_as_job(jobs, caller, "improve", arguments, wait=body.wait)


@router.get(
    "/bases/{name}/sources",
    dependencies=[READ],
    responses=documented(SourceInfo, many=True, refusals=(404,)),
)
def list_sources(
    *, name: KbPath, workspace: WorkspaceOf, caller: Caller, limit: Limit, cursor: Cursor = ""
) -> Response:
    """List the sources of a knowledge base, oldest first."""
    found = base_of(workspace, caller, name).sources
    return part_of([told(each, caller) for each in found], limit, cursor)


@router.post(
    "/bases/{name}/sources",
    status_code=201,
    dependencies=[WRITE],
    responses=documented(SourceInfo, 201, many=True, refusals=(404, 422)),
)
def add_sources(name: KbPath, body: NewSources, workspace: WorkspaceOf, caller: Caller) -> Response:
    """Remember sources without reading them: the next refresh does."""
    found = base_of(workspace, caller, name)
    sources = [parse_source(each) for each in body.sources]
    for source in sources:
        check_source(caller, source)
    made = found.sources.add(sources)
    data = [told(each, caller) for each in made]
    return answer({"data": data, "next_cursor": None}, 201)


@router.get(
    "/bases/{name}/sources/{source:path}",
    dependencies=[READ],
    responses=documented(SourceInfo, refusals=(404, 422)),
)
def read_source(
    name: KbPath, source: SourceName, workspace: WorkspaceOf, caller: Caller
) -> Response:
    """Return a source of a knowledge base with its documents."""
    return _of(base_of(workspace, caller, name).sources[source], caller)


@router.patch(
    "/bases/{name}/sources/{source:path}",
    dependencies=[WRITE],
    responses=documented(SourceInfo, refusals=(404, 409, 412, 422)),
)
def change_source(
    *,
    name: KbPath,
    source: SourceName,
    body: SourceChange,
    workspace: WorkspaceOf,
    caller: Caller,
    expected: IfMatch,
) -> Response:
    """Change a source, or have refreshes skip it."""
    sources = base_of(workspace, caller, name).sources
    found = sources[source]
    given: dict[str, Any] = {}
    if body.options:
        known = {**found.options, **body.options, "type": found.type}
        values = {key: value for key, value in known.items() if value is not None}
        try:
            check_source(caller, parse_source(values))
        except ConfigError as error:  # which options there are is up to the source
            raise ImpossibleError(str(error)) from None
        named = {**found.options, **values}  # else a null could stand for an argument of update
        given = {key: value for key, value in body.options.items() if key in named}
    if body.options or body.enabled is None:
        found = sources.update(found.id, if_match=expected, **given)
        expected = None
    if body.enabled and not found.enabled:  # one of a stranger's bundle, for instance
        check_source(caller, parse_source({**found.options, "type": found.type}))
    if body.enabled is not None:
        switch = sources.enable if body.enabled else sources.disable
        found = switch(found.id, if_match=expected)
    return _of(found, caller)


@router.delete(
    "/bases/{name}/sources/{source:path}",
    status_code=204,
    dependencies=[WRITE],
    responses=documented(status=204, refusals=(404, 409, 412, 422)),
)
def remove_source(
    *,
    name: KbPath,
    source: SourceName,
    workspace: WorkspaceOf,
    caller: Caller,
    expected: IfMatch,
    keep_documents: Annotated[
        bool, boolean("keep_documents", "Leave its documents, as if added by hand.")
    ],
) -> Response:
    """Forget a source and delete its documents."""
    sources = base_of(workspace, caller, name).sources
    sources.remove(source, keep_documents=keep_documents, if_match=expected)
    return no_content()


def told(source: SourceInfo, caller: AccessCaller) -> SourceInfo:
    """Return a source as the caller may see it: only admins see paths of the server."""
    if Scope.ADMIN in caller.scopes:
        return source
    if not source.options.get("path"):
        return replace(source, base="")
    options = {**source.options, "path": source.name}
    return replace(source, base="", location=source.name, options=options)


def _of(source: SourceInfo, caller: AccessCaller) -> Response:
    return answer(told(source, caller), version=source.version)


def _silent(_: object) -> None:
    """Hear of progress, and show nothing."""
