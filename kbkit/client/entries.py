"""Entries of a workspace on a server."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from kbkit.client.calls import (
    LONG,
    Awaited,
    Blocking,
    RemoteObject,
    Request,
    Steps,
    call,
    json_body,
    reads,
    reads_json,
    reads_many,
    steps,
    url,
)
from kbkit.client.files import (
    as_json,
    expecting,
    knowledge,
    reads_bytes,
    revision_request,
    skills,
    write_skills,
)
from kbkit.entries.slugs import check_slug
from kbkit.files.paths import parts_of
from kbkit.models import (
    Context,
    DeletedFile,
    Entry,
    EntryInfo,
    EntryPage,
    EntryStatus,
    EntrySyncReport,
    from_dict,
)
from kbkit.runtime.validation import check_integer

if TYPE_CHECKING:
    import httpx

_AT = "/api/entries"
_MAX = 1_000
"""Page size."""


class EntriesCalls(RemoteObject):
    """Requests for entries; see `kbkit.entries.entries.Entries`."""

    _known_revision = ""

    @call
    def read(self, slug: str) -> Request[Entry]:
        """Return an entry with prompt, readme, votes and names of other files."""
        return Request("GET", _at(slug), reads(Entry))

    @steps
    def list(
        self,
        *,
        status: str | EntryStatus | None = None,
        category: str | None = None,
        tag: str | None = None,
        text: str = "",
        sort: str = "rating",
        limit: int | None = 50,
        offset: int = 0,
    ) -> Steps[EntryPage]:
        """List entries without their text."""
        most = None if limit is None else check_integer("limit", limit, 1)
        start = check_integer("offset", offset, 0)
        params = {"status": status, "category": category, "tag": tag, "text": text, "sort": sort}
        infos: builtins.list[EntryInfo] = []
        while True:
            size = _MAX if most is None else min(_MAX, most - len(infos))
            page = {"limit": size, "offset": start + len(infos)}
            part = yield Request("GET", _AT, _reads_page, params | page)
            infos += part.entries
            if not part.entries or len(infos) == most or start + len(infos) >= part.total:
                return EntryPage(tuple(infos), part.total, start)

    @call
    def open(self, slug: str, path: str) -> Request[BinaryIO]:
        """Open a file of an entry; use it in a ``with`` block."""
        parts_of(path)  # raises for an invalid path
        return Request("GET", url(f"{_at(slug)}/artifacts/", rest=path), reads_bytes)

    @call
    def create(
        self,
        title: str,
        *,
        slug: str = "",
        description: str = "",
        prompt: str = "",
        readme: str = "",
        tags: Sequence[str] = (),
        category: str = "",
        status: str | EntryStatus = EntryStatus.ACTIVE,
        files: Mapping[str, str | bytes] | None = None,
    ) -> Request[Entry]:
        """Write a new entry."""
        body = json_body(
            title=title,
            slug=slug,
            description=description,
            prompt=prompt,
            readme=readme,
            tags=tags,
            category=category,
            status=status,
            files=as_json(files or {}),
        )
        return Request("POST", _AT, reads(Entry), json=body)

    @call
    def update(
        self,
        slug: str,
        *,
        title: str | None = None,
        description: str | None = None,
        prompt: str | None = None,
        readme: str | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        status: str | EntryStatus | None = None,
        files: Mapping[str, str | bytes | None] | None = None,
        if_match: str | None = None,
    ) -> Request[Entry]:
        """Change an entry; omitted values stay."""
        body = json_body(
            title=title,
            description=description,
            prompt=prompt,
            readme=readme,
            tags=tags,
            category=category,
            status=status,
            files=as_json(files or {}),
        )
        headers = expecting(if_match)
        return Request("PUT", _at(slug), reads(Entry), json=body, headers=headers)

    @call
    def rename(self, slug: str, *, to: str) -> Request[Entry]:
        """Rename an entry; id, votes and relations stay."""
        return Request("POST", f"{_at(slug)}/rename", reads(Entry), json={"to": to})

    @call
    def rate(self, slug: str, score: int, *, rater: str = "") -> Request[Entry]:
        """Vote for an entry; by default in the name of the token."""
        body = {"score": check_integer("score", score, 1, 5), "rater": rater}
        return Request("POST", f"{_at(slug)}/rate", _reads_rated, json=body)

    @call
    def delete(self, slug: str, *, if_match: str | None = None) -> Request[DeletedFile]:
        """Move an entry to the trash; `undelete` restores it."""
        return Request("DELETE", _at(slug), reads(DeletedFile), headers=expecting(if_match))

    @call
    def undelete(self, slug: str, *, to: str = "") -> Request[Entry]:
        """Restore the entry of a slug that was last deleted or replaced."""
        return Request("POST", "/api/trash/entries", reads(Entry), json={"path": slug, "to": to})

    @call
    def trash(self) -> Request[builtins.list[DeletedFile]]:
        """List entries that `undelete` can restore, the last first."""
        return Request("GET", "/api/trash/entries", reads_many(DeletedFile))

    @call
    def sync(self, *, on_progress: object = None, stop: object = None) -> Request[EntrySyncReport]:
        """Import changes made on the server outside kbkit."""
        return Request("POST", f"{_AT}/sync", reads(EntrySyncReport), timeout=LONG)

    @call
    def revision(self) -> Request[str]:
        """Return a text that changes with entries and votes."""
        return revision_request(self, f"{_AT}/revision.json", {})

    @call
    def find(self, prompt: str, *, limit: int = 10) -> Request[builtins.list[EntryInfo]]:
        """Find active entries for a prompt, ranked by relevance and rating."""
        body = json_body(prompt=prompt, limit=limit)
        return Request("POST", f"{_AT}/find", reads_many(EntryInfo), json=body)

    @call
    def context(
        self, prompt: str, *, limit: int | None = None, max_tokens: int = 1_000
    ) -> Request[Context]:
        """Find active entries for a prompt, as a short numbered list for an agent."""
        body = json_body(prompt=prompt, limit=limit, max_tokens=max_tokens)
        return Request("POST", f"{_AT}/context", reads(Context), json=body)

    @call
    def learn(self, folder: str | Path, *, task_id: str = "") -> Request[Entry]:
        """Create an entry from a task's folder on this machine."""
        body = {"files": as_json(knowledge(Path(folder))), "task_id": task_id}
        return Request("POST", f"{_AT}/learn", reads(Entry), json=body)

    @call
    def learning_prompt(self) -> Request[str]:
        """Return a section for an agent's system prompt that has it record what it learned."""
        return Request("GET", f"{_AT}/learn/prompt", reads_json)

    @call
    def export_skills(
        self, folder: str | Path, *, slugs: Sequence[str] | None = None
    ) -> Request[tuple[Path, ...]]:
        """Write entries as Agent Skills into a folder of this machine."""
        place = Path(folder).expanduser().absolute()

        def write(response: httpx.Response) -> tuple[Path, ...]:
            return write_skills(place, response.content)

        named = None if slugs is None else list(slugs)
        return Request("GET", f"{_AT}/skills.zip", write, {"slugs": named}, timeout=LONG)

    @call
    def import_skills(self, folder: str | Path) -> Request[tuple[Entry, ...]]:
        """Import Agent Skills from a folder on this machine."""
        body = {"files": as_json(skills(Path(folder)))}

        def read(response: httpx.Response) -> tuple[Entry, ...]:
            return tuple(reads_many(Entry)(response))

        return Request("POST", f"{_AT}/skills", read, json=body, timeout=LONG)


class RemoteEntries(EntriesCalls, Blocking):
    """Entries of a remote workspace: ``workspace.entries``."""

    def __repr__(self) -> str:
        return "<RemoteEntries>"


class AsyncEntries(EntriesCalls, Awaited):
    """Entries of a remote workspace; each call is awaited."""


def _at(slug: str) -> str:
    return url(f"{_AT}/{{}}", check_slug(slug))  # raises for an invalid slug


def _reads_page(response: httpx.Response) -> EntryPage:
    data: dict[str, Any] = response.json()
    return EntryPage(tuple(from_dict(EntryInfo, each) for each in data["data"]), data["total"])


def _reads_rated(response: httpx.Response) -> Entry:
    return from_dict(Entry, response.json()["entry"])
