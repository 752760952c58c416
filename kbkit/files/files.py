"""The knowledge filesystem of a workspace."""

import builtins
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from io import BytesIO
from math import inf
from pathlib import Path
from typing import BinaryIO

from kbkit.errors import ConfigError, IsFolderError, MissingPathError
from kbkit.files.folder import Item, Stored
from kbkit.files.index import FileIndex, saying_done
from kbkit.files.memory_tool import MemoryTool, encode, insert_lines, number_lines, replace_part
from kbkit.files.paths import join_parts, parts_of
from kbkit.files.shown import ROOT, ShownKnowledgeBases, kb_parts, prompt
from kbkit.files.store import FileStore
from kbkit.ingest.pipeline import Stop
from kbkit.knowledge_base import KnowledgeBase
from kbkit.models import DeletedFile, FileInfo, FileKind, FileLink, FileTree, SyncReport
from kbkit.models.values import FILES
from kbkit.runtime.progress import OnProgress, progress_bar
from kbkit.runtime.validation import check_text, explain_calls
from kbkit.stores.catalog import indexed_files, knowledge_bases
from kbkit.stores.stores import Stores

_MAX_POLLED = 10_000  # paths whose times are remembered


@explain_calls
class Files:
    """Folders and files of text that agents and people write; ``workspace.files``.

    They are plain files in a folder, open to any editor. A path is relative to the root, with
    forward slashes (``"notes/today.md"``), and cannot leave the folder. Several processes may read
    and write at once: readers see the old or the new state, and no write is lost.
    """

    def __init__(self, store: FileStore, index: FileIndex, kbs: ShownKnowledgeBases) -> None:
        self._store = store
        self._index = index
        self._shown = kbs
        self._stamps: dict[str, tuple[int, int]] = {}

    @property
    def path(self) -> Path:
        """Folder that contains the files."""
        return self._store.root

    def list(self, path: str = "") -> builtins.list[FileInfo]:
        """List a folder: folders first, then files, by name.

        Args:
            path: The folder; by default the root.

        Raises:
            MissingPathError: Nothing is there.
            NotFolderError: It is a file.
        """
        if parts := kb_parts(path):
            return self._shown.list(parts)
        items = self._store.list(path)
        names = [item.path for item in items if not item.is_folder]
        records = self._index.look_up(indexed_files.records_of, names)
        infos = [self._info_of(item, records.get(item.path)) for item in items]
        if not parts_of(path) and self._shown.names():
            infos.append(self._shown.root())
            infos.sort(key=lambda info: (not info.is_folder, info.path))
        return infos

    def info(self, path: str) -> FileInfo:
        """Return kind, size, times and version of a path.

        Raises:
            MissingPathError: Nothing is there.
        """
        if parts := kb_parts(path):
            return self._shown.info(parts)
        item = self._store.stat(path)
        if item.is_folder:
            return item.info()
        return self._file_info(self._store.read(path))

    def tree(self, path: str = "", *, depth: int | None = None) -> FileTree:
        """Return a folder with its content; converted to text, a drawing.

        Args:
            path: Start; by default the root, which lists knowledge bases without content.
            depth: Maximum depth; unlimited by default.

        Raises:
            MissingPathError: Nothing is there.
        """
        try:
            info = self.info(path if path.strip("./") else "")
        except MissingPathError:
            if path.strip("./"):
                raise
            now = datetime.now(UTC)  # nothing was written yet
            info = FileInfo("", FileKind.FOLDER, 0, now, now)
        return self._tree(info, inf if depth is None else depth)

    def roots(self) -> builtins.list[FileInfo]:
        """List the folders at the root."""
        return [info for info in self.list() if info.is_folder]

    def read(self, path: str) -> str:
        """Return the text of a file.

        Raises:
            MissingPathError: Nothing is there.
            IsFolderError: It is a folder.
            NotTextError: It is not text in UTF-8.
        """
        if parts := kb_parts(path):
            return self._shown.read(parts)
        return self._store.read_text(path)

    def open(self, path: str) -> BinaryIO:
        """Open a file as a binary file; used as a ``with`` block.

        Raises:
            MissingPathError: Nothing is there.
            IsFolderError: It is a folder.
        """
        if parts := kb_parts(path):
            return BytesIO(self._shown.read(parts).encode())
        return self._store.open(path)

    def view(self, path: str, lines: Sequence[int] | None = None) -> str:
        """Return the text of a file with numbered lines, or the drawing of a folder.

        Args:
            path: The file or folder.
            lines: First and last line, from 1; -1 is the last line of the file. By default all.

        Raises:
            MissingPathError: Nothing is there.
            NotTextError: It is not text in UTF-8.
            ConfigError: There are no such lines.
        """
        try:
            return number_lines(self.read(path), lines)
        except IsFolderError:
            if lines is not None:
                raise
            return str(self.tree(path))

    def write(self, path: str, content: str, *, if_match: str | None = None) -> FileInfo:
        """Write a file, replacing it as a whole; creates parent folders.

        Args:
            path: Path of the file.
            content: Its text.
            if_match: Expected version (`FileInfo.version`); ``""`` if the file must not exist.

        Raises:
            InvalidPathError: The path is invalid.
            IsFolderError: A folder is there.
            PathExistsError: A file exists whose name differs only in case.
            VersionConflictError: Another change came first.
            ReadOnlyPathError: The path is in a knowledge base.
        """
        return self._update_index(self._store.write(path, encode(path, content), if_match=if_match))

    def append(self, path: str, content: str, *, if_match: str | None = None) -> FileInfo:
        """Append text to a file on a new line; create the file if missing.

        Args:
            path: The file.
            content: Text to append.
            if_match: Expected version; ``""`` if the file must not exist.

        Raises:
            FilesError: See `write`.
        """
        return self._update_index(self._store.append(path, content, if_match))

    def replace(self, path: str, old: str, new: str, *, if_match: str | None = None) -> FileInfo:
        """Replace a text that occurs exactly once in a file.

        Args:
            path: The file.
            old: Text to replace.
            new: The replacement.
            if_match: Expected version.

        Raises:
            MissingPathError: Nothing is there.
            NotUniqueError: The text does not occur, or occurs several times.
            FilesError: See `write`.
        """
        check_text("new", new)
        if not check_text("old", old):
            raise ConfigError("old is empty: give the text to replace")
        return self._update_index(
            self._store.edit(path, lambda text: replace_part(path, text, old, new), if_match)
        )

    def insert(self, path: str, line: int, text: str, *, if_match: str | None = None) -> FileInfo:
        """Insert text after a line of a file.

        Args:
            path: The file.
            line: Line after which to insert, from 1; 0 for the beginning.
            text: Text to insert; a final newline is added if missing.
            if_match: Expected version.

        Raises:
            MissingPathError: Nothing is there.
            ConfigError: There is no such line.
            FilesError: See `write`.
        """
        check_text("text", text)
        return self._update_index(
            self._store.edit(path, lambda before: insert_lines(before, line, text), if_match)
        )

    def mkdir(self, path: str) -> FileInfo:
        """Create a folder and its parents; an existing one stays.

        Raises:
            InvalidPathError: The path is invalid.
            PathExistsError: A file is there.
        """
        return self._store.mkdir(path).info()

    def move(self, source: str, target: str) -> FileInfo:
        """Move a file or folder; creates parent folders.

        Args:
            source: Current path.
            target: New path, which must not exist.

        Raises:
            MissingPathError: Nothing is at the source.
            PathExistsError: Something is at the target.
            InvalidPathError: A folder cannot go into itself.
        """
        item = self._store.move(source, target)
        with saying_done(f"{source} -> {item.path}"):
            self._index.move(join_parts(parts_of(source)), item.path)
            self._index.level(join_parts(parts_of(source)))
            self._index.level(item.path)
        return self.info(item.path)

    def delete(self, path: str, *, if_match: str | None = None) -> DeletedFile:
        """Move a file or a folder to the trash; `undelete` restores it.

        Args:
            path: Path to delete.
            if_match: Expected version.

        Raises:
            MissingPathError: Nothing is there.
            VersionConflictError: Another change came first.
        """
        deleted = self._store.delete(path, self._index.created_times, if_match=if_match)
        with saying_done(deleted.path):
            self._index.level(deleted.path)
        return deleted

    def undelete(self, path: str, *, to: str = "") -> FileInfo:
        """Restore what was last deleted at a path.

        Args:
            path: Its former path, or its id in the trash.
            to: New path; by default the former one.

        Raises:
            MissingPathError: The trash has nothing with that path.
            PathExistsError: The path is taken.
        """
        item, created = self._store.undelete(path, to)
        times = {"/".join(filter(None, (item.path, name))): time for name, time in created.items()}
        with saying_done(item.path):
            self._index.level(item.path, created=times)
        return self.info(item.path)

    def trash(self) -> builtins.list[DeletedFile]:
        """List files that `undelete` can restore, the last first."""
        return self._store.trash()

    def sync(
        self, *, on_progress: OnProgress | None = None, stop: Stop = lambda: False
    ) -> SyncReport:
        """Import changes made outside kbkit, for search.

        Opening a workspace does so, too, and `kbkit watch` continuously. Files of unchanged size
        and times are skipped.

        Args:
            on_progress: Called as files are stored; by default notebooks show a bar.
            stop: Called often; true ends the work cleanly.

        Returns:
            Files added, updated and removed, and those that cannot be searched, with reasons.

        Raises:
            ConflictError: Another process does the same for too long.
            EmbedderError: The embedder failed; stored files stay.
        """
        self._store.sweep()
        with progress_bar(on_progress) as report:
            return self._index.level(on_progress=report, stop=stop)

    def revision(self, paths: Sequence[str] = ()) -> str:
        """Return a text that changes with files and knowledge bases; fast enough to poll.

        Args:
            paths: Folders and files to check on disk, too; imports outside changes in them.

        Raises:
            InvalidPathError: One of ``paths`` is invalid.
        """
        stamps = {path: _stamp(self.path.joinpath(*parts_of(path))) for path in paths}
        before = self._stamps if len(self._stamps) < _MAX_POLLED else {}
        self._stamps = {**before, **stamps}
        if any(before.get(path, stamp) != stamp for path, stamp in stamps.items()):
            self.sync(on_progress=lambda _: None)
        return self._index.look_up(knowledge_bases.state, FILES)

    def links(self, path: str) -> builtins.list[FileLink]:
        """List the links of a file; their targets may not exist yet.

        Raises:
            MissingPathError: Nothing is there.
        """
        links = self._index.look_up(indexed_files.links, self._store.stat(path).path)
        return [FileLink(link.target.lstrip("/"), link.leads_to) for link in links]

    def backlinks(self, path: str) -> builtins.list[str]:
        """Return the sorted paths of files that link to a file.

        Raises:
            MissingPathError: Nothing is there.
        """
        return self._index.look_up(indexed_files.backlinks, self._store.stat(path).path)

    def memory_tool(self, *, folder: str = "") -> MemoryTool:
        """Return a handler for commands of the memory tool that models are trained on.

        Args:
            folder: Folder shown as ``/memories``; by default the root.
        """
        return MemoryTool(self, folder)

    def prompt(self) -> str:
        """Return a section for a system prompt: the root folders and their use."""
        paths = (item.path for item in self._store.walk() if not item.is_folder)
        counts = Counter(path.partition("/")[0] for path in paths if "/" in path)
        names = [info.name for info in self.roots() if not info.read_only]
        return prompt({name: counts[name] for name in names}, self._shown.names())

    def _tree(self, info: FileInfo, depth: float) -> FileTree:
        if not info.is_folder or depth == 0:
            return FileTree(info)
        below = depth - 1
        depths = {ROOT: min(1, below)}  # knowledge bases are listed without content
        inner = [self._tree(each, depths.get(each.path, below)) for each in self.list(info.path)]
        return FileTree(info, tuple(inner))

    def _update_index(self, stored: Stored) -> FileInfo:
        with saying_done(stored.path):
            self._index.level(stored.path)
            return self._file_info(stored)

    def _file_info(self, stored: Stored) -> FileInfo:
        record = self._index.find_record(stored.path)
        return stored.info(record and record.created)

    def _info_of(self, item: Item, record: indexed_files.FileRecord | None) -> FileInfo:
        if item.is_folder:
            return item.info()
        current = item.status.st_size, item.status.st_mtime_ns
        if record is None or current != (record.size, record.changed):
            return self._store.read(item.path).info(record and record.created)
        return item.info(record.digest, record.created)

    def __repr__(self) -> str:
        return f"<Files in {str(self.path)!r}>"


def open_files(stores: Stores, knowledge_base: Callable[[], KnowledgeBase]) -> Files:
    stores.require_home()
    store = FileStore(stores.folder / FILES, stores.locks, frozenset({ROOT}))
    index = FileIndex(store, stores, knowledge_base)
    return Files(store, index, ShownKnowledgeBases(stores.database))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.lstat()
    except (OSError, ValueError):
        return 0, 0
    return status.st_mtime_ns, status.st_size
