"""The choice of a knowledge base in panels."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import ipywidgets as widgets
from traitlets import Bunch

from kbkit.errors import NotFoundError
from kbkit.panels.controls import MutedUpdates, control
from kbkit.panels.homes import AnyTarget, Home, home_of

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.workspace import Workspace

_chosen_last: dict[Home, str] = {}
"""Last chosen knowledge base in any panel, by workspace."""
_ALL = ("All", "")  # not None, which would say that nothing is selected


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
            self.box = control(kind, "Knowledge base", **hint)
            self.offer()
            if offer_new:
                self.box.value = self._last_used() or ""
            self.box.observe(self._remember, "value")
            if on_change is not None:
                self.box.observe(lambda _change: self._muted or on_change(), "value")

    @property
    def name(self) -> str:
        """The chosen one's name; ``""`` where none or all are chosen."""
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
        if isinstance(self.box, widgets.Combobox):  # which may say what is not there yet
            self.box.options = options
            return False
        before = self.box.value
        default = "" if self._offer_all else self._last_used()
        with self._muted:
            self.box.options = options
            self.box.value = before if before in names else default
        return before not in names

    def _last_used(self) -> str | None:
        """The knowledge base that was chosen last here, or else the one that changed last."""
        assert self.workspace is not None
        infos = self.workspace.list()
        name = _chosen_last.get(self.home)
        if name in [info.name for info in infos]:
            return name
        return max(infos, key=lambda info: info.updated_at).name if infos else None

    def _remember(self, change: Bunch) -> None:
        if not self._muted and change["new"] in list(self.workspace or ()):
            _chosen_last[self.home] = change["new"]

    def find(self, name: str = "") -> KnowledgeBase:
        if self._kb is not None:
            return self._kb
        assert self.workspace is not None
        if not (name := name or self.name):
            raise NotFoundError(f"{self.home}: has no knowledge base yet; make one first")
        return self.workspace[name]

    def chosen(self) -> list[KnowledgeBase]:
        if self.workspace is None:
            return [self.find()]
        return [self.workspace[name] for name in self.workspace if self.name in ("", name)]
