"""The documents panel in a real JupyterLab: tree by keys, hostile text, labels, stars, deletion."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kbkit
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

MAKE_WORKSPACE = """\
import json
from pathlib import Path

import kbkit
from kbkit.recipes import JsonlSource

ws = kbkit.open("kb")
manual = ws.create("manual")
site = "https://docs.example.org/en/"
rows = [
    {
        "uri": f"{site}cooking/recipe{number}.html",
        "title": f"Recipe {number}",
        "text": f"# Recipe {number}\\n\\nSee [the next](recipe{number + 1}.html#steps), "
        "[a site](https://elsewhere.example/) and [below](#steps).\\n\\n" + "Words. " * 400 +
        "\\n\\n## Steps {#steps}\\n\\n```python\\ndef cook(): return 'done'  # at last\\n```"
        "\\n\\n| a | b |\\n| --- | --- |\\n| 1 | `2` |\\n\\n" + "More words. " * 300,
    }
    for number in range(60)
]
Path("cooking.jsonl").write_text("\\n".join(map(json.dumps, rows)))
manual.ingest(JsonlSource(path="cooking.jsonl"))
manual.add("Tools", "# Tools\\n\\nA spoon.", source=f"{site}tools.html", tags=["first"])
manual.add(
    "<script>window.pwned = 1</script> Quagga <img src=x onerror='window.pwned = 2'>",
    "The quagga <img src=x onerror='window.pwned = 3'> ![x](https://evil.example/x.png) "
    "[click](javascript:alert(4)) \\"><svg onload=alert(5)></svg> <style>* {display: none}</style>"
    "<script src='https://evil.example/x.js'></script> \\u202egnp.exe " + "q" * 1_000_000,
    source="javascript:alert(6)",
)"""
SHOW_PANEL = """\
from kbkit.panels import DocumentsPanel

