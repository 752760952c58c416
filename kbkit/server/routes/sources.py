"""Routes for sources, uploads and settings of knowledge bases."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated, Any

from fastapi import Path, Query, Response
from pydantic import Field, GetJsonSchemaHandler, StrictBool, TypeAdapter
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from kbkit.errors import ConfigError, ForbiddenError, ImpossibleError
from kbkit.models import ImportReport, Improvement, SourceInfo
from kbkit.models.server import Scope
from kbkit.recipes import AnyEmbedding, AnySource, KnowledgeBaseSpec, parse_source
from kbkit.server.access import ADMIN, WRITE, Caller, Kb
from kbkit.server.parameters import MAX, Body, Options, PagingOf
from kbkit.server.responses import IfMatch, Paged, Wait, answer
from kbkit.server.routing import Routes, Work

routes = Routes("/api/knowledge", "sources")

SourceName = Annotated[
    str, Path(description="Id of a source, or its place.", min_length=1, max_length=4_000)
]


class _AsSource:
    """Describes a source in OpenAPI; kbkit validates it later."""

    def __get_pydantic_json_schema__(
        self, _: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return handler(TypeAdapter(AnySource).core_schema)


SourceValues = Annotated[dict[str, Any], _AsSource()]


class Ingest(Options):
    """Sources as in a recipe, and documents as of llama-index's `to_dict`."""

    sources: Annotated[list[SourceValues], Field(max_length=MAX)] = Field(default_factory=list)
    documents: Annotated[list[dict[str, Any]], Field(max_length=100_000)] = Field(
        default_factory=list
    )
    """Documents; each replaces the one with its URI."""
    remember: StrictBool = True
    """Whether refreshes read the sources again."""
    sync: StrictBool = False
    """Remove sources of earlier recipes that are not among these."""
    wait: Wait = True


class Refresh(Options):
    """Sources to read again."""

    local: StrictBool = False
    """Only those that read on the server's disk."""
    wait: Wait = True


class Configuration(Body):
    """New settings of a knowledge base."""

    spec: KnowledgeBaseSpec
    description: str | None = None
    """Description of its topic."""
    wait: Wait = True


class Improve(Options):
    """Models to embed and annotate with."""

    embedding: AnyEmbedding | str | None = None
    """New embedding of the chunks (needs the scope admin)."""
    estimate: StrictBool = False
    """Only estimate."""
    background: StrictBool = False
    """Start, and return the remaining work."""
    wait: Wait = True


class NewSources(Body):
    """Sources to store without reading them."""

    sources: Annotated[list[SourceValues], Field(min_length=1, max_length=MAX)]


class SourceChange(Body):
    """Changes of a source; omitted fields stay."""

    enabled: StrictBool | None = None
    """Whether refreshes read it."""
    options: dict[str, Any] = Field(default_factory=dict)
    """Options as in a recipe; null restores the default."""


def check_source(caller: Caller, source: AnySource) -> None:
    """Refuse paths on the server; packages, plugins, browsers, private addresses need admin."""
    if getattr(source, "path", None):
        raise ForbiddenError(
            f"a source of the type {source.type} names a path, but a server reads no files of its "
            "own for callers; send them to /api/knowledge/import/file"
        )
    if source.type not in ("crawl", "page", "openapi") or getattr(source, "allow_private", False):
        caller.require(Scope.ADMIN)
    if getattr(source, "provider", None) == "browser":
        caller.require(Scope.ADMIN)


def _check_sources(values: Sequence[dict[str, Any]], caller: Caller) -> list[AnySource]:
    sources = [parse_source(each) for each in values]
    for source in sources:
        check_source(caller, source)
    return sources


@routes.post("/bases/{name}/ingest", WRITE, work=ImportReport)
def ingest_sources(kb: Kb, body: Ingest, caller: Caller, work: Work) -> Response:
    """Read sources as in a recipe; packages and plugins of the server need admin."""
    sources = [each.model_dump(mode="json") for each in _check_sources(body.sources, caller)]
    return work.run("import", body, kb=kb.name, sources=sources)


