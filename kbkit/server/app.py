"""The application: all routes of a workspace, with middleware."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_address

import anyio
from anyio import to_thread
from fastapi import APIRouter, FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from kbkit import __version__
from kbkit.access import Access, Tokens
from kbkit.server.jobs import Jobs
from kbkit.server.middleware import CHECK_TEXTS, Metrics, Middleware
from kbkit.server.openapi import describe
from kbkit.server.responses import COMMON_RESPONSES, add_handlers
from kbkit.server.routes import (
    bases,
    chunks,
    documents,
    entries,
    files,
    graph,
    imports,
    maintenance,
    measures,
    sites,
    sources,
)
from kbkit.server.routes import jobs as of_jobs
from kbkit.server.routes import searches as of_searches
from kbkit.server.settings import ServerSettings
from kbkit.workspace import Workspace, stores_of
from kbkit.workspace.processes import SearchProcesses

ROUTERS: tuple[APIRouter, ...] = tuple(
    each.router
    for each in (
        of_searches.routes,
        documents.routes,
        bases.routes,
        chunks.routes,
        chunks.rating_routes,
        measures.routes,
        sites.exports,
        imports.routes,
        sources.routes,
        chunks.annotation_routes,
        files.routes,
        files.trash,
        entries.routes,
        entries.trash,
        graph.routes,
        graph.subjects,
        of_jobs.routes,
        maintenance.routes,
        sites.routes,
        maintenance.server_routes,
    )
)
"""Routers of `kbkit.server.routes`, in OpenAPI order."""

_NOTE_SECONDS = 30
"""Seconds between writes of when tokens were used."""
_EXPOSED = (
    "ETag",
    "Location",
    "Retry-After",
    "WWW-Authenticate",
    "Idempotency-Replayed",
    "Mcp-Session-Id",
)


@dataclass(frozen=True, slots=True)
class MountedApp:
    """Another application at the same address, such as MCP."""

    routes: Sequence[BaseRoute]
    lifespan: Callable[[], AbstractAsyncContextManager[object]]


def application(
    workspace: Workspace,
    settings: ServerSettings | None = None,
    *,
    searches: SearchProcesses | None = None,
    parts: Sequence[MountedApp] = (),
) -> FastAPI:
    """Return the ASGI application of a workspace; the caller closes the workspace."""
    settings = settings or ServerSettings()
    tokens, jobs, metrics = Tokens(workspace), Jobs(workspace), Metrics()
    stores = stores_of(workspace)
    searches = searches or SearchProcesses(workspace, settings.search_processes)

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for part in parts:
                await stack.enter_async_context(part.lifespan())
            await to_thread.run_sync(jobs.resume)
            stores.gather()
            searches.start()
            stack.callback(searches.close)
            background = await stack.enter_async_context(anyio.create_task_group())
            background.start_soon(_note_uses, tokens)
            yield
            background.cancel_scope.cancel()
        app.state.closing.set()
        await to_thread.run_sync(jobs.close)
        await to_thread.run_sync(partial(stores.gather, more=False))
        await to_thread.run_sync(tokens.note_uses)

    app = FastAPI(
        title="kbkit",
        version=__version__,
        summary="Knowledge bases, files, entries and graph of a workspace.",
        docs_url=None,
        redoc_url=None,
        responses=COMMON_RESPONSES,
        separate_input_output_schemas=False,
        generate_unique_id_function=lambda route: route.name,  # name in generated clients
        redirect_slashes=False,
        dependencies=[CHECK_TEXTS],
        lifespan=lifespan,
    )
    app.state.workspace = workspace
    app.state.settings = settings
    app.state.jobs = jobs
    app.state.searches = searches
    app.state.tokens = tokens
    app.state.metrics = metrics
    app.state.closing = closing = threading.Event()
    add_handlers(app)
    for router in ROUTERS:
        app.include_router(router)
    for part in parts:
        app.router.routes.extend(part.routes)
    describe(app)
    access = Access(tokens, open_to_all=is_loopback(settings.host))
    app.add_middleware(
        Middleware, access=access, settings=settings, metrics=metrics, closing=closing
    )
    if settings.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allow_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=_EXPOSED,
            max_age=600,
        )
    return app


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _note_uses(tokens: Tokens) -> None:
    while True:
        await anyio.sleep(_NOTE_SECONDS)
        await to_thread.run_sync(tokens.note_uses)
