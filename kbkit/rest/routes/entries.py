"""Routes for entries: `/api/entries`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path as FilePath
from tempfile import TemporaryDirectory
from typing import Annotated, Literal
from zipfile import ZIP_DEFLATED, ZipFile

from fastapi import APIRouter, Depends, Path, Query, Response

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
from kbkit.rest.access import READ, WRITE, Caller, WorkspaceOf
from kbkit.rest.bodies import (
    MAX,
    EntryChange,
    EntryList,
    NewEntry,
    NewSlug,
    NewVote,
    Rated,
    Task,
    TaskQuery,
)
from kbkit.rest.parameters import check_number
from kbkit.rest.responses import IfMatch, answer, documented, page
from kbkit.rest.uploads import (
    REVISION,
    ConditionsOf,
    UploadOf,
    bytes_of,
    contents,
    sent,
    sent_folder,
    told_revision,
    upload_body,
)
from kbkit.retrieval.context import MIN_TOKENS
from kbkit.stores.catalog.knowledge_bases import ENTRIES

router = APIRouter(prefix="/api/entries", tags=["entries"])

SlugOf = Annotated[str, Path(max_length=255, description="Name of the entry's folder.")]
_WRONG = (404, 409, 412, 422)


def entries_of(workspace: WorkspaceOf, caller: Caller) -> Entries:
    """The entries, to who may use them.

    Raises:
        ForbiddenError: They may not.
    """
    caller.require_kb(ENTRIES)
    return workspace.entries


EntriesOf = Annotated[Entries, Depends(entries_of)]


@router.get("", dependencies=[READ], responses=documented(EntryList))
def list_entries(
    *,
    entries: EntriesOf,
    status: Annotated[
        str | None,
        Query(description="Only of this status.", json_schema_extra={"enum": list(EntryStatus)}),
    ] = None,
    category: Annotated[str | None, Query(max_length=500, description="Only of this.")] = None,
    tag: Annotated[str | None, Query(max_length=500, description="Only with this.")] = None,
    text: Annotated[str, Query(max_length=500, description="Only those that contain it.")] = "",
    sort: Annotated[
        str,
        Query(
            description="`rating`: the best first; `updated`: the last first; `title`.",
            json_schema_extra={"enum": ["rating", "updated", "title"]},
        ),
    ] = "rating",
    page: Annotated[int, Query(ge=1, le=1_000_000, description="Which page, from 1.")] = 1,
    limit: Annotated[int, Query(ge=1, le=1_000, description="Entries of a page.")] = 50,
    offset: Annotated[
        int | None,
        Query(ge=0, le=1_000_000_000, description="Entries to leave out, in place of `page`."),
    ] = None,
) -> Response:
    """List entries in order, without their text."""
    start = (page - 1) * limit if offset is None else offset
    found = entries.list(
        status=status, category=category, tag=tag, text=text, sort=sort, limit=limit, offset=start
    )
    return answer({"data": found.entries, "total": found.total, "page": start // limit + 1})


@router.post(
    "", dependencies=[WRITE], status_code=201, responses=documented(Entry, 201, refusals=_WRONG)
)
def create_entry(entries: EntriesOf, body: NewEntry) -> Response:
    """Write a new entry."""
    values = body.model_dump(exclude={"title", "files"}, exclude_unset=True)
    files = {path: bytes_of(path, each) for path, each in body.files.items()}
    return _made(entries.create(body.title, **values, files=files))


@router.get(
    "/skills.zip", dependencies=[READ], response_class=Response, responses=contents(404, 422)
)
def export_skills(
    entries: EntriesOf,
    wanted: ConditionsOf,
    slugs: Annotated[list[str] | None, Query(description="Of entries; by default all.")] = None,
) -> Response:
    """Entries as Agent Skills, a folder each, in a zip."""
    with TemporaryDirectory(prefix="kbkit-") as folder:
        made = entries.export_skills(folder, slugs=slugs)
        packed = BytesIO()
        with ZipFile(packed, "w", ZIP_DEFLATED) as archive:
            for skill in made:
                for file in sorted(skill.rglob("*")):
                    if file.is_file():
                        archive.write(file, file.relative_to(FilePath(folder).absolute()))
    return sent(packed.getvalue(), "skills.zip", "", wanted)


@router.get("/revision.json", dependencies=[READ], responses=REVISION)
def read_entries_revision(entries: EntriesOf, wanted: ConditionsOf) -> Response:
    """Return a revision that changes with entries and votes; cheap enough to poll."""
    return told_revision(entries.revision(), wanted)


@router.post(
    "/skills",
    dependencies=[WRITE],
    responses=documented(Entry, many=True, refusals=_WRONG),
    openapi_extra=upload_body(),
)
def import_skills(entries: EntriesOf, upload: UploadOf) -> Response:
    """Import uploaded Agent Skills, a folder each, all or nothing."""
    with sent_folder(upload.files, "sent") as folder:
        return page(entries.import_skills(folder))


@router.post(
    "/sync", dependencies=[WRITE], responses=documented(EntrySyncReport, refusals=(409, 503))
)
def sync_entries(entries: EntriesOf) -> Response:
    """Import changes made on the server outside kbkit, and write votes of searches."""
    return answer(entries.sync(on_progress=lambda _: None))


@router.post("/find", dependencies=[READ], responses=documented(EntryInfo, many=True))
def find_entries(entries: EntriesOf, body: TaskQuery) -> Response:
    """The active entries that fit a task, by relevance and by rating, the best first."""
    return page(entries.find(body.prompt, limit=check_number("limit", body.limit, 1, MAX)))


@router.post("/context", dependencies=[READ], responses=documented(Context))
def read_entry_context(entries: EntriesOf, body: Task) -> Response:
    """The active entries that fit a task, as a short numbered list for an agent."""
    tokens = check_number("max_tokens", body.max_tokens, MIN_TOKENS, MAX)
    most = None if body.limit is None else check_number("limit", body.limit, 1, MAX)
    return answer(entries.context(body.prompt, limit=most, max_tokens=tokens))


@router.post(
    "/learn",
    dependencies=[WRITE],
    responses=documented(Entry, refusals=_WRONG),
    openapi_extra=upload_body(),
)
def learn_entry(entries: EntriesOf, upload: UploadOf) -> Response:
    """Create or update an entry from the folder `.knowledge` of a task."""
    with sent_folder(upload.files, ".knowledge") as folder:
        entry = entries.learn(folder, task_id=upload.task_id)
    return answer(entry, version=entry.version)


@router.get("/learn/prompt", dependencies=[READ], responses=documented(str))
def read_learning_prompt(entries: EntriesOf) -> Response:
    """Return a section for an agent's system prompt that has it record what it learned."""
    return answer(entries.learning_prompt())