panel = DocumentsPanel(ws)
panel"""


class Lab(Notebook):
    part = ".kbkit-documents"

    def active(self) -> str:
        """The line of the tree that has the focus: its name and its count."""
        return self.tree.evaluate(
            """tree => {
                const line = document.getElementById(tree.getAttribute("aria-activedescendant"))
                const parts = line.querySelectorAll(".kbkit-line-name, .kbkit-line-count")
                return [...parts].map(part => part.innerText).filter(Boolean).join(" ")
            }"""
        )

    def filter(self, text: str) -> None:
        """Filter the tree, and wait until its lines stand where they stay."""
        self.panel.get_by_label("Filter").fill(text)
        self.item("Recipe").first.wait_for(state="detached")


@pytest.fixture(scope="module")
def lab(jupyterlab) -> Iterator[Lab]:
    with Lab.running(jupyterlab, MAKE_WORKSPACE, SHOW_PANEL) as lab:
        lab.panel.get_by_text("manual: 62 documents").wait_for()
        yield lab


def test_the_tree_is_walked_by_keys(lab: Lab):
    lab.tree.focus()
    lab.keys("Home")
    assert lab.active().endswith("docs.example.org/en 61")
    lab.keys("ArrowDown")
    assert lab.active().endswith("cooking 60")
    lab.keys("ArrowLeft")
    sync_api.expect(lab.item("cooking")).to_have_attribute("aria-expanded", "false")
    sync_api.expect(lab.item("Recipe 0")).to_have_count(0)
    lab.keys("ArrowRight", "ArrowRight")
    assert lab.active() == "Recipe 0"
    lab.page.keyboard.type("recipe 47")
    assert lab.active() == "Recipe 47"
    sync_api.expect(lab.item("Recipe 0"), "lines out of sight are elements").to_have_count(0)
    lab.keys("Enter")
    lab.opened("Recipe 47")
    line = lab.item("Recipe 47")
    names = ("level", "posinset", "setsize", "selected")
    assert [line.get_attribute(f"aria-{name}") for name in names] == ["3", "48", "60", "true"]
    lab.keys("ArrowDown", "ArrowLeft")
    assert lab.active().endswith("cooking 60")
    lab.keys("d", "d", "x")  # which delete and cut cells of a notebook
    sync_api.expect(lab.page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)
    assert lab.tree.evaluate("tree => tree == document.activeElement")


def test_a_document_is_read_and_its_links_are_followed(lab: Lab):
    sync_api.expect(lab.text.locator(".k").first).to_have_text("def")
    away = lab.text.get_by_role("link", name="a site")
    sync_api.expect(away).to_have_attribute("target", "_blank")
    assert "noopener" in away.get_attribute("rel")
    place = lab.page.url
    scroll = "page => page.scrollTop"
    page = lab.panel.locator(".kbkit-page")
    lab.text.get_by_role("link", name="below").click()
    assert page.evaluate(scroll) > 100
    lab.text.get_by_role("link", name="the next").click()
    lab.opened("Recipe 48")
    assert page.evaluate(scroll) > 100, "it begins at the anchor"
    assert lab.page.url == place
    lab.panel.get_by_role("button", name="Back").click()
    lab.opened("Recipe 47")
    assert page.evaluate(scroll) == 0


def test_a_hit_is_opened_at_its_passage_which_is_marked(lab: Lab):
    lab.execute(
        "hits = ws['manual'].search('recipe 12', limit=200, mode='lexical')\n"
        "code = [hit for hit in hits if 'def cook' in hit.chunk.text]\n"
        "panel.show(next(hit for hit in code if hit.title == 'Recipe 12'))"
    )
    lab.opened("Recipe 12")
    marked = lab.text.locator(".passage")
    marked.first.wait_for()
    said = " ".join(marked.all_inner_texts())
    assert "def cook(): return 'done'" in said
    assert "See the next" not in said
    sync_api.expect(lab.text.locator("pre.passage, .passage pre").first).to_be_in_viewport()
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        lab.screenshot(f"documents-passage-{theme.lower()}")
    lab.theme("JupyterLab Light")
    lab.execute("panel.show('https://docs.example.org/en/tools.html')")
    lab.opened("Tools")
    sync_api.expect(marked).to_have_count(0)


def test_hostile_documents_are_shown_harmlessly(lab: Lab):
    lab.filter("quagga")
    lab.item("Quagga").click()
    lab.panel.get_by_text("characters at the end are left out").wait_for()
    sync_api.expect(lab.text).to_contain_text("<img src=x")
    sync_api.expect(lab.text.locator("script, img, svg, style, [onerror]")).to_have_count(0)
    assert lab.text.locator("a").evaluate_all("links => links.map(link => link.protocol)") == [
        "https:"
    ]
    title = lab.panel.locator(".kbkit-article-title")
    sync_api.expect(title.locator("a, img, script")).to_have_count(0)
    assert lab.page.evaluate("window.pwned") is None
    assert lab.events == []
    lab.panel.get_by_label("Filter").fill("")


def test_labels_and_stars_are_stored(lab: Lab):
    lab.filter("tools")
    lab.item("Tools").click()
    lab.opened("Tools")
    lab.panel.get_by_label("Type").select_option("policy")
    lab.panel.get_by_text("Saved: policy; first").wait_for()
    tags = lab.panel.get_by_label("Tags")
    tags.fill("kitchen, wood")
    tags.press("Enter")
    lab.panel.get_by_text("Saved: policy; kitchen, wood").wait_for()
    lab.panel.get_by_role("button", name="4 stars").click()
    lab.panel.get_by_text("Saved: 4 stars").wait_for()
    with kbkit.open(lab.workspace) as workspace:
        manual = workspace["manual"]
        document = manual.documents["https://docs.example.org/en/tools.html"]
        assert (document.document_type, document.tags) == ("policy", ("kitchen", "wood"))
        assert manual.ratings.to_frame()["target"].tolist() == [document.id]
        manual.add("Spoons", "Wooden.", source="https://docs.example.org/en/spoons.html")
    lab.panel.get_by_label("Filter").fill("")
    lab.tree.focus()  # what another process did is noticed
    lab.panel.get_by_text("manual: 63 documents").wait_for()


def test_a_document_is_deleted(lab: Lab):
    lab.item("Tools").click()
    lab.opened("Tools")
    lab.panel.get_by_role("button", name="Delete").click()
    lab.panel.get_by_text("Deleted: “Tools”").wait_for()
    sync_api.expect(lab.item("Tools")).to_have_count(0)
    lab.panel.get_by_text("Select a document").wait_for()


@pytest.mark.slow
def test_it_fits_and_everybody_can_use_it(lab: Lab):
    lab.item("Recipe 3").first.click()
    lab.fits_and_everybody_can_use_it("documents")
    parts = [lab.page.locator(part).bounding_box() for part in (".kbkit-tree", ".kbkit-page")]
    assert len({round(box["y"] + box["height"]) for box in parts}) == 1  # they end together
