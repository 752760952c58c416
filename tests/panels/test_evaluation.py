"""The evaluation panel against a real knowledge base."""

import threading
from dataclasses import replace

import lxml.html
import pytest

import kbkit
from kbkit.errors import ConfigError, RecipeError
from kbkit.knowledge_base import handle_of
from kbkit.panels import EvalPanel, evaluation
from kbkit.recipes import Question, RetrievalSpec

PAGES = {
    "tea": "Green tea steeps for two minutes, black tea for four.",
    "coffee": "Coffee is ground just before it is brewed with hot water.",
    "milk": "Milk is kept cold, and goes into black tea last.",
    "bread": "Bread rises for an hour before it is baked with water.",
    "<b>salt</b>": "Salt keeps <script>boom()</script> for ever.",
}
ASKED = {
    "how long does black tea steep": "tea",
    "brew coffee": "coffee",
    "keep milk cold": "milk",
    "hot water": "coffee",
    "what rises": "bread",
    "<img src=x onerror=boom()> salt": "<b>salt</b>",
}
QUESTIONS = [Question(question=text, relevant=(f"{page}.html",)) for text, page in ASKED.items()]


@pytest.fixture
def kb(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        kb = workspace.create("kitchen")
        for name, text in PAGES.items():
            kb.add(name.title(), f"# {name}\n\n{text}\n", source=f"http://x.org/{name}.html")
        yield kb


def compared(panel: EvalPanel, **weights) -> EvalPanel:
    for name, value in weights.items():
        panel.forms["B"].weight_boxes[name].value = value
    panel.compare_button.click()
    assert panel.wait(60) is not None, panel.status_line.value
    return panel


def look(panel: EvalPanel, place: object) -> dict:
    panel.view._on_message(panel.view, {"event": "look", "place": place}, [])
    return panel.view.detail


def items(html: str) -> list[str]:
    """The text of each list item."""
    parsed = lxml.html.fromstring(html)
    return [" ".join(item.text_content().split()) for item in parsed.iter("li")]


def test_learned_weight_is_compared(kb):
    panel = EvalPanel(kb, QUESTIONS)
    assert panel.forms["A"].weight_boxes["learned_weight"].value == 2.0
    compared(panel, learned_weight=0.0)
    assert panel._measured["B"][1] == RetrievalSpec(learned_weight=0.0)


def test_comparison_notes_waiting_summaries(kb, monkeypatch):
    info = replace(kb.info(), summaries_waiting=3)
    monkeypatch.setattr(type(handle_of(kb)), "info", lambda _self: info)
    panel = compared(EvalPanel(kb, QUESTIONS))
    assert "static vectors served 3 summaries" in panel.view.results["html"]


def test_panel_measures_two_settings_like_python(kb):
    panel = EvalPanel(kb, QUESTIONS)
    assert panel.comparison.empty
    panel.forms["A"].mode_box.value = "lexical"
    compared(panel, dense_weight=1.0, document_weight=0.0)
    settings = RetrievalSpec(dense_weight=1.0, document_weight=0.0)
    python = kb.feedback.evaluate(
        QUESTIONS, retrieval=settings, against=kb.feedback.evaluate(QUESTIONS, mode="lexical")
    )
    assert panel.evaluation.means() == python.means()
    assert panel.evaluation.against.means() == python.against.means()
    frame = panel.comparison
    assert frame["difference"].is_monotonic_decreasing
    assert (frame["ndcg@10"] - frame["against_ndcg@10"] == frame["difference"]).all()
    results = panel.view.results
    assert [query for query, _, _ in results["queries"]] == frame.index.tolist()
    better = (frame["difference"] > 0).sum()
    assert f"B is better on {better}," in results["html"]
    first = lxml.html.fromstring(results["html"]).find(".//tbody/tr")
    assert first.find("th").text == "ndcg@10"
    assert first.findall("td")[2].text == f"{frame['difference'].mean():+.3f}"
    assert panel.view.state == {"progress": None}
    assert not panel.running


def test_both_lists_show_moves_and_relevance(kb):
    panel = EvalPanel(kb, QUESTIONS)
    panel.forms["A"].mode_box.value = "lexical"
    compared(panel, dense_weight=1.0)
    place = [query for query, _, _ in panel.view.results["queries"]].index("hot water")
    found = look(panel, place)
    assert found["serial"] == panel.view.results["serial"]
    result = panel.evaluation.results[panel._order[place]]
    lists = evaluation.side_by_side(kb, QUESTIONS, result, panel._measured)
    places = {
        side: {row["id"]: rank for rank, row in enumerate(rows, 1)} for side, rows in lists.items()
    }
    for side, other in (("A", "B"), ("B", "A")):
        for row in lists[side]:
            assert row["other"] == places[other].get(row["id"])
            assert row["gain"] == (2 if row["title"] == "Coffee" else None)
    assert lists["A"] != lists["B"]
    shown = items(found["html"])
    assert len(shown) == len(lists["A"]) + len(lists["B"])
    assert sum("relevant, 2" in item for item in shown) == 2
    for wrong in (-1, 99, "0", None, True):
        assert look(panel, wrong) == found


def test_hostile_texts_are_escaped(kb):
    panel = compared(EvalPanel(kb, QUESTIONS))
    place = [query for query, _, _ in panel.view.results["queries"]].index(
        "<img src=x onerror=boom()> salt"
    )
    html = look(panel, place)["html"]
    assert "&lt;B&gt;Salt&lt;/B&gt;" in html
    parsed = lxml.html.fromstring(html)
    assert parsed.xpath("//script | //b | //img") == []


def test_judgements_are_the_default_and_gaps_are_noted(kb):
    panel = EvalPanel(kb)
    panel.compare()
    assert "no judgements" in panel.status_line.value or panel.wait(20) is None
    assert "no judgements" in panel.status_line.value
    for query in list(ASKED)[:3]:
        kb.rate(kb.search(query)[0].chunk.id, 5, query=query)
    kb.rate(kb.search("milk")[0].chunk.id, 1, query="nothing of use")
    compared(panel)
    assert panel.evaluation.unit == "chunk"
    notes = panel.view.results["html"]
    assert "judge more" in notes
    assert "1 query is left out" in notes
    assert "relevant, 3" in items(look(panel, 0)["html"])[0]
    panel._receive("ratings")
    assert "compare again" in panel.status_line.value


def test_settings_are_kept_only_on_request(kb):
    before = kb.spec.retrieval
    panel = EvalPanel(kb, QUESTIONS)
    panel.keep("B")
    assert "compare before you keep" in panel.status_line.value
    compared(panel, dense_weight=0.9, title_weight=0.7)
    assert kb.spec.retrieval == before
    assert panel.keep_buttons["A"].disabled
    panel.keep_buttons["B"].click()
    panel.wait(60)
    kept = kb.spec.retrieval
    assert kept == before.model_copy(update={"dense_weight": 0.9, "title_weight": 0.7})
    assert "dense_weight: 0.9" in panel._recipe.value
    assert panel.keep_buttons["B"].disabled
    panel.keep_buttons["A"].click()  # restores the former settings
    panel.wait(60)
    assert kb.spec.retrieval == before


def test_settings_without_a_control_stay(kb):
    config = kb.spec
    spec = RetrievalSpec(per_document=5, rating_weight=0.3, document_weight=3.0)
    kb.configure(config.model_copy(update={"retrieval": spec}))
    assert EvalPanel(kb, QUESTIONS).forms["A"].selected_settings() == ("hybrid", spec)


@pytest.mark.slow
def test_cancelled_comparison_keeps_the_previous_result(kb):
    panel = compared(EvalPanel(kb, QUESTIONS * 60))
    first, shown = panel.evaluation, panel.view.results
    asking = threading.Event()
    panel.view.observe(lambda change: asking.set(), "state")
    panel.compare()
    assert panel.running
    assert panel.compare_button.disabled
    assert asking.wait(20)
    panel.cancel_button.click()
    panel._thread.join(20)
    assert not panel.running
    assert "Cancelled" in panel.status_line.value
    assert panel.evaluation is first
    assert panel.view.results == shown


def test_evaluation_errors_are_shown(kb, tmp_path):
    panel = EvalPanel(kb, [])
    panel.compare()
    panel.wait(20)
    assert "there are no questions" in panel.status_line.value
    assert isinstance(panel.error, ConfigError)
    assert not panel.compare_button.disabled
    with pytest.raises(RecipeError):
        EvalPanel(kb, tmp_path / "none.tsv")


def test_questions_come_from_files(kb, tmp_path):
    lines = "\n".join(f"{text}\t{page}.html" for text, page in ASKED.items())
    (tmp_path / "q.tsv").write_text(lines)
    panel = compared(EvalPanel(kb, tmp_path / "q.tsv"))
    assert "No difference" in panel.status_line.value
    assert len(panel.comparison) == len(ASKED)


def test_recipe_lines_name_the_settings():
    html = evaluation.recipe_lines(RetrievalSpec(query_encoder="fitted", dense_weight=0.45))
    assert "query_encoder: fitted" in html
    assert "dense_weight: 0.45" in html
