"""The graph panel in a real JupyterLab: picture and list in step, keys, edits, hostile names."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kbkit
from tests.browser.layout import resize, settle
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

MAKE_WORKSPACE = """\
import kbkit
from kbkit.panels import GraphPanel

ws = kbkit.open("kb")
manual = ws.create("manual")
for n in range(12):
    manual.add(
        f"Page {n}",
        f"# `pool.part{n}()`\\n\\nCalls `pool.part{(n + 1) % 12}()`. "
        "Raises `PoolError` if `pool.size` is wrong.",
        source=f"https://docs.example.org/{n}.html",
    )
evil = "<img src=x onerror='window.pwned = 1'> \\u202egnp.exe " + "long " * 80
ws.graph.create(evil, type="term", description="<script>window.pwned = 2</script>")
ws.graph.relate(evil, "related_to", "PoolError", note="<b>window</b>")
ws.graph.create("random access memory", type="term")
ws.graph.create("RAM", type="term")
ws.graph.relate("RAM", "related_to", "PoolError")"""
SHOW_PANEL = """\
panel = GraphPanel(ws)
panel"""
_INK = """canvas => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const colours = new Set();
    for (let i = 0; i < data.length; i += 4) {
        if (data[i + 3] === 255) colours.add(`${data[i]} ${data[i + 1]} ${data[i + 2]}`);
    }
    return colours.size;
}"""
_HAS_COLOUR_OF_MARK = """canvas => {
    const mark = document.querySelector(".kbkit-graph .kb-graph-title .kb-graph-mark");
    const [red, green, blue] = getComputedStyle(mark).backgroundColor.match(/\\d+/g).map(Number);
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    for (let i = 0; i < data.length; i += 4) {
        if (data[i] === red && data[i + 1] === green && data[i + 2] === blue) return true;
    }
    return false;
}"""
_PICTURE = "canvas => canvas.toDataURL()"


class Lab(Notebook):
    part = ".kbkit-graph"

    @property
    def canvas(self) -> sync_api.Locator:
        return self.panel.locator("canvas")

    @property
    def list(self) -> sync_api.Locator:
        return self.panel.get_by_role("listbox")

    @property
    def title(self) -> sync_api.Locator:
        return self.panel.locator(".kb-graph-title bdi")

    def field(self, name: str) -> sync_api.Locator:
        return self.panel.locator("form").get_by_label(name, exact=True)

    def active(self) -> str:
        return self.list.evaluate(
            "list => document.getElementById(list.getAttribute('aria-activedescendant'))"
            ".querySelector('bdi').innerText"
        )

    def selected(self, name: str) -> None:
        """Wait until an entity is selected, and all of it is there."""
        self.title.get_by_text(name, exact=True).wait_for()
        self.button("Relate").wait_for()

    def said(self, text: str) -> None:
        self.panel.get_by_role("status").get_by_text(text).wait_for()

    def find(self, name: str) -> None:
        self.panel.get_by_label("Find").fill(name)
        self.panel.get_by_label("Find").press("Enter")

    def picture(self) -> str:
        settle(self.page)
        return self.canvas.evaluate(_PICTURE)


@pytest.fixture(scope="module")
def lab(jupyterlab) -> Iterator[Lab]:
    with Lab.running(jupyterlab, MAKE_WORKSPACE, SHOW_PANEL) as lab:
        lab.page.emulate_media(reduced_motion="reduce")
        lab.panel.get_by_role("button", name="Gaps").wait_for()
        yield lab


def test_the_picture_is_drawn_moved_and_zoomed(lab: Lab):
    lab.canvas.scroll_into_view_if_needed()
    assert lab.canvas.evaluate(_INK) > 20
    whole = lab.picture()
    lab.canvas.focus()
    lab.keys("ArrowLeft", "+", "+")
    moved = lab.picture()
    assert moved != whole
    lab.keys("0")
    assert lab.picture() == whole, "the same picture, as at first"
    lab.keys("d", "d", "x")  # which delete and cut cells of a notebook
    sync_api.expect(lab.page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)
    box = lab.canvas.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    lab.page.mouse.move(*middle)
    lab.page.mouse.wheel(0, -300)
    assert lab.picture() != whole
    lab.button("Fit to the frame").click()
    lab.page.mouse.move(box["x"] + 10, box["y"] + 10)
    lab.page.mouse.down()
    lab.page.mouse.move(box["x"] + 90, box["y"] + 60, steps=4)
    lab.page.mouse.up()
    assert lab.picture() != whole
    lab.button("Fit to the frame").click()


def test_a_click_selects_what_is_there_and_the_list_is_in_step(lab: Lab):
    box = lab.canvas.bounding_box()
    hint = lab.panel.locator(".kb-graph-hint")
    found = None
    for x in range(20, int(box["width"]) - 20, 14):
        for y in range(20, int(box["height"]) - 20, 14):
            lab.page.mouse.move(box["x"] + x, box["y"] + y)
            if hint.inner_text():
                found = x, y
                break
        if found:
            break
    assert found, "no node anywhere"
    name = hint.locator("bdi").inner_text()
    lab.page.mouse.click(box["x"] + found[0], box["y"] + found[1])
    lab.selected(name)
    status = lab.panel.locator(".kb-graph-status")
    assert status.inner_text().startswith(f"{name}, ")
    sync_api.expect(status).to_contain_text("neighbour")
    lab.panel.get_by_text("Passages", exact=True).wait_for()
    lab.canvas.focus()
    lab.keys("Escape")
    lab.title.wait_for(state="detached")


def test_neighbours_are_walked_by_keys(lab: Lab):
    lab.find("poolerror")
    lab.selected("PoolError")
    assert lab.list.evaluate("list => list === document.activeElement")
    lab.keys("Home", "ArrowDown")
    second = lab.active()
    before = lab.picture()
    lab.keys("ArrowDown")
    assert lab.picture() != before, "the picture shows what the keys are at"
    lab.keys("ArrowUp", "Enter")
    lab.selected(second)
    lab.keys("ArrowLeft")
    lab.selected("PoolError")
    option = lab.list.get_by_role("option").first
    sync_api.expect(option).to_have_attribute(
        "aria-setsize", str(lab.list.get_by_role("option").count())
    )
    lab.keys("Escape")
    lab.title.wait_for(state="detached")


def test_types_relations_and_gaps_are_filtered(lab: Lab):
    whole = lab.picture()
    chip = lab.panel.get_by_role("group", name="Types").get_by_role("button", name="symbol")
    chip.click()
    sync_api.expect(chip).to_have_attribute("aria-pressed", "false")
    sync_api.expect(lab.list.get_by_role("option", name="pool.part")).to_have_count(0)
    assert lab.picture() != whole
    chip.click()
    assert lab.list.get_by_role("option", name="pool.part").count() > 5
    lab.panel.get_by_role("button", name="Gaps").click()
    lab.list.get_by_text("none describes it").first.wait_for()
    lab.panel.get_by_role("button", name="Gaps").click()


def test_an_entity_is_edited_and_what_is_wrong_stands_beside_its_field(lab: Lab):
    lab.find("poolerror")
    lab.selected("PoolError")
    lab.button("Edit").click()
    lab.field("Type").fill("no word!")
    lab.field("Description").fill("When the pool is wrong.")
    lab.button("Save").click()
    lab.panel.locator("form [role=alert]").get_by_text("give a word").wait_for()
    sync_api.expect(lab.field("Type")).to_have_attribute("aria-invalid", "true")
    sync_api.expect(lab.field("Description"), "nothing is lost").to_have_value(
        "When the pool is wrong."
    )
    with kbkit.open(lab.workspace) as other:
        other.graph.update("PoolError", description="From elsewhere.", by="ann")
    lab.said("The graph has changed")
    lab.field("Type").fill("error")
    lab.button("Save").click()
    lab.panel.get_by_text("by ann").first.wait_for()
    lab.panel.locator("form").get_by_text("From elsewhere.").wait_for()
    sync_api.expect(lab.field("Description")).to_have_value("When the pool is wrong.")
    lab.button("Overwrite with mine").click()
    lab.said("Saved: PoolError")
    with kbkit.open(lab.workspace) as other:
        assert other.graph.entity("PoolError").description == "When the pool is wrong."
    lab.button("Undo").click()
    lab.said("Undone")
    with kbkit.open(lab.workspace) as other:
        assert other.graph.entity("PoolError").description == "From elsewhere."


def test_pairs_are_merged_with_evidence_and_taken_back(lab: Lab):
    lab.button("Merge suggestions").click()
    lab.panel.get_by_text("RAM are the first letters of random access memory").wait_for()
    lab.button("Merge RAM into random access memory").click()
    lab.said("Merged into random access memory")
    with kbkit.open(lab.workspace) as other:
        assert "RAM" in other.graph.entity("random access memory").aliases
    lab.button("Undo").click()
    lab.said("Undone")
    with kbkit.open(lab.workspace) as other:
        assert other.graph.entity("RAM").name == "RAM"
    lab.button("Close").click()


@pytest.mark.slow
def test_what_another_process_changes_appears_and_nothing_jumps(lab: Lab):
    lab.find("poolerror")
    lab.selected("PoolError")
    with kbkit.open(lab.workspace) as other:
        other.graph.create("gatekeeper", type="component")
        other.graph.relate("gatekeeper", "handles", "PoolError", by="an agent")
    lab.list.get_by_text("gatekeeper", exact=True).wait_for()
    sync_api.expect(lab.title, "what was selected stays so").to_have_text("PoolError")
    with kbkit.open(lab.workspace) as other:
        other.graph.delete("gatekeeper", by="an agent")
    lab.list.get_by_text("gatekeeper", exact=True).wait_for(state="detached")


def test_hostile_names_are_shown_harmlessly(lab: Lab):
    lab.find("onerror")
    lab.title.get_by_text("<img src=x").wait_for()
    lab.button("Edit").wait_for()
    lab.panel.get_by_text("<script>window.pwned = 2</script>").wait_for()
    assert len(lab.title.inner_text()) <= 160
    assert "\u202e" not in lab.panel.inner_text()
    sync_api.expect(lab.panel.locator("img, script, [onerror]")).to_have_count(0)
    assert lab.page.evaluate("window.pwned") is None
    assert lab.events == []


@pytest.mark.slow
def test_it_fits_and_everybody_can_use_it(lab: Lab):
    lab.find("poolerror")
    lab.selected("PoolError")
    lab.button("Edit").click()
    lab.fits_and_everybody_can_use_it("graph")
    pictures = {}
    for theme in ("Dark", "Light"):
        lab.theme(f"JupyterLab {theme}")
        lab.page.wait_for_function(_HAS_COLOUR_OF_MARK, arg=lab.canvas.element_handle())
        for width in (1100, 1200):
            resize(lab.page, width, 900)
        pictures[theme] = lab.picture()
    assert pictures["Light"] != pictures["Dark"], "the picture has the colours of the theme"
