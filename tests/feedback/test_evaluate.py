"""Figures of evaluation, against examples worked out by hand."""

import math
from datetime import UTC, datetime

import pytest

from kbkit.feedback.evaluate import Evaluation, evaluate, score
from kbkit.models import Chunk, DocumentType, Hit, Hits, ScoreParts
from kbkit.recipes import Question

SITE = "http://x.org/docs/"


def asked(*relevant):
    return Question(question="How?", relevant=relevant)


def scored(pages, *relevant):
    return score(asked(*relevant), [SITE + page for page in pages])


def log(rank):
    return math.log2(rank + 1)


def hit(uri, number):
    chunk = Chunk(str(number), uri, number, 0, 1, "x", (), "", None)
    return Hit(
        "kb", 1.0, ScoreParts(1, 1, 1, 0), chunk, uri, "", DocumentType.OTHER, (), "",
        datetime.now(UTC),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("pages", "relevant", "ndcg", "recall", "reciprocal"),
    [
        (["a", "b"], ["a"], 1, 1, 1),
        (["b", "a"], ["a"], 1 / log(2), 1, 1 / 2),
        (["b", "c"], ["a"], 0, 0, 0),
        ([], ["a"], 0, 0, 0),
        # the best page has gain 2, the others 1
        (["a", "b", "c"], ["a", "b", "c"], 1, 1, 1),
        (["b", "a"], ["a", "b"], (1 + 2 / log(2)) / (2 + 1 / log(2)), 1, 1),
        (["x", "b", "y", "a"], ["a", "b", "c"],
         (1 / log(2) + 2 / log(4)) / (2 + 1 / log(2) + 1 / log(3)), 2 / 3, 1 / 2),
    ],
)  # fmt: skip
def test_figures_worked_out_by_hand(pages, relevant, ndcg, recall, reciprocal):
    answer = scored(pages, *relevant)
    assert answer.ndcg == pytest.approx(ndcg)
    assert answer.recall == pytest.approx(recall)
    assert answer.reciprocal_rank == pytest.approx(reciprocal)


def test_only_the_first_ten_pages_count():
    others = [f"other{n}" for n in range(10)]
    assert scored([*others[:9], "a"], "a").reciprocal_rank == pytest.approx(1 / 10)
    late = scored([*others, "a"], "a")
    assert (late.ndcg, late.recall, late.reciprocal_rank) == (0, 0, 0)
    assert len(late.pages) == 10


def test_more_relevant_pages_than_ten_can_still_be_answered_perfectly():
    pages = [f"p{n}" for n in range(12)]
    answer = scored(pages, *pages)
    assert answer.ndcg == pytest.approx(1)
    assert answer.recall == pytest.approx(10 / 12)


@pytest.mark.parametrize(
    ("uri", "suffix", "same"),
    [
        ("http://x/a/b.html", "a/b.html", True),
        ("http://x/a/b.html", "/a/b.html", True),
        ("http://x/a/b.html", "b.html", True),
        ("http://x/a/b.html", "http://x/a/b.html", True),
        ("http://x/a/b.html#part", "a/b.html", True),
        ("http://x/a/b.html", "a/b.html#part", True),
        ("http://x/ca/b.html", "a/b.html", False),
        ("http://x/a/b.htm", "a/b.html", False),
        ("http://x/a/b.html/c", "a/b.html", False),
        ("http://x/a/", "a/", True),
        ("http://x/ba/", "a/", False),
        ("python:pandas.DataFrame", "python:pandas.DataFrame", True),
        ("python:pandas.DataFrame", "pandas.DataFrame", True),
        ("python:pandas.DataFrame", "DataFrame", False),
        ("python:pandas.DataFrame.agg", "pandas.DataFrame", False),
        ("doc:notes/tea.md", "tea.md", True),
    ],
)
def test_a_page_is_named_by_the_end_of_its_uri(uri, suffix, same):
    assert score(asked(suffix), [uri]).recall == same


def test_a_relevant_page_counts_once_though_two_pages_end_like_it():
    answer = score(asked("b.html"), ["http://x/1/b.html", "http://x/2/b.html"])
    assert answer.ndcg == 1
    assert answer.recall == 1


def test_a_relevant_page_that_is_named_twice_counts_once():
    assert scored(["a", "b"], "a", "a", "b").recall == 1
    assert scored(["a", "b"], "a", "a", "b").ndcg == pytest.approx(1)


def test_hits_of_one_page_count_as_one_page():
    uris = [SITE + "b"] * 4 + [SITE + "a", SITE + "b", SITE + "a"]

    def search(query, limit):
        return Hits(query, tuple(hit(uri, n) for n, uri in enumerate(uris))[:limit])

    (answer,) = evaluate(search, [asked("a")]).answers
    assert answer.pages == (SITE + "b", SITE + "a")
    assert answer.reciprocal_rank == 1 / 2


def test_figures_of_a_set_are_means():
    answers = (scored(["a"], "a"), scored(["b", "a"], "a"), scored(["b"], "a"))
    result = Evaluation(answers)
    assert result.ndcg == pytest.approx((1 + 1 / log(2) + 0) / 3)
    assert result.recall == pytest.approx(2 / 3)
    assert result.mrr == pytest.approx((1 + 0.5) / 3)
    assert result.hit_at_1 == pytest.approx(1 / 3)
    values = result.to_dict()
    assert values["questions"] == 3
    assert values["ndcg@10"] == result.ndcg
    assert [q["recall@10"] for q in values["per_question"]] == [1, 1, 0]
    assert list(result.to_frame()["recall@10"]) == [1, 1, 0]


def test_no_answers_have_figures_of_0():
    result = Evaluation(())
    assert (result.ndcg, result.recall, result.mrr, result.hit_at_1) == (0, 0, 0, 0)
