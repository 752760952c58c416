"""Filters of the search panel, as controls and chips."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
import traitlets
from traitlets import Bunch

from kbkit.models import DocumentState, DocumentType, Filters, KnowledgeBaseInfo
from kbkit.panels import controls, render
from kbkit.panels.controls import MutedUpdates

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase

_NONE = Filters()
_NO_AGE = timedelta()  # not None, which means no selection
_DAYS = (
    ("Any time", _NO_AGE),
    ("Past day", timedelta(days=1)),
    ("Past week", timedelta(days=7)),
    ("Past month", timedelta(days=30)),
    ("Past year", timedelta(days=365)),
)
_STARS = (("Any", 0.0), ("2 or more", 2.0), ("3 or more", 3.0), ("4 or more", 4.0), ("5", 5.0))
_MAX = 500
"""Maximum tags and folders offered."""


class FilterBox(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Controls for `Filters`, created when first unfolded; setting `value` sets the controls."""

    value = traitlets.Any(_NONE, help="Conditions on documents.")

    def __init__(self, knowledge_bases: Callable[[], Sequence[KnowledgeBase]]) -> None:
        self._knowledge_bases = knowledge_bases
        self._muted = MutedUpdates()
        self._age: timedelta | None = None
        self.toggle = controls.toggle(
            "Filters", tooltip="Only some types, tags, folders, subjects, ratings, ages or states"
        )
        self.toggle.observe(self._on_toggle, "value")
        self._row = controls.row()
        self._chips = widgets.HBox().add_class("kbkit-chips")
        self._chip_of: dict[str, Any] = {}
        for hidden in (self._row, self._chips):
            controls.show(hidden, visible=False)
        self.controls: dict[str, Any] = {}
        super().__init__([self._row, self._chips])
        self.add_class("kbkit-filters")
        self.observe(self._on_value, "value")

    @traitlets.validate("value")
    def _validate(self, proposal: Bunch) -> Filters:
        return Filters.of(proposal["value"])

    def offer(self) -> None:
        if not self.toggle.value:
            return
        bases = self._knowledge_bases()
        infos = [kb.info() for kb in bases]
        with self._muted:
            self.controls["document_type"].options = _type_options(infos)
            self.controls["state"].options = _state_options(infos)
            self.controls["tags"].options = _commonest(kb.documents.tags() for kb in bases)
            folders = _commonest(kb.documents.folders() for kb in bases)
            self.controls["path"].options = [f"{folder}/**" for folder in sorted(folders)]
            self.controls["frame"].options = _options(
                _total(kb.annotations.statement_types for kb in bases)
            )
            self.controls["subject"].options = _commonest(
                {each.name: each.chunks for each in kb.annotations.subjects(limit=_MAX)}
                for kb in bases
            )
            self._show_value()

    def _on_toggle(self, change: Bunch) -> None:
        if change["new"] and not self.controls:
            self._make_controls()
        self.offer()
        controls.show(self._row, visible=change["new"])

    def _make_controls(self) -> None:
        make: dict[str, tuple[Any, str, dict[str, Any]]] = {
            "document_type": (widgets.Dropdown, "Type", {"options": [("Any", ())]}),
            "tags": (widgets.Combobox, "Tag", {"placeholder": "Add a tag"}),
            "path": (widgets.Combobox, "Path", {"placeholder": "library/**, *.pdf"}),
            "frame": (widgets.Dropdown, "Kind of statement", {"options": [("Any", ())]}),
            "subject": (widgets.Combobox, "Topic", {"placeholder": "Add a topic"}),
            "min_rating": (widgets.Dropdown, "Stars", {"options": _STARS}),
            "after": (widgets.Dropdown, "Fetched", {"options": _DAYS}),
            "state": (widgets.Dropdown, "State", {"options": [("Any", ())]}),
        }
        for name, (kind, label, options) in make.items():
            if kind is widgets.Combobox:
                options |= {"continuous_update": False}
            self.controls[name] = controls.make(kind, label, **options)
            self.controls[name].observe(self._on_choice, "value")
        self._row.children = tuple(self.controls.values())

    def _on_choice(self, change: Bunch) -> None:
        if self._muted:
            return
        name = next(name for name, box in self.controls.items() if box is change["owner"])
        value = change["new"]
        if name in ("tags", "subject"):
            added, current = value.strip(), getattr(self.value, name)
            value = current if not added or added in current else (*current, added)
        elif name == "path":
            value = value.strip()
        elif name == "after" and isinstance(value, timedelta):
            self._age = value or None
            now = datetime.now(UTC).replace(second=0, microsecond=0)
            value = now - value if value else None
        elif name == "min_rating":
            value = value or None
        self.value = replace(self.value, **{name: value})
        with self._muted:
            self._show_value()

    def _on_value(self, _change: Bunch) -> None:
        if self.value.after is None:
            self._age = None
        if not self._muted and self.controls:
            with self._muted:
                self._show_value()
        # chips keep their widgets: a browser drops a click on a replaced element
        self._chip_of = {
            text: self._chip_of.get(text) or self._make_chip(text)
            for text in _remaining(self.value)
        }
        self._chips.children = tuple(self._chip_of.values())
        controls.show(self._chips, visible=bool(self._chip_of))

    def _show_value(self) -> None:
        value = self.value
        self.controls["tags"].value = self.controls["subject"].value = ""
        self.controls["path"].value = value.path
        for name in ("document_type", "frame", "state"):
            _choose(self.controls[name], getattr(value, name), " or ".join)
        _choose(self.controls["min_rating"], value.min_rating or 0.0, "{:g} or more".format)
        after = (value.after or _NO_AGE) if self._age is None else self._age
        _choose(self.controls["after"], after, "since {:%Y-%m-%d}".format)

    def _make_chip(self, text: str) -> Any:
        label, hint = f"{render.plain(text, 60)} ✕", f"Remove {render.plain(text, 200)}"
        chip = controls.make(widgets.Button, label, tooltip=hint)
        chip.on_click(lambda _chip: self._remove(text))
        return chip

    def _remove(self, text: str) -> None:
        self.value = _remaining(self.value).get(text, self.value)


