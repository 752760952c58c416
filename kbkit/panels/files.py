"""The files panel."""

import posixpath
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any

import ipywidgets as widgets
import traitlets

from kbkit import errors
from kbkit.models import Document, FileInfo, Hit
from kbkit.models.values import FILES
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyWorkspace, Debouncer, Topic
from kbkit.panels.panel import Answer, Message, ReadingPanel, View, text_in
from kbkit.panels.render import ABOUT_LENGTH, TITLE_LENGTH, plain
from kbkit.panels.text_rendering import MAX_LENGTH, is_rendered, render_file, render_text
from kbkit.sources.formats import FORMATS, MULTIPLE

MAX_FOUND = 200

Row = dict[str, Any]
"""``id``, ``name``, and ``about`` of a file or an empty ``count`` of a folder."""


def ancestors(path: str) -> list[str]:
    parts = path.split("/")[:-1]
    return ["/".join(parts[: depth + 1]) for depth in range(len(parts))]


def search_rows(text: str, documents: Sequence[Document], hits: Sequence[Hit]) -> list[Row]:
    words = text.casefold().split()
    about_of: dict[str, str] = {}
    for document in documents:
        name = f"{document.uri} {document.title}".casefold()
        if all(word in name for word in words):
            about_of.setdefault(_path_of(document.uri), document.description)
    about_of = dict(sorted(about_of.items()))
    for hit in hits:
        about_of[_path_of(hit.uri)] = hit.snippet
    return [
        {
            "id": path,
            "name": plain(path.rpartition("/")[2], TITLE_LENGTH),
            "about": plain(f"{path.rpartition('/')[0]} · {about}".strip(" ·"), ABOUT_LENGTH),
        }
        for path, about in islice(about_of.items(), MAX_FOUND)
    ]


def _row(info: FileInfo) -> Row:
    row: Row = {"id": info.path, "name": plain(info.name, TITLE_LENGTH)}
    if info.is_folder:
        row["count"] = None
    else:
        row["about"] = render.minute(info.changed_at)
    if info.read_only and "/" not in info.path:
        row["state"] = "read only"
    return row


def _path_of(uri: str) -> str:
    """Return the file of a document; parts of a book or workbook append to its path."""
    parts = uri.split("/")
    for depth, name in enumerate(parts[:-1], 1):
        suffix = posixpath.splitext(name.removesuffix("#"))[1].lower()
        if FORMATS.get(suffix) in MULTIPLE:
            return "/".join(parts[:depth]).removesuffix("#")
    return uri


_PAUSE = 0.25
_MAX_WATCHED = 100
"""Folders that are polled for outside changes."""
_CHOOSE = "Select a file to show it here, or create one with New file."
_NONE = "No files yet. Create one with New file."


class FilesView(View, module="files.js"):
    """Tree, file and editor."""

    tree = traitlets.Dict(help="The tree, as JSON values.").tag(sync=True)
    roots: traitlets.List[Any] = traitlets.List(
        help="Outermost rows of the tree, sent when they change."
    ).tag(sync=True)


