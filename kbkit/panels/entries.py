"""The entries panel."""

import re
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import ipywidgets as widgets
import traitlets
from traitlets import Bunch

from kbkit import errors
from kbkit.models import Entry, EntryStatus
from kbkit.models.values import pluralize
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyWorkspace, Debouncer, MutedUpdates, Topic
from kbkit.panels.panel import Answer, EditingPanel, Message, View, text_in
from kbkit.panels.render import TITLE_LENGTH, plain
from kbkit.panels.text_rendering import MAX_LENGTH, render_file, render_text
from kbkit.runtime.config import Settings
from kbkit.runtime.validation import check_integer

_TEMPLATE = "entries.html.j2"
_TEXTS = ("title", "description", "category", "status", "prompt", "readme")


def details(entry: Entry, rater: str) -> dict[str, Any]:
    """Return the view's data of an entry; its code is requested file by file."""
    scores = [vote.score for vote in entry.rating.votes if vote.rater == rater]
    rating, artifacts = entry.rating, [file for file in entry.files if file not in entry.code]
    average = f"{rating.average:g} of 5, {pluralize(rating.count, 'vote')}"
    return {
        "slug": entry.slug,
        "title": plain(entry.title, TITLE_LENGTH) or entry.slug,
        "version": entry.version,
        "stars": scores[-1] if scores else 0,
        "rated": average if rating.count else "no votes yet",
        "tabs": [
            "Prompt",
            f"Code ({len(entry.code)})",
            f"Artifacts ({len(artifacts)})",
            f"History ({rating.count})",
        ],
        "head": render.fill_template(_TEMPLATE, "head", entry=entry),
        "prompt": render_file("prompt.md", entry.prompt, []).html,
        "readme": render_file("README.md", entry.readme, []).html,
        "code": [file.path for file in entry.code],
        "artifacts": render.fill_template(_TEMPLATE, "artifacts", files=artifacts),
        "history": render.fill_template(_TEMPLATE, "history", entry=entry),
        "fields": fields(entry),
    }


def fields(entry: Entry) -> dict[str, str]:
    texts = {name: str(getattr(entry, name)) for name in _TEXTS}
    return {**texts, "tags": ", ".join(entry.tags), "version": entry.version}


def values_of(message: Mapping[str, Any], *, new: bool) -> dict[str, Any]:
    texts: dict[str, Any] = {name: text_in(message, name) for name in _TEXTS}
    texts["tags"] = [tag for tag in map(str.strip, text_in(message, "tags").split(",")) if tag]
    if new:
        texts["slug"] = text_in(message, "slug").strip()
    return texts


_PAGE = 50
_PAUSE = 0.25
_PIECE = 200_000
"""Bytes of a download's message: Jupyter limits the rate of a kernel."""
_FIELD = re.compile(r"(title|slug|description|tags|category|status|prompt|readme|path|text)[:=]")


class EntriesView(View, module="entries.js"):
    """The table, the entry below it, and its form."""

    table = traitlets.Dict(help="The table, as JSON values.").tag(sync=True)


