"""Routes for health, metrics and authorization metadata."""

from __future__ import annotations

from fastapi import Request, Response
from fastapi.responses import HTMLResponse
from pydantic import BaseModel, Field

from kbkit import __version__
from kbkit.access import Scope
from kbkit.errors import WorkspaceError
from kbkit.server.access import Caller, JobsOf, SearchesOf, WorkspaceOf
from kbkit.server.openapi import POLICY, docs_page
from kbkit.server.problems import MCP, METADATA, base_url, problem
from kbkit.server.routing import Routes
from kbkit.workspace import rater_of

routes = Routes("", "server", any_query=True)


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


@routes.get("/api/caller")
def show_caller(caller: Caller, workspace: WorkspaceOf) -> CallerInfo:
    """Return the caller and their permissions."""
    return CallerInfo(
        name=caller.name,
        rater=caller.name or rater_of(workspace),
        scopes=[scope for scope in Scope if scope in caller.scopes],
        kbs=list(caller.kbs),
    )


@routes.get("/health", None)
def read_health() -> ServerStatus:
    """Report that the server runs, without checking anything."""
    return ServerStatus(status="ok", version=__version__)


@routes.get("/ready", None, model=ServerStatus)
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


@routes.get(
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


@routes.get(METADATA + MCP, None, operation_id="resource_metadata_mcp")
@routes.get(METADATA, None, operation_id="resource_metadata")
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


@routes.get("/", None, include_in_schema=False)  # browsers get a page
@routes.get("/docs", None, include_in_schema=False)
def read_docs(request: Request) -> Response:
    """Return a page of all routes, which loads nothing else."""
    return HTMLResponse(
        docs_page(request.app.openapi()), headers={"Content-Security-Policy": POLICY}
    )
