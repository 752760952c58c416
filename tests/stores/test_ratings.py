"""Ratings add up to totals as they would if all were counted anew."""

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from statistics import fmean
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import kbkit
from kbkit.models import RatingTotal, Target, TargetKind
from kbkit.recipes import RetrievalSpec
from kbkit.stores.catalog import knowledge_bases, ratings


def rate(connection, kb_id, target, rater, score):
    return ratings.add(
        connection,
        kb_id,
        target=Target(TargetKind.CHUNK, target),
        score=score,
        query="",
        rater=rater,
        note="",
    )


def naive(given_ratings):
    """Number of raters and mean of their last ratings, by target."""
    last = defaultdict(dict)
    for _, target, rater, score in given_ratings:
        last[target][rater] = score
    return {target: (len(scores), fmean(scores.values())) for target, scores in last.items()}


def test_the_last_rating_counts_whatever_clocks_say(database, kb_id, monkeypatch):
    """Each machine has a clock of its own, and the second one's is an hour behind."""
    behind = datetime.now(UTC) - timedelta(hours=1)
    with database.write() as connection:
        first = rate(connection, kb_id, "a", "ann", 1)
        with monkeypatch.context() as patched:
            patched.setattr(ratings, "datetime", SimpleNamespace(now=lambda _: behind))
            rate(connection, kb_id, "a", "bob", 3)
            rate(connection, kb_id, "a", "ann", 4)
            last = rate(connection, kb_id, "a", "ann", 5)
        assert ratings.total(connection, kb_id, "a") == RatingTotal(2, 4.0)
        assert last.created_at - first.created_at == timedelta(microseconds=2)
        own = [each for each in ratings.listed(connection, kb_id) if each.rater == "ann"]
        assert [each.score for each in own] == [1, 4, 5]
        rate(connection, kb_id, "a", "ann", 2)
        assert ratings.total(connection, kb_id, "a") == RatingTotal(2, 2.5)


acts = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(["ann", "bob", "cy"]), st.integers(1, 5))
    | st.integers(0, 9),
    max_size=15,
)


@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40
)
@given(acts)
def test_totals_are_those_of_what_was_rated_and_not_taken_back(database, acts):
    with database.write() as connection:
        kb_id = knowledge_bases.create(
            connection,
            f"kb{len(knowledge_bases.names(connection))}",
            description="",
            config={},
            embedder="e",
            dimensions=2,
        ).id
        there = []
        for act in acts:
            if isinstance(act, int):  # take back one of those that are there, or none
                taken = there.pop(act) if act < len(there) else (-1,)
                assert ratings.remove(connection, kb_id, taken[0]) == ("" if taken[0] > 0 else None)
            else:
                there.append((rate(connection, kb_id, *act).id, *act))
        expected = naive(there)
        assert {r.id for r in ratings.listed(connection, kb_id)} == {r[0] for r in there}
        for target in "xyz":
            found = ratings.total(connection, kb_id, target)
            assert (found and (found.raters, found.average)) == expected.get(target)
        assert ratings.totals(connection, kb_id).documents == {
            target: RatingTotal(*values) for target, values in expected.items()
        }


def test_totals_of_two_knowledge_bases_are_apart(database, kb_id):
    with database.write() as connection:
        other = knowledge_bases.create(
            connection, "other", description="", config={}, embedder="e", dimensions=2
        ).id
        mine = rate(connection, kb_id, "x", "ann", 5)
        assert ratings.total(connection, other, "x") is None
        assert not ratings.remove(connection, other, mine.id)
        rate(connection, other, "x", "ann", 1)
        assert ratings.total(connection, kb_id, "x") == RatingTotal(1, 5.0)


@pytest.fixture
def kb(tmp_path):
    with kbkit.open(tmp_path / "kb") as workspace:
        yield workspace.create("drinks")


def totals(kb):
    with kb._stores.database.read() as connection:
        found = ratings.totals(connection, kb.id)
        seqs = dict(connection.execute(sa.text("SELECT seq, id FROM chunks")).all())
    return {seqs[seq]: total for seq, total in found.chunks.items()}, found.documents


def test_totals_follow_their_chunks_and_outlive_them(kb):
    text = "# Tea\n\nSteep it.\n"
    document = kb.add("Tea", text).id
    (chunk,) = kb.chunks
    kb.rate(chunk.id, 4, rater="ann")
    kb.rate(chunk.id, 2, rater="bob")
    kb.rate(document, 5, rater="ann")
    expected = {chunk.id: RatingTotal(2, 3.0)}, {document: RatingTotal(1, 5.0)}
    assert totals(kb) == expected
    kb.documents.update(document, tags=["new"])
    assert totals(kb) == expected
    kb.documents.delete(document)
    assert totals(kb)[0] == {}
    kb.add("Tea", text)
    assert totals(kb) == expected


def test_good_ratings_lift_a_hit_and_bad_ones_lower_it(kb):
    alone = RetrievalSpec(duplicates=1)
    for name in ("one", "two", "three"):
        kb.add(name, "Green tea is steeped for two minutes.", source=f"doc:{name}")
    flat = {hit.title: hit for hit in kb.search("steep green tea", retrieval=alone)}
    assert {hit.parts.rating for hit in flat.values()} == {0.0}
    kb.rate(flat["three"].chunk.id, 5)
    kb.rate(flat["one"].chunk.document_id, 1)
    for _ in range(3):  # from the catalog, and from a snapshot
        hits = {hit.title: hit for hit in kb.search("steep green tea", retrieval=alone)}
        assert hits["three"].parts.rating > 0 > hits["one"].parts.rating
        assert hits["two"].parts.rating == 0
        assert hits["two"].parts.total == flat["two"].parts.total
        kb._stores.warmer.close()
    kb.rate(flat["one"].chunk.id, 3)  # a rating of the chunk itself counts instead
    again = kb.search("steep green tea", retrieval=alone)
    assert next(hit for hit in again if hit.title == "one").parts.rating == 0


def test_words_that_no_encoding_knows_can_be_kept_with_a_rating(kb):
    document = kb.add("Tea", "Steep it.").id
    rating = kb.rate(document, 4, query="tea \udcff", note="\ud83d", rater="\udce4nn")
    assert json.dumps([rating.query, rating.note, rating.rater]) == '["tea ?", "?", "?nn"]'
