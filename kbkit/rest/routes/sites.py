"""Routes for exported sites."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Annotated

from fastapi import APIRouter, Request, Response
from fastapi import Path as PathParameter
from fastapi.responses import FileResponse, RedirectResponse

from kbkit.errors import NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.rest.access import READ, Caller, WorkspaceOf
from kbkit.rest.problems import base_url

router = APIRouter(tags=["sites"], include_in_schema=False)

Name = Annotated[str, PathParameter(max_length=100)]


@router.get("/site/{name}", dependencies=[READ])
def to_site(name: Name, request: Request) -> Response:
    """Lead to the site of a knowledge base."""
    return RedirectResponse(f"{request.url.path}/", 308)


@router.get("/site/{name}/{path:path}", dependencies=[READ])
def site(
    name: Name, path: str, request: Request, workspace: WorkspaceOf, caller: Caller
) -> Response:
    """A file of the site of a knowledge base."""
    caller.require_kb(name)
    folder = (handle_of(workspace[name]).site_folder() / "site").resolve()
    if not (folder / "index.html").is_file():
        raise NotFoundError(
            f"{name}: has no site yet; make it with `kbkit export {name}`, or publish: true of "
            f"POST /api/knowledge/bases/{name}/exports"
        )
    found = _file(folder, path)
    status = 200 if found else 404
    found = found or folder / "404.html"
    if not found.is_file():
        raise NotFoundError(f"{request.url.path}: the site has no such page")
    kind = mimetypes.guess_type(found.name)[0] or "application/octet-stream"
    place = f"{base_url(request.scope, request.app.state.settings)}/site/{name}/"
    return FileResponse(
        found,
        status,
        media_type=kind,
        headers={"Content-Security-Policy": _policy(place), "Cache-Control": "no-cache"},
    )


def _file(folder: Path, path: str) -> Path | None:
    """The file of a site at a path; links that lead out of it lead nowhere."""
    if "\0" in path:
        return None
    try:
        found = (folder / path).resolve()
        if found.is_dir():
            found /= "index.html"
        if found.is_relative_to(folder) and found.is_file():
            return found
    except OSError:  # a name that is too long
        pass
    return None


def _policy(place: str) -> str:
    """Return the content security policy of a site: pages may only read the site itself.

    A script of a page that ought not to be there could else use the rest of the server, with the
    rights of who looks at the page.
    """
    return (
        f"default-src 'none'; script-src {place} 'unsafe-inline' 'wasm-unsafe-eval' blob:; "
        f"style-src {place} 'unsafe-inline'; img-src {place} data: https:; font-src {place} data:; "
        f"media-src {place} data: https:; connect-src {place} data: blob:; worker-src {place} "
        f"blob:; manifest-src {place}; form-action {place}; base-uri 'none'; object-src 'none'; "
        "frame-ancestors 'none'"
    )
