"""All panels of a workspace in tabs."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ipywidgets as widgets
from traitlets import Bunch

from kbkit.models import Hit
from kbkit.panels import controls, render
from kbkit.panels.controls import AnyBase, AnyWorkspace, KnowledgeBaseSelector, Topic
from kbkit.panels.panel import Panel

Tab = tuple[str, Callable[[], Any]]
"""Title of a tab, and a function that creates its content."""


class Dashboard(widgets.VBox):  # type: ignore[misc]  # ipywidgets has no types
    """All panels of a workspace, in tabs.

    ::

        dashboard = Dashboard(workspace)
        dashboard                            # at the end of a cell: shows it
        dashboard.panel("Search").hits       # in a later cell: what it found

    A tab's panel is created when the tab is first opened. The next tab starts with the knowledge
    base that was chosen last.

    Attributes:
        tabs: The tab widget; ``tabs.selected_index`` opens a tab.
    """

    def __init__(
        self,
        workspace: AnyWorkspace,
        *,
        base: str | Path = ".",
        rater: str = "",
        more: Sequence[Tab] = (),
    ) -> None:
        self._workspace = workspace
        self._tabs = [*_tabs_of(workspace, base, rater, self.show), *more]
        self._panels: dict[int, Any] = {}
        self.tabs = widgets.Tab(
            children=[widgets.VBox().add_class("kbkit-tab") for _ in self._tabs],
            titles=[title for title, _ in self._tabs],
        )
        super().__init__([controls.stylesheet(), self.tabs])
        self.add_class("kbkit-dashboard")
        self.tabs.observe(self._on_tab, "selected_index")
        self.tabs.selected_index = 0
        self._make(0)

    def panel(self, title: str) -> Any:
        """Return the panel of a tab; created on first use.

        Raises:
            KeyError: There is no such tab.
        """
        titles = [name for name, _ in self._tabs]
        if title not in titles:
            raise KeyError(f"{title!r}: no such tab; there are {', '.join(titles)}")
        return self._make(titles.index(title))

    def show(self, document: str | Hit, anchor: str = "") -> None:
        """Open a document in the documents panel; see `DocumentsPanel.show`."""
        self.tabs.selected_index = self.tabs.titles.index("Documents")
        self.panel("Documents").show(document, anchor)

    def _on_tab(self, change: Bunch) -> None:
        if change["new"] is not None:
            panel = self._make(change["new"])
            if (selector := getattr(panel, "_selector", None)) is not None:
                selector.follow()

    def _make(self, place: int) -> Any:
        if place not in self._panels:
            try:
                panel = self._tabs[place][1]()
            except Exception as error:  # shown in the tab: no caller sees it
                self.tabs.children[place].children = (widgets.HTML(render.problem(error)),)
                return None
            self._panels[place] = panel
            self.tabs.children[place].children = (panel,)
        return self._panels[place]


class PanelLauncher(Panel):
    """A button that creates a panel for a chosen knowledge base."""

    def __init__(
        self,
        workspace: AnyWorkspace,
        make: Callable[[AnyBase, str], Any],
        input_box: Any,
        label: str,
        hint: str,
    ) -> None:
        self._selector = KnowledgeBaseSelector(workspace)
        self._make = make
        self.panel: Any = None
        self.input_box = input_box.add_class("kbkit-query")
        self.kb_box = self._selector.box
        self.open_button = controls.button(label, hint, self.open_panel).add_class("kbkit-primary")
        super().__init__(controls.home_of(workspace), "launcher")
        self._choice = [
            controls.row(self.kb_box, self.input_box),
            controls.buttons(self.open_button),
        ]
        self.fill([*self._choice, self.status_line])
        self.say(hint)

    def open_panel(self) -> None:
        """Create the panel, in place of an earlier one."""
        with self.show_errors():
            self._selector.offer()
            panel = self._make(self._selector.find(), self.input_box.value)
            if self.panel is not None:
                self.panel.close()
            self.panel = panel
            self.fill([*self._choice, self.status_line, panel])
            self.say("")

    def _update(self, topic: Topic) -> None:
        if topic not in ("ratings", "graph"):
            self._selector.offer()


def _tabs_of(
    workspace: AnyWorkspace, base: str | Path, rater: str, on_open: Callable[[str | Hit], None]
) -> list[Tab]:
    from kbkit import panels

    def judging(kb: AnyBase, text: str) -> Any:
        queries = [line.strip() for line in text.splitlines() if line.strip()]
        return panels.JudgePanel(kb, queries or kb.feedback.judgements(), rater=rater)

    def evaluation(kb: AnyBase, text: str) -> Any:
        path = text.strip()
        return panels.EvalPanel(kb, Path(base, path) if path else None)

    def judge() -> Any:
        placeholder = "One per line; by default, queries with ratings"
        queries = controls.make(widgets.Textarea, "Queries", placeholder=placeholder)
        hint = "Write questions, then judge the results."
        return PanelLauncher(workspace, judging, queries, "Judge", hint)

    def evaluate() -> Any:
        placeholder = "Path of a file with questions; by default, ratings"
        path = controls.make(widgets.Text, "Questions", placeholder=placeholder)
        hint = "Compare two ways to search by questions whose answers are known."
        return PanelLauncher(workspace, evaluation, path, "Open", hint)

    return [
        ("Search", lambda: panels.SearchPanel(workspace, rater=rater, on_open=on_open)),
        ("Documents", lambda: panels.DocumentsPanel(workspace, rater=rater)),
        ("Files", lambda: panels.FilesPanel(workspace)),
        ("Entries", lambda: panels.EntriesPanel(workspace, rater=rater)),
        ("Graph", lambda: panels.GraphPanel(workspace, rater=rater, on_open=on_open)),
        ("Ingest", lambda: panels.IngestPanel(workspace, base=base)),
        ("Judge", judge),
        ("Evaluate", evaluate),
    ]
