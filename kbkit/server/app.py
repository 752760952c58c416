"""The application: all routes of a workspace, with middleware."""

import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import anyio
from anyio import to_thread
from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute

from kbkit import __version__
from kbkit.access import Tokens
from kbkit.runtime.web_server import is_loopback
from kbkit.server.jobs import Jobs
from kbkit.server.middleware import CHECK_TEXTS, Metrics, Middleware
from kbkit.server.responses import COMMON_RESPONSES, ProblemDetails, add_handlers
from kbkit.server.routes import bases, chunks, entries, files, graph, imports, sites, sources
from kbkit.server.routes import jobs as of_jobs
from kbkit.server.routes import searches as of_searches
from kbkit.server.routing import Routes
from kbkit.server.settings import ServerSettings
from kbkit.workspace import Workspace, stores_of
from kbkit.workspace.processes import SearchProcesses

_MODULES = (of_searches, bases, chunks, imports, sources, files, entries, graph, of_jobs, sites)
ROUTERS = tuple(
    each.router for room in _MODULES for each in vars(room).values() if isinstance(each, Routes)
)
"""Routers of `kbkit.server.routes`, in OpenAPI order."""

_NOTE_SECONDS = 30
"""Seconds between writes of when tokens were used."""
_EXPOSED = "ETag Location Retry-After WWW-Authenticate Idempotency-Replayed Mcp-Session-Id"


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
    tokens = Tokens(workspace, open_to_all=is_loopback(settings.host))
    jobs, metrics = Jobs(workspace), Metrics()
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
    _describe(app)
    app.add_middleware(
        Middleware, tokens=tokens, settings=settings, metrics=metrics, closing=closing
    )
    if settings.allow_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=settings.allow_origins,
            allow_methods=["GET", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=["*"],
            expose_headers=_EXPOSED.split(),
            max_age=600,
        )
    return app


def _describe(app: FastAPI) -> None:
    @cache
    def document() -> dict[str, Any]:
        schema = FastAPI.openapi(app)
        schemas = schema["components"]["schemas"]
        schemas["ProblemDetails"] = ProblemDetails.model_json_schema()
        for path in schema["paths"].values():
            for operation in path.values():
                for parameter in operation.get("parameters", ()):
                    _remove_null(parameter["schema"])
        _require_types(schema, schemas)
        for name, shape in schemas.items():
            if name.startswith("Body_"):
                for field in shape["properties"].values():
                    _remove_null(field)
        return schema

    app.openapi = document  # type: ignore[method-assign]  # as FastAPI's guide has it


def _require_types(part: Any, schemas: dict[str, Any]) -> None:
    if isinstance(part, list):
        for item in part:
            _require_types(item, schemas)
    elif isinstance(part, dict):
        key = part["discriminator"]["propertyName"] if "discriminator" in part else None
        for item in part.get("oneOf", ()) if isinstance(key, str) else ():
            shape = schemas[item["$ref"].rpartition("/")[2]]
            required = shape.setdefault("required", [])
            if key not in required and shape["properties"][key].get("const") != "rules":
                required.append(key)
        for item in part.values():
            _require_types(item, schemas)


def _remove_null(field: dict[str, Any]) -> None:
    kinds = [each for each in field.get("anyOf", ()) if each != {"type": "null"}]
    if len(kinds) == 1:
        del field["anyOf"]
        field.update(kinds[0])


async def _note_uses(tokens: Tokens) -> None:
    while True:
        await anyio.sleep(_NOTE_SECONDS)
        await to_thread.run_sync(tokens.note_uses)
