"""The entries panel in a real JupyterLab: by keys, stars, tabs, forms, and agents meanwhile."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import kbkit
from kbkit.entries.entries import Entries
from tests.browser.accessibility import violations
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

MAKE_WORKSPACE = """\
import kbkit

ws = kbkit.open("kb")
ws.entries.create(
    "Parse a server log", description="Finds what failed, and when, in logs of a web server.",
    prompt="# How\\n\\nRead it line by line; `parse.py` has the pattern.\\n", readme="For people.",
    tags=["logs", "python"], category="tools",
    files={"code/parse.py": "def parse(line):\\n    return line.split()\\n",
           "code/other.sh": "echo 1\\n", "artifacts/sample.bin": bytes(range(256)) * 1000},
)
ws.entries.create("Brew tea", description="Hot water, two minutes.", tags=["kitchen"])
ws.entries.create("Old way", description="Nobody does that.", status="deprecated")
ws.entries.create(
    "<img src=x onerror=alert(1)> hostile", slug="hostile", prompt="<script>alert(2)</script>",
    description="<svg onload=alert(3)></svg>", tags=["<b>bold"],
)
for score in (5, 4, 5):
    ws.entries.rate("parse-a-server-log", score, rater="ann")"""
SHOW_PANEL = """\
from kbkit.panels import EntriesPanel

