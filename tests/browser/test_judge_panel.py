"""Judging by keys and comparing settings in a real JupyterLab in Chromium."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

import kbkit
from tests.browser.accessibility import violations
from tests.browser.layout import resize, wait_until_fits
from tests.browser.notebook import SCREENSHOTS, Notebook

sync_api = pytest.importorskip("playwright.sync_api")

pytestmark = pytest.mark.browser

MAKE_WORKSPACE = """\
import os
from pathlib import Path

import kbkit

ws = kbkit.open("kb")
Path("kb/pid").write_text(str(os.getpid()))
kb = ws.create("manual") if "manual" not in ws else ws["manual"]
for format, use in {
    "CSV": "rows of a table, one line a row",
    "JSON": "nested values",
    "TOML": "settings that people edit",
    "XML": "documents with markup",
}.items():
    kb.add(
        f"Reading {format} files",
        f"## Reading\\n\\nHow to read a {format} file: open the file, then hand it to the "
        f"`{format.lower()}` module.\\n\\n```python\\nwith open('a.{format.lower()}') as file:\\n"
        f"    rows = {format.lower()}.read(file)\\n```\\n\\nA {format} file holds {use}.\\n\\n"
        f"## Writing\\n\\nTo write a {format} file: open it for writing first.",
        source=f"https://docs.example.org/library/{format.lower()}.html",
    )
kb.add(
    "<script>window.pwned = 1</script> Quagga <img src=x onerror='window.pwned = 2'>",
    "The quagga <img src=x onerror='alert(3); window.pwned = 3'> page "
    "[click](javascript:alert(4)) [away](/elsewhere) \\"><svg onload=alert(5)></svg> "
    "<style>body { display: none }</style> \\u202edesrever",
    source="javascript:alert(6)",
)
kb.add("zebra" * 1000, "quagga zebra " + "zebra" * 200_000)"""
SHOW_JUDGE = """\
from kbkit.panels import EvalPanel, JudgePanel
from kbkit.recipes import Question

