"""Totals of ratings equal a full count."""

import json
from collections import defaultdict
from datetime import UTC, datetime, timedelta
from statistics import fmean
from types import SimpleNamespace

import pytest
import sqlalchemy as sa
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kbkit.models import RatingTotal
from kbkit.recipes import RetrievalSpec
from kbkit.stores.catalog import knowledge_bases, ratings
from tests.stores.workspaces import create_row, rate_row


def naive(given_ratings):
    last = defaultdict(dict)
    for _, target, rater, score in given_ratings:
        last[target][rater] = score
    return {target: (len(scores), fmean(scores.values())) for target, scores in last.items()}


def test_last_rating_counts_despite_clock_skew(database, kb_id, monkeypatch):
    """The clock of the second machine is an hour behind."""
    behind = datetime.now(UTC) - timedelta(hours=1)
    with database.write() as connection:
        first = rate_row(connection, kb_id, "a", "ann", 1)
        with monkeypatch.context() as patched:
            patched.setattr(ratings, "datetime", SimpleNamespace(now=lambda _: behind))
            rate_row(connection, kb_id, "a", "bob", 3)
            rate_row(connection, kb_id, "a", "ann", 4)
            last = rate_row(connection, kb_id, "a", "ann", 5)
        assert ratings.total(connection, kb_id, "a") == RatingTotal(2, 4.0)
        assert last.created_at - first.created_at == timedelta(microseconds=2)
        own = [each for each in ratings.list_ratings(connection, kb_id) if each.rater == "ann"]
        assert [each.score for each in own] == [1, 4, 5]
        rate_row(connection, kb_id, "a", "ann", 2)
        assert ratings.total(connection, kb_id, "a") == RatingTotal(2, 2.5)


acts = st.lists(
    st.tuples(st.sampled_from("xyz"), st.sampled_from(["ann", "bob", "cy"]), st.integers(1, 5))
    | st.integers(0, 9),
    max_size=15,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(acts)
def test_totals_count_ratings_that_were_not_removed(database, acts):
    with database.write() as connection:
        kb_id = create_row(connection, f"kb{len(knowledge_bases.names(connection))}").id
        present = []
        for act in acts:
            if isinstance(act, int):  # remove a present rating, or none
                old = present.pop(act) if act < len(present) else (-1,)
                assert ratings.remove(connection, kb_id, old[0]) == ("" if old[0] > 0 else None)
            else:
                present.append((rate_row(connection, kb_id, *act).id, *act))
        expected = naive(present)
        assert {r.id for r in ratings.list_ratings(connection, kb_id)} == {r[0] for r in present}
        for target in "xyz":
            total = ratings.total(connection, kb_id, target)
            assert (total and (total.raters, total.average)) == expected.get(target)
        assert ratings.totals(connection, kb_id).documents == {
            target: RatingTotal(*values) for target, values in expected.items()
        }


def test_totals_of_knowledge_bases_are_separate(database, kb_id):
    with database.write() as connection:
        other = create_row(connection, "other").id
        mine = rate_row(connection, kb_id, "x", "ann", 5)
        assert ratings.total(connection, other, "x") is None
        assert not ratings.remove(connection, other, mine.id)
        rate_row(connection, other, "x", "ann", 1)
        assert ratings.total(connection, kb_id, "x") == RatingTotal(1, 5.0)


@pytest.fixture
def kb(workspace):
    return workspace.create("drinks")


def totals(kb):
    with kb._stores.database.read() as connection:
        by_seq = ratings.totals(connection, kb.id)
        seqs = dict(connection.execute(sa.text("SELECT seq, id FROM chunks")).all())
    return {seqs[seq]: total for seq, total in by_seq.chunks.items()}, by_seq.documents


def test_totals_follow_and_outlive_their_chunks(kb):
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


def test_ratings_raise_or_lower_a_hit(kb):
    alone = RetrievalSpec(duplicates=1)
    for name in ("one", "two", "three"):
        kb.add(name, "Green tea is steeped for two minutes.", source=f"doc:{name}")
    flat = {hit.title: hit for hit in kb.search("steep green tea", retrieval=alone)}
    assert {hit.parts.rating for hit in flat.values()} == {0.0}
    kb.rate(flat["three"].chunk.id, 5)
    kb.rate(flat["one"].chunk.document_id, 1)
    for _ in range(3):  # the catalog first, then a snapshot
        hits = {hit.title: hit for hit in kb.search("steep green tea", retrieval=alone)}
        assert hits["three"].parts.rating > 0 > hits["one"].parts.rating
        assert hits["two"].parts.rating == 0
        assert hits["two"].parts.total == flat["two"].parts.total
        kb._stores.warmer.close()
    kb.rate(flat["one"].chunk.id, 3)  # a rating of the chunk takes precedence
    hits = kb.search("steep green tea", retrieval=alone)
    assert next(hit for hit in hits if hit.title == "one").parts.rating == 0


def test_lone_surrogates_in_a_rating_are_replaced(kb):
    document = kb.add("Tea", "Steep it.").id
    rating = kb.rate(document, 4, query="tea \udcff", note="\ud83d", rater="\udce4nn")
    assert json.dumps([rating.query, rating.note, rating.rater]) == '["tea ?", "?", "?nn"]'
