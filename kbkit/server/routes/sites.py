"""Routes for exported sites, and for the server itself: health, metrics, documentation."""

import base64
import hashlib
import mimetypes
from pathlib import Path
from typing import Annotated

from fastapi import Path as PathParameter
from fastapi import Request, Response
from fastapi.responses import FileResponse, HTMLResponse, RedirectResponse
from jinja2 import Environment, PackageLoader
from pydantic import BaseModel, Field, StrictBool

from kbkit import __version__
from kbkit.errors import ImpossibleError, NotFoundError, WorkspaceError
from kbkit.knowledge_base import handle_of
from kbkit.models import SiteArchive
from kbkit.models.server import Scope
from kbkit.models.values import ENTRIES, FILES
from kbkit.server.access import WRITE, Caller, JobsOf, Kb, SearchesOf, WorkspaceOf
from kbkit.server.parameters import Options
from kbkit.server.responses import MCP, METADATA, Wait, base_url, problem
from kbkit.server.routing import Routes, Work
from kbkit.server.tasks import archive_of
from kbkit.server.uploads import file_response, file_responses
from kbkit.workspace import settings_of

exports = Routes("/api/knowledge/bases/{name}/exports", "sites")
routes = Routes("", "sites", any_query=True, include_in_schema=False)

ArchiveId = Annotated[
    str, PathParameter(description="Id of an archive.", min_length=1, max_length=64)
]
Name = Annotated[str, PathParameter(max_length=100)]


class NewExport(Options):
    """Contents of an export."""

    build: StrictBool = True
    """Also build the site with MkDocs."""
    publish: StrictBool = False
    """Update the site at `/site/NAME/`, without an archive."""
    standalone: StrictBool = False
    """Add files that others need to build the project."""
    pages_only: StrictBool = False
    """Only the pages, to include in another site."""
    model: StrictBool | None = None
    """Whether browsers get the query model; by default the recipe's."""
    graph: StrictBool | None = None
    """Whether the knowledge graph gets a page; by default the recipe's."""
    files: StrictBool | None = None
    """Whether files are a section; by default the recipe's."""
    entries: StrictBool | None = None
    """Whether entries are a section; by default the recipe's."""
    wait: Wait = True


@exports.post("", WRITE, work=SiteArchive)
def export_base(kb: Kb, body: NewExport, caller: Caller, work: Work) -> Response:
    """Export a knowledge base with its site to an archive, or update its site here."""
    if body.pages_only and (body.standalone or body.files or body.entries):
        raise ImpossibleError("pages_only: leave out standalone, files and entries")
    if body.publish and (body.pages_only or not body.build):
        raise ImpossibleError("publish: needs a built site; leave out pages_only, and build: false")
    for section, included in ((FILES, body.files), (ENTRIES, body.entries)):
        if included:
            caller.require_kb(section)
    return work.run("export", body, kb=kb.name)


@exports.get("/{archive}", responses=file_responses())
def fetch_export(kb: Kb, archive: ArchiveId, workspace: WorkspaceOf) -> Response:
    """Fetch an archive (ZIP) that an export wrote; it is kept for a day."""
    path = archive_of(workspace, kb, archive)
    return file_response(path.open("rb"), f"{kb.name}.zip", archive)


@routes.get("/site/{name}")
def to_site(name: Name, request: Request) -> Response:
    """Redirect to the site of a knowledge base."""
    return RedirectResponse(f"{request.url.path}/", 308)


@routes.get("/site/{name}/{path:path}")
def site(
    name: Name, path: str, request: Request, workspace: WorkspaceOf, caller: Caller
) -> Response:
    """Return a file of the site of a knowledge base."""
    caller.require_kb(name)
    folder = (handle_of(workspace[name]).site_folder() / "site").resolve()
    if not (folder / "index.html").is_file():
        raise NotFoundError(
            f"{name}: has no site yet; make it with `kbkit export {name}`, or publish: true of "
            f"POST /api/knowledge/bases/{name}/exports"
        )
    file = _file(folder, path)
    status = 200 if file else 404
    file = file or folder / "404.html"
    if not file.is_file():
        raise NotFoundError(f"{request.url.path}: the site has no such page")
    kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
    address = f"{base_url(request.scope, request.app.state.settings)}/site/{name}/"
    return FileResponse(
        file,
        status,
        media_type=kind,
        headers={"Content-Security-Policy": _policy(address), "Cache-Control": "no-cache"},
    )


