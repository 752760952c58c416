"""Routes for entries: `/api/entries`."""

from __future__ import annotations

import os
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Response

from kbkit.entries.entries import Entries
from kbkit.errors import EntryFormatError, ImpossibleError
from kbkit.models import (
    Context,
    DeletedFile,
    Entry,
    EntryFile,
    EntryInfo,
    EntryStatus,
    EntrySyncReport,
)
from kbkit.models.files import ENTRIES
from kbkit.server.access import READ, WRITE, Caller, WorkspaceOf
from kbkit.server.bodies import (
    EntryChange,
    EntryList,
    NewEntry,
    NewSlug,
    NewVote,
    Task,
    TaskFolder,
    TaskQuery,
)
from kbkit.server.responses import IfMatch
from kbkit.server.routes.files import Undelete
from kbkit.server.routing import Created, Routes
from kbkit.server.uploads import RevisionOf, file_response, file_responses

routes = Routes("/api/entries", "entries")
trash = Routes("/api/trash", "trash")

SlugOf = Annotated[str, Path(max_length=255, description="Name of the entry's folder.")]


def entries_of(workspace: WorkspaceOf, caller: Caller) -> Entries:
    caller.require_kb(ENTRIES)
    return workspace.entries


EntriesOf = Annotated[Entries, Depends(entries_of)]


@routes.get("", model=EntryList)
def list_entries(
    *,
    entries: EntriesOf,
    status: Annotated[EntryStatus | None, Query(description="Only of this status.")] = None,
    category: Annotated[str | None, Query(max_length=500, description="Only of this.")] = None,
    tag: Annotated[str | None, Query(max_length=500, description="Only with this.")] = None,
    text: Annotated[str, Query(max_length=500, description="Only those that contain this.")] = "",
    sort: Annotated[
        Literal["rating", "updated", "title"],
        Query(description="`rating`: best first; `updated`: newest first; `title`."),
    ] = "rating",
    page: Annotated[int, Query(ge=1, le=1_000_000, description="Number of the page, from 1.")] = 1,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Entries of a page.")] = 50,
    offset: Annotated[
        int | None, Query(ge=0, le=1_000_000_000, description="Entries to skip, instead of `page`.")
    ] = None,
) -> dict[str, Any]:
    """List entries without their text."""
    start = (page - 1) * limit if offset is None else offset
    result = entries.list(
        status=status, category=category, tag=tag, text=text, sort=sort, limit=limit, offset=start
    )
    return {"data": result.entries, "total": result.total, "page": start // limit + 1}


@routes.post("", WRITE)
def create_entry(entries: EntriesOf, body: NewEntry) -> Created[Entry]:
    """Write a new entry."""
    entry = entries.create(**dict(body))
    return Created(entry, f"{routes.prefix}/{entry.slug}")


@routes.get("/revision.json")
def read_entries_revision(entries: EntriesOf) -> RevisionOf:
    """Return a revision that changes with entries and votes; cheap enough to poll."""
    return RevisionOf(revision=entries.revision())


@routes.post("/sync", WRITE)
def sync_entries(entries: EntriesOf) -> EntrySyncReport:
    """Import changes made outside kbkit on the server, and store votes of searches."""
    return entries.sync(on_progress=lambda _: None)


@routes.post("/find", READ)
def find_entries(entries: EntriesOf, body: TaskQuery) -> list[EntryInfo]:
    """Find active entries for a task, by relevance and rating, best first."""
    return entries.find(**dict(body))


@routes.post("/context", READ)
def read_entry_context(entries: EntriesOf, body: Task) -> Context:
    """Return active entries for a task, as a short numbered list for an agent."""
    return entries.context(**dict(body))


@routes.post("/learn", WRITE)
def learn_entry(entries: EntriesOf, body: TaskFolder) -> Entry:
    """Create or update an entry from the folder `.knowledge` of a task."""
    return entries.learn(body.files, task_id=body.task_id)


@routes.get("/learn/prompt")
def read_learning_prompt(entries: EntriesOf) -> str:
    """Return a section for system prompts that makes agents record what they learned."""
    return entries.learning_prompt()


@routes.get("/{slug}")
def read_entry(entries: EntriesOf, slug: SlugOf) -> Entry:
    """Return an entry with prompt, readme, votes and names of other files."""
    return entries.read(slug)


@routes.put("/{slug}", WRITE)
def update_entry(entries: EntriesOf, slug: SlugOf, body: EntryChange, expected: IfMatch) -> Entry:
    """Change an entry; omitted fields stay."""
    changes = {name: value for name, value in body if value is not None}
    return entries.update(slug, **changes, if_match=expected)


@routes.delete("/{slug}", WRITE)
def delete_entry(entries: EntriesOf, slug: SlugOf, expected: IfMatch) -> DeletedFile:
    """Move an entry to the trash."""
    return entries.delete(slug, if_match=expected)


@routes.post("/{slug}/rate", WRITE)
def rate_entry(entries: EntriesOf, caller: Caller, slug: SlugOf, body: NewVote) -> Entry:
    """Vote for an entry."""
    try:
        return entries.rate(slug, body.score, rater=body.rater or caller.name)
    except EntryFormatError as error:  # the entry is invalid, not the request
        raise ImpossibleError(str(error)) from None


@routes.post("/{slug}/rename", WRITE)
def rename_entry(entries: EntriesOf, slug: SlugOf, body: NewSlug) -> Entry:
    """Rename an entry; id, votes and relations stay."""
    return entries.rename(slug, to=body.to)


@routes.get("/{slug}/artifacts")
def list_artifacts(entries: EntriesOf, slug: SlugOf) -> tuple[EntryFile, ...]:
    """List the files of an entry, other than its prompt and readme."""
    return entries.read(slug).files


@routes.get("/{slug}/artifacts/{path:path}", response_class=Response, responses=file_responses())
def read_artifact(
    entries: EntriesOf,
    slug: SlugOf,
    path: Annotated[str, Path(max_length=4_000, description="Within the entry.")],
) -> Response:
    """Return a file of an entry, or a range of it. Browsers download it, and never run it."""
    file = entries.open(slug, path)
    status = os.fstat(file.fileno())
    version = f"{status.st_mtime_ns:x}-{status.st_size:x}"
    return file_response(file, path.rpartition("/")[2], version)


@trash.get("/entries")
def list_deleted_entries(entries: EntriesOf) -> list[DeletedFile]:
    """List deleted entries that can be restored, newest first."""
    return entries.trash()


@trash.post("/entries", WRITE)
def undelete_entry(entries: EntriesOf, body: Undelete) -> Entry:
    """Restore the last deleted or replaced entry of a slug."""
    return entries.undelete(body.path, to=body.to)
