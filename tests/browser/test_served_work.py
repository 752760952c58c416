"""The dashboard of a served workspace, in a real JupyterLab: read into, judged, measured."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import kbkit
from kbkit.server import ServerSettings, running
from kbkit.workspace import Workspace
from tests.browser.layout import resize
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
THINGS = ("clay", "glaze", "kiln", "wheel")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, str]]:
    """A workspace, and the address of its server."""
    with kbkit.open(tmp_path_factory.mktemp("served") / "kb") as workspace:
        manual = workspace.create("manual")
        for thing in THINGS:
            manual.add(thing.title(), f"# {thing.title()}\n\nHow to keep {thing} dry.")
        found = manual.search("keep clay", limit=1)[0].chunk.id
        manual.rate(found, 5, query="how to keep clay dry", rater="ann")
        with running(workspace, ServerSettings(port=0, rate=0)) as url:
            yield workspace, url


@pytest.fixture(scope="module")
def lab(jupyterlab, served) -> Iterator[Notebook]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    cells = [
        f'import kbkit\n\nws = kbkit.connect("{served[1]}")',
        "from kbkit.panels import Dashboard\n\nDashboard(ws, rater='bob')",
    ]
    with jupyterlab(*cells) as (page, folder, events):
        lab = Notebook(page, folder, events)
        lab.run_all()
        page.locator(".kbkit-dashboard").wait_for(timeout=120_000)
        yield lab


@pytest.mark.slow
def test_the_dashboard_judges_measures_and_reads_into_a_served_workspace(lab: Notebook, served):
    workspace, _ = served
    page = lab.page
    board = page.locator(".kbkit-dashboard")

    board.get_by_role("tab", name="Ingest").click()
    ingest = board.locator(".kbkit-ingest")
    with page.expect_file_chooser() as chooser:
        ingest.get_by_role("button", name=re.compile("Upload files")).click()
    chooser.value.set_files(
        [{"name": "potter.md", "mimeType": "text/markdown", "buffer": b"# Potter\n\nA potter."}]
    )
    ingest.get_by_text("Done in").wait_for()
    assert workspace["manual"].search("potter")[0].title == "Potter"
    shoot(lab, "ingest")

    board.get_by_role("tab", name="Judge").click()
    launcher = board.locator(".kbkit-launcher").filter(visible=True)
    launcher.get_by_role("textbox").fill("how to keep a kiln dry")
    launcher.get_by_role("button", name="Judge").click()
    passage = launcher.locator(".kbkit-judge-passage")
    passage.locator("h4").wait_for()  # before, a key finds nothing to judge
    passage.click()
    lab.keys("5")
    launcher.get_by_role("status").filter(has_text="Passage 2 of").wait_for()
    shoot(lab, "judge")
    assert [one.rater for one in workspace["manual"].ratings] == ["ann", "bob"]

    board.get_by_role("tab", name="Evaluate").click()
    launcher = board.locator(".kbkit-launcher").filter(visible=True)
    launcher.get_by_role("button", name="Open").click()
    launcher.get_by_role("button", name="Compare").click()
    launcher.get_by_text("No difference").first.wait_for()
    shoot(lab, "evaluate")
    assert lab.events == []


def shoot(lab: Notebook, name: str) -> None:
    """Pictures for people to look at."""
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        for width in (1300, 600):
            resize(lab.page, width, 900)
            lab.page.locator(".kbkit-dashboard").scroll_into_view_if_needed()
            lab.page.screenshot(path=SCREENSHOTS / f"served-{name}-{theme.lower()}-{width}.png")
    lab.page.set_viewport_size({"width": 1300, "height": 900})
