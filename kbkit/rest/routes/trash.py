"""Routes for the trash of files and entries: `/api/trash`."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import BaseModel, ConfigDict, Field

from kbkit.models import DeletedFile, Entry, FileInfo
from kbkit.rest.access import READ, WRITE
from kbkit.rest.responses import answer, documented, page
from kbkit.rest.routes.entries import EntriesOf
from kbkit.rest.routes.files import FilesOf

router = APIRouter(prefix="/api/trash", tags=["trash"])

_MAX_LENGTH = 8_000


class Restoration(BaseModel):
    """Item to restore."""

    model_config = ConfigDict(extra="forbid")

    path: str = Field(max_length=_MAX_LENGTH, description="Where it was, or its id in the trash.")
    to: str = Field("", max_length=_MAX_LENGTH, description="Where to; by default where it was.")


@router.get("/files", dependencies=[READ], responses=documented(DeletedFile, many=True))
def list_deleted_files(files: FilesOf) -> Response:
    """List the files and folders that can be brought back, the last first."""
    return page(files.trash())


@router.post("/files", dependencies=[WRITE], responses=documented(FileInfo, refusals=(404, 409)))
def undelete_file(files: FilesOf, body: Restoration) -> Response:
    """Restore what was last deleted at a path."""
    info = files.undelete(body.path, to=body.to)
    return answer(info, version=info.version)


@router.get("/entries", dependencies=[READ], responses=documented(DeletedFile, many=True))
def list_deleted_entries(entries: EntriesOf) -> Response:
    """List the entries that can be brought back, the last first."""
    return page(entries.trash())


@router.post(
    "/entries", dependencies=[WRITE], responses=documented(Entry, refusals=(404, 409, 422))
)
def undelete_entry(entries: EntriesOf, body: Restoration) -> Response:
    """Restore the entry of a slug that was last deleted or replaced."""
    entry = entries.undelete(body.path, to=body.to)
    return answer(entry, version=entry.version)
