"""Entries of a workspace on a server."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

from kbkit.client.calls import Awaited, Blocking, RemoteObject, Steps, steps
from kbkit.client.declared import LONG, call
from kbkit.client.files import FilePath, as_json
from kbkit.entries.folders import check_slug, read_knowledge
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

_AT = "/api/entries"
_MAX = 1_000
"""Page size."""


_ENTRY = f"{_AT}/{{slug}}"


def _score(score: int) -> int:
    return check_integer("score", score, 1, 5)


def _files(folder: str | Path | Mapping[str, bytes]) -> dict[str, Any]:
    return as_json(folder if isinstance(folder, Mapping) else read_knowledge(Path(folder))[1])


def _page(answer: Any) -> tuple[list[EntryInfo], int]:
    return [from_dict(EntryInfo, each) for each in answer["data"]], answer["total"]


Slug = Annotated[str, check_slug]


class EntriesCalls(RemoteObject):
    """Requests for entries; see `kbkit.entries.entries.Entries`."""

    _only_local: ClassVar[Mapping[str, str]] = {
        f"{name}_skills": f"kbkit entries {name}" for name in ("export", "import")
    }

    @call(f"GET {_ENTRY}")
    def read(self, slug: Slug) -> Entry:
        """Return an entry with prompt, readme, votes and names of other files."""

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
        max_count = None if limit is None else check_integer("limit", limit, 1)
        start = check_integer("offset", offset, 0)
        params = {"status": status, "category": category, "tag": tag, "text": text, "sort": sort}
        infos: builtins.list[EntryInfo] = []
        while True:
            size = _MAX if max_count is None else min(_MAX, max_count - len(infos))
            page = {"limit": size, "offset": start + len(infos)}
            part, total = yield from EntriesCalls._page(self, **params, **page)
            infos += part
            if not part or len(infos) == max_count or start + len(infos) >= total:
                return EntryPage(tuple(infos), total, start)

    @call(f"GET {_AT}", read=_page)
    def _page(self, /, **values: Any) -> tuple[builtins.list[EntryInfo], int]: ...

    @call(f"GET {_ENTRY}/artifacts/{{path:path}}")
    def open(self, slug: Slug, path: FilePath) -> BinaryIO:
        """Open a file of an entry; use it in a ``with`` block."""

    @call(f"POST {_AT}")
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
        files: Annotated[Mapping[str, str | bytes], as_json] | None = None,
    ) -> Entry:
        """Write a new entry."""

    @call(f"PUT {_ENTRY}")
    def update(
        self,
        slug: Slug,
        *,
        title: str | None = None,
        description: str | None = None,
        prompt: str | None = None,
        readme: str | None = None,
        tags: Sequence[str] | None = None,
        category: str | None = None,
        status: str | EntryStatus | None = None,
        files: Annotated[Mapping[str, str | bytes | None], as_json] | None = None,
        if_match: str | None = None,
    ) -> Entry:
        """Change an entry; omitted values stay."""

    @call(f"POST {_ENTRY}/rename")
    def rename(self, slug: Slug, *, to: str) -> Entry:
        """Rename an entry; id, votes and relations stay."""

    @call(f"POST {_ENTRY}/rate")
    def rate(self, slug: Slug, score: Annotated[int, _score], *, rater: str = "") -> Entry:
        """Vote for an entry; by default in the name of the token."""

    @call(f"DELETE {_ENTRY}")
    def delete(self, slug: Slug, *, if_match: str | None = None) -> DeletedFile:
        """Move an entry to the trash; `undelete` restores it."""

    @call("POST /api/trash/entries", names={"slug": "path"})
    def undelete(self, slug: str, *, to: str = "") -> Entry:
        """Restore the entry of a slug that was last deleted or replaced."""

    @call("GET /api/trash/entries")
    def trash(self) -> builtins.list[DeletedFile]:
        """List entries that `undelete` can restore, the last first."""

    @call(f"POST {_AT}/sync", timeout=LONG)
    def sync(self, *, on_progress: object = None, stop: object = None) -> EntrySyncReport:
        """Import changes made on the server outside kbkit."""

    @call(f"GET {_AT}/revision.json", key="revision")
    def revision(self) -> str:
        """Return a text that changes with entries and votes."""

    @call(f"POST {_AT}/find")
    def find(self, prompt: str, *, limit: int = 10) -> builtins.list[EntryInfo]:
        """Find active entries for a prompt, ranked by relevance and rating."""

    @call(f"POST {_AT}/context")
    def context(self, prompt: str, *, limit: int | None = None, max_tokens: int = 1_000) -> Context:
        """Find active entries for a prompt, as a short numbered list for an agent."""

    @call(f"POST {_AT}/learn", names={"folder": "files"})
    def learn(
        self, folder: Annotated[str | Path | Mapping[str, bytes], _files], *, task_id: str = ""
    ) -> Entry:
        """Create an entry from a task's folder on this machine."""

    @call(f"GET {_AT}/learn/prompt")
    def learning_prompt(self) -> str:
        """Return a section for an agent's system prompt that has it record what it learned."""


class RemoteEntries(EntriesCalls, Blocking):
    """Entries of a remote workspace: ``workspace.entries``."""

    def __repr__(self) -> str:
        return "<RemoteEntries>"


class AsyncEntries(EntriesCalls, Awaited):
    """Entries of a remote workspace; each call is awaited."""
