"""Routes for imports: pages, sites, files and API descriptions."""

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import File, Form, Response, UploadFile
from pydantic import Field, StrictBool

from kbkit.errors import ConfigError, ImpossibleError
from kbkit.files.paths import join_parts, parts_of
from kbkit.models import DocumentType, ImportReport
from kbkit.models.values import valid_values
from kbkit.recipes import CrawlSource, OpenApiSource, PageSource, parse_source
from kbkit.recipes.base import HttpUrl
from kbkit.server.access import WRITE, Caller, WorkspaceOf, base_of
from kbkit.server.parameters import MAX, Body, FormBoolean, KbName
from kbkit.server.responses import Wait
from kbkit.server.routes.sources import check_source
from kbkit.server.routing import Routes, Work
from kbkit.sources.web.addresses import resolve

routes = Routes("/api/knowledge", "imports")

MAX_FILES = 1_000
_MAX_TAGS = 900
"""Maximum tags; a form has at most 1,000 fields."""
_ON_DISK = ("files", "mirror", "jsonl", "parquet", "openapi")

WebAddress = Annotated[HttpUrl, Field(max_length=10_000)]
Tags = Annotated[list[Annotated[str, Field(max_length=1_000)]], Field(max_length=MAX)]


class _Import(Body):
    kb: KbName
    document_type: DocumentType | None = None
    """Type of all documents; by default detected."""
    tags: Tags = Field(default_factory=list)
    """Tags of all documents."""
    allow_private: StrictBool = False
    """Permit loopback and private addresses (needs the scope admin)."""


class UrlImport(_Import):
    """A web page, or a site."""

    url: WebAddress
    """Address, or start page."""
    crawl: StrictBool = False
    """Follow its links, in a job; by default read only the page."""
    limit: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Maximum pages of a crawl."""
    depth: Annotated[int, Field(ge=0, le=1_000)] | None = None
    """Maximum links from the start page."""
    include: Annotated[list[str], Field(max_length=MAX)] = Field(default_factory=list)
    """Globs of paths to read; by default all."""
    exclude: Annotated[list[str], Field(max_length=MAX)] = Field(default_factory=list)
    """Globs of paths to skip."""
    remember: StrictBool = True
    """Whether refreshes read it again."""
    wait: Wait = True


class OpenApiImport(_Import):
    """An API description (OpenAPI 3) or its address."""

    url: WebAddress | None = None
    """Address; either this or `description`."""
    description: dict[str, Any] | str | None = None
    """The description, as JSON or as a text of JSON or YAML."""
    name: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9-]{0,60}$")] = "openapi"
    """Name in the URIs of its documents."""
    wait: Wait = True


@routes.post("/import/url", WRITE, work=ImportReport)
def import_url(body: UrlImport, workspace: WorkspaceOf, caller: Caller, work: Work) -> Response:
    """Import a web page, or a site in a job; searchable at once."""
    base_of(workspace, caller, body.kb)
    scope = body.model_dump(include={"limit", "depth", "include", "exclude"}, exclude_defaults=True)
    if scope and not body.crawl:
        raise ImpossibleError("limit, depth, include and exclude need crawl: true")
    kind = "crawl" if body.crawl else "page"
    source = _source(caller, {"type": kind, "url": body.url, **scope}, body)
    arguments = {"kb": body.kb, "sources": [source], "strict": True, "remember": body.remember}
    return work.start("import", arguments, wait=body.wait and not body.crawl)


@routes.post("/import/openapi", WRITE, work=ImportReport)
def import_openapi(
    body: OpenApiImport, workspace: WorkspaceOf, caller: Caller, work: Work
) -> Response:
    """Import an API description: a document for each endpoint and schema."""
    base_of(workspace, caller, body.kb)
    if (body.url is None) == (body.description is None):
        raise ImpossibleError("give either url or description")
    files = []
    if body.url is not None:
        source = _source(caller, {"type": "openapi", "url": body.url}, body)
    else:
        description = body.description
        text = description if isinstance(description, str) else json.dumps(description)
        name = f"{body.name}.{'yaml' if isinstance(description, str) else 'json'}"
        source = _source(caller, {"type": "openapi", "path": name}, body, uploaded=True)
        files.append((name, text.encode("utf-8", "replace")))
    arguments = {"kb": body.kb, "sources": [source], "strict": True}
    return work.start("import", arguments, wait=body.wait, files=files)


@routes.post("/import/file", WRITE, work=ImportReport)
def import_files(
    *,
    workspace: WorkspaceOf,
    caller: Caller,
    work: Work,
    files: Annotated[
        list[UploadFile],
        File(description="Files; a name may be a path.", min_length=1, max_length=MAX_FILES),
    ],
    kb: Annotated[str, Form(description="Name of a knowledge base.", min_length=1, max_length=200)],
    document_type: Annotated[
        DocumentType | None, Form(description="Type of all documents.")
    ] = None,
    tags: Annotated[
        list[str] | None, Form(description="Tags of all documents.", max_length=_MAX_TAGS)
    ] = None,
    source: Annotated[
        str,
        Form(
            description="How to read them: a source of a recipe as JSON (files, mirror, jsonl, "
            "parquet or openapi), with the path of one of them or of a folder. By default files.",
            max_length=100_000,
        ),
    ] = "",
    strict: Annotated[FormBoolean, Form(description="Whether reading nothing is an error.")] = True,
    wait: Annotated[
        FormBoolean, Form(description="Whether to wait some seconds for the result.")
    ] = True,
) -> Response:
    """Import uploaded files; searchable at once."""
    base_of(workspace, caller, kb)
    uploads = [(_path(file.filename or ""), file.file.read()) for file in files]
    if len({path for path, _ in uploads}) < len(uploads):
        raise ImpossibleError("files: two have the same name; rename one")
    values: dict[str, Any] = {"type": "files", "path": "**"}
    if source:
        values = _parse_source(source)
        if values.get("type") not in _ON_DISK:
            raise ImpossibleError(f"source: its type must be one of {', '.join(_ON_DISK)}")
        values["path"] = join_parts(parts_of(str(values.get("path", "")))) or "."
    try:
        spec = parse_source(values).model_dump(mode="json")
    except ConfigError as error:  # the request was valid by its schema
        raise ImpossibleError(f"source: {error}") from None
    spec |= {"document_type": document_type.value} if document_type else {}
    spec |= {"tags": tags} if tags else {}
    arguments = {"kb": kb, "sources": [spec], "strict": strict}
    return work.start("import", arguments, wait=wait, files=uploads)


def _source(
    caller: Caller, values: Mapping[str, Any], body: _Import, *, uploaded: bool = False
) -> dict[str, Any]:
    shared = body.model_dump(include={"document_type", "tags", "allow_private"})
    source = parse_source({**values, **shared})
    if not uploaded:
        check_source(caller, source)
        assert isinstance(source, CrawlSource | PageSource | OpenApiSource)
        # refuse private addresses before a job starts; the fetcher checks again
        with suppress(OSError, ValueError):
            parts = urlsplit(source.url or "")
            resolve(parts.hostname or "", parts.port or 443, allow_private=source.allow_private)
    return source.model_dump(mode="json")


def _parse_source(text: str) -> dict[str, Any]:
    try:
        values = valid_values(json.loads(text))
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise ImpossibleError("source: is not a JSON object")
    return values


def _path(name: str) -> str:
    path = join_parts(parts_of(name))
    if not path:
        raise ConfigError("files: one has no name")
    return path