class EntriesPanel(EditingPanel):
    """Shows the entries of a workspace, as a table and one by one; takes votes and changes.

    ::

        panel = EntriesPanel(workspace)
        panel                           # at the end of a cell: shows it
        panel.entry                     # in a later cell: the entry that is open

    Changes by agents, other processes and editors appear within seconds. If an entry changes while
    it is edited here, the form says so and keeps the typed text.

    Attributes:
        entry: The open entry (`Entry`), or ``None``.
        error: The last error, or ``None``.
        rater: The name that votes are stored under.
        find_box: Text that entries must have.
        status_box: Filters by status, as `category_box` and `tag_box` do.
    """

    entry = traitlets.Any(None, help="The entry that is open.")

    def __init__(self, workspace: AnyWorkspace, *, rater: str = "") -> None:
        self._entries = workspace.entries
        self.rater = rater or Settings.load().rater
        self._sort = "rating"
        self._limit = _PAGE
        self._serial = 0
        self._muted = MutedUpdates()
        hint = "Words in entries"
        self.find_box = controls.make(widgets.Text, "Find", placeholder=hint).add_class(
            "kbkit-query"
        )
        statuses = [("any", ""), *((each.value, each.value) for each in EntryStatus)]
        self.status_box = controls.make(widgets.Dropdown, "Status", options=statuses)
        self.category_box = controls.make(widgets.Dropdown, "Category", options=[("any", "")])
        self.tag_box = controls.make(widgets.Dropdown, "Tag", options=[("any", "")])
        self._finder = Debouncer(_PAUSE, self._find)
        for box in (self.find_box, self.status_box, self.category_box, self.tag_box):
            box.observe(self._on_filter, "value")
        super().__init__(controls.home_of(workspace), "entries")
        self._view = EntriesView(self)
        boxes = controls.row(self.find_box, self.status_box, self.category_box, self.tag_box)
        self.fill([boxes, self.status_line, self._view])
        self.refresh()

    def show(self, slug: str) -> None:
        """Open an entry."""
        with self.acting():
            self._open(self._entries.read(slug))

    def refresh(self) -> None:
        """Import outside changes, and show the current state."""
        with self.acting():
            report = self._entries.sync(on_progress=lambda _progress: None)
            self.error = None
            self._reread()
            if report.skipped:
                first = report.skipped[0]
                self.announce(f"{first.uri}: {first.reason}")

    # Outside changes

    def _revision(self) -> str:
        return self._entries.revision()

    def _update(self, _topic: Topic) -> None:
        self._reread()

    # Events of the page

    def _do_select(self, message: Message) -> None:
        self.show(text_in(message, "slug"))

    def _do_close(self, _message: Message) -> None:
        self._open(None)

    def _do_sort(self, message: Message) -> Answer:
        self._sort = text_in(message, "by")
        self._show_table()
        return {}

    def _do_more(self, _message: Message) -> Answer:
        self._limit += _PAGE
        self._show_table()
        return {}

    def _do_rate(self, message: Message) -> Answer:
        score: Any = message.get("score")
        entry = self._entries.rate(text_in(message, "slug"), score, rater=self.rater)
        stars = pluralize(score, "star")
        average = f"{entry.rating.average:g} of 5 by {entry.rating.count:,}"
        return self._after_change(f"Saved: {stars} for {entry.title}; now {average}")

    def _do_code(self, message: Message) -> Answer:
        path = text_in(message, "path")
        with self._entries.open(text_in(message, "slug"), path) as file:
            data = file.read(4 * MAX_LENGTH)
            is_longer = bool(file.read(1))
        try:
            text = data.decode(errors="ignore" if is_longer else "strict")
            if "\0" in text:
                raise ValueError
        except ValueError:
            raise errors.NotTextError(f"{path}: is not text; download it to see it") from None
        rendered = render_text(path, text)
        cut = rendered.cut or is_longer
        return {
            "html": rendered.html,
            "text": "" if cut else text,
            "note": f"Only the first {MAX_LENGTH:,} characters." if cut else "",
        }

    def _do_download(self, message: Message) -> Answer:
        """Return a piece of a file; the page requests one after another."""
        start = check_integer("start", message.get("start", 0), 0)
        with self._entries.open(text_in(message, "slug"), text_in(message, "path")) as file:
            file.seek(start)
            data = file.read(_PIECE)
            end = not file.read(1)
        return {"data": b64encode(data).decode(), "next": start + len(data), "end": end}

    def _do_create(self, message: Message) -> Answer:
        entry = self._entries.create(**values_of(message, new=True))
        return self._after_create(self._entries, entry.slug, entry.title)

    def _do_update(self, message: Message) -> Answer:
        slug = text_in(message, "slug")
        before = self._entries.read(slug)
        version = before.version if message.get("over") else text_in(message, "version")
        values = values_of(message, new=False)
        changed = self._entries.update(slug, **values, if_match=version)
        if changed.version != before.version:
            earlier = values_of(fields(before), new=False)
            revert = partial(self._entries.update, slug, **earlier, if_match=changed.version)
            outcome = f"Undone: {before.title} is as before"
            self._undo.append((f"changing {before.title}", revert, outcome))
        return self._after_change(f"Saved: {changed.title}", slug)

    def _do_write(self, message: Message) -> Answer:
        slug, path = text_in(message, "slug"), text_in(message, "path").strip()
        before = None
        with suppress(errors.FilesError), self._entries.open(slug, path) as file:
            before = file.read()
        if message.get("new") is True and before is not None:
            raise errors.PathExistsError(f"{path} already exists")
        text = None if message.get("remove") is True else text_in(message, "text")
        version = self._entries.update(slug, files={path: text}).version
        revert = partial(self._entries.update, slug, files={path: before}, if_match=version)
        action = f"{'deleting' if text is None else 'writing'} {path}"
        self._undo.append((action, revert, f"Undone: {path} is as before"))
        return self._after_change(f"{'Deleted' if text is None else 'Stored'}: {path}", slug)

    def _do_delete(self, message: Message) -> Answer:
        entry = self._entries.read(text_in(message, "slug"))
        return self._after_delete(self._entries, entry.slug, entry.title)

    def _problem(self, error: Exception, message: Message) -> Answer:
        """Return an error for its field; after a conflict, with the current entry."""
        text = render.problem_line(error)
        match = _FIELD.match(text)
        field = match[1] if match and isinstance(error, errors.ConfigError) else ""
        if isinstance(error, errors.InvalidPathError | errors.PathExistsError) or (
            isinstance(error, errors.MissingPathError) and message.get("event") == "write"
        ):
            field = "slug" if message.get("event") == "create" else "path"
        current = None
        if isinstance(error, errors.VersionConflictError):
            with suppress(errors.FilesError):
                entry = self._entries.read(str(message.get("slug")))
                current = fields(entry)
                del current["version"]
        return {"text": text.removeprefix(f"{field}: "), "field": field, "now": current}

    # Display

    def _reread(self, opened: str = "", *, reveal: str = "") -> None:
        self._offer()
        slug = opened or (self.entry.slug if self.entry is not None else "")
        entry: Entry | None = None
        problem: errors.FilesError | None = None
        if slug:
            try:
                entry = self._entries.read(slug)
            except errors.FilesError as error:
                problem = error
        self._open(entry)
        self._show_table()
        if isinstance(problem, errors.MissingPathError):
            self.announce(f"{slug} no longer exists")
        elif problem is not None:
            self.fail(problem)
        self._seen = self._entries.revision()

    def _open(self, entry: Entry | None) -> None:
        if (entry and entry.slug) != (self.entry and self.entry.slug):
            self._serial += 1
        self.entry = entry
        self._view.state = {
            "entry": None if entry is None else details(entry, self.rater),
            "serial": self._serial,
            "undo": self._undo_label,
        }

    def _offer(self) -> None:
        entries = self._entries.list(limit=None).entries
        for box, names in (
            (self.category_box, {entry.category for entry in entries if entry.category}),
            (self.tag_box, {tag for entry in entries for tag in entry.tags}),
        ):
            before = box.value
            options = [("any", ""), *((name, name) for name in sorted(names, key=str.casefold))]
            if list(box.options) != options:
                with self._muted:
                    box.options = options
                    box.value = before if before in names else ""

    def _show_table(self) -> None:
        filters = {
            "status": self.status_box.value or None,
            "category": self.category_box.value or None,
            "tag": self.tag_box.value or None,
            "text": self.find_box.value.strip(),
        }
        page = self._entries.list(**filters, sort=self._sort, limit=self._limit)
        filtered = any(filters.values())
        hint = "No entries yet. Create one with New entry, or have agents learn them."
        empty = "No matches." if filtered else hint
        html = render.fill_template(
            _TEMPLATE, "table", entries=page.entries, sort=self._sort, empty=empty
        )
        self._view.table = {"html": html, "left": page.total - len(page)}
        self.say(f"{pluralize(page.total, 'entry')}{' found' if filtered else ''}")

    def _on_filter(self, _change: Bunch) -> None:
        if not self._muted:
            self._finder.later()

    def _find(self) -> None:
        with self.acting():
            self._limit = _PAGE
            self._show_table()
