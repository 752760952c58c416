"""Panels that judge, measure and bring documents in, and the dashboard, wherever a workspace is."""

from __future__ import annotations

import pytest

from kbkit.models import Hit
from kbkit.panels import Dashboard, EvalPanel, IngestPanel, JudgePanel
from kbkit.recipes import Question

THINGS = ("tea", "soup", "bread", "rice")


@pytest.fixture(scope="module")
def kb(workspace):
    made = workspace.create("pantry")
    for thing in THINGS:
        made.add(
            thing.title(),
            f"# {thing.title()}\n\nHow to keep {thing}.",
            source=f"https://example.org/{thing}",
        )
    return made


def test_passages_are_judged_and_judgements_are_kept_where_they_belong(kb):
    panel = JudgePanel(kb, ["keep tea", "keep soup"], limit=2, unshown=0, rater="ann")
    assert panel.wait()
    best = panel.judging.pool(0)[0].hit
    assert isinstance(best, Hit)
    panel.view._received(
        panel.view, {"event": "judge", "place": 0, "id": best.chunk.id, "score": 5, "by": "x"}, []
    )
    assert panel.wait()
    assert panel.error is None
    assert [(one.score, one.rater, one.query) for one in kb.ratings.of(best.chunk.id)] == [
        (5, "ann", "keep tea")
    ]
    assert panel.view.state["interim"]["queries"] == 1
    panel.close()
    again = JudgePanel(kb, ["keep tea"], limit=2, unshown=0, rater="ann")
    assert again.wait()
    assert again.judging.scores(0) == {best.chunk.id: 5}
    again.close()


def test_two_ways_of_searching_are_compared(kb):
    asked = [Question(question=f"keep {thing}", relevant=(f"/{thing}",)) for thing in THINGS]
    for panel in (EvalPanel(kb, asked), EvalPanel(kb)):
        panel.forms["B"].mode_box.value = "lexical"
        panel.compare()
        assert panel.wait(30) is not None
        assert panel.error is None
        assert len(panel.comparison) in (len(THINGS), 1)
        panel.view._received(panel.view, {"event": "look", "place": 0}, [])
        assert panel.error is None
        assert panel.view.detail["A"][0]["title"]
        panel.close()


def test_documents_come_in_and_counts_are_told(workspace, tmp_path):
    for number in range(3):
        (tmp_path / f"page{number}.md").write_text(f"# Page {number}\n\nText {number}.")
    panel = IngestPanel(workspace, base=tmp_path)
    panel.kb_box.value = "brought"
    panel.type_box.value = "files"
    panel.form.controls["path"].value = "."
    panel.start()
    report = panel.wait(60)
    assert panel.error is None
    assert (report.new, len(workspace["brought"].documents)) == (3, 3)
    panel.add_files([("more.md", b"# More\n\nThat was sent.")])
    assert panel.wait(60).new == 1
    assert panel.error is None
    assert workspace["brought"].search("sent")[0].title == "More"
    panel.improve()
    panel._join(60)
    assert panel.error is None
    panel.close()


def test_the_dashboard_opens_each_panel(workspace, kb):
    board = Dashboard(workspace, rater="ann")
    for title in board.tabs.titles:
        panel = board.panel(title)
        assert panel is not None, title
        assert getattr(panel, "error", None) is None, title
    launcher = board.panel("Judge")
    launcher.kb_box.value = "pantry"
    launcher.input_box.value = "keep rice"
    launcher.open_panel()
    assert launcher.error is None
    assert launcher.panel.wait()
    evaluation = board.panel("Evaluate")
    evaluation.kb_box.value = "pantry"
    evaluation.open_panel()
    assert evaluation.error is None
    board.panel("Documents").kb_box.value = "pantry"
    board.show("https://example.org/tea")
    assert board.panel("Documents").error is None
