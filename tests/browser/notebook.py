"""A notebook that is open in a browser, as the tests of all panels use it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

IDLE = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status == 'idle'"


@dataclass
class Notebook:
    """A JupyterLab with the notebook open.

    Attributes:
        page: The browser's page.
        folder: The notebook's.
        events: Requests to elsewhere and dialogs.
    """

    page: Any
    folder: Path
    events: list[str]

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
