from datetime import UTC, datetime

from kbkit.models import Rating, Target, TargetKind
from kbkit.panels.search.results import RatingSummary, summarize


def rating(score, query="q", rater="me", target="c1"):
    return Rating(
        1, "kb", Target(TargetKind.CHUNK, target), score, query, rater, "", datetime.now(UTC)
    )


def test_the_last_rating_for_the_query_counts():
    found = summarize([rating(2), rating(5)], "me", "q")
    assert found == {"c1": RatingSummary(5, average=5, raters=1)}


def test_other_people_count_for_the_average_only():
    found = summarize([rating(1, rater="you"), rating(2, rater="you"), rating(5)], "me", "q")
    assert found == {"c1": RatingSummary(5, average=3.5, raters=2)}
    found = summarize([rating(2, rater="you")], "me", "q")
    assert found == {"c1": RatingSummary(None, average=2, raters=1)}


def test_case_and_space_of_the_query_do_not_count():
    assert summarize([rating(3, "Read  files ")], "me", "read files")["c1"].score == 3


def test_ratings_for_other_queries_are_kept_apart():
    ratings = [rating(1, "old"), rating(4), rating(2, "other"), rating(5, "x", target="c2")]
    assert summarize(ratings, "me", "q") == {
        "c1": RatingSummary(4, "other", 2, average=2, raters=1),
        "c2": RatingSummary(None, "x", 5, average=5, raters=1),
    }