def _remaining(value: Filters) -> dict[str, Filters]:
    """Return the filters without each condition, by its text."""
    remaining: dict[str, Filters] = {}
    for name, say in _LABELS.items():
        condition = getattr(value, name)
        if name in _LISTS:
            for item in condition:
                others: Any = tuple(each for each in condition if each != item)
                remaining[say(item)] = replace(value, **{name: others})
        elif condition not in ((), "", None):
            remaining[say(condition)] = replace(value, **{name: getattr(_NONE, name)})
    if len(remaining) > 1:
        remaining["all filters"] = _NONE
    return remaining


_LABELS: dict[str, Callable[[Any], str]] = {
    "document_type": lambda kinds: f"type {' or '.join(kinds).replace('_', ' ')}",
    "tags": "tag {}".format,
    "source": "from {}".format,
    "path": "path {}".format,
    "frame": lambda frames: f"says a {' or '.join(frames)}",
    "subject": "about {}".format,
    "entity": "names {}".format,
    "min_rating": "{:g} stars or more".format,
    "min_probability": "at least {:.0%} probable".format,
    "after": "fetched since {:%Y-%m-%d}".format,
    "before": "fetched before {:%Y-%m-%d}".format,
    "state": " or ".join,
    "version": "version {}".format,
    "heading": "below {}".format,
    "page": lambda pages: f"page {' or '.join(map(str, pages))}",
}
_LISTS = frozenset({"tags", "subject", "entity"})
"""Conditions with a chip for each value."""


def _type_options(infos: Sequence[KnowledgeBaseInfo]) -> list[tuple[str, Any]]:
    total = _total(info.document_types for info in infos)
    # the most frequent first, untyped ones last
    total.sort(key=lambda each: (each[0] == DocumentType.OTHER, -each[1], each[0]))
    return _options((DocumentType(kind), count) for kind, count in total)


def _state_options(infos: Sequence[KnowledgeBaseInfo]) -> list[tuple[str, Any]]:
    states = (DocumentState.CURRENT, DocumentState.STALE)  # gone documents are not searched
    return _options(
        (state, sum(info.states.get(state.value, 0) for info in infos)) for state in states
    )


def _options(counts: Iterable[tuple[StrEnum, int]]) -> list[tuple[str, Any]]:
    options = ((f"{each.value.replace('_', ' ')} ({count:,})", (each,)) for each, count in counts)
    return [("Any", ()), *options]


def _total(counts: Iterable[Mapping[Any, int]]) -> list[tuple[Any, int]]:
    """Add counts up, the most frequent first."""
    total: Counter[Any] = Counter()
    for counter in counts:
        total.update(counter)
    return total.most_common()


def _commonest(counts: Iterator[dict[str, int]]) -> list[str]:
    return [render.plain(name, 200) for name, _ in _total(counts)[:_MAX]]


def _choose(box: Any, value: Any, label: Callable[[Any], str]) -> None:
    options = list(box.options)
    if value not in [option for _, option in options]:
        options.append((label(value), value))
        box.options = options
    box.value = value
