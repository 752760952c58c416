"""Files and entries of a workspace on a server."""

import asyncio
import builtins
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, BinaryIO, ClassVar

from kbkit import models
from kbkit.client.calls import Awaited, Blocking, RemoteObject, Steps, steps
from kbkit.client.declared import LONG, call
from kbkit.entries.folders import check_slug, read_knowledge
from kbkit.files.memory_tool import MemoryAnswer, MemoryTool, decode
from kbkit.files.paths import parts_of
from kbkit.runtime.validation import check_integer


class AsyncMemoryTool(MemoryTool):
    """Memory tool whose commands are awaited; see `kbkit.files.memory_tool.MemoryTool`."""

    async def handle(self, command: Mapping[str, Any] | str | Any) -> MemoryAnswer:  # type: ignore[override]
        """Run a command in a thread; the event loop keeps running."""
        files: Any = _Waiting(self._files, asyncio.get_running_loop())
        return await asyncio.to_thread(MemoryTool(files, self._folder).handle, command)


class _Waiting:
    """Runs calls on the event loop and waits for them in another thread."""

    def __init__(self, files: Any, loop: asyncio.AbstractEventLoop) -> None:
        self._files = files
        self._loop = loop

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self._files, name)

        def wait(*args: Any, **kwargs: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(call(*args, **kwargs), self._loop).result()

        return wait


_AT = "/api/files"
_ROUTES = ("tree", "prompt", "revision", "mkdir", "move", "sync")
"""Names of routes; files of these names at the root need another address."""
_FILE = f"{_AT}/{{path:path}}"


def _check_path(path: str) -> str:
    parts_of(path)  # raises for an invalid path
    return f"./{path}" if path in _ROUTES else path


FilePath = Annotated[str, _check_path]


class FilesCalls(RemoteObject):
    """Requests for files; see `kbkit.files.files.Files`."""

    @call(f"GET {_AT}")
    def list(self, path: str = "") -> builtins.list[models.FileInfo]:
        """List a folder: folders first, then files, by name."""

    @call(f"GET {_FILE}?as=info")
    def info(self, path: FilePath) -> models.FileInfo:
        """Return kind, size, times and version of a path."""

    @call(f"GET {_AT}/tree")
    def tree(self, path: str = "", *, depth: int | None = None) -> models.FileTree:
        """Return a folder with everything in it; ``str`` draws the tree."""

    @steps
    def roots(self) -> Steps[builtins.list[models.FileInfo]]:
        """List the folders at the root."""
        return [info for info in (yield from FilesCalls.list(self)) if info.is_folder]

    @steps
    def read(self, path: str) -> Steps[str]:
        """Read the text of a file."""
        file = yield from FilesCalls.open(self, path)
        return decode(path, file.read())

    @call(f"GET {_FILE}?as=raw")
    def open(self, path: FilePath) -> BinaryIO:
        """Open a file, text or not, as bytes."""

    @call(f"GET {_FILE}?as=numbered")
    def view(self, path: FilePath, lines: Sequence[int] | None = None) -> str:
        """Return a file with numbered lines, or a folder as a tree."""

    @call(f"PUT {_FILE}", text="content")
    def write(
        self, path: FilePath, content: str, *, if_match: str | None = None
    ) -> models.FileInfo:
        """Write a file, replacing it as a whole; creates parent folders."""

    @call(f"POST {_FILE}", text="content")
    def append(
        self, path: FilePath, content: str, *, if_match: str | None = None
    ) -> models.FileInfo:
        """Append text to a file on a new line; creates a missing file."""

    @call(f"PATCH {_FILE}", body={"op": "replace"})
    def replace(
        self, path: FilePath, old: str, new: str, *, if_match: str | None = None
    ) -> models.FileInfo:
        """Replace a text that occurs exactly once in a file."""

    @call(f"PATCH {_FILE}", body={"op": "insert"})
    def insert(
        self, path: FilePath, line: int, text: str, *, if_match: str | None = None
    ) -> models.FileInfo:
        """Insert text after a line of a file."""

    @call(f"POST {_AT}/mkdir")
    def mkdir(self, path: str) -> models.FileInfo:
        """Create a folder and its parents; an existing one stays."""

    @call(f"POST {_AT}/move")
    def move(self, source: str, target: str) -> models.FileInfo:
        """Move a file or folder; creates parent folders."""

    @call(f"DELETE {_FILE}")
    def delete(self, path: FilePath, *, if_match: str | None = None) -> models.DeletedFile:
        """Move a file or a folder to the trash."""

    @call("POST /api/trash/files")
    def undelete(self, path: str, *, to: str = "") -> models.FileInfo:
        """Restore the file or folder that was last deleted at a path."""

    @call("GET /api/trash/files")
    def trash(self) -> builtins.list[models.DeletedFile]:
        """List files that `undelete` can restore, the last deleted first."""

    @call(f"POST {_AT}/sync", timeout=LONG)
    def sync(self, *, on_progress: object = None, stop: object = None) -> models.SyncReport:
        """Import changes made on the server outside kbkit."""

    @call(f"GET {_AT}/revision", key="revision")
    def revision(self, paths: Sequence[str] = ()) -> str:
        """Return a text that changes with files and knowledge bases."""

    @call(f"GET {_FILE}?as=links")
    def links(self, path: FilePath) -> builtins.list[models.FileLink]:
        """List the links of a file; their targets may not exist yet."""

    @call(f"GET {_FILE}?as=backlinks")
    def backlinks(self, path: FilePath) -> builtins.list[str]:
        """List the paths of files that link to a file, sorted."""

    @call(f"GET {_AT}/prompt")
    def prompt(self) -> str:
        """Return a section for a system prompt: the root folders and their use."""


class RemoteFiles(FilesCalls, Blocking):
    """Files of a remote workspace: ``workspace.files``."""

    def memory_tool(self, *, folder: str = "") -> MemoryTool:
        """Return a handler for the commands of the memory tool that models are trained on."""
        return MemoryTool(self, folder)


class AsyncFiles(FilesCalls, Awaited):
    """Files of a remote workspace; each call is awaited."""

    def memory_tool(self, *, folder: str = "") -> AsyncMemoryTool:
        files: Any = self
        return AsyncMemoryTool(files, folder)


def as_json(files: Mapping[str, str | bytes | None]) -> dict[str, Any]:
    """Return files as JSON: text, Base64 for other bytes, ``None`` to delete one."""
    return {path: _content(content) for path, content in files.items()}


def _content(content: str | bytes | None) -> Any:
    if isinstance(content, bytes):
        try:
            return content.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(content).decode()}
    return content


