"""Hits estimate how likely they are right, and a search says when nothing fits."""

import pytest

import kbkit
from kbkit.models import Hits, SourceDocument
from kbkit.models.values import from_dict, to_json

NOTE = "nothing here answers this well; these are the nearest passages"
TOPICS = ("pumps", "valves", "filters", "boilers", "meters", "pipes", "tanks", "burners")


@pytest.fixture(scope="module")
def kb(tmp_path_factory):
    with kbkit.open(tmp_path_factory.mktemp("kb")) as workspace:
        kb = workspace.create("plant")
        kb.ingest(
            SourceDocument(
                uri=f"text:{number}",
                title=f"Part {number} of {TOPICS[number % 8]}",
                content=f"Check the {TOPICS[number % 8]} of line {number} each month and note it.",
            )
            for number in range(320)
        )
        yield kb


def test_unrelated_query_has_a_note_and_low_probabilities(kb):
    fits, misses = kb.search("check the pumps of line 8"), kb.search("goulash with dumplings")
    assert fits.notes == ()
    assert misses.notes == (NOTE,)
    assert fits[0].probability > 0.5 > 0.1 > misses[0].probability > 0
    assert [hit.probability for hit in fits] == sorted((h.probability for h in fits), reverse=True)


def test_lexical_search_gives_no_probability(kb):
    assert {hit.probability for hit in kb.search("pumps", mode="lexical")} == {None}


def test_probability_is_in_json_and_data_frames(kb):
    hits = kb.search("pumps of line 8", limit=3)
    again = from_dict(Hits, to_json(hits))
    assert [hit.probability for hit in again] == [hit.probability for hit in hits]
    assert list(hits.to_frame()["probability"]) == [hit.probability for hit in hits]
    assert kb.search("pumps", mode="dense").to_frame()["probability"].isna().all()


def test_small_knowledge_base_gives_no_probability(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        few = workspace.create("few")
        few.add("Tea", "Steep it.")
        hits = few.search("goulash")
        assert hits.notes == ()
        assert [hit.probability for hit in hits] == [None]


def test_hits_below_a_minimum_probability_are_left_out(kb):
    hits = kb.search("check the pumps of line 8", limit=50)
    least = hits[5].probability
    kept = kb.search("check the pumps of line 8", limit=50, filters={"min_probability": least})
    assert list(kept) == [hit for hit in hits if hit.probability >= least]
    assert len(kept) < len(hits)
    nothing = kb.search("goulash with dumplings", filters={"min_probability": 0.5})
    assert (len(nothing), nothing.notes) == (0, (NOTE,))


def test_minimum_probability_is_ignored_where_it_is_unknown(kb):
    hits = kb.search("pumps", mode="lexical", filters={"min_probability": 0.9})
    assert len(hits) == 10
    [note] = hits.notes
    assert note.startswith("min_probability was ignored: probabilities are known in mode hybrid")
