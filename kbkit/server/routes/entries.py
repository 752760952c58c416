"""Routes for entries: `/api/entries`."""

import os
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query, Response
from pydantic import BaseModel, Field, StrictInt

from kbkit import models
from kbkit.entries.entries import Entries
from kbkit.entries.folders import MAX_FILES, MAX_LENGTH
from kbkit.entries.skill_file import MAX_DESCRIPTION_LENGTH, MAX_TAGS, MAX_TITLE_LENGTH
from kbkit.errors import EntryFormatError, ImpossibleError
from kbkit.models.values import ENTRIES
from kbkit.retrieval.context import MIN_TOKENS
from kbkit.server.access import READ, WRITE, Caller, WorkspaceOf
from kbkit.server.parameters import NOT_BLANK, WHOLE, Body
from kbkit.server.responses import Created, IfMatch
from kbkit.server.routes.files import Undelete
from kbkit.server.routing import Routes
from kbkit.server.uploads import Content, RevisionOf, file_response, file_responses

_MAX = 1_000_000
_SLUG = "^(?:[a-z0-9]+(?:-[a-z0-9]+)*)?$"


class EntryList(BaseModel):
    """A page of entries."""

    data: list[models.EntryInfo] = Field(description="Entries of this page.")
    total: int = Field(description="Number of all entries.")
    page: int = Field(description="Number of this page, from 1.")


FilePath = Annotated[str, Field(min_length=1)]
Title = Annotated[str, Field(max_length=MAX_TITLE_LENGTH, json_schema_extra={"pattern": NOT_BLANK})]
Line = Annotated[str, Field(max_length=MAX_TITLE_LENGTH)]
Description = Annotated[str, Field(max_length=MAX_DESCRIPTION_LENGTH)]
Tags = Annotated[list[str], Field(max_length=MAX_TAGS)]
Prompt = Annotated[str, Field(json_schema_extra={"pattern": NOT_BLANK})]
Limit = Annotated[StrictInt, Field(ge=1, le=_MAX), WHOLE]
Tokens = Annotated[StrictInt, Field(ge=MIN_TOKENS, le=_MAX), WHOLE]
Slug = Annotated[str, Field(max_length=MAX_LENGTH, json_schema_extra={"pattern": _SLUG})]


class NewEntry(Body):
    """A new entry."""

    title: Title = Field(description="One line.")
    slug: Slug = Field("", description="Name of its folder; by default made from the title.")
    description: Description = Field("", description="Its purpose, which search uses.")
    prompt: str = Field("", description="Instructions for an agent.")
    readme: str = Field("", description="Readme for people.")
    tags: Tags = Field([], description="Free labels.")
    category: Line = Field("", description="Its domain.")
    status: models.EntryStatus = Field(
        models.EntryStatus.ACTIVE, description="Whether it is in use."
    )
    files: dict[FilePath, Content] = Field(
        default_factory=dict, description="Other files, by path within it: text, or `base64`."
    )


class EntryChange(Body):
    """Changes of an entry; omitted or null fields stay."""

    title: Title | None = Field(None, description="One line.")
    description: Description | None = Field(None, description="Its purpose.")
    prompt: str | None = Field(None, description="Instructions for an agent.")
    readme: str | None = Field(None, description="Readme for people.")
    tags: Tags | None = Field(None, description="Free labels.")
    category: Line | None = Field(None, description="Its domain.")
    status: models.EntryStatus | None = Field(None, description="Whether it is in use.")
    files: dict[FilePath, Content | None] = Field(
        default_factory=dict,
        description="Files to write, by path within it: text, or `base64`; null deletes one.",
    )


class TaskFolder(Body):
    """The folder `.knowledge` of a task."""

    files: dict[FilePath, Content] = Field(
        min_length=1,
        max_length=MAX_FILES,
        description="Its files by path within it: text, or `base64`.",
    )
    task_id: str = Field("", max_length=500, description="Name of the task.")


class NewVote(Body):
    """A rating of an entry."""

    score: int = Field(ge=1, le=5, description="1 (useless) to 5 (exactly right).")
    rater: str = Field("", max_length=200, description="Rater; by default the caller.")


