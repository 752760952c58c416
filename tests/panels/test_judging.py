"""The judge panel against a real workspace."""

import pytest

import kbkit
from kbkit.errors import ConfigError
from kbkit.models import SourceDocument
from kbkit.panels import JudgePanel, SearchPanel

QUERIES = ["read a file", "open"]


@pytest.fixture(scope="module")
def garden(garden):
    beds = [
        SourceDocument(f"http://x.org/{n}", f"Bed {n}", f"To read and open: bed {n}.")
        for n in range(6)
    ]
    with kbkit.open(garden) as workspace:
        workspace["garden"].ingest(beds)
    return garden


def event(panel: JudgePanel, name: str, **values) -> None:
    panel.view._on_message(panel.view, {"event": name, **values}, [])
    assert panel.wait(20)


def asked(panel: JudgePanel, place: int) -> list[dict]:
    event(panel, "request", places=[place])
    assert panel.view.pool["place"] == place
    return panel.view.pool["passages"]


def test_judgements_are_stored_counted_and_measured(kb):
    panel = JudgePanel(kb, QUERIES, rater="ann")
    assert panel.view.state["start"] == 0
    passages = asked(panel, 0)
    pooled = [[0, len(passages)], [0, len(asked(panel, 1))]]
    assert panel.view.state["counts"] == pooled
    target = passages[0]["id"]
    event(panel, "judge", place=0, id=target, score=4, by="a-1")
    assert panel.view.state["stored"] == {"place": 0, "id": target, "score": 4, "by": "a-1"}
    assert panel.view.state["counts"][0][0] == 1
    assert panel.view.state["interim"]["queries"] == 1
    stored = kb.ratings.to_frame().iloc[-1]
    assert (stored["score"], stored["query"], stored["rater"]) == (4, QUERIES[0], "ann")
    assert asked(panel, 0)[0]["score"] == 4
    event(panel, "judge", place=0, id=target, score=0, by="a-2")
    assert panel.view.state["stored"]["score"] is None
    assert kb.ratings.to_frame().empty
    assert panel.view.state["interim"] is None


def test_passages_do_not_reveal_their_rank(kb):
    panel = JudgePanel(kb, QUERIES, rater="ann")
    first = asked(panel, 0)
    assert set(first[0]) == {"id", "title", "path", "place", "link", "html", "score"}
    other = asked(JudgePanel(kb, QUERIES, rater="bob"), 0)
    assert {one["id"] for one in first} == {one["id"] for one in other}


@pytest.mark.slow
def test_judging_continues_at_the_first_open_query(kb):
    panel = JudgePanel(kb, QUERIES, rater="ann")
    for one in asked(panel, 0):
        event(panel, "judge", place=0, id=one["id"], score=3, by="x")
    again = JudgePanel(kb, QUERIES, rater="ann")
    assert again.wait(20)
    assert again.view.state["start"] == 1
    for one in asked(again, 1):
        event(again, "judge", place=1, id=one["id"], score=1, by="x")
    done = JudgePanel(kb, QUERIES, rater="ann")
    assert done.wait(20)
    assert done.view.state["start"] == -1
    assert JudgePanel(kb, QUERIES, rater="bob").view.state["start"] == 0


def test_raters_are_compared(kb):
    panel = JudgePanel(kb, QUERIES, rater="ann")
    first, second, *_ = (one["id"] for one in asked(panel, 0))
    for target, score in ((first, 5), (second, 1)):
        kb.rate(target, score, query=QUERIES[0], rater="bob")
        event(panel, "judge", place=0, id=target, score=score, by="x")
    assert panel.view.state["agreement"] is None  # before it knows bob's ratings
    panel._receive("ratings")
    assert panel.wait(20)
    assert panel.view.state["agreement"]["alpha"] == 1
    assert panel.view.state["agreement"]["raters"] == ["ann", "bob"]


def test_judgement_in_another_panel_appears(kb):
    panel = JudgePanel(kb, QUERIES, rater="ann")
    other = SearchPanel(kb, rater="ann")
    before = panel.view.state["version"]
    assert panel.wait(20)
    target = asked(panel, 0)[0]["id"]
    again = JudgePanel(kb, QUERIES, rater="ann")
    event(again, "judge", place=0, id=target, score=2, by="x")
    assert panel.wait(20)
    assert panel.view.state["version"] == before + 1
    assert asked(panel, 0)[0]["score"] == 2
    other.close()


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"place": 0},
        {"place": -1, "id": "x", "score": 3},
        {"place": 9, "id": "x", "score": 3},
        {"place": True, "id": "x", "score": 3},
        {"place": 0, "id": ["x"], "score": 3},
        {"place": 0, "id": "x", "score": "3"},
        {"place": 0, "id": "x", "score": True},
    ],
    ids=str,
)
def test_malformed_messages_are_ignored(kb, message):
    panel = JudgePanel(kb, QUERIES)
    event(panel, "judge", **message)
    event(panel, "request", places=message.get("place"))
    event(panel, "request", places=[message.get("place")] * 3)
    assert panel.error is None
    assert kb.ratings.to_frame().empty


def test_failed_judgement_is_reported_and_not_marked(kb):
    panel = JudgePanel(kb, QUERIES, rater="ann")
    target = asked(panel, 0)[0]["id"]
    event(panel, "judge", place=0, id=target, score=9, by="a")
    assert "1 to 5" in panel.view.state["problem"]
    assert panel.view.state["stored"] == {"place": 0, "id": target, "score": None, "by": "a"}
    event(panel, "judge", place=0, id="gone", score=3, by="b")
    assert "has no chunk" in panel.view.state["problem"]
    event(panel, "judge", place=0, id=target, score=3, by="c")
    assert panel.view.state["problem"] == ""


def test_changed_documents_give_new_pools(kb):
    panel = JudgePanel(kb, QUERIES)
    before = len(asked(panel, 0))
    kb.add("Bed 7", "To read a file in bed 7.", source="http://x.org/7")
    panel._receive("documents")
    assert len(asked(panel, 0)) == before + 1
    assert panel.view.state["counts"][0][1] == before + 1


def test_failed_search_is_reported(kb, scratch):
    panel = JudgePanel(kb, QUERIES)
    assert panel.wait(20)
    scratch.delete("garden")
    panel._receive("documents")
    assert panel.wait(20)
    assert "was deleted" in panel.view.state["problem"]


@pytest.mark.parametrize("queries", [[], "no/such.file", [3], None])
def test_missing_queries_are_a_config_error(workspace, queries):
    with pytest.raises(ConfigError, match="quer"):
        JudgePanel(workspace["manual"], queries)


def test_closed_panel_stops_searching(kb):
    panel = JudgePanel(kb, [f"bed {number}" for number in range(300)])
    panel.close()
    assert panel.wait(20)
    assert None in [pooled for _, pooled in panel.view.state["counts"]]
