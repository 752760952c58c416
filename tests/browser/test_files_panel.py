"""The files panel in a real JupyterLab: by keys, with agents that write meanwhile."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

import kbkit
from kbkit.files.files import Files
from tests.browser.accessibility import violations
from tests.browser.notebook import Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

MAKE_WORKSPACE = """\
import kbkit

ws = kbkit.open("kb")
manual = ws.create("manual")
manual.add("Kilns", "# Kilns\\n\\nFire to 1000 degrees.", source="https://docs.example.org/kilns.html")
manual.add("Glazes", "# Glazes\\n\\nSilica.", source="https://docs.example.org/glazes.html")
files = ws.files
files.write("plans/tea.md", "---\\ntags: [drinks]\\n---\\n# Green tea\\n\\nSteep it. "
    "See [[Milk]] and [[Lemon]].\\n\\n```python\\ndef steep(): return 'done'\\n```\\n\\n"
    "| a | b |\\n| --- | --- |\\n| 1 | 2 |\\n")
files.write("milk.md", "# Milk\\n\\nGoes with [[Green tea]]. A quokka likes it.\\n")
files.write("run.py", "def run():\\n    return 1\\n")
files.write("hostile.md", "# <script>window.pwned = 1</script>\\n\\n<img src=x "
    "onerror='window.pwned = 2'> ![x](https://evil.example/x.png) [click](javascript:alert(4)) "
    "<svg onload=alert(5)></svg> [[<img src=x onerror=alert(6)>]]\\n")
for number in range(600):
    path = files.path / "many" / f"note {number}.md"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"# Note {number}\\n")"""
SHOW_PANEL = """\
from kbkit.panels import FilesPanel

