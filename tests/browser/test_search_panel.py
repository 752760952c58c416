"""The search panel in a real JupyterLab in Chromium: typing, keys, stars, restart, hostile text."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pandas as pd
import pytest

import kbkit
from tests.browser.layout import settle, wait_until_fits
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

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
            tags=["format", "text"] if format in ("CSV", "JSON", "TOML", "XML") else ["format"],
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


class Lab(Notebook):
    @property
    def query(self) -> sync_api.Locator:
        return self.panel.get_by_label("Search", exact=True)

    @property
    def cards(self) -> sync_api.Locator:
        return self.panel.locator(".kbkit-card")

    @property
    def status(self) -> sync_api.Locator:
        return self.panel.get_by_role("status")

    def run_all(self) -> None:
        super().run_all()
        self.panel.get_by_text("What would you like to know?").wait_for()

    def python(self, code: str) -> str:
        """What the kernel prints."""
        return self.page.evaluate(
            """async code => {
                const kernel = jupyterapp.shell.currentWidget.sessionContext.session.kernel
                const running = kernel.requestExecute({code})
                let printed = ''
                running.onIOPub = ({content}) => { printed += content.text ?? content.evalue ?? '' }
                await running.done
                return printed.trim()
            }""",
            code,
        )

    def ask(self, query: str) -> None:
        """Type a query and wait for its cards."""
        self.query.fill("")
        self.query.press_sequentially(query, delay=10)
        self.wait_for_status(f"hits for “{query}”")

    def wait_for_status(self, text: str) -> None:
        self.page.wait_for_function(
            """text => {
                const status = document.querySelector('.kbkit-cards .kbkit-status').innerText
                const cards = document.querySelectorAll('.kbkit-card').length
                return status.includes(text) && (parseInt(status) == cards || !/^\\d/.test(status))
            }""",
            arg=text,
        )

    def wait_for_focus(self, label: str) -> None:
        """Wait until the card with that beginning of a name has the focus."""
        self.page.wait_for_function(
            "label => document.activeElement.ariaLabel?.startsWith(label)", arg=label
        )

    def ratings(self) -> pd.DataFrame:
        with kbkit.open(self.workspace) as workspace:
            return pd.concat([workspace[name].ratings.to_frame() for name in workspace])


@pytest.fixture(scope="module")
def lab(jupyterlab) -> Iterator[Lab]:
    """The notebook after all its cells have run."""
    with Lab.running(jupyterlab, MAKE_WORKSPACE, SHOW_PANEL) as lab:
        yield lab


def test_typing_shows_cards(lab: Lab):
    lab.ask("how to read a csv file")
    assert lab.cards.count() >= 5
    selected = "box => box.selectedOptions[0].label"
    assert lab.panel.get_by_label("Knowledge base").evaluate(selected) == "All"
    first = lab.cards.first
    link = first.get_by_role("link", name="Reading CSV files")
    sync_api.expect(link).to_have_attribute(
        "href", "https://docs.example.org/library/csv.html#reading"
    )
    assert set(link.get_attribute("rel").split()) >= {"noopener", "nofollow"}
    assert "CSV" in first.locator(".kbkit-snippet mark").all_inner_texts()
    assert first.get_by_role("img").get_attribute("aria-label").startswith("Score ")
    assert "just now" in first.locator(".kbkit-fetched").inner_text() or "ago" in first.inner_text()
    assert lab.status.inner_text().startswith("10 hits for ")


def test_stars_are_stored_and_taken_back(lab: Lab):
    lab.ask("write toml")
    card = lab.cards.first
    card.get_by_role("button", name="4 stars").click()
    lab.panel.get_by_text("Saved: 4 stars").wait_for()
    pressed = card.get_by_role("button", pressed=True)
    sync_api.expect(pressed).to_have_attribute("aria-label", "4 stars, very useful")
    stored = lab.ratings().iloc[-1]
    assert (stored["score"], stored["query"], stored["rater"]) == (4, "write toml", "reader")
    card.get_by_role("button", name="Undo").click()
    lab.panel.get_by_text("Undone").wait_for()
    sync_api.expect(card.get_by_role("button", pressed=True)).to_have_count(0)
    assert "write toml" not in lab.ratings()["query"].tolist()


def test_everything_works_from_the_keyboard(lab: Lab):
    lab.ask("pickle objects")
    lab.keys("ArrowDown")
    lab.wait_for_focus("Result 1:")
    lab.keys("j", "ArrowDown", "k")
    lab.wait_for_focus("Result 2:")
    lab.keys("3")
    lab.panel.get_by_text("Saved: 3 stars").wait_for()
    assert lab.ratings().iloc[-1]["query"] == "pickle objects"
    lab.keys("u")
    lab.panel.get_by_text("Undone").wait_for()
    lab.keys("c")
    context = lab.cards.nth(1).locator(".kbkit-context")
    context.locator(".kbkit-hit p").first.wait_for()
    sync_api.expect(context.locator(".kbkit-part")).to_have_count(2)
    for _ in range(2):
        lab.page.keyboard.down("c")  # the keyboard repeats a key that is held
    lab.page.keyboard.up("c")
    context.wait_for(state="hidden")
    lab.keys("x", "j", "x")
    lab.panel.get_by_text("2 selected").wait_for()
    assert lab.python("print(*panel.selection.to_frame()['chunk_id'])").split() == [
        lab.python(f"print(panel.hits[{place}].chunk.id)") for place in (1, 2)
    ]
    lab.wait_for_focus("Result 3:")
    lab.keys("m")
    lab.wait_for_status("hits like")
    lab.wait_for_focus("Result 1:")
    sync_api.expect(lab.panel.get_by_text("Passages like “")).to_be_visible()
    lab.keys("Escape")
    lab.wait_for_status("hits for “pickle objects”")
    lab.wait_for_focus("Result 3:")  # where the reader came from
    lab.keys("/")
    assert lab.query.evaluate("box => box == document.activeElement")
    # No key reached the notebook's own shortcuts: x cuts cells there, b adds them.
    lab.keys("ArrowDown", "b", "a")
    sync_api.expect(lab.page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)


def test_a_citation_is_copied(lab: Lab):
    lab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    lab.ask("tables in one file")
    lab.cards.first.get_by_role("button", name="Copy citation").click()
    lab.panel.get_by_text("Copied the citation").wait_for()
    copied = lab.page.evaluate("navigator.clipboard.readText()")
    assert copied == lab.python("print(panel.hits[0].citation())") + "\n"


def test_filters_fold_away_and_leave_chips(lab: Lab):
    lab.ask("how to write a file")
    lab.button("Filters").click()
    tags = lab.panel.get_by_label("Tag", exact=True)
    tags.fill("text")
    tags.press("Enter")
    lab.wait_for_status("with 1 filter in")
    lab.panel.get_by_label("Type", exact=True).select_option("reference (6)")
    lab.wait_for_status("with 2 filters in")
    assert lab.python("print({tag for hit in panel.hits for tag in hit.tags})") in (
        "{'format', 'text'}",
        "{'text', 'format'}",
    )
    lab.button("Filters").click()
    tags.wait_for(state="hidden")
    lab.panel.get_by_role("button", name="tag text").click()
    lab.panel.get_by_role("button", name="type reference").click()
    lab.wait_for_status("hits for “how to write a file” in")
    sync_api.expect(lab.panel.locator(".kbkit-chips button")).to_have_count(0)


def test_hostile_documents_are_shown_harmlessly(lab: Lab):
    lab.ask("quagga")
    card = lab.cards.first
    sync_api.expect(card).to_contain_text("<script>window.pwned = 1</script>")
    card.get_by_role("button", name="Context").click()
    card.locator(".kbkit-hit").wait_for()
    sync_api.expect(card.locator("script, img, svg, a[href]")).to_have_count(0)
    card.hover()
    card.click()
    assert lab.page.evaluate("window.pwned") is None
    assert lab.events == []


def test_two_panels_stay_in_step_and_see_what_other_processes_do(lab: Lab):
    lab.ask("settings that people edit")
    lab.python(
        "twin = SearchPanel(ws); twin.search('settings that people edit');"
        "twin.cards._on_message(None, {'event': 'rate', 'card': twin.cards.state['cards'][0]['id'],"
        " 'score': 2}, None)"
    )
    lab.cards.first.locator(".kbkit-star.kbkit-on").nth(1).wait_for()
    with kbkit.open(lab.workspace) as workspace:
        workspace["manual"].add("Settings", "Settings that people edit are few.", source="new")
    found = lab.cards.filter(has_text="are few")
    for _ in range(60):  # it asks when one comes back to it, once a second at most
        lab.page.locator(".jp-Notebook .jp-Cell").first.click()
        lab.query.focus()
        with suppress(sync_api.TimeoutError):
            found.wait_for(timeout=1000)
            break
    assert found.count()


def test_nothing_jumps_and_new_results_start_at_the_top(lab: Lab):
    lab.ask("how to open a file")
    box = lab.panel.bounding_box()
    lab.ask("how to write an xml file")
    _scroll_results(lab, 400)
    lab.ask("how to read a json file")
    lab.page.wait_for_function("document.querySelector('.kbkit-results').scrollTop == 0")
    assert lab.panel.bounding_box() == box
    _scroll_results(lab, 300)  # and the results stay where the reader scrolls them


def _scroll_results(lab: Lab, top: int) -> None:
    settle(lab.page)
    results = lab.panel.locator(".kbkit-results")
    results.evaluate("(results, top) => { results.scrollTop = top }", top)
    settle(lab.page)
    assert results.evaluate("results => results.scrollTop") == top


def test_it_fits_and_everybody_can_use_it(lab: Lab):
    lab.ask("settings that people edit")
    lab.button("Filters").click()
    lab.panel.get_by_label("Fetched").select_option("Past week")
    lab.wait_for_status("with 1 filter")
    lab.cards.first.get_by_role("button", name="More like this").click()
    lab.wait_for_status("hits like")
    lab.cards.nth(1).get_by_role("button", name="4 stars").click()
    lab.panel.get_by_text("Saved: 4 stars").wait_for()
    lab.cards.first.get_by_role("button", name="Context").click()
    lab.cards.first.locator(".kbkit-hit").wait_for()
    lab.page.mouse.move(5, 300)
    lab.fits_and_everybody_can_use_it("panel")
    wait_until_fits(lab.page.locator(".kbkit-results"))
    lab.panel.locator(".kbkit-chips button").click()
    lab.button("Filters").click()


@pytest.mark.slow
def test_ratings_are_found_again_after_a_restart(lab: Lab):
    lab.ask("query sqlite tables")
    lab.cards.first.get_by_role("button", name="5 stars").click()
    lab.panel.get_by_text("Saved: 5 stars").wait_for()
    lab.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    # what the panel shows until then says that nobody answers
    lab.page.wait_for_function(
        "getComputedStyle(document.querySelector('.kbkit-panel'), '::before').content"
        ".includes('run the cell again')"
    )
    lab.command("notebook:clear-all-cell-outputs")
    lab.panel.wait_for(state="detached")
    lab.run_all()
    lab.ask("query sqlite tables")
    pressed = lab.cards.first.get_by_role("button", pressed=True)
    sync_api.expect(pressed).to_have_attribute("aria-label", "5 stars, the answer")