class FilesPanel(ReadingPanel):
    """Shows the files of a workspace as a tree, and reads and edits them.

    ::

        panel = FilesPanel(workspace)
        panel                           # at the end of a cell: shows it
        panel.file                      # in a later cell: the file that is open

    Changes by agents and other programs appear within seconds. If a file changes while it is edited
    here, both versions are shown and nothing is overwritten. `undo` reverts changes made here, step
    by step. Knowledge bases are read-only folders.

    Attributes:
        file: The open file (`FileInfo`), or ``None``.
        error: The last error, or ``None``.
        find_box: Finds files by path, title and content.
    """

    file = traitlets.Any(None, help="Facts about the open file.")

    def __init__(self, workspace: AnyWorkspace) -> None:
        self._workspace = workspace
        self._files = workspace.files
        self._open_folders: set[str] = set()
        self._documents: tuple[object, list[Document]] | None = None
        self._as_text = False
        self._anchor = ""
        hint = "Words in names or content"
        self.find_box = controls.make(widgets.Text, "Find", placeholder=hint)
        finder = Debouncer(_PAUSE, self._find)
        self.find_box.add_class("kbkit-query").observe(lambda _change: finder.later(), "value")
        super().__init__(controls.home_of(workspace), "files")
        self._view = FilesView(self)
        self.fill([controls.row(self.find_box), self.status_line, self._view])
        self.refresh()

    def show(self, path: str, anchor: str = "") -> None:
        """Open a file at an anchor, or reveal a folder; the path may be below ``kb/``."""
        with self.acting():
            info = self._files.info(path)
            if self.file is not None and self.file.path != info.path:
                self._history.append(self.file.path)
            self._open(None if info.is_folder else info, anchor, reveal=info.path)

    def _show_again(self, path: str) -> None:
        info = self._files.info(path)
        self._open(info, reveal=info.path)

    def refresh(self) -> None:
        """Import outside changes, and show the current state."""
        with self.acting():
            self._files.sync(on_progress=lambda _progress: None)
            self._reread()
            self.error = None

    # Outside changes

    def _update(self, topic: Topic) -> None:
        if topic in ("documents", "knowledge_bases"):
            self._reread()

    def _revision(self) -> str:
        opened = [self.file.path] if self.file is not None and not self.file.read_only else []
        return self._files.revision(["", *sorted(self._open_folders)[:_MAX_WATCHED], *opened])

    # Events of the page

    def _do_select(self, message: Message) -> None:
        self.show(text_in(message, "path"))

    def _do_back(self, _message: Message) -> None:
        self.back()

    def _do_children(self, message: Message) -> Answer:
        folder = text_in(message, "folder")
        self._open_folders.add(folder)
        try:
            return {"rows": [_row(info) for info in self._files.list(folder)]}
        except errors.FilesError:  # deleted meanwhile
            self._open_folders.discard(folder)
            return {"rows": []}

    def _do_edit(self, message: Message) -> Answer:
        path = text_in(message, "path")
        version = self._files.info(path).version
        return {"path": path, "text": self._files.read(path), "version": version}

    def _do_save(self, message: Message) -> Answer:
        path, text = text_in(message, "path"), text_in(message, "text")
        version, before = text_in(message, "version"), ""
        with suppress(errors.FilesError):  # `write` raises the error
            before = self._files.read(path)
        info = self._files.write(path, text, if_match=version)
        revert: Callable[[], object] = partial(self._files.delete, path)
        if version:
            revert = partial(self._files.write, path, before, if_match=info.version)
        self._undo.append((f"saving {path}", revert, f"Undone: {path} is as before"))
        return {**self._after_change(f"Saved: {path}", info.path), "version": info.version}

    def _do_create(self, message: Message) -> Answer:
        path = text_in(message, "path").strip()
        if not path.strip("/"):
            raise errors.ConfigError("path: give a name, such as notes/today.md")
        with suppress(errors.MissingPathError):
            raise errors.PathExistsError(f"{self._files.info(path).path} already exists")
        if message.get("kind") == "folder":
            info = self._files.mkdir(path)
        else:
            info = self._files.write(path, "", if_match="")
        return self._after_create(self._files, info.path, info.path)

    def _do_move(self, message: Message) -> Answer:
        source, target = text_in(message, "path"), text_in(message, "target").strip()
        info = self._files.move(source, target)
        opened = "" if self.file is None else self.file.path
        follows = f"{opened}/".startswith(f"{source}/")
        opened = info.path + opened[len(source) :] if follows else ""
        revert = partial(self._files.move, info.path, source)
        self._undo.append((f"moving {source}", revert, f"Undone: moved back to {source}"))
        return self._after_change(f"Moved: {source} to {info.path}", opened, reveal=info.path)

    def _do_delete(self, message: Message) -> Answer:
        return self._after_delete(self._files, text_in(message, "path"))

    def _do_as_text(self, message: Message) -> Answer:
        self._as_text = message.get("on") is True
        self._open(self.file)
        return {}

    def _problem(self, error: Exception, message: Message) -> Answer:
        """Return an error for its field; after a conflict, with the current file."""
        text = render.problem_line(error)
        field = {"create": "path", "move": "target"}.get(str(message.get("event")), "")
        current = None
        if message.get("event") == "save" and isinstance(error, errors.VersionConflictError):
            current = {"text": "", "version": ""}
            with suppress(errors.FilesError):
                current = self._do_edit(message)
        return {"text": text.removeprefix(f"{field}: "), "field": field, "now": current}

    # Display

    def _reread(self, opened: str = "", *, reveal: str = "") -> None:
        self._seen = self._revision()
        self._version += 1
        self._view.roots = [_row(info) for info in self._files.list()]
        path = opened or (self.file.path if self.file is not None else "")
        info = None
        if path:
            try:
                info = self._files.info(path)
            except errors.FilesError:
                self.announce(f"{path} no longer exists")
        self._open(None if info is None or info.is_folder else info, reveal=reveal)

    def _open(self, info: FileInfo | None, anchor: str = "", *, reveal: str = "") -> None:
        is_other = (info and info.path) != (self.file and self.file.path)
        if is_other or anchor:
            self._serial += 1
        self._anchor = anchor
        self.file = info
        self._reveals += bool(reveal)
        with self._view.hold_sync():  # tree keys must fit the shown file
            self._view.state = self._state(info)
            self._show_tree(reveal)

    def _state(self, info: FileInfo | None) -> dict[str, Any]:
        state: dict[str, Any] = {
            "serial": self._serial,
            "back": bool(self._history),
            "undo": self._undo_label,
        }
        self._links = {}
        if info is None:
            return state | {"title": "", "path": "", "version": "", "note": _CHOOSE}
        path, note, is_text = info.path, "", True
        try:
            text = self._files.read(path)
        except errors.NotTextError:
            is_text = False
            text = ""
            with suppress(errors.KbkitError):
                text = self._workspace[FILES].documents[path].content
            note = (
                "This file is not text; below is the text that search reads from it."
                if text
                else "This file is not text, and search does not read it."
            )
        rendered = is_rendered(path) or not is_text
        editable = not info.read_only
        if rendered and not (self._as_text and is_text):
            links = self._files.links(path) if editable else []
            shown = render_file(path, text, links)
        else:
            shown = render_text(path, text)
        self._links = shown.links
        if shown.cut:
            note = f"Only the first {MAX_LENGTH:,} characters; {shown.cut:,} are left out."
        if is_text and not text.strip():
            note = "This file is empty."
        return state | {
            "title": render.plain(info.name, render.TITLE_LENGTH),
            "path": path,
            "html": shown.html,
            "links": sorted(self._links),
            "anchor": self._anchor,
            "passage": "",
            "badge": "" if editable else "read only",
            "facts": [render.size(info.size), f"changed {render.minute(info.changed_at)}"],
            "backlinks": self._files.backlinks(path) if editable else [],
            "version": info.version,
            "editable": editable and is_text,
            "as_text": self._as_text if rendered and is_text else None,
            "note": note,
        }

    def _show_tree(self, reveal: str = "") -> None:
        text = self.find_box.value.strip()
        selected = self.file.path if self.file else ""
        self._view.tree = {
            "label": "Files",
            "kb": FILES,
            "version": self._version,
            "found": self._find_matches(text) if text else None,
            "empty": "Nothing found." if text else _NONE,
            "selected": reveal or selected,
            "ancestors": ancestors(reveal or selected),
            "reveals": self._reveals,
        }

    def _find_matches(self, text: str) -> list[dict[str, Any]]:
        if FILES not in self._workspace:
            return []
        kb = self._workspace[FILES]
        if self._documents is None or self._documents[0] != self._seen:
            self._documents = (self._seen, kb.documents.list())
        matches = search_rows(text, self._documents[1], list(kb.search(text, limit=50)))
        note = f", the first {MAX_FOUND} are shown" if len(matches) == MAX_FOUND else ""
        self.say(f"{len(matches):,} of {len(self._documents[1]):,} files{note}")
        return matches

    def _find(self) -> None:
        with self.acting():
            self._show_tree()