panel = EntriesPanel(ws)
panel"""


class Lab(Notebook):
    part = ".kbkit-entries"

    @property
    def entry(self) -> sync_api.Locator:
        return self.panel.locator(".kbkit-entry")

    def row(self, title: str) -> sync_api.Locator:
        return self.panel.locator(".kbkit-entry-table tbody tr").filter(has_text=title)

    def tab(self, name: str) -> sync_api.Locator:
        return self.entry.get_by_role("tab", name=name)

    def titles(self) -> list[str]:
        return self.panel.locator(".kbkit-entry-table tbody th .kbkit-link").all_inner_texts()


@pytest.fixture(scope="module")
def lab(jupyterlab) -> Iterator[Lab]:
    with Lab.running(jupyterlab, MAKE_WORKSPACE, SHOW_PANEL) as lab:
        lab.row("Brew tea").wait_for()
        yield lab


@pytest.fixture(scope="module")
def agent(lab: Lab) -> Iterator[Entries]:
    """Somebody in another process."""
    with kbkit.open(lab.workspace) as workspace:
        yield workspace.entries


def test_entries_are_found_rated_and_read_by_keys(lab: Lab, agent: Entries):
    assert lab.titles()[0] == "Parse a server log"
    lab.panel.get_by_role("button", name="Title").press("Enter")
    lab.panel.locator("th[aria-sort=ascending]").get_by_text("Title").wait_for()
    lab.row("hostile").first.wait_for()
    assert lab.titles()[1:] == ["Brew tea", "Old way", "Parse a server log"]
    lab.row("Brew tea").get_by_role("button", name="Brew tea").focus()
    lab.keys("4")
    lab.says("Saved: 4 stars for Brew tea; now 4 of 5 by 1")
    assert agent.read("brew-tea").rating.average == 4
    sync_api.expect(lab.page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)
    sync_api.expect(lab.row("Brew tea").get_by_role("button", name="Brew tea")).to_be_focused()
    lab.keys("End", "Enter")
    heading = lab.entry.get_by_role("heading", name="Parse a server log")
    heading.wait_for()
    lab.entry.locator(".kbkit-page > div").get_by_text("Read it line by line").wait_for()
    lab.tab("Prompt").focus()
    lab.keys("ArrowRight")
    code = lab.entry.get_by_role("region", name="Text of code/other.sh")
    code.wait_for()
    lab.button("code/parse.py").click()
    code = lab.entry.get_by_role("region", name="Text of code/parse.py")
    code.locator(".k").first.wait_for()
    lab.tab("Code").focus()
    lab.keys("ArrowRight")
    lab.entry.get_by_text("256.0 kB").wait_for()
    with lab.page.expect_download() as download:
        lab.button("Download artifacts/sample.bin").click()
    assert download.value.suggested_filename == "sample.bin"
    assert download.value.path().read_bytes() == bytes(range(256)) * 1000
    lab.tab("Artifacts").focus()
    lab.keys("ArrowRight")
    lab.entry.get_by_role("tabpanel", name="History").get_by_text("ann").first.wait_for()
    lab.panel.get_by_label("Status").select_option("deprecated")
    lab.says("1 entry found")
    assert lab.titles() == ["Old way"]
    lab.panel.get_by_label("Status").select_option("any")
    lab.panel.get_by_label("Find").fill("minutes")
    lab.says("1 entry found")
    lab.panel.get_by_label("Find").fill("")
    lab.row("Old way").wait_for()


def test_an_entry_is_made_changed_deleted_and_brought_back(lab: Lab, agent: Entries):
    lab.button("New entry…").press("Enter")
    form = lab.panel.get_by_role("form", name="New entry")
    title = form.get_by_label("Title", exact=True)
    sync_api.expect(title).to_be_focused()
    title.press("Enter")
    form.get_by_text("is empty; describe the entry in one line").wait_for()
    sync_api.expect(title).to_have_attribute("aria-invalid", "true")
    title.fill("Bake bread")
    form.get_by_label("Folder name").fill("brew-tea")
    title.press("Enter")
    sync_api.expect(form.get_by_label("Folder name")).to_have_attribute("aria-invalid", "true")
    form.get_by_label("Folder name").fill("")
    form.get_by_label("Prompt").fill("Knead it.")
    form.get_by_label("Tags").fill("kitchen, slow")
    for theme in ("Dark", "Light"):
        lab.theme(f"JupyterLab {theme}")
        lab.screenshot(f"entries-form-{theme.lower()}")
    assert violations(lab.page, ".kbkit-entries") == []
    form.get_by_role("button", name="Create").click()
    lab.entry.get_by_role("heading", name="Bake bread").wait_for()
    assert agent.read("bake-bread").tags == ("kitchen", "slow")

    lab.tab("Code").click()
    lab.button("Add a file…").click()
    lab.panel.get_by_label("Path within the entry").fill("code/bake.py")
    lab.panel.get_by_label("Text", exact=True).fill("def bake(): pass\n")
    lab.button("Save").click()
    lab.entry.get_by_role("region", name="Text of code/bake.py").locator(".k").first.wait_for()

    lab.button("Edit").click()
    form = lab.panel.get_by_role("form", name="Edit Bake bread")
    form.get_by_label("Prompt").fill("Mine.")
    agent.update("bake-bread", prompt="Theirs.")
    form.get_by_role("button", name="Save", exact=True).click()
    form.get_by_text("prompt is now").wait_for()
    form.get_by_text("Theirs.").wait_for()
    sync_api.expect(form.get_by_label("Prompt")).to_have_value("Mine.")
    form.get_by_role("button", name="Overwrite with mine").click()
    lab.says("Saved: Bake bread")
    assert agent.read("bake-bread").prompt == "Mine."
    lab.button("Delete").click()
    lab.says("Deleted: Bake bread. Undo restores it")
    lab.row("Bake bread").wait_for(state="detached")
    lab.button("Undo").click()
    lab.row("Bake bread").wait_for()


def test_what_agents_do_appears_and_hostile_text_is_text(lab: Lab, agent: Entries):
    agent.create("An agent was here", files={"code/x.py": "1\n"})
    lab.row("An agent was here").wait_for()
    agent.rate("old-way", 1, rater="agent")
    lab.row("Old way").get_by_text("1 (1)").wait_for()
    lab.row("hostile").get_by_role("button", name="hostile").first.click()
    lab.entry.get_by_role("heading", name="hostile").wait_for()
    sync_api.expect(lab.entry.locator(".kbkit-page > div").first).to_contain_text("<script>")
    sync_api.expect(
        lab.panel.locator(".kbkit-cards :is(script, img, svg, [onerror])")
    ).to_have_count(0)
    assert lab.events == []


def test_a_click_counts_though_the_table_is_redrawn_meanwhile(lab: Lab, agent: Entries):
    lab.row("Brew tea").get_by_role("button", name="Brew tea").hover()
    lab.page.mouse.down()
    agent.rate("old-way", 2, rater="agent")
    lab.execute("panel._do_look({})")
    lab.page.mouse.up()
    lab.entry.get_by_role("heading", name="Brew tea").wait_for()


@pytest.mark.slow
def test_it_fits_and_everybody_can_use_it(lab: Lab):
    lab.execute("panel.show('parse-a-server-log')")
    lab.entry.get_by_role("heading", name="Parse a server log").wait_for()
    lab.fits_and_everybody_can_use_it("entries")
