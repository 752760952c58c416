"""Scopes of routes, and the knowledge bases that a caller may use."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Depends, Path, Request, Security
from fastapi.security import HTTPBearer, SecurityScopes

from kbkit.errors import NotFoundError
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models.server import ALL, Scope
from kbkit.models.server import Caller as AccessCaller
from kbkit.server.jobs import Jobs
from kbkit.workspace import Workspace
from kbkit.workspace.processes import SearchProcesses

_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token of `kbkit token create`. A server on the loopback address needs none "
    "while no token exists.",
)


# These are coroutines because FastAPI runs functions in a limited pool of threads.


async def _caller(request: Request) -> AccessCaller:
    return getattr(request.state, "caller", ALL)


async def _check(
    needed: SecurityScopes,
    caller: Annotated[AccessCaller, Depends(_caller)],
    _token: Annotated[Any, Depends(_bearer)],
) -> None:
    for scope in needed.scopes:
        caller.require(Scope(scope))


def _state_value(name: str) -> Any:
    async def read(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(read)


READ = Security(_check, scopes=[Scope.READ.value])
WRITE = Security(_check, scopes=[Scope.WRITE.value])
ADMIN = Security(_check, scopes=[Scope.ADMIN.value])
"""Dependency of routes that create, rename or delete knowledge bases, or empty the trash."""

Caller = Annotated[AccessCaller, Depends(_caller)]
WorkspaceOf = Annotated[Workspace, _state_value("workspace")]
SearchesOf = Annotated[SearchProcesses, _state_value("searches")]
JobsOf = Annotated[Jobs, _state_value("jobs")]

KbPath = Annotated[str, Path(description="Name of a knowledge base.", min_length=1, max_length=200)]


def base_of(workspace: Workspace, caller: AccessCaller, name: str) -> KnowledgeBase:
    caller.require_kb(name)
    return workspace[name]


def _base(name: KbPath, workspace: WorkspaceOf, caller: Caller) -> KnowledgeBase:
    return base_of(workspace, caller, name)


Kb = Annotated[KnowledgeBase, Depends(_base)]
"""Parameter: the knowledge base that the path names."""


def holder_of(
    workspace: Workspace,
    caller: AccessCaller,
    kb: str | None,
    find: Callable[[KnowledgeBase], object],
) -> KnowledgeBase:
    """Return the named knowledge base, or the first where `find` does not raise `NotFoundError`."""
    if kb is not None:
        return base_of(workspace, caller, kb)
    missing: NotFoundError | None = None
    for name in caller.visible(workspace):
        base = workspace[name]
        try:
            find(base)
        except NotFoundError as error:
            missing = missing or error
        else:
            return base
    raise missing or NotFoundError("there is no knowledge base yet")