panel = FilesPanel(ws)
panel"""


class Lab(Notebook):
    part = ".kbkit-files"

    @property
    def editor(self) -> sync_api.Locator:
        return self.panel.get_by_role("textbox", name="Text of")

    def active(self) -> str:
        """The name in the line of the tree that keys are about."""
        return self.tree.evaluate(
            """tree => {
                const line = document.getElementById(tree.getAttribute("aria-activedescendant"))
                return line.querySelector(".kbkit-line-name").innerText
            }"""
        )


@pytest.fixture(scope="module")
def lab(jupyterlab) -> Iterator[Lab]:
    with Lab.running(jupyterlab, MAKE_WORKSPACE, SHOW_PANEL) as lab:
        lab.item("many").wait_for(timeout=120_000)  # its notes are stored before
        yield lab


@pytest.fixture(scope="module")
def agent(lab: Lab) -> Iterator[Files]:
    """Somebody in another process."""
    with kbkit.open(lab.workspace) as workspace:
        yield workspace.files


def test_the_tree_is_walked_and_a_file_is_read_by_keys(lab: Lab):
    lab.tree.focus()
    lab.keys("Home")
    assert lab.active() == "kb"
    lab.keys("ArrowRight")
    lab.item("manual").wait_for()
    lab.keys("ArrowRight", "ArrowRight")
    lab.item("glazes.md").wait_for()
    lab.keys("ArrowRight", "Enter")
    lab.opened("glazes.md")
    lab.text.get_by_text("Silica.").wait_for()
    sync_api.expect(lab.button("Edit")).to_have_count(0)  # read only
    sync_api.expect(lab.button("Delete")).to_be_disabled()
    lab.keys("Home", "ArrowLeft")
    lab.item("manual").wait_for(state="detached")
    lab.page.keyboard.type("plans")
    lab.keys("ArrowRight")
    lab.item("tea.md").wait_for()
    lab.keys("ArrowRight")
    line = lab.item("tea.md")
    assert [line.get_attribute(f"aria-{name}") for name in ("level", "posinset", "setsize")] == [
        "2",
        "1",
        "1",
    ]
    lab.keys("Enter")
    lab.opened("tea.md")
    lab.text.get_by_role("heading", name="Green tea").wait_for()
    sync_api.expect(lab.text.locator(".k").first).to_have_text("def")
    lab.text.get_by_role("link", name="Milk").click()
    lab.opened("milk.md")
    lab.panel.get_by_role("navigation", name="Backlinks").get_by_role("button").click()
    lab.opened("tea.md")
    lab.button("As text").click()
    lab.text.get_by_text("[[Lemon]]").wait_for()
    lab.button("As text").click()
    lab.text.get_by_role("link", name="Lemon").wait_for()
    lab.button("Back").click()
    lab.opened("milk.md")


def test_hundreds_of_files_are_lines_when_they_are_in_sight(lab: Lab):
    lab.tree.focus()
    lab.keys("Home")
    lab.page.keyboard.type("many")
    lab.keys("ArrowRight")
    lab.item("note 0.md").wait_for()
    assert lab.tree.locator(".kbkit-line").count() < 60
    lab.page.keyboard.type("note 599")
    assert lab.active() == "note 599.md"
    lab.keys("Enter")
    lab.opened("note 599.md")
    lab.keys("ArrowLeft", "ArrowLeft")
    lab.item("note").first.wait_for(state="detached")


def test_a_file_is_made_edited_moved_deleted_and_all_of_it_taken_back(lab: Lab, agent: Files):
    lab.tree.focus()
    lab.keys("Home")
    lab.page.keyboard.type("plans")
    lab.button("New file…").press("Enter")
    box = lab.panel.get_by_role("textbox", name="Path of the new file")
    sync_api.expect(box).to_have_value("plans/")
    box.fill("plans/tea.md")
    box.press("Enter")
    lab.panel.get_by_text("plans/tea.md already exists").wait_for()
    sync_api.expect(box).to_have_attribute("aria-invalid", "true")
    box.fill("plans/today")
    box.press("Enter")
    lab.editor.wait_for()
    sync_api.expect(lab.editor).to_be_focused()
    lab.page.keyboard.type("# Today\n\nWalk the dog. 0 0 d d x")
    lab.keys("Control+s")
    lab.says("Saved.")
    assert agent.read("plans/today.md") == "# Today\n\nWalk the dog. 0 0 d d x"
    sync_api.expect(lab.page.locator(".jp-Notebook .jp-Cell")).to_have_count(2)
    lab.page.keyboard.type(" More.")
    lab.keys("Escape")
    lab.says("You have unsaved changes.")
    lab.button("Keep editing").click()
    lab.keys("Control+s", "Escape")
    lab.opened("today.md")
    lab.text.get_by_text("d d x More.").wait_for()

    lab.tree.focus()
    sync_api.expect(lab.item("today.md")).to_have_class(re.compile("kbkit-active"))
    lab.keys("F2")
    target = lab.panel.get_by_role("textbox", name="New path")
    sync_api.expect(target).to_have_value("plans/today.md")
    assert (
        target.evaluate("box => box.value.slice(box.selectionStart, box.selectionEnd)") == "today"
    )
    target.fill("days/monday.md")
    target.press("Enter")
    lab.opened("monday.md")
    sync_api.expect(lab.tree).to_be_focused()
    sync_api.expect(lab.item("monday.md")).to_have_class(re.compile("kbkit-active"))
    lab.keys("Delete")
    lab.says("Deleted: days/monday.md. Undo restores it")
    assert [info.path for info in agent.list("days")] == []
    undo = lab.button("Undo")
    undo.click()
    lab.says("Restored: days/monday.md")
    undo.click()
    lab.says("Undone: moved back to plans/today.md")
    undo.click()
    lab.says("Undone: plans/today.md is as before")
    assert agent.read("plans/today.md") == "# Today\n\nWalk the dog. 0 0 d d x"


def test_what_an_agent_writes_appears_and_neither_side_loses_a_word(lab: Lab, agent: Files):
    lab.item("milk.md").click()
    lab.opened("milk.md")
    agent.append("milk.md", "An agent was here.")
    lab.text.get_by_text("An agent was here.").wait_for()
    memory = agent.memory_tool()
    memory.handle({"command": "create", "path": "/memories/agent.md", "file_text": "I am new.\n"})
    lab.item("agent.md").wait_for()
    (agent.path / "editor.md").write_text("Any editor may write.\n")  # and tells nobody
    lab.item("editor.md").wait_for()

    lab.button("Edit").click()
    lab.editor.fill("# Milk\n\nMine.\n")
    agent.write("milk.md", "# Milk\n\nTheirs.\n")
    lab.says("This file was changed elsewhere. Save to compare both versions.")
    lab.editor.press("Control+s")
    lab.panel.locator("dd").get_by_text("Theirs.").wait_for()
    sync_api.expect(lab.editor).to_have_value("# Milk\n\nMine.\n")
    assert agent.read("milk.md") == "# Milk\n\nTheirs.\n"
    for theme in ("Dark", "Light"):
        lab.theme(f"JupyterLab {theme}")
        lab.screenshot(f"files-conflict-{theme.lower()}")
    assert violations(lab.page, ".kbkit-files") == []
    lab.button("Overwrite with mine").click()
    lab.says("Saved.")
    assert agent.read("milk.md") == "# Milk\n\nMine.\n"
    lab.button("Close").click()

    lab.item("milk.md").click()
    lab.opened("milk.md")
    lab.button("Edit").click()
    lab.editor.fill("Mine at last.")
    lab.item("run.py").click()  # whoever leaves is asked
    lab.says("You have unsaved changes.")
    lab.button("Save").first.click()
    lab.opened("run.py")
    assert agent.read("milk.md") == "Mine at last."


def test_a_click_counts_though_the_tree_is_redrawn_meanwhile(lab: Lab, agent: Files):
    lab.item("run.py").hover()
    lab.page.mouse.down()
    agent.write("a folder above/new.md", "# New\n")  # moves the line down
    lab.execute("panel._do_look({})")
    lab.page.mouse.up()
    lab.opened("run.py")
    lab.item("a folder above").wait_for()


def test_the_line_that_somebody_moves_to_stays(lab: Lab):
    lab.item("milk.md").click()
    lab.opened("milk.md")
    lab.keys("ArrowDown", "Enter", "ArrowUp")
    lab.panel.get_by_role("heading", name="milk.md", exact=True).wait_for(state="detached")
    lab.execute("panel._do_look({})")
    assert lab.active() == "milk.md"


def test_files_are_found_and_a_note_that_is_missing_is_made(lab: Lab, agent: Files):
    find = lab.panel.get_by_label("Find")
    find.fill("599 note")
    lab.item("note 599.md").wait_for()
    find.fill("steep")
    lab.item("tea.md").click()
    lab.opened("tea.md")
    find.fill("")
    lab.item("run.py").wait_for()
    lab.text.get_by_role("link", name="Lemon").click()
    box = lab.panel.get_by_role("textbox", name="Path of the new file")
    sync_api.expect(box).to_have_value("plans/Lemon.md")
    box.press("Enter")
    lab.editor.wait_for()
    lab.button("Close").click()
    assert agent.info("plans/Lemon.md").size == 0
    assert {link.path for link in agent.links("plans/tea.md")} == {"milk.md", "plans/Lemon.md"}


def test_hostile_files_are_shown_harmlessly(lab: Lab):
    lab.item("hostile.md").click()
    lab.opened("hostile.md")
    sync_api.expect(lab.text).to_contain_text("<img src=x")
    sync_api.expect(lab.text.locator("script, img, svg, style, [onerror]")).to_have_count(0)
    assert lab.page.evaluate("window.pwned") is None
    assert lab.events == []


@pytest.mark.slow
def test_it_fits_and_everybody_can_use_it(lab: Lab):
    lab.execute("panel.show('plans/tea.md')")
    lab.opened("tea.md")
    lab.fits_and_everybody_can_use_it("files")
