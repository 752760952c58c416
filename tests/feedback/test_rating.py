"""Ratings of chunks and documents, their averages and errors."""

import pytest

import kbkit
from kbkit.errors import ConfigError, NotFoundError


def test_average_and_count_follow_the_ratings(kb, chunk):
    target = chunk("Bread")
    assert kb.ratings.total(target) is None
    kb.rate(target, 5, rater="ann")
    kb.rate(target, 1, rater="ann", query="bread", note="no")
    slip = kb.rate(target, 4, rater="bob")
    total = kb.ratings.total(target)
    assert (total.average, total.raters) == (2.5, 2)
    frame = kb.ratings.to_frame()
    assert frame["score"].tolist() == [5, 1, 4]
    assert frame["average"].tolist() == [2.5] * 3
    assert frame["raters"].tolist() == [2] * 3
    kb.ratings.delete(slip.id)
    assert kb.ratings.total(target).average == 1


def test_documents_are_rated(kb):
    document = kb.documents["http://x.org/tea.html"].id
    kb.rate(document, 4)
    assert kb.ratings.total(document).average == 4
    assert kb.ratings.to_frame()["target_type"].tolist() == ["document"]


def test_frame_without_ratings_has_its_columns(kb):
    assert {"score", "query", "average", "raters"} <= set(kb.ratings.to_frame().columns)


@pytest.mark.parametrize("score", [0, 6, 2.5, "5", None, True, float("nan")])
def test_score_must_be_a_whole_number_from_1_to_5(kb, chunk, score):
    with pytest.raises(ConfigError, match="from 1 to 5"):
        kb.rate(chunk("Bread"), score)
    assert kb.ratings.to_frame().empty


def test_invalid_texts_are_refused_or_repaired(kb, chunk):
    for wrong in ({"query": None}, {"note": 3}, {"rater": ["a"]}):
        with pytest.raises(ConfigError, match="give a text"):
            kb.rate(chunk("Bread"), 3, **wrong)
    rating = kb.rate(chunk("Bread"), 3, query="\udcff" + "x" * 20_000, note="\ud800\0")
    assert rating.query.startswith("?x")
    assert len(rating.query) == 10_000
    assert rating.note == "?\0"


@pytest.mark.parametrize("target", ["", "none", "' OR 1=1", "\ud800"])
def test_rating_of_an_unknown_target_is_an_error(shared, target):
    with pytest.raises(NotFoundError, match="no chunk or document"):
        shared.rate(target, 3)
    with pytest.raises(NotFoundError, match="no chunk or document"):
        shared.ratings.total(target)


@pytest.mark.parametrize("rating_id", [0, -1, 2**80, "1", None, 1.0])
def test_unknown_rating_cannot_be_deleted(kb, chunk, rating_id):
    kb.rate(chunk("Bread"), 3)
    with pytest.raises(NotFoundError, match="has no rating"):
        kb.ratings.delete(rating_id)
    assert len(kb.ratings.to_frame()) == 1


def test_ratings_belong_to_one_knowledge_base(kb, chunk):
    rating = kb.rate(chunk("Bread"), 3)
    with kbkit.open(kb._stores.folder) as workspace:
        other = workspace.create("other")
        with pytest.raises(NotFoundError):
            other.ratings.delete(rating.id)
        with pytest.raises(NotFoundError):
            other.rate(chunk("Bread"), 3)
