"""A notebook that is open in a browser, as the tests of all panels use it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from tests.browser.accessibility import violations
from tests.browser.layout import resize, wait_until_fits

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
IDLE = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status == 'idle'"


@dataclass
class Notebook:
    """A JupyterLab with the notebook open.

    Attributes:
        page: The browser's page.
        folder: The notebook's.
        events: Requests to elsewhere and dialogs.
        part: CSS selector of its panel.
    """

    part: ClassVar[str] = ".kbkit-panel"
    page: Any
    folder: Path
    events: list[str]

    @classmethod
    @contextmanager
    def running(cls, jupyterlab: Callable[..., Any], *cells: str) -> Iterator[Self]:
        """Run a notebook; at the end, check that it shows no error and fetched nothing."""
        with jupyterlab(*cells) as (page, folder, events):
            lab = cls(page, folder, events)
            lab.run_all()
            yield lab
            lab.shows_no_errors()
            assert lab.events == []

    @property
    def panel(self) -> Any:
        return self.page.locator(self.part)

    @property
    def tree(self) -> Any:
        return self.panel.get_by_role("tree")

    @property
    def text(self) -> Any:
        return self.panel.locator(".kbkit-page > div")

    def item(self, name: str) -> Any:
        return self.tree.get_by_role("treeitem", name=name)

    def button(self, name: str) -> Any:
        return self.panel.get_by_role("button", name=name, exact=True)

    def opened(self, title: str) -> None:
        self.panel.get_by_role("heading", name=title, exact=True).wait_for()

    def says(self, text: str) -> None:
        self.panel.get_by_text(text, exact=True).wait_for()

    def screenshot(self, name: str) -> None:
        self.page.screenshot(path=SCREENSHOTS / f"{name}.png")

    def fits_and_everybody_can_use_it(self, name: str) -> None:
        """Look at the panel in both themes, wide and narrow."""
        for theme in ("Dark", "Light"):
            self.theme(f"JupyterLab {theme}")
            for width in (1200, 440):
                resize(self.page, width, 1000)
                self.panel.scroll_into_view_if_needed()
                self.screenshot(f"{name}-{theme.lower()}-{width}")
                wait_until_fits(self.panel)
            resize(self.page, 1200, 900)
            assert violations(self.page, self.part) == []

    @property
    def workspace(self) -> Path:
        return self.folder / "kb"

    def command(self, name: str, arguments: str = "{}") -> None:
        # The command's own promise may wait for a kernel, so nobody waits for it here.
        self.page.evaluate(f"void jupyterapp.commands.execute({name!r}, {arguments})")

    def run_all(self) -> None:
        """Start to run all cells, as soon as the kernel can."""
        self.page.wait_for_function(IDLE)
        self.command("notebook:run-all-cells")

    def execute(self, code: str) -> None:
        """Run code in the kernel, not in a cell; what it raises fails."""
        reply = self.page.evaluate(
            """async code => {
                const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel
                return (await kernel.requestExecute({code}).done).content
            }""",
            code,
        )
        assert reply["status"] == "ok", reply

    def wait_until_idle(self) -> None:
        self.page.wait_for_function(IDLE)

    def shows_no_errors(self) -> None:
        from playwright import sync_api

        for kind in ("error", "stderr"):
            outputs = self.page.locator(f".jp-OutputArea-output[data-mime-type*={kind}]")
            sync_api.expect(outputs).to_have_count(0)

    def keys(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def theme(self, name: str) -> None:
        self.command("apputils:change-theme", f"{{theme: '{name}'}}")
        self.page.wait_for_function(
            "name => document.body.dataset.jpThemeName == name"
            " && !document.querySelector('#jupyterlab-splash')",
            arg=name,
        )
