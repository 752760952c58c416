"""BM25 against a textbook version of it over a whole corpus."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.retrieval.fusion import K1, B, CorpusStatistics, bm25_scores, impacts, length_norms

pytestmark = pytest.mark.local

CORPUS = [
    "tea leaf steep water tea",
    "water boil kettle",
    "bread flour water salt yeast bread bread",
    "salt",
    "kettle tea water cup saucer spoon sugar milk tea tea",
]


def statistics(query, corpus):
    """What of the whole corpus a query needs: frequencies of those of its terms that occur."""
    texts = [text.split() for text in corpus]
    found = Counter(term for text in texts for term in set(text) if term in query)
    return CorpusStatistics(
        chunks=len(texts),
        average_length=sum(map(len, texts)) / len(texts),
        document_frequencies=found,
    )


def textbook(query, corpus):
    """The sum over the query's distinct terms, written down as in the book."""
    texts = [text.split() for text in corpus]
    mean = sum(map(len, texts)) / len(texts)
    scores = []
    for text in texts:
        score = 0.0
        for term in set(query):
            holding = sum(term in other for other in texts)
            if not holding:
                continue
            idf = math.log(1 + (len(texts) - holding + 0.5) / (holding + 0.5))
            tf = text.count(term)
            score += idf * tf * (K1 + 1) / (tf + K1 * (1 - B + B * len(text) / mean))
        scores.append(score)
    return scores


def counts(query, text):
    return Counter(term for term in text.split() if term in query)


def scored(query, corpus, chosen=None):
    """Scores of the chosen texts of a corpus, with the statistics of all of it."""
    texts = corpus if chosen is None else [corpus[i] for i in chosen]
    lengths = [len(text.split()) for text in texts]
    return bm25_scores([counts(query, text) for text in texts], lengths, statistics(query, corpus))


@pytest.mark.parametrize("query", ["tea", "water salt", "tea kettle bread", "water tea tea milk"])
def test_scores_are_those_of_the_textbook(query):
    terms = query.split()
    assert scored(terms, CORPUS) == pytest.approx(textbook(terms, CORPUS))


words = st.sampled_from(["a", "b", "c", "dd", "e.f", "--g"])


@given(
    corpus=st.lists(st.lists(words, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=8),
    query=st.lists(words | st.just("unknown"), max_size=5),
)
def test_scores_are_those_of_the_textbook_whatever_the_corpus(corpus, query):
    assert scored(query, corpus) == pytest.approx(textbook(query, corpus))


def test_a_candidate_scores_the_same_whoever_else_is_a_candidate():
    query = ["tea", "water"]
    whole = scored(query, CORPUS)
    assert scored(query, CORPUS, [4]) == pytest.approx(whole[[4]])
    assert scored(query, CORPUS, [4, 0]) == pytest.approx(whole[[4, 0]])


def test_a_term_in_every_chunk_still_counts():
    assert CorpusStatistics(10, 5.0, {"the": 10}).idf("the") > 0
    once, twice = scored(["x"], ["x y", "x x"])
    assert 0 < once < twice


def test_idf_stays_above_0_when_statistics_are_a_moment_older_than_frequencies():
    assert CorpusStatistics(10, 5.0, {"the": 12}).idf("the") >= 0


def test_the_rarer_term_counts_more():
    figures = CorpusStatistics(1000, 10.0, {"rare": 2, "common": 900})
    assert figures.idf("rare") > figures.idf("common") > 0


@pytest.mark.parametrize(
    ("query", "candidates"),
    [([], ["tea"]), (["tea"], []), ([], []), (["coffee"], ["tea", "water"]), (["tea"], ["", ""])],
)
def test_nothing_in_common_scores_0(query, candidates):
    held = [counts(query, text) for text in candidates]
    lengths = [len(text.split()) for text in candidates]
    scores = bm25_scores(held, lengths, statistics(query, CORPUS))
    assert scores.shape == (len(candidates),)
    assert not scores.any()


def test_an_empty_knowledge_base_has_no_scores():
    assert bm25_scores([], [], CorpusStatistics(0, 0.0, {})).shape == (0,)


def test_candidates_are_left_as_they_were():
    held = [Counter(tea=2), Counter()]
    bm25_scores(held, [3, 1], statistics(["tea", "salt"], CORPUS))
    assert held == [Counter(tea=2), Counter()]
    assert list(held[1]) == []


@given(
    corpus=st.lists(st.lists(words, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=8),
    query=st.lists(words, max_size=5, unique=True),
)
def test_impacts_add_up_to_the_scores(corpus, query):
    figures = statistics(query, corpus)
    total = np.zeros(len(corpus))
    for term in figures.document_frequencies:
        rows = [i for i, text in enumerate(corpus) if term in text.split()]
        lengths = np.array([len(corpus[i].split()) for i in rows], np.int32)
        total[rows] += impacts(
            np.array([corpus[i].split().count(term) for i in rows], np.uint16),
            length_norms(lengths, figures.average_length),
            figures.idf(term),
        )
    assert total == pytest.approx(scored(query, corpus), rel=1e-5)


def test_the_largest_count_that_a_snapshot_keeps_does_not_overflow():
    norms = length_norms(np.array([70_000], np.int32), 10.0)
    (one,) = impacts(np.array([65_535], np.uint16), norms, 2.0)
    assert one == pytest.approx(2.0 * (K1 + 1), rel=0.2)


def test_scores_are_floats_one_a_candidate():
    scores = scored(["tea"], CORPUS)
    assert scores.dtype == np.float64
    assert scores.shape == (len(CORPUS),)


def test_several_knowledge_bases_are_as_one():
    """However different they are in size: the average is that of all chunks."""
    large, small = ["a b c d e f g h"] * 9 + ["a"], ["b c"]
    both = CorpusStatistics.together([statistics("ab", corpus) for corpus in (large, small)])
    assert both == statistics("ab", large + small)


def test_statistics_of_several_are_those_of_all_their_texts():
    query = ("water", "tea", "yeast")
    parts = [statistics(query, CORPUS[:2]), statistics(query, CORPUS[2:])]
    whole = statistics(query, CORPUS)
    for order in (parts, parts[::-1]):
        together = CorpusStatistics.together(order)
        assert together.chunks == whole.chunks == 5
        assert together.average_length == pytest.approx(whole.average_length)
        assert together.document_frequencies == whole.document_frequencies
    assert CorpusStatistics.together(parts[:1]) is parts[0]
    assert CorpusStatistics.together([]) == CorpusStatistics(0, 0.0, {})
    assert whole.idf("no such word") == pytest.approx(math.log(1 + 5.5 / 0.5))
