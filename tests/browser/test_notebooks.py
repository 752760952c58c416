"""Notebooks in a real JupyterLab: opened, run from top to bottom, no cell fails.

One with panels; with ``KBKIT_EXAMPLES`` set, as `make soak` sets it, every one of them. All run
in a kernel alone in `tests/notebooks`.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.browser.notebook import IDLE, Notebook

pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
ALL = sorted(path.name for path in (ROOT / "notebooks").glob("*.ipynb"))
CHOSEN = ALL if "KBKIT_EXAMPLES" in os.environ else [n for n in ALL if n.startswith("02")]
STATE = """\
() => {
    const cells = [...jupyterapp.shell.currentWidget.content.model.cells]
        .filter(cell => cell.type == 'code')
    const errors = cells.flatMap(cell => cell.sharedModel.outputs)
        .filter(output => output.output_type == 'error')
    return {
        cells: cells.length,
        run: cells.filter(cell => cell.executionCount != null).length,
        errors: errors.map(error => `${error.ename}: ${error.evalue}`),
    }
}"""


@pytest.fixture(scope="module")
def lab(jupyterlab):
    with jupyterlab("pass") as (page, folder, events):
        # where they find what they build from; what they save stays here
        shutil.copytree(ROOT / "notebooks", folder / "notebooks")
        for name in ("site", "recipes", "kbkit", "README.md", "CHANGELOG.md"):
            (folder / name).symlink_to(ROOT / name)
        lab = Notebook(page, folder, events)
        lab.wait_until_idle()
        yield lab


@pytest.mark.parametrize("name", CHOSEN)
def test_a_notebook_runs(lab: Notebook, name: str):
    path = f"{lab.folder.name}/notebooks/{name}"
    lab.command("docmanager:open", f"{{path: '{path}', kernel: {{name: 'python3'}}}}")
    lab.page.wait_for_function(
        "path => jupyterapp.shell.currentWidget?.context?.path == path", arg=path
    )
    lab.run_all()
    lab.page.wait_for_function(
        f"() => {{ const state = ({STATE})();"
        f" return state.errors.length || (state.run == state.cells && {IDLE}) }}",
        timeout=240_000,
    )
    state = lab.page.evaluate(STATE)
    assert state["errors"] == []
    assert state["run"] == state["cells"] > 3
    assert lab.events == []
    lab.command("kernelmenu:shutdown")