@router.get("/{slug}", dependencies=[READ], responses=documented(Entry, refusals=(404, 422)))
def read_entry(entries: EntriesOf, slug: SlugOf) -> Response:
    """Return an entry with prompt, readme, votes and names of other files."""
    return _found(entries.read(slug))


@router.put("/{slug}", dependencies=[WRITE], responses=documented(Entry, refusals=_WRONG))
def update_entry(
    entries: EntriesOf, slug: SlugOf, body: EntryChange, expected: IfMatch
) -> Response:
    """Change an entry; omitted fields stay."""
    values = body.model_dump(exclude={"files"}, exclude_none=True)
    files: Mapping[str, bytes | None] = {
        path: None if each is None else bytes_of(path, each) for path, each in body.files.items()
    }
    return _found(entries.update(slug, **values, files=files, if_match=expected))


@router.delete("/{slug}", dependencies=[WRITE], responses=documented(DeletedFile, refusals=_WRONG))
def delete_entry(entries: EntriesOf, slug: SlugOf, expected: IfMatch) -> Response:
    """Move an entry to the trash."""
    return answer(entries.delete(slug, if_match=expected))


@router.post("/{slug}/rate", dependencies=[WRITE], responses=documented(Rated, refusals=_WRONG))
def rate_entry(entries: EntriesOf, caller: Caller, slug: SlugOf, body: NewVote) -> Response:
    """Vote for an entry."""
    try:
        entry = entries.rate(slug, body.score, rater=body.rater or caller.name)
    except EntryFormatError as error:  # of the entry, and not of the request
        raise ImpossibleError(str(error)) from None
    values = {"average": entry.rating.average, "count": entry.rating.count, "entry": entry}
    return answer(values, version=entry.version)


@router.post("/{slug}/rename", dependencies=[WRITE], responses=documented(Entry, refusals=_WRONG))
def rename_entry(entries: EntriesOf, slug: SlugOf, body: NewSlug) -> Response:
    """Rename an entry; id, votes and relations stay."""
    return _found(entries.rename(slug, to=body.to))


@router.get(
    "/{slug}/artifacts",
    dependencies=[READ],
    responses=documented(EntryFile, many=True, refusals=(404, 422)),
)
def list_artifacts(
    entries: EntriesOf,
    slug: SlugOf,
    folder: Annotated[
        Literal["", "code", "artifacts"], Query(description="Only those in this folder of it.")
    ] = "",
) -> Response:
    """List the files of an entry, other than its prompt and readme."""
    files = entries.read(slug).files
    return page([each for each in files if not folder or each.path.startswith(f"{folder}/")])


@router.get(
    "/{slug}/artifacts/{path:path}",
    dependencies=[READ],
    response_class=Response,
    responses=contents(404, 409),
)
def read_artifact(
    entries: EntriesOf,
    wanted: ConditionsOf,
    slug: SlugOf,
    path: Annotated[str, Path(max_length=4_000, description="Within the entry.")],
) -> Response:
    """A file of an entry. Browsers are made to keep it, never to run it."""
    file = entries.open(slug, path)
    about = os.fstat(file.fileno())
    return sent(file, path.rpartition("/")[2], f"{about.st_mtime_ns:x}-{about.st_size:x}", wanted)


def _found(entry: Entry) -> Response:
    return answer(entry, version=entry.version)


def _made(entry: Entry) -> Response:
    place = {"Location": f"{router.prefix}/{entry.slug}"}
    return answer(entry, 201, version=entry.version, headers=place)