@routes.post("/bases/{name}/refresh", WRITE, work=ImportReport)
def refresh_base(kb: Kb, body: Refresh, work: Work) -> Response:
    """Read all sources of a knowledge base again and store changes."""
    return work.run("refresh", body, kb=kb.name)


@routes.put("/bases/{name}/spec", ADMIN, work=ImportReport)
def configure_base(kb: Kb, body: Configuration, work: Work, expected: IfMatch) -> Response:
    """Change the settings; documents are split and embedded again if needed."""
    kb.spec.check_version(expected)
    return work.run("configure", body, kb=kb.name, if_match=expected)


@routes.post("/bases/{name}/improve", WRITE, work=Improvement)
def improve_base(kb: Kb, body: Improve, caller: Caller, work: Work) -> Response:
    """Embed and annotate with models; return the remaining work."""
    if body.embedding is not None:
        caller.require(Scope.ADMIN)
    if body.estimate or body.background:
        improvement = kb.improve(
            embedding=body.embedding,
            estimate=body.estimate,
            background=body.background,
            on_progress=lambda _: None,
        )
        return answer(improvement)
    return work.run("improve", body, kb=kb.name)


@routes.get("/bases/{name}/sources")
def list_sources(kb: Kb, caller: Caller, paging: PagingOf) -> Paged[SourceInfo]:
    """List the sources of a knowledge base, oldest first."""
    return paging.of([redact(each, caller) for each in kb.sources])


@routes.post("/bases/{name}/sources", WRITE, status=201)
def add_sources(kb: Kb, body: NewSources, caller: Caller) -> list[SourceInfo]:
    """Store sources without reading them; the next refresh does."""
    added = kb.sources.add(_check_sources(body.sources, caller))
    return [redact(each, caller) for each in added]


@routes.get("/bases/{name}/sources/{source:path}")
def read_source(kb: Kb, source: SourceName, caller: Caller) -> SourceInfo:
    """Return a source of a knowledge base with its documents."""
    return redact(kb.sources[source], caller)


@routes.patch("/bases/{name}/sources/{source:path}", WRITE)
def change_source(
    kb: Kb, source: SourceName, body: SourceChange, caller: Caller, expected: IfMatch
) -> SourceInfo:
    """Change a source, or disable it for refreshes."""
    info = kb.sources[source]
    merged = {**info.options, **body.options, "type": info.type}
    values = {key: value for key, value in merged.items() if value is not None}
    # a disabled source may be from an untrusted bundle
    if body.options or (body.enabled and not info.enabled):
        try:
            check_source(caller, parse_source(values))
        except ConfigError as error:  # options depend on the type of source
            raise ImpossibleError(str(error)) from None
    known_options = {**info.options, **values}  # null must not become an argument of `update`
    changes = {key: value for key, value in body.options.items() if key in known_options}
    changed = kb.sources.update(info.id, enabled=body.enabled, if_match=expected, **changes)
    return redact(changed, caller)


@routes.delete("/bases/{name}/sources/{source:path}", WRITE)
def remove_source(
    kb: Kb,
    source: SourceName,
    expected: IfMatch,
    keep_documents: Annotated[
        bool, Query(description="Keep its documents, as if added one by one.")
    ] = False,
) -> None:
    """Delete a source and its documents."""
    kb.sources.remove(source, keep_documents=keep_documents, if_match=expected)


def redact(source: SourceInfo, caller: Caller) -> SourceInfo:
    """Hide paths of the server from all but admins."""
    if Scope.ADMIN in caller.scopes:
        return source
    if not source.options.get("path"):
        return replace(source, base="")
    options = {**source.options, "path": source.name}
    return replace(source, base="", location=source.name, options=options)
