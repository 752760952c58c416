"""The search panel in a real JupyterLab in Chromium: typing, stars, restart, hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd
import pytest

import kbkit

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

SCREENSHOTS = Path(__file__).parents[2] / "build" / "screenshots"
MAKE_WORKSPACE = """\
import kbkit

ws = kbkit.open("kb")
if "manual" not in ws:
    manual = ws.create("manual", description="A small manual")
    for format, use in {
        "CSV": "rows of a table, one line a row",
        "JSON": "nested values",
        "TOML": "settings that people edit",
        "XML": "documents with markup",
        "SQLite": "tables in one file that can be queried",
        "pickle": "Python objects, from sources that you trust",
    }.items():
        manual.add(
            f"Reading {format} files",
            f"## Reading\\n\\nHow to read a {format} file: open the file, then hand it to the "
            f"{format.lower()} module. A {format} file holds {use}.\\n\\n## Writing\\n\\n"
            f"How to write a {format} file: open the file for writing first.",
            source=f"https://docs.example.org/library/{format.lower()}.html",
            document_type="reference",
        )
    notes = ws.create("notes", description="Pages of strangers")
    notes.add(
        "<script>window.pwned = 1</script> Quagga <img src=x onerror='window.pwned = 2'>",
        "The quagga <img src=x onerror='alert(3); window.pwned = 3'> page "
        "[click](javascript:alert(4)) \\"><svg onload=alert(5)></svg> "
        "<script src='https://evil.example/x.js'></script> " + "quagga" * 20_000,
        source="javascript:alert(6)",
    )"""
SHOW_PANEL = """\
from kbkit.panels import SearchPanel

