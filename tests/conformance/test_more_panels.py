"""Panels that judge, evaluate and ingest, and the dashboard."""

from __future__ import annotations

import pytest

from kbkit.models import Hit
from kbkit.panels import Dashboard, EvalPanel, IngestPanel, JudgePanel
from kbkit.recipes import Question

FOODS = ("tea", "soup", "bread", "rice")


@pytest.fixture(scope="module")
def kb(workspace):
    kb = workspace.create("pantry")
    for food in FOODS:
        text = f"# {food.title()}\n\nHow to keep {food}."
        kb.add(food.title(), text, source=f"https://example.org/{food}")
    return kb


def test_judge_panel_stores_judgements(kb):
    panel = JudgePanel(kb, ["keep tea", "keep soup"], limit=2, unshown=0, rater="ann")
    assert panel.wait()
    best = panel.judging.pool(0)[0].hit
    assert isinstance(best, Hit)
    event = {"event": "judge", "place": 0, "id": best.chunk.id, "score": 5, "by": "x"}
    panel.view._on_message(panel.view, event, [])
    assert panel.wait()
    assert panel.error is None
    (rating,) = kb.ratings.of(best.chunk.id)
    assert (rating.score, rating.rater, rating.query) == (5, "ann", "keep tea")
    assert panel.view.state["interim"]["queries"] == 1
    panel.close()
    again = JudgePanel(kb, ["keep tea"], limit=2, unshown=0, rater="ann")
    assert again.wait()
    assert again.judging.scores(0) == {best.chunk.id: 5}
    again.close()


def test_eval_panel_compares_two_configurations(kb):
    questions = [Question(question=f"keep {food}", relevant=(f"/{food}",)) for food in FOODS]
    for panel in (EvalPanel(kb, questions), EvalPanel(kb)):
        panel.forms["B"].mode_box.value = "lexical"
        panel.compare()
        assert panel.wait(30) is not None
        assert panel.error is None
        assert len(panel.comparison) in (len(FOODS), 1)
        panel.view._on_message(panel.view, {"event": "look", "place": 0}, [])
        assert panel.error is None
        assert "keep" in panel.view.results["html"] + panel.view.detail["html"]
        panel.close()


def test_ingest_panel_reads_documents_and_reports_counts(workspace, tmp_path):
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
    panel.close()


def test_dashboard_opens_each_panel(workspace, kb):
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