judge = JudgePanel(kb, ["read a csv file", "write settings", "quagga"], limit=4, unshown=1)
judge"""
SHOW_EVAL = """\
asked = {"rows of a table": "csv", "nested values": "json", "write toml": "toml", "markup": "xml"}
questions = [Question(question=q, relevant=(f"{page}.html",)) for q, page in asked.items()]
evaluate = EvalPanel(kb, questions)
evaluate"""


class Lab(Notebook):
    @property
    def judge(self) -> sync_api.Locator:
        return self.page.locator(".kbkit-judge")

    @property
    def passage(self) -> sync_api.Locator:
        return self.judge.locator(".kbkit-judge-passage")

    @property
    def problem(self) -> sync_api.Locator:
        return self.judge.locator(".kbkit-problem")

    @property
    def evaluate(self) -> sync_api.Locator:
        return self.page.locator(".kbkit-eval")

    def run_all(self) -> None:
        super().run_all()
        self.judge.locator("h4").filter(visible=True).wait_for()
        self.wait_until_idle()
        self.evaluate.get_by_text("Change the settings of B").wait_for()

    def said(self, text: str) -> None:
        self.judge.get_by_role("status").filter(has_text=text).wait_for()

    def number(self) -> int:
        """The passage that is shown, from 1."""
        return int(self.passage.get_attribute("aria-label").split()[1])

    def ratings(self, count: int) -> pd.DataFrame:
        """All ratings, once there are as many."""
        with kbkit.open(self.workspace) as workspace:
            for _ in range(100):
                found = workspace["manual"].ratings.to_frame()
                if len(found) == count:
                    return found
                self.page.wait_for_timeout(50)
        raise AssertionError(f"{len(found)} ratings, not {count}:\n{found}")


@pytest.fixture(scope="module")
def lab(jupyterlab) -> Iterator[Lab]:
    with Lab.running(jupyterlab, MAKE_WORKSPACE, SHOW_JUDGE, SHOW_EVAL) as lab:
        yield lab


def test_keys_judge_move_and_take_back(lab: Lab):
    lab.passage.click()
    assert lab.number() == 1
    first = lab.passage.inner_text()
    lab.keys("4")
    assert lab.number() == 2
    assert lab.passage.inner_text() != first
    lab.said("4, very useful. Passage 2 of")
    stored = lab.ratings(1).iloc[0]
    assert (stored["score"], stored["query"]) == (4, "read a csv file")
    assert stored["rater"] == "reader"
    lab.keys("s", "2", "ArrowLeft", "ArrowLeft")
    assert lab.number() == 2
    items = lab.judge.get_by_role("listitem")
    assert items.nth(1).inner_text().endswith("skipped")
    assert items.nth(2).inner_text().endswith("2")
    lab.keys("ArrowRight", "0")  # what is shown
    lab.said("Undone. Passage 3 of")
    assert lab.ratings(1).iloc[0]["score"] == 4
    lab.keys("Backspace")  # the last one
    lab.said("Undone. Passage 1 of")
    lab.ratings(0)
    lab.keys("Backspace")
    lab.said("nothing to undo")
    lab.keys("n")
    sync_api.expect(lab.judge.locator(".kbkit-judge-query")).to_contain_text("write settings")
    lab.keys("p")
    sync_api.expect(lab.judge.locator(".kbkit-judge-query")).to_contain_text("read a csv")


def test_no_key_reaches_the_notebook(lab: Lab):
    """There x cuts a cell, a and b add one, d d deletes it, and 0 0 asks to restart."""
    lab.passage.focus()
    lab.keys("x", "a", "b", "d", "d", "0", "0", "m", "y", "h", "Space")
    sync_api.expect(lab.page.locator(".jp-Notebook .jp-CodeCell")).to_have_count(3)
    sync_api.expect(lab.page.locator(".jp-Dialog")).to_have_count(0)
    assert lab.passage.evaluate("one => one == document.activeElement")


def test_buttons_and_list_do_what_keys_do_and_keep_the_focus(lab: Lab):
    lab.judge.get_by_role("listitem").nth(2).get_by_role("button").click()
    assert lab.number() == 3
    lab.keys("ArrowDown")
    assert lab.number() == 4
    focused = "document.activeElement.textContent"
    assert lab.page.evaluate(focused).startswith("4")
    five = lab.judge.get_by_role("button", name="5 the answer")
    five.click()
    lab.ratings(1)
    assert five.evaluate("one => one == document.activeElement")
    lab.judge.get_by_role("listitem").nth(3).get_by_role("button").click()
    sync_api.expect(five).to_have_attribute("aria-pressed", "true")
    lab.judge.get_by_role("button", name="Undo").click()
    lab.ratings(0)
    lab.page.evaluate("window.held = 0")
    lab.passage.focus()
    lab.page.keyboard.down("1")
    for _ in range(3):
        lab.page.keyboard.down("1")  # the keyboard repeats a key that is held
    lab.page.keyboard.up("1")
    lab.ratings(1)
    lab.keys("Backspace")
    lab.ratings(0)


def is_stopped(process: int) -> bool:
    """Whether all threads of a process have stopped; where that cannot be told, yes."""
    threads = Path(f"/proc/{process}/task").glob("*/stat")
    return all(each.read_text().rpartition(")")[2].split()[0] == "T" for each in threads)


def test_keys_need_not_wait_for_the_kernel(lab: Lab):
    lab.judge.get_by_label("Query", exact=True).select_option("0")
    lab.passage.focus()
    at = lab.number()
    kernel = int((lab.workspace / "pid").read_text())
    os.kill(kernel, signal.SIGSTOP)
    try:
        while not is_stopped(kernel):
            lab.page.wait_for_timeout(10)
        lab.keys("3", "3")
        assert lab.number() != at
        assert lab.judge.locator(".kbkit-judged").all_inner_texts() == ["3", "3"]
        lab.said("2 not saved yet")
        sync_api.expect(lab.problem).to_be_hidden()
        lab.ratings(0)
    finally:
        os.kill(kernel, signal.SIGCONT)
    lab.said("All saved")
    assert lab.ratings(2)["score"].tolist() == [3, 3]


def test_hostile_passages_are_shown_harmlessly(lab: Lab):
    lab.judge.get_by_label("Query", exact=True).select_option("2")
    for title in ("zebra", "Quagga"):
        lab.judge.get_by_role("listitem").filter(has_text=title).first.get_by_role("button").click()
        lab.passage.locator("h4", has_text=title).wait_for()
    lab.passage.get_by_text("<img src=x onerror='alert(3)").wait_for()
    sync_api.expect(lab.passage.locator("script, img, svg, a, body style")).to_have_count(0)
    lab.passage.get_by_text("away").first.click()
    assert lab.page.evaluate("window.pwned") is None
    sync_api.expect(lab.page.locator(".jp-Notebook")).to_be_visible()
    assert lab.events == []


def test_comparing_and_looking_at_what_moved(lab: Lab):
    side = lab.evaluate.locator(".kbkit-side").nth(1)
    side.get_by_label("Search by").select_option("Words")
    lab.evaluate.get_by_role("button", name="Compare").click()
    table = lab.evaluate.get_by_role("table")
    table.wait_for()
    sync_api.expect(table.get_by_role("row")).to_have_count(5)
    plot = lab.evaluate.get_by_role("slider")
    plot.focus()
    lab.keys("End", "ArrowLeft", "Home", "ArrowRight")
    sync_api.expect(plot).to_have_attribute("aria-valuenow", "2")
    assert "difference" in plot.get_attribute("aria-valuetext")
    box = plot.locator("svg").bounding_box()
    lab.page.mouse.move(box["x"] + box["width"] - 3, box["y"] + 20)
    lab.page.wait_for_function("document.querySelector('[role=slider]').ariaValueNow == '4'")
    lab.keys("Enter")
    lists = lab.evaluate.get_by_role("region", name="Results of both")
    lists.get_by_role("listitem").first.wait_for()
    sync_api.expect(lists.get_by_text("relevant, 2")).to_have_count(2)
    lists.get_by_role("button", name="Close").click()
    assert plot.evaluate("one => one == document.activeElement")


def test_settings_are_kept_on_a_click(lab: Lab):
    side = lab.evaluate.locator(".kbkit-side").nth(1)
    side.get_by_label("Meaning", exact=True).fill("0.75")
    side.get_by_label("Meaning", exact=True).press("Enter")
    lab.evaluate.get_by_role("button", name="Compare").click()
    keep = lab.evaluate.get_by_role("button", name="Keep B")
    keep.and_(lab.page.locator(":enabled")).click()
    lab.evaluate.get_by_text("dense_weight: 0.75").wait_for()
    with kbkit.open(lab.workspace) as workspace:
        assert workspace["manual"].spec.retrieval.dense_weight == 0.75


@pytest.mark.parametrize("theme", ["Light", "Dark"])
def test_they_fit_and_everybody_can_use_them(lab: Lab, theme: str):
    lab.theme(f"JupyterLab {theme}")
    lab.judge.get_by_label("Query", exact=True).select_option("0")
    lab.evaluate.get_by_role("slider").press("Enter")
    for name, width in (("wide", 1200), ("narrow", 460)):
        resize(lab.page, width, 1000)
        for part in ("judge", "eval"):
            panel = lab.page.locator(f".kbkit-{part}")
            panel.scroll_into_view_if_needed()
            panel.screenshot(path=SCREENSHOTS / f"{part}-{theme.lower()}-{name}.png")
            wait_until_fits(panel)
            assert violations(lab.page, f".kbkit-{part}") == []
        top = lab.judge.locator(".kbkit-judge-top > *")  # a list between two buttons, in one row
        boxes = [each.bounding_box() for each in top.all()]
        assert {(box["y"], box["height"]) for box in boxes} == {(boxes[0]["y"], 34)}
        assert boxes[1]["width"] > 250
    lab.page.set_viewport_size({"width": 1200, "height": 900})


def test_it_goes_on_after_a_restart_and_ends_with_what_to_do(lab: Lab):
    before = len(lab.ratings(2))
    lab.page.evaluate("jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    lab.wait_until_idle()
    lab.passage.focus()
    lab.keys("4")
    lab.said("Run the cell again")
    lab.command("notebook:clear-all-cell-outputs")
    lab.judge.wait_for(state="detached")
    lab.run_all()
    lab.judge.get_by_text(f"{before} of ").wait_for()
    assert lab.judge.get_by_role("listitem").filter(has_text="3").count() >= before
    lab.passage.focus()
    end = lab.judge.locator(".kbkit-judge-end")
    for _ in range(60):
        if end.is_visible():
            break
        lab.keys("2")
    assert end.evaluate("one => one == document.activeElement")
    sync_api.expect(end).to_contain_text("kb.feedback.evaluate()")
    assert violations(lab.page, ".kbkit-judge") == []
    end.get_by_role("button", name="Review them again").click()
    assert lab.number() == 1
