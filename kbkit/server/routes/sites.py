"""Routes for exports, and for exported sites."""

from __future__ import annotations

import mimetypes
from pathlib import Path
from typing import Annotated

from fastapi import Path as PathParameter
from fastapi import Request, Response
from fastapi.responses import FileResponse, RedirectResponse
from pydantic import StrictBool

from kbkit.errors import ImpossibleError, NotFoundError
from kbkit.knowledge_base import handle_of
from kbkit.models import SiteArchive
from kbkit.models.files import ENTRIES, FILES
from kbkit.server.access import WRITE, Caller, Kb, WorkspaceOf
from kbkit.server.parameters import Options
from kbkit.server.responses import Wait, base_url
from kbkit.server.routing import Routes, Work
from kbkit.server.tasks import archive_of
from kbkit.server.uploads import ConditionsOf, file_response, file_responses

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
    for section, wanted in ((FILES, body.files), (ENTRIES, body.entries)):
        if wanted:
            caller.require_kb(section)
    arguments = {"kb": kb.name, **body.model_dump(exclude={"wait"})}
    return work.start("export", arguments, wait=body.wait)


@exports.get("/{archive}", responses=file_responses())
def fetch_export(
    kb: Kb, archive: ArchiveId, workspace: WorkspaceOf, conditions: ConditionsOf
) -> Response:
    """Fetch an archive (ZIP) that an export wrote; it is kept for a day."""
    place = archive_of(workspace, kb, archive)
    return file_response(place.open("rb"), f"{kb.name}.zip", archive, conditions)


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
    place = f"{base_url(request.scope, request.app.state.settings)}/site/{name}/"
    return FileResponse(
        file,
        status,
        media_type=kind,
        headers={"Content-Security-Policy": _policy(place), "Cache-Control": "no-cache"},
    )


def _file(folder: Path, path: str) -> Path | None:
    if "\0" in path:
        return None
    try:
        file = (folder / path).resolve()
        if file.is_dir():
            file /= "index.html"
        if file.is_relative_to(folder) and file.is_file():
            return file
    except OSError:  # the name is too long
        pass
    return None


def _policy(place: str) -> str:
    """Return a content security policy that keeps scripts of a site from the server's API."""
    return (
        f"default-src 'none'; script-src {place} 'unsafe-inline' 'wasm-unsafe-eval' blob:; "
        f"style-src {place} 'unsafe-inline'; img-src {place} data: https:; font-src {place} data:; "
        f"media-src {place} data: https:; connect-src {place} data: blob:; worker-src {place} "
        f"blob:; manifest-src {place}; form-action {place}; base-uri 'none'; object-src 'none'; "
        "frame-ancestors 'none'"
    )
