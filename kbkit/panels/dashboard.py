"""All panels of a workspace in tabs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets
from traitlets import Bunch

from kbkit.panels import events, render
from kbkit.panels.documents.open_document import button

if TYPE_CHECKING:
    from kbkit.knowledge_base import KnowledgeBase
    from kbkit.workspace import Workspace

Tab = tuple[str, Callable[[], Any]]
"""A tab's title, and what makes its content when it is first opened."""


class Dashboard(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """Search, documents, ingest, judging and evaluation of a workspace, each in a tab.

    ::

        dashboard = Dashboard(workspace)
        dashboard                            # at the end of a cell: shows it
        dashboard.panel("Search").hits       # in a later cell: what it found

    A tab's panel is made when the tab is first opened, so the dashboard itself is ready at once.
    The knowledge base that was chosen last is chosen in the tab that is opened next.

    Attributes:
        tabs: The tabs themselves; ``tabs.selected_index`` opens one.
    """

    def __init__(
        self,
        workspace: Workspace,
        *,
        base: str | Path = ".",
        rater: str = "",
        more: Sequence[Tab] = (),
    ) -> None:
        """Make a dashboard.

        Args:
            workspace: What it shows.
            base: Folder that relative paths of sources start from.
            rater: Who rates and judges; by default ``KBKIT_RATER`` or the login name.
            more: Further tabs, behind kbkit's own.
        """
        self._workspace = workspace
        self._tabs = [*_own_tabs(workspace, base, rater), *more]
        self._panels: dict[int, Any] = {}
        self._kb = ""
        self.tabs = widgets.Tab(
            children=[widgets.VBox().add_class("kbkit-tab") for _ in self._tabs],
            titles=[title for title, _ in self._tabs],
        )
        super().__init__(
            [
                widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none")),
                self.tabs,
            ]
        )
        self.add_class("kbkit-dashboard")
        self.tabs.observe(self._opened, "selected_index")
        self.tabs.selected_index = 0
        self._make(0)

    def panel(self, title: str) -> Any:
        """The panel of a tab, made where it was not opened yet.

        Args:
            title: Of the tab.

        Raises:
            KeyError: There is no such tab.
        """
        titles = [each for each, _ in self._tabs]
        if title not in titles:
            raise KeyError(f"{title!r}: no such tab; there are {', '.join(titles)}")
        return self._make(titles.index(title))

    def _opened(self, change: Bunch) -> None:
        self._remember(change["old"])
        if change["new"] is not None:
            self._choose(self._make(change["new"]))

    def _make(self, place: int) -> Any:
        if place not in self._panels:
            try:
                panel = self._tabs[place][1]()
            except Exception as error:  # a panel has nobody to raise to: it shows what is wrong
                self.tabs.children[place].children = (widgets.HTML(render.problem(error)),)
                return None
            self._panels[place] = panel
            self.tabs.children[place].children = (panel,)
        return self._panels[place]

    def _remember(self, place: int | None) -> None:
        """Note which knowledge base is chosen in a tab that is left."""
        box = None if place is None else getattr(self._panels.get(place), "kb_box", None)
        if box is not None and box.value:
            self._kb = box.value

    def _choose(self, panel: Any) -> None:
        """Choose that one in the tab that is opened, if it can be chosen there."""
        box = getattr(panel, "kb_box", None)
        if box is None or box.disabled or box.value in (self._kb, ""):
            return  # what is empty stands for all
        if self._kb in _names(box.options):
            box.value = self._kb


class ChosenPanel(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """A panel of one knowledge base, which is chosen above it, and made by a button.

    Attributes:
        kb_box: Which knowledge base.
        asked_box: What else the panel needs: queries, or the path of a file with some.
        open_button: Makes the panel.
        panel: The panel, or ``None``.
    """

    def __init__(
        self,
        workspace: Workspace,
        make: Callable[[KnowledgeBase, str], Any],
        asked_box: Any,
        label: str,
        hint: str,
    ) -> None:
        """Make the choice.

        Args:
            workspace: Where to choose.
            make: Makes the panel of a knowledge base and of what was asked.
            asked_box: Takes what is asked.
            label: What the button says.
            hint: What to do, in a sentence.
        """
        self._workspace = workspace
        self._make = make
        self.panel: Any = None
        self.asked_box = asked_box.add_class("kbkit-query")
        auto = widgets.Layout(width="auto")
        self.kb_box = widgets.Dropdown(
            description="Knowledge base", options=list(workspace), layout=auto
        )
        self.open_button = button(label, hint, self.open_panel).add_class("kbkit-primary")
        self._status = widgets.HTML(render.status(hint))
        self._content = widgets.VBox()
        super().__init__(
            [
                widgets.VBox(
                    [
                        widgets.HTML(render.stylesheet(), layout=widgets.Layout(display="none")),
                        widgets.HBox([self.kb_box, self.asked_box]).add_class("kbkit-controls"),
                        widgets.HBox([self.open_button]).add_class("kbkit-buttons"),
                        self._status,
                    ]
                ).add_class("kbkit-panel"),
                self._content,
            ]
        )
        events.listen(workspace.path, self._heard)

    def open_panel(self) -> None:
        """Make the panel of what is chosen, in place of the one before."""
        try:
            if not self.kb_box.value:
                self._heard("knowledge_bases")
            panel = self._make(self._workspace[self.kb_box.value or ""], self.asked_box.value)
        except Exception as error:  # as in `Dashboard`
            self._status.value = render.problem(error)
            return
        if self.panel is not None:
            self.panel.close()
        self.panel = panel
        self._content.children = (panel,)
        self._status.value = render.status("")

    def _heard(self, what: str) -> None:
        names = list(self._workspace)
        if what != "ratings" and list(self.kb_box.options) != names:
            chosen = self.kb_box.value
            self.kb_box.options = names
            self.kb_box.value = chosen if chosen in names else next(iter(names), None)


def _own_tabs(workspace: Workspace, base: str | Path, rater: str) -> list[Tab]:
    def search() -> Any:
        from kbkit.panels import SearchPanel

        return SearchPanel(workspace, rater=rater)

    def documents() -> Any:
        from kbkit.panels import DocumentsPanel

        return DocumentsPanel(workspace, rater=rater)

    def ingest() -> Any:
        from kbkit.panels import IngestPanel

        return IngestPanel(workspace, base=base)

    def judging(kb: KnowledgeBase, asked: str) -> Any:
        from kbkit.panels import JudgePanel

        queries = [line.strip() for line in asked.splitlines() if line.strip()]
        return JudgePanel(kb, queries or kb.feedback.judgements(), rater=rater)

    def evaluation(kb: KnowledgeBase, asked: str) -> Any:
        from kbkit.panels import EvalPanel

        path = asked.strip()
        return EvalPanel(kb, Path(base, path) if path else None)

    def judge() -> Any:
        queries = widgets.Textarea(
            description="Queries",
            placeholder="One a line; without any, those that were rated before",
            layout=widgets.Layout(width="auto"),
        )
        hint = "Write what people ask, then judge what search finds for it."
        return ChosenPanel(workspace, judging, queries, "Judge", hint)

    def evaluate() -> Any:
        path = widgets.Text(
            description="Questions",
            placeholder="Path of a file with questions; without, what ratings say",
            layout=widgets.Layout(width="auto"),
        )
        hint = "Compare two ways to search by questions whose answers are known."
        return ChosenPanel(workspace, evaluation, path, "Open", hint)

    return [
        ("Search", search),
        ("Documents", documents),
        ("Ingest", ingest),
        ("Judge", judge),
        ("Evaluate", evaluate),
    ]


def _names(options: Sequence[Any]) -> list[str]:
    """The values of a selector's options, which may be pairs of label and value."""
    return [each[1] if isinstance(each, tuple) else each for each in options]
