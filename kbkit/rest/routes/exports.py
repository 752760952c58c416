"""Routes for exports."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path, Response
from pydantic import StrictBool

from kbkit.errors import ImpossibleError
from kbkit.jobs.exports import archive_of
from kbkit.models import SiteArchive
from kbkit.rest.access import READ, WRITE, Caller, JobsOf, WorkspaceOf, base_of
from kbkit.rest.known_query import KNOWN_QUERY
from kbkit.rest.middleware import Once
from kbkit.rest.parameters import Body, KbPath, left_out
from kbkit.rest.responses import Wait, documented_work, run_as_job
from kbkit.rest.uploads import ConditionsOf, contents, sent
from kbkit.stores.catalog.knowledge_bases import ENTRIES, FILES

router = APIRouter(
    prefix="/api/knowledge/bases/{name}/exports", tags=["sites"], dependencies=[KNOWN_QUERY]
)

ArchiveId = Annotated[str, Path(description="Id of an archive.", min_length=1, max_length=64)]


class NewExport(Body):
    """Contents of an export."""

    build: StrictBool = True
    """Also run MkDocs, so that the built site is in it."""
    publish: StrictBool = False
    """Renew the site that this server shows at `/site/NAME/`, and make no archive."""
    standalone: StrictBool = False
    """Add what others need to build the project."""
    pages_only: StrictBool = False
    """Only the pages, for the documentation of a site of yours."""
    model: StrictBool | None = None
    """Whether browsers get the query model; by default the recipe's."""
    graph: StrictBool | None = None
    """Whether the knowledge graph gets a page; by default the recipe's."""
    files: StrictBool | None = None
    """Whether the workspace's files are a section; by default the recipe's."""
    entries: StrictBool | None = None
    """Whether its entries are a section; by default the recipe's."""
    wait: Wait = True


@router.post("", dependencies=[WRITE], responses=documented_work(SiteArchive))
def export_base(
    *,
    name: KbPath,
    body: Annotated[NewExport, left_out(NewExport)],
    workspace: WorkspaceOf,
    caller: Caller,
    jobs: JobsOf,
    once: Once,
) -> Response:
    """Write a knowledge base with its site into an archive, or renew the site shown here."""
    base_of(workspace, caller, name)
    if body.pages_only and (body.standalone or body.files or body.entries):
        raise ImpossibleError("pages_only: leave out standalone, files and entries")
    if body.publish and (body.pages_only or not body.build):
        raise ImpossibleError("publish: is of a built site; leave out pages_only, and build: false")
    for known, wanted in ((FILES, body.files), (ENTRIES, body.entries)):
        if wanted:
            caller.require_kb(known)
    arguments = {"kb": name, **body.model_dump(exclude={"wait"})}
    return once(arguments, lambda: run_as_job(jobs, caller, "export", arguments, wait=body.wait))


@router.get("/{archive}", dependencies=[READ], responses=contents(404, 422))
def fetch_export(
    name: KbPath, archive: ArchiveId, workspace: WorkspaceOf, caller: Caller, wanted: ConditionsOf
) -> Response:
    """Fetch an archive (ZIP) that an export wrote; it is kept for a day."""
    place = archive_of(workspace, base_of(workspace, caller, name), archive)
    return sent(place.open("rb"), f"{name}.zip", archive, wanted)
