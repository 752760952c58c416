"""Knowledge bases as read-only folders of Markdown files, and the root folders for agents."""

import builtins
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from kbkit.errors import IsFolderError, MissingPathError, NotFolderError
from kbkit.export.pages.document_page import front_matter
from kbkit.export.pages.paths import assign_paths
from kbkit.files.paths import join_parts, parts_of
from kbkit.models import FileInfo, FileKind
from kbkit.models.values import FILES, pluralize, shared_length
from kbkit.retrieval.context import ContextFact, Findings
from kbkit.stores.catalog import indexed_files, knowledge_bases, reading
from kbkit.stores.catalog.database import Database
from kbkit.stores.catalog.indexed_files import PageRow
from kbkit.stores.catalog.knowledge_bases import KnowledgeBaseRow

ROOT = "kb"
"""Folder at the root that shows knowledge bases."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """The pages of one version of a knowledge base, by path from the root of the files."""

    version: int
    pages: Mapping[str, PageRow]
    children: Mapping[str, Mapping[str, FileInfo]]


class ShownKnowledgeBases:
    """The knowledge bases of a workspace, except that of the files."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._folders: dict[str, _Folder] = {}

    def names(self) -> list[str]:
        return [row.name for row in self._rows()]

    def _rows(self) -> builtins.list[KnowledgeBaseRow]:
        rows = self._database.look_up(knowledge_bases.rows)
        return [row for row in rows if row.id != FILES]

    def list(self, parts: tuple[str, ...]) -> list[FileInfo]:
        children = self._children(parts)
        if children is None:
            raise NotFolderError(f"{self.info(parts).path}: is a file, not a folder")
        return sorted(children.values(), key=lambda info: (not info.is_folder, info.path))

    def info(self, parts: tuple[str, ...]) -> FileInfo:
        if len(parts) == 1:
            return self.root()
        info = (self._children(parts[:-1]) or {}).get(parts[-1])
        if info is None:
            raise MissingPathError(f"{join_parts(parts)}: no such file or folder")
        return info

    def read(self, parts: tuple[str, ...]) -> str:
        path = join_parts(parts)
        if self.info(parts).is_folder:
            raise IsFolderError(f"{path}: is a folder; list it, or read a file in it")
        with self._database.read() as transaction:
            row = knowledge_bases.get(transaction, parts[1])
            page = self._folder(row).pages[path]
            document = reading.get_document(transaction, row.id, page.uri)
        fields = {
            "title": document.title,
            "source": document.uri,
            "tags": list(document.tags) or None,
            "fetched": f"{document.fetched_at:%Y-%m-%d}",
        }
        head = front_matter({name: value for name, value in fields.items() if value})
        return f"{head}\n{document.content}"

    def root(self) -> FileInfo:
        rows = self._rows()
        if not rows:
            raise MissingPathError(f"{ROOT}: there is no knowledge base yet")
        created = min(row.created_at for row in rows)
        return _folder_info(ROOT, created, max(row.updated_at for row in rows))

    def _children(self, parts: tuple[str, ...]) -> Mapping[str, FileInfo] | None:
        """Return the content of a folder by name; ``None`` if there is no such folder."""
        rows = {row.name: row for row in self._rows()}
        if len(parts) == 1:
            return {
                name: _folder_info(f"{ROOT}/{name}", row.created_at, row.updated_at)
                for name, row in rows.items()
            } or None
        row = rows.get(parts[1])
        return self._folder(row).children.get(join_parts(parts)) if row else None

    def _folder(self, row: KnowledgeBaseRow) -> _Folder:
        """Return the current pages of a knowledge base, cached for each version."""
        cached = self._folders.get(row.id)
        root = f"{ROOT}/{row.name}"
        if cached is not None and cached.version == row.version and root in cached.children:
            return cached
        rows = {page.uri: page for page in self._database.look_up(indexed_files.pages, row.id)}
        paths = assign_paths(rows, "")
        shared = shared_length([path.split("/")[1:-1] for path in paths.values()])
        pages = {
            "/".join([root, *path.split("/")[1 + shared :]]): rows[uri]
            for uri, path in paths.items()
        }
        children: dict[str, dict[str, FileInfo]] = {root: {}}
        for path, page in pages.items():
            parent, _, name = path.rpartition("/")
            info = FileInfo(
                path, FileKind.FILE, page.size, page.fetched_at, page.fetched_at, page.version, True
            )
            children.setdefault(parent, {})[name] = info
            while parent != root:
                folder = _folder_info(parent, row.created_at, row.updated_at)
                parent, _, name = parent.rpartition("/")
                children.setdefault(parent, {})[name] = folder
        self._folders[row.id] = _Folder(row.version, pages, children)
        return self._folders[row.id]


def _folder_info(path: str, created: datetime, changed: datetime) -> FileInfo:
    return FileInfo(path, FileKind.FOLDER, 0, created, changed, read_only=True)


def kb_parts(path: str) -> tuple[str, ...]:
    """Return the names of a path in a knowledge base, else none."""
    parts = parts_of(path)
    return parts if parts[:1] == (ROOT,) else ()


_MAX = 30  # listed folders and knowledge bases


def root_folders(roots: Iterable[FileInfo]) -> Findings:
    names = [f"{info.name}/" for info in roots if not info.read_only]
    more = f" and {len(names) - _MAX} more" if len(names) > _MAX else ""
    text = f"folders of files: {', '.join(names[:_MAX])}{more}"
    return Findings(facts=[ContextFact(FILES, (text,), kind="folders")] if names else ())


def prompt(folders: Mapping[str, int], knowledge_bases: Sequence[str]) -> str:
    lines = [
        "## Files",
        "",
        "You have files that last from one conversation to the next. People read and write them "
        "too. Folders at the root:",
        "",
        *(
            f"- `{name}/` ({pluralize(count, 'file')})"
            for name, count in list(folders.items())[:_MAX]
        ),
    ]
    if not folders:
        lines.append("- none yet")
    elif len(folders) > _MAX:
        lines.append(f"- and {len(folders) - _MAX} more")
    if knowledge_bases:
        names = ", ".join(f"`kb/{name}/`" for name in knowledge_bases[:_MAX])
        hidden = len(knowledge_bases) - _MAX
        more = f" and {hidden} more" if hidden > 0 else ""
        lines.append(f"- `kb/` (read-only: documentation, one Markdown file a page): {names}{more}")
    lines += [
        "",
        "The tool `memory` shows, makes and changes them; there, paths begin with `/memories` "
        "(`/memories/notes/today.md` is `notes/today.md`):",
        "",
        "- `view` lists a folder, or shows a file with numbered lines (`view_range` for a part).",
        "- `create` makes a new file; `str_replace` changes a text that occurs exactly once in a "
        "file; `insert` adds text after a line.",
        "- `rename` moves and `delete` removes a file or folder; a person can restore it.",
        "",
        "Read the existing notes before you begin. Write down what you would need if you were "
        "interrupted now, in Markdown, in the file where you would look for it; prefer changing a "
        "file to making another. Link notes as `[[Name of the note]]`, and mark them with "
        "`#tags`: both are searched.",
    ]
    return "\n".join(lines)