def _file(folder: Path, path: str) -> Path | None:
    try:
        file = (folder / path).resolve()
        if file.is_dir():
            file /= "index.html"
        return file if file.is_relative_to(folder) and file.is_file() else None
    except (OSError, ValueError):  # the name is too long, or has a NUL
        return None


def _policy(base: str) -> str:
    """Return a content security policy that keeps scripts of a site from the server's API."""
    return (
        f"default-src 'none'; script-src {base} 'unsafe-inline' 'wasm-unsafe-eval' blob:; "
        f"style-src {base} 'unsafe-inline'; img-src {base} data: https:; font-src {base} data:; "
        f"media-src {base} data: https:; connect-src {base} data: blob:; worker-src {base} "
        f"blob:; manifest-src {base}; form-action {base}; base-uri 'none'; object-src 'none'; "
        "frame-ancestors 'none'"
    )


server_routes = Routes("", "server", any_query=True)


class ServerStatus(BaseModel):
    """Status of a server."""

    status: str = Field(description="`ok`.")
    version: str = Field(description="Of kbkit.")


class ResourceMetadata(BaseModel):
    """Metadata of the protected resource (RFC 9728)."""

    resource: str = Field(description="Address of the protected resource: MCP, or the server.")
    resource_name: str
    scopes_supported: list[str] = Field(description="Scopes of tokens.")
    bearer_methods_supported: list[str] = Field(description="Places of a token.")


class CallerInfo(BaseModel):
    """The caller as the server knows them."""

    name: str = Field(description="Name of their token; empty if none is needed.")
    rater: str = Field(description="Default rater.")
    scopes: list[Scope] = Field(description="Their permissions.")
    kbs: list[str] = Field(description="Knowledge bases that they may use; empty for all.")


@server_routes.get("/api/caller")
def show_caller(caller: Caller, workspace: WorkspaceOf) -> CallerInfo:
    """Return the caller and their permissions."""
    return CallerInfo(
        name=caller.name,
        rater=caller.name or settings_of(workspace).rater,
        scopes=[scope for scope in Scope if scope in caller.scopes],
        kbs=list(caller.kbs),
    )


@server_routes.get("/health", None)
def read_health() -> ServerStatus:
    """Report that the server runs, without checking anything."""
    return ServerStatus(status="ok", version=__version__)


@server_routes.get("/ready", None, model=ServerStatus)
def read_readiness(
    request: Request, workspace: WorkspaceOf, searches: SearchesOf
) -> ServerStatus | Response:
    """Report whether search has started and the server is not shutting down."""
    waiting = ""  # the response is returned, since a raised error would be logged
    if request.app.state.closing.is_set():
        waiting = "the server is shutting down"
    elif not searches.is_ready:
        waiting = "the search processes are starting; ask again in a moment"
    if waiting:
        return problem(waiting, 503, WorkspaceError)
    len(workspace)
    return ServerStatus(status="ok", version=__version__)


@server_routes.get(
    "/metrics",
    responses={
        200: {
            "description": "Figures in Prometheus' format",
            "content": {"text/plain": {"schema": {"type": "string"}}},
        }
    },
    response_class=Response,
)
def read_metrics(request: Request, jobs: JobsOf) -> Response:
    """Return metrics: requests by route and status, times, jobs by state."""
    return Response(
        request.app.state.metrics.text(jobs), media_type="text/plain; version=0.0.4; charset=utf-8"
    )


@server_routes.get(METADATA + MCP, None, operation_id="resource_metadata_mcp")
@server_routes.get(METADATA, None, operation_id="resource_metadata")
def resource_metadata(request: Request) -> ResourceMetadata:
    """Return the scopes, and that tokens go into a header (RFC 9728).

    `kbkit token create` makes tokens; there is no authorization server.
    """
    return ResourceMetadata(
        resource=base_url(request.scope, request.app.state.settings)
        + request.url.path.removeprefix(METADATA),
        resource_name="kbkit",
        scopes_supported=[scope.value for scope in Scope],
        bearer_methods_supported=["header"],
    )


@server_routes.get("/", None, include_in_schema=False)  # browsers get a page
@server_routes.get("/docs", None, include_in_schema=False)
def read_docs(request: Request) -> Response:
    """Return a page of all routes, which loads nothing else."""
    environment = Environment(loader=PackageLoader(__package__, ""), autoescape=True)
    page = environment.get_template("docs.html.j2").render(document=request.app.openapi())
    style = page.partition("<style>")[2].partition("</style>")[0]
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    return HTMLResponse(page, headers={"Content-Security-Policy": policy})