class NewSlug(Body):
    """New slug of an entry."""

    to: Slug = Field(description="The new name of its folder.")


class TaskQuery(Body):
    """A task to look up entries for."""

    prompt: Prompt = Field(description="The task.")
    limit: Limit = Field(10, description="Maximum entries.")


class Task(Body):
    """A task to collect entries for."""

    prompt: Prompt = Field(description="The task.")
    limit: Limit | None = Field(None, description="Maximum entries.")
    max_tokens: Tokens = Field(1_000, description="Maximum tokens of the text.")


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
    status: Annotated[models.EntryStatus | None, Query(description="Only of this status.")] = None,
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
def create_entry(entries: EntriesOf, body: NewEntry) -> Created[models.Entry]:
    """Write a new entry."""
    entry = entries.create(**dict(body))
    return Created(entry, f"{routes.prefix}/{entry.slug}")


@routes.get("/revision.json")
def read_entries_revision(entries: EntriesOf) -> RevisionOf:
    """Return a revision that changes with entries and votes; cheap enough to poll."""
    return RevisionOf(revision=entries.revision())


@routes.post("/sync", WRITE)
def sync_entries(entries: EntriesOf) -> models.EntrySyncReport:
    """Import changes made outside kbkit on the server, and store votes of searches."""
    return entries.sync(on_progress=lambda _: None)


@routes.post("/find", READ)
def find_entries(entries: EntriesOf, body: TaskQuery) -> list[models.EntryInfo]:
    """Find active entries for a task, by relevance and rating, best first."""
    return entries.find(**dict(body))


@routes.post("/context", READ)
def read_entry_context(entries: EntriesOf, body: Task) -> models.Context:
    """Return active entries for a task, as a short numbered list for an agent."""
    return entries.context(**dict(body))


@routes.post("/learn", WRITE)
def learn_entry(entries: EntriesOf, body: TaskFolder) -> models.Entry:
    """Create or update an entry from the folder `.knowledge` of a task."""
    return entries.learn(body.files, task_id=body.task_id)


@routes.get("/learn/prompt")
def read_learning_prompt(entries: EntriesOf) -> str:
    """Return a section for system prompts that makes agents record what they learned."""
    return entries.learning_prompt()


@routes.get("/{slug}")
def read_entry(entries: EntriesOf, slug: SlugOf) -> models.Entry:
    """Return an entry with prompt, readme, votes and names of other files."""
    return entries.read(slug)


@routes.put("/{slug}", WRITE)
def update_entry(
    entries: EntriesOf, slug: SlugOf, body: EntryChange, expected: IfMatch
) -> models.Entry:
    """Change an entry; omitted fields stay."""
    changes = {name: value for name, value in body if value is not None}
    return entries.update(slug, **changes, if_match=expected)


@routes.delete("/{slug}", WRITE)
def delete_entry(entries: EntriesOf, slug: SlugOf, expected: IfMatch) -> models.DeletedFile:
    """Move an entry to the trash."""
    return entries.delete(slug, if_match=expected)


@routes.post("/{slug}/rate", WRITE)
def rate_entry(entries: EntriesOf, caller: Caller, slug: SlugOf, body: NewVote) -> models.Entry:
    """Vote for an entry."""
    try:
        return entries.rate(slug, body.score, rater=body.rater or caller.name)
    except EntryFormatError as error:  # the entry is invalid, not the request
        raise ImpossibleError(str(error)) from None


@routes.post("/{slug}/rename", WRITE)
def rename_entry(entries: EntriesOf, slug: SlugOf, body: NewSlug) -> models.Entry:
    """Rename an entry; id, votes and relations stay."""
    return entries.rename(slug, to=body.to)


@routes.get("/{slug}/artifacts")
def list_artifacts(entries: EntriesOf, slug: SlugOf) -> tuple[models.EntryFile, ...]:
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
def list_deleted_entries(entries: EntriesOf) -> list[models.DeletedFile]:
    """List deleted entries that can be restored, newest first."""
    return entries.trash()


@trash.post("/entries", WRITE)
def undelete_entry(entries: EntriesOf, body: Undelete) -> models.Entry:
    """Restore the last deleted or replaced entry of a slug."""
    return entries.undelete(body.path, to=body.to)