panel = SearchPanel(ws)
panel"""
IDLE = "jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status == 'idle'"


@dataclass
class Lab:
    """A JupyterLab with the notebook open in a browser."""

    page: sync_api.Page
    workspace: Path
    events: list[str]

    @property
    def panel(self) -> sync_api.Locator:
        return self.page.locator(".kbkit-panel")

    @property
    def query(self) -> sync_api.Locator:
        return self.panel.get_by_label("Search", exact=True)

    @property
    def cards(self) -> sync_api.Locator:
        return self.panel.locator(".kbkit-card").filter(visible=True)

    @property
    def status(self) -> sync_api.Locator:
        return self.panel.get_by_role("status")

    def command(self, name: str, arguments: str = "{}") -> None:
        # The command's own promise may wait for a kernel, so nobody waits for it here.
        self.page.evaluate(f"void jupyterapp.commands.execute({name!r}, {arguments})")

    def run_all(self) -> None:
        self.page.wait_for_function(IDLE)
        self.command("notebook:run-all-cells")
        self.panel.get_by_text("What would you like to know?").wait_for()

    def ask(self, query: str) -> None:
        """Type a query and wait for its cards."""
        self.query.fill("")
        self.query.press_sequentially(query, delay=10)
        self.page.wait_for_function(
            """query => {
                const status = document.querySelector('.kbkit-status').innerText
                const cards = [...document.querySelectorAll('.kbkit-card')]
                const visible = cards.filter(card => card.checkVisibility()).length
                return status.includes(`hits for “${query}” in`) && parseInt(status) == visible
            }""",
            arg=query,
        )

    def ratings(self) -> pd.DataFrame:
        with kbkit.open(self.workspace) as workspace:
            return pd.concat([workspace[name].ratings() for name in workspace])

    def theme(self, name: str) -> None:
        self.command("apputils:change-theme", f"{{theme: '{name}'}}")
        self.page.wait_for_function(
            "name => document.body.dataset.jpThemeName == name"
            " && !document.querySelector('#jupyterlab-splash')",
            arg=name,
        )


@pytest.fixture(scope="module")
def lab(jupyterlab) -> Iterator[Lab]:
    """The notebook after all its cells have run."""
    with jupyterlab(MAKE_WORKSPACE, SHOW_PANEL) as (page, folder, events):
        lab = Lab(page, folder / "kb", events)
        lab.run_all()
        yield lab


def test_typing_shows_cards(lab: Lab):
    lab.ask("how to read a csv file")
    assert lab.cards.count() >= 5
    selected = "box => box.selectedOptions[0].label"
    assert lab.panel.get_by_label("Knowledge base").evaluate(selected) == "All"
    first = lab.cards.first
    link = first.get_by_role("link", name="Reading CSV files")
    assert link.get_attribute("href") == "https://docs.example.org/library/csv.html#reading"
    assert set(link.get_attribute("rel").split()) >= {"noopener", "nofollow"}
    assert "CSV" in first.locator(".kbkit-snippet mark").all_inner_texts()
    assert first.get_by_role("img").get_attribute("aria-label").startswith("Score ")
    assert lab.status.inner_text().startswith("10 hits for ")


def test_stars_are_stored_and_taken_back(lab: Lab):
    lab.ask("write toml")
    card = lab.cards.first
    card.get_by_role("radio", name="4 stars").check()
    lab.panel.get_by_text("Stored: 4 stars").wait_for()
    stored = lab.ratings().iloc[-1]
    assert (stored["score"], stored["query"], stored["rater"]) == (4, "write toml", "reader")
    card.get_by_role("button", name="Undo").click()
    lab.panel.get_by_text("Taken back").wait_for()
    assert card.get_by_role("radio", checked=True).count() == 0
    assert "write toml" not in lab.ratings()["query"].tolist()


def test_everything_works_from_the_keyboard(lab: Lab):
    lab.query.focus()
    lab.page.keyboard.press("Control+a")
    lab.page.keyboard.type("pickle objects")
    lab.page.keyboard.press("Enter")
    lab.panel.locator("mark", has_text="pickle").first.wait_for()
    star = lab.cards.first.get_by_role("radio", name="3 stars")
    for _ in range(12):
        lab.page.keyboard.press("Tab")
        if star.evaluate("star => star == document.activeElement"):
            break
    lab.page.keyboard.press("Space")
    lab.panel.get_by_text("Stored: 3 stars").wait_for()
    assert lab.ratings().iloc[-1]["query"] == "pickle objects"
    # No key reached the notebook's own shortcuts.
    assert lab.page.locator(".jp-Notebook .jp-Cell").count() == 2


def test_hostile_documents_are_shown_harmlessly(lab: Lab):
    lab.ask("quagga")
    card = lab.cards.first
    assert "<script>window.pwned = 1</script>" in card.inner_text()
    assert card.locator("script, img, svg, a").count() == 0
    card.hover()
    card.click()
    assert lab.page.evaluate("window.pwned") is None
    assert lab.events == []


def test_nothing_jumps_and_new_results_start_at_the_top(lab: Lab):
    box = lab.panel.bounding_box()
    lab.ask("how to write an xml file")
    _scroll_results(lab, 400)
    lab.ask("how to read a json file")
    lab.page.wait_for_function("document.querySelector('.kbkit-results').scrollTop == 0")
    assert lab.panel.bounding_box() == box
    _scroll_results(lab, 300)  # and the results stay where the reader scrolls them


def _scroll_results(lab: Lab, top: int) -> None:
    lab.page.wait_for_timeout(250)
    results = lab.panel.locator(".kbkit-results")
    results.evaluate("(results, top) => { results.scrollTop = top }", top)
    lab.page.wait_for_timeout(100)
    assert results.evaluate("results => results.scrollTop") == top


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_it_fits_wide_and_narrow_columns(lab: Lab, theme: str):
    lab.theme(f"JupyterLab {theme}")
    lab.ask("settings that people edit" if theme == "Light" else "a table in a file")
    lab.cards.nth(1).get_by_role("radio", name="4 stars").check()
    lab.panel.get_by_text("Stored: 4 stars").wait_for()
    lab.page.mouse.move(5, 300)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for name, width in (("wide", 1200), ("narrow", 480)):
        lab.page.set_viewport_size({"width": width, "height": 900})
        lab.query.scroll_into_view_if_needed()
        lab.page.wait_for_timeout(150)
        lab.page.screenshot(path=SCREENSHOTS / f"panel-{theme.lower()}-{name}.png")
        for part in (".kbkit-panel", ".kbkit-results"):
            overflow = "part => part.scrollWidth - part.clientWidth"
            assert lab.page.locator(part).evaluate(overflow) <= 0
    lab.page.set_viewport_size({"width": 1200, "height": 900})


def test_ratings_are_found_again_after_a_restart(lab: Lab):
    lab.ask("query sqlite tables")
    lab.cards.first.get_by_role("radio", name="5 stars").check()
    lab.panel.get_by_text("Stored: 5 stars").wait_for()
    lab.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    lab.command("notebook:clear-all-cell-outputs")
    lab.panel.wait_for(state="detached")
    lab.run_all()
    lab.ask("query sqlite tables")
    assert lab.cards.first.get_by_role("radio", checked=True).get_attribute("value") == "4"
    assert lab.cards.first.get_by_label("5 stars").is_checked()


def test_it_left_no_errors_and_fetched_nothing_from_elsewhere(lab: Lab):
    assert lab.page.locator(".jp-OutputArea-output[data-mime-type*=error]").count() == 0
    assert lab.page.locator(".jp-OutputArea-output[data-mime-type*=stderr]").count() == 0
    assert lab.events == []
