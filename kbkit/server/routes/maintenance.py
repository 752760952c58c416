"""Routes for runs and bundles of a workspace, and for the health of its server."""

from __future__ import annotations

import hashlib
from typing import Annotated, BinaryIO, Literal

from fastapi import File, Form, Path, Request, Response, UploadFile
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field, WithJsonSchema

from kbkit import __version__
from kbkit.access import Scope
from kbkit.errors import WorkspaceError
from kbkit.models import BundleArchive, Health, Restoration, Run
from kbkit.models.files import BUILT_IN
from kbkit.server.access import ADMIN, Caller, JobsOf, SearchesOf, WorkspaceOf
from kbkit.server.openapi import POLICY, docs_page
from kbkit.server.parameters import MAX, Cursor, KbName, KbsQuery, Limit, Options, offset_page
from kbkit.server.responses import MCP, METADATA, Paged, Wait, base_url, problem
from kbkit.server.routes.bases import SLUG
from kbkit.server.routing import Routes, Work
from kbkit.server.tasks import KEY, UPLOAD, bundle_of, store_uploads
from kbkit.server.uploads import ConditionsOf, file_response, file_responses
from kbkit.workspace import rater_of

routes = Routes("/api/knowledge", "maintenance")

ArchiveId = Annotated[str, Path(description="Id of a bundle.", min_length=1, max_length=64)]


class Examination(Options):
    """An examination."""

    wait: Wait = True


class NewBundle(Options):
    """Contents of a bundle."""

    kbs: Annotated[list[KbName], Field(max_length=MAX)] | None = None
    """Names of knowledge bases; by default the token's, or all with files and entries."""
    wait: Wait = True


@routes.get("/runs")
def list_runs(
    workspace: WorkspaceOf, caller: Caller, limit: Limit, kb: KbsQuery = None, cursor: Cursor = ""
) -> Paged[Run]:
    """List when sources were read, with duration and outcome, newest first."""
    names = caller.restrict(kb) if kb else caller.visible(workspace)
    return offset_page(workspace.runs(names), limit, cursor)


@routes.post("/doctor", ADMIN, work=Health)
def examine_workspace(body: Examination, caller: Caller, work: Work) -> Response:
    """Check the content of the workspace and list problems; repairs nothing."""
    caller.require_all_kbs()
    return work.start("doctor", {}, wait=body.wait)


@routes.post("/bundles", ADMIN, work=BundleArchive)
def make_bundle(body: NewBundle, workspace: WorkspaceOf, caller: Caller, work: Work) -> Response:
    """Write knowledge bases into a bundle, a file that `restore` reads."""
    names = caller.restrict(body.kbs)
    if body.kbs is None and caller.kbs:
        names = [name for name in caller.visible(workspace) if name not in BUILT_IN]
    return work.start("bundle", {"kbs": names}, wait=body.wait)


@routes.get("/bundles/{archive}", ADMIN, responses=file_responses())
def fetch_bundle(
    archive: ArchiveId, workspace: WorkspaceOf, caller: Caller, conditions: ConditionsOf
) -> Response:
    """Fetch a bundle; it is kept for a day."""
    place = bundle_of(workspace, caller, archive)
    return file_response(place.open("rb"), "bundle.zip", archive, conditions)


@routes.post("/restore", ADMIN, work=Restoration)
def restore_bundle(
    *,
    workspace: WorkspaceOf,
    caller: Caller,
    work: Work,
    bundle: Annotated[UploadFile, File(description="The bundle.")],
    name: Annotated[
        str,
        WithJsonSchema(SLUG),
        Form(description="New name of its only knowledge base; by default the old one."),
    ] = "",
    verify: Annotated[
        str,
        Form(
            description="Public Ed25519 key (PEM) of the required signer, who is trusted.",
            max_length=10_000,
        ),
    ] = "",
    trust: Annotated[
        Literal["true", "false"],
        Form(
            description=(
                "Whether its sources may be read, except those on the server's disk, and its "
                "models may be used."
            )
        ),
    ] = "false",
    wait: Annotated[
        Literal["true", "false"], Form(description="Whether to wait some seconds for the result.")
    ] = "true",
) -> Response:
    """Restore a bundle, all or nothing; nothing is crawled or embedded."""
    caller.require_all_kbs()
    digest = hashlib.file_digest(bundle.file, "sha256").hexdigest()  # type: ignore[arg-type]

    def done() -> Response:
        bundle.file.seek(0)
        files: list[tuple[str, bytes | BinaryIO]] = [(UPLOAD, bundle.file)]
        if verify:
            files.append((KEY, verify.encode("utf-8", "replace")))
        arguments = {
            "uploads": store_uploads(workspace, files),
            "name": name,
            "verify": bool(verify),
            "trust": trust == "true",
        }
        return work.run("restore", arguments, wait=wait == "true")

    return work.once([digest, name, verify, trust, wait], done)


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
        rater=caller.name or rater_of(workspace),
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
    return HTMLResponse(
        docs_page(request.app.openapi()), headers={"Content-Security-Policy": POLICY}
    )