_ENTRIES = "/api/entries"
_ENTRY = f"{_ENTRIES}/{{slug}}"
_MAX = 1_000
"""Page size."""


def _score(score: int) -> int:
    return check_integer("score", score, 1, 5)


def _files(folder: str | Path | Mapping[str, bytes]) -> dict[str, Any]:
    return as_json(folder if isinstance(folder, Mapping) else read_knowledge(Path(folder))[1])


def _page(answer: Any) -> tuple[list[models.EntryInfo], int]:
    return [models.from_dict(models.EntryInfo, each) for each in answer["data"]], answer["total"]


Slug = Annotated[str, check_slug]


class EntriesCalls(RemoteObject):
    """Requests for entries; see `kbkit.entries.entries.Entries`."""

    _only_local: ClassVar[Mapping[str, str]] = {
        f"{name}_skills": f"kbkit entries {name}" for name in ("export", "import")
    }

    @call(f"GET {_ENTRY}")
    def read(self, slug: Slug) -> models.Entry:
        """Return an entry with prompt, readme, votes and names of other files."""

    @steps
    def list(
        self,
        *,
        status: str | models.EntryStatus | None = None,
        category: str | None = None,
        tag: str | None = None,
        text: str = "",
        sort: str = "rating",
        limit: int | None = 50,
        offset: int = 0,
    ) -> Steps[models.EntryPage]:
        """List entries without their text."""
        max_count = None if limit is None else check_integer("limit", limit, 1)
        start = check_integer("offset", offset, 0)
        params = {"status": status, "category": category, "tag": tag, "text": text, "sort": sort}
        infos: builtins.list[models.EntryInfo] = []
        while True:
            size = _MAX if max_count is None else min(_MAX, max_count - len(infos))
            page = {"limit": size, "offset": start + len(infos)}
            part, total = yield from EntriesCalls._page(self, **params, **page)
            infos += part
            if not part or len(infos) == max_count or start + len(infos) >= total:
                return models.EntryPage(tuple(infos), total, start)

    @call(f"GET {_ENTRIES}", read=_page)
    def _page(self, /, **values: Any) -> tuple[builtins.list[models.EntryInfo], int]: ...

    @call(f"GET {_ENTRY}/artifacts/{{path:path}}")
    def open(self, slug: Slug, path: FilePath) -> BinaryIO:
        """Open a file of an entry; use it in a ``with`` block."""

    @call(f"POST {_ENTRIES}")
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
        status: str | models.EntryStatus = models.EntryStatus.ACTIVE,
        files: Annotated[Mapping[str, str | bytes], as_json] | None = None,
    ) -> models.Entry:
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
        status: str | models.EntryStatus | None = None,
        files: Annotated[Mapping[str, str | bytes | None], as_json] | None = None,
        if_match: str | None = None,
    ) -> models.Entry:
        """Change an entry; omitted values stay."""

    @call(f"POST {_ENTRY}/rename")
    def rename(self, slug: Slug, *, to: str) -> models.Entry:
        """Rename an entry; id, votes and relations stay."""

    @call(f"POST {_ENTRY}/rate")
    def rate(self, slug: Slug, score: Annotated[int, _score], *, rater: str = "") -> models.Entry:
        """Vote for an entry; by default in the name of the token."""

    @call(f"DELETE {_ENTRY}")
    def delete(self, slug: Slug, *, if_match: str | None = None) -> models.DeletedFile:
        """Move an entry to the trash; `undelete` restores it."""

    @call("POST /api/trash/entries", names={"slug": "path"})
    def undelete(self, slug: str, *, to: str = "") -> models.Entry:
        """Restore the entry of a slug that was last deleted or replaced."""

    @call("GET /api/trash/entries")
    def trash(self) -> builtins.list[models.DeletedFile]:
        """List entries that `undelete` can restore, the last first."""

    @call(f"POST {_ENTRIES}/sync", timeout=LONG)
    def sync(self, *, on_progress: object = None, stop: object = None) -> models.EntrySyncReport:
        """Import changes made on the server outside kbkit."""

    @call(f"GET {_ENTRIES}/revision.json", key="revision")
    def revision(self) -> str:
        """Return a text that changes with entries and votes."""

    @call(f"POST {_ENTRIES}/find")
    def find(self, prompt: str, *, limit: int = 10) -> builtins.list[models.EntryInfo]:
        """Find active entries for a prompt, ranked by relevance and rating."""

    @call(f"POST {_ENTRIES}/context")
    def context(
        self, prompt: str, *, limit: int | None = None, max_tokens: int = 1_000
    ) -> models.Context:
        """Find active entries for a prompt, as a short numbered list for an agent."""

    @call(f"POST {_ENTRIES}/learn", names={"folder": "files"})
    def learn(
        self, folder: Annotated[str | Path | Mapping[str, bytes], _files], *, task_id: str = ""
    ) -> models.Entry:
        """Create an entry from a task's folder on this machine."""

    @call(f"GET {_ENTRIES}/learn/prompt")
    def learning_prompt(self) -> str:
        """Return a section for an agent's system prompt that has it record what it learned."""


class RemoteEntries(EntriesCalls, Blocking):
    """Entries of a remote workspace: ``workspace.entries``."""


class AsyncEntries(EntriesCalls, Awaited):
    """Entries of a remote workspace; each call is awaited."""
