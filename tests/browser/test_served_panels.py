"""Panels of a workspace that a server holds, in a real JupyterLab."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kbkit
from kbkit.server import ServerSettings, running
from kbkit.workspace import Workspace
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
SHOW = """\
from kbkit.panels import DocumentsPanel, EntriesPanel, FilesPanel, GraphPanel, SearchPanel

"""
PANELS = (
    "SearchPanel(ws)",
    'DocumentsPanel(ws["manual"])',
    "FilesPanel(ws)",
    "EntriesPanel(ws)",
    "GraphPanel(ws)",
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspace, str]]:
    """A workspace, and the address of its server."""
    with kbkit.open(tmp_path_factory.mktemp("served") / "kb") as workspace:
        manual = workspace.create("manual")
        manual.add("Kilns", "# Kilns\n\nFire the clay to 1000 degrees.", tags=["heat"])
        manual.add("Glazes", "# Glazes\n\nSilica melts in a kiln.")
        workspace.files.write("plans/tea.md", "# Green tea\n\nSteep it.\n")
        workspace.entries.create("Fire a kiln", description="How to.", prompt="Slowly.")
        workspace.graph.create("Kiln", type="term")
        workspace.graph.create("Clay", type="term")
        workspace.graph.relate("Kiln", "fires", "Clay")
        with running(workspace, ServerSettings(port=0, rate=0)) as url:
            yield workspace, url


@pytest.fixture(scope="module")
def lab(jupyterlab, served) -> Iterator[Notebook]:
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    cells = [
        f'import kbkit\n\nws = kbkit.connect("{served[1]}")',
        *(f"{SHOW}panel = {shown}\npanel" for shown in PANELS),
    ]
    with jupyterlab(*cells) as (page, folder, events):
        lab = Notebook(page, folder, events)
        lab.run_all()
        page.locator(".kbkit-graph").wait_for(timeout=120_000)
        yield lab


def test_each_panel_shows_what_a_server_holds_and_changes_it(lab: Notebook, served):
    workspace, _ = served
    page = lab.page
    search = page.locator(".kbkit-search")
    search.get_by_role("textbox").first.fill("how hot is the kiln")
    search.get_by_text("Fire the clay to 1000 degrees.").first.wait_for()
    search.scroll_into_view_if_needed()
    page.screenshot(path=SCREENSHOTS / "served-search.png")

    documents = page.locator(".kbkit-documents")
    documents.scroll_into_view_if_needed()
    documents.get_by_role("treeitem", name="Glazes").click()
    documents.get_by_text("Silica melts in a kiln.").first.wait_for()
    page.screenshot(path=SCREENSHOTS / "served-documents.png")

    files = page.locator(".kbkit-files")
    files.scroll_into_view_if_needed()
    tree = files.get_by_role("tree")
    tree.get_by_role("treeitem", name="plans").click()
    tree.get_by_role("treeitem", name="tea.md").click()
    files.get_by_text("Steep it.").first.wait_for()
    workspace.files.write("plans/tea.md", "# Green tea\n\nSteep it for two minutes.\n")
    files.get_by_text("Steep it for two minutes.").first.wait_for()
    page.screenshot(path=SCREENSHOTS / "served-files.png")

    entries = page.locator(".kbkit-entries")
    entries.scroll_into_view_if_needed()
    entries.get_by_text("Fire a kiln").first.click()
    entries.get_by_text("Slowly.").first.wait_for()
    workspace.entries.rate("fire-a-kiln", 5, rater="ann")
    entries.get_by_text("5 of 5").first.wait_for()
    page.screenshot(path=SCREENSHOTS / "served-entries.png")

    graph = page.locator(".kbkit-graph")
    graph.scroll_into_view_if_needed()
    graph.get_by_text("Clay").first.wait_for()
    page.screenshot(path=SCREENSHOTS / "served-graph.png")
    assert lab.events == []
