"""Controls of panels."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

import ipywidgets as widgets
from traitlets import Bunch

from kbkit.errors import NotFoundError
from kbkit.models import Mode
from kbkit.panels import render

if TYPE_CHECKING:
    from kbkit.client.knowledge_base import RemoteKnowledgeBase
    from kbkit.client.workspace import RemoteWorkspace
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.workspace import Workspace

_MODES = (
    ("Meaning and words", Mode.HYBRID.value),
    ("Meaning", Mode.DENSE.value),
    ("Words", Mode.LEXICAL.value),
)


def make(kind: Callable[..., Any], label: str, **options: Any) -> Any:
    return kind(description=label, layout=widgets.Layout(width="auto"), **options)


def button(label: str, tooltip: str, action: Callable[[], None]) -> widgets.Button:
    widget = make(widgets.Button, label, tooltip=tooltip).add_class("kbkit-button")
    widget.on_click(lambda _button: action())
    return widget


def toggle(label: str, **options: Any) -> widgets.ToggleButton:
    return make(widgets.ToggleButton, label, **options).add_class("kbkit-more")


def mode_box(**options: Any) -> widgets.Dropdown:
    return make(widgets.Dropdown, "Search by", options=_MODES, **options)


def row(*controls: Any) -> widgets.HBox:
    """Arrange controls in a row, labels above them; ``None`` is left out."""
    return widgets.HBox(list(filter(None, controls))).add_class("kbkit-controls")


def buttons(*controls: Any) -> widgets.HBox:
    return widgets.HBox(list(controls)).add_class("kbkit-buttons")


def stylesheet() -> widgets.HTML:
    return widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none"))


def show(widget: Any, visible: bool) -> None:
    widget.layout.display = None if visible else "none"


def enable(box: Any, enabled: bool) -> None:
    """Enable or disable all controls in a box."""
    for widget in box.children:
        if hasattr(widget, "children"):
            enable(widget, enabled)
        elif hasattr(widget, "disabled"):
            widget.disabled = not enabled


class MutedUpdates:
    """A context in which Python changes controls; true inside, so that observers ignore it."""

    def __init__(self) -> None:
        self._depth = 0

    def __enter__(self) -> None:
        self._depth += 1

    def __exit__(self, *_error: object) -> None:
        self._depth -= 1

    def __bool__(self) -> bool:
        return self._depth > 0


_chosen_last: dict[Home, str] = {}
"""Last chosen knowledge base in any panel, by workspace."""
_ALL = ("All", "")  # not None, which means no selection


class KnowledgeBaseSelector:
    """Choice of the panel's knowledge base: a fixed one, or one of a workspace.

    Attributes:
        workspace: The workspace, or ``None``.
        box: The control; ``None`` if there is only one knowledge base.
    """

    def __init__(
        self,
        target: AnyTarget,
        *,
        on_change: Callable[[], None] | None = None,
        offer_all: bool = False,
        offer_new: bool = False,
    ) -> None:
        is_workspace = hasattr(type(target), "create")
        self._kb: KnowledgeBase | None = None if is_workspace else cast("KnowledgeBase", target)
        self.workspace = cast("Workspace", target) if is_workspace else None
        self.home = home_of(target)
        self._offer_all = offer_all
        self._muted = MutedUpdates()
        self.box: widgets.Dropdown | widgets.Combobox | None = None
        if self.workspace is not None:
            hint = {"placeholder": "Choose one, or name a new one"} if offer_new else {}
            kind = widgets.Combobox if offer_new else widgets.Dropdown
            self.box = make(kind, "Knowledge base", **hint)
            self.offer()
            if offer_new:
                self.box.value = self._last_used() or ""
            self.box.observe(self._remember, "value")
            if on_change is not None:
                self.box.observe(lambda _change: self._muted or on_change(), "value")

    @property
    def name(self) -> str:
        """Name of the chosen knowledge base; ``""`` for none or all."""
        if self._kb is not None:
            return self._kb.name
        assert self.box is not None
        return (self.box.value or "").strip()

    def offer(self) -> bool:
        if self.workspace is None or self.box is None:
            return False
        names = list(self.workspace)
        options = [_ALL, *((name, name) for name in names)] if self._offer_all else names
        if list(self.box.options) == options:
            return False
        if isinstance(self.box, widgets.Combobox):  # may name a new knowledge base
            self.box.options = options
            return False
        before = self.box.value
        default = "" if self._offer_all else self._last_used()
        with self._muted:
            self.box.options = options
            self.box.value = before if before in names else default
        return before not in names

    def _last_used(self) -> str | None:
        """Return the last chosen knowledge base of the workspace, or else the last changed one."""
        assert self.workspace is not None
        infos = self.workspace.list()
        name = _chosen_last.get(self.home)
        if name in [info.name for info in infos]:
            return name
        return max(infos, key=lambda info: info.updated_at).name if infos else None

    def follow(self) -> None:
        """Choose the knowledge base that was last chosen in any panel, unless all are chosen."""
        name, box = _chosen_last.get(self.home), self.box
        if box is not None and box.value and not box.disabled and name in (self.workspace or ()):
            box.value = name

    def _remember(self, change: Bunch) -> None:
        if not self._muted and change["new"] in list(self.workspace or ()):
            _chosen_last[self.home] = change["new"]

    def find(self, name: str = "") -> KnowledgeBase:
        if self._kb is not None:
            return self._kb
        assert self.workspace is not None
        if not (name := name or self.name):
            raise NotFoundError(f"{self.home}: has no knowledge base yet; create one first")
        return self.workspace[name]

    def selected(self) -> list[KnowledgeBase]:
        if self.workspace is None:
            return [self.find()]
        return [self.workspace[name] for name in self.workspace if self.name in ("", name)]


Home: TypeAlias = Path | str
"""Folder of a workspace, or address of its server."""

AnyWorkspace: TypeAlias = "Workspace | RemoteWorkspace"
AnyBase: TypeAlias = "KnowledgeBase | RemoteKnowledgeBase"
AnyTarget: TypeAlias = "Workspace | RemoteWorkspace | KnowledgeBase | RemoteKnowledgeBase"


def home_of(target: AnyTarget) -> Home:
    return target.path if is_local(target) else target.url  # type: ignore[union-attr]


def is_local(target: object) -> bool:
    return hasattr(type(target), "path")


Topic = Literal["ratings", "documents", "knowledge_bases", "graph"]


def running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


class Debouncer:
    """Runs an action after a pause in its calls, from a timer of the event loop.

    Without an event loop (a script, a test) it runs at once.
    """

    def __init__(self, delay: float, action: Callable[[], None]) -> None:
        self.delay = delay
        self._action = action
        self._timer: asyncio.TimerHandle | None = None

    def later(self) -> None:
        """Run the action after the delay, in place of an earlier call."""
        self.cancel()
        loop = running_loop() if self.delay > 0 else None
        if loop is None:
            self._action()
        else:
            self._timer = loop.call_later(self.delay, self.now)

    def now(self) -> None:
        self.cancel()
        self._action()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
