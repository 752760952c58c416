"""BM25 against a textbook version over a whole corpus."""

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kbkit.retrieval.fusion import K1, B, CorpusStatistics, bm25_scores, length_norms, word_scores

pytestmark = pytest.mark.local

CORPUS = [
    "tea leaf steep water tea",
    "water boil kettle",
    "bread flour water salt yeast bread bread",
    "salt",
    "kettle tea water cup saucer spoon sugar milk tea tea",
]


def statistics(query, corpus):
    """Statistics of the corpus for the terms of a query."""
    texts = [text.split() for text in corpus]
    frequencies = Counter(term for text in texts for term in set(text) if term in query)
    return CorpusStatistics(len(texts), sum(map(len, texts)) / len(texts), frequencies)


def textbook(query, corpus):
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


words = st.sampled_from(["a", "b", "c", "dd", "e.f", "--g"])


@given(
    corpus=st.lists(st.lists(words, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=8),
    query=st.lists(words | st.just("unknown"), max_size=5),
)
def test_scores_of_any_corpus_are_those_of_the_textbook(corpus, query):
    scores = scored(query, corpus)
    assert scores == pytest.approx(textbook(query, corpus))
    assert scores.dtype == np.float64


def test_score_does_not_depend_on_other_candidates():
    query = ["tea", "water"]
    whole = scored(query, CORPUS)
    assert scored(query, CORPUS, [4]) == pytest.approx(whole[[4]])
    assert scored(query, CORPUS, [4, 0]) == pytest.approx(whole[[4, 0]])


def test_words_count_in_full_from_half_of_the_maximum():
    figures = CorpusStatistics(100, 5.0, {"rare": 1})
    maximum = (K1 + 1) * (figures.idf("rare") + figures.idf("missing"))
    assert figures.full(["rare", "missing", "rare"]) == pytest.approx(maximum / 2)


def test_idf_is_positive_and_larger_for_rarer_terms():
    figures = CorpusStatistics(1000, 10.0, {"rare": 2, "common": 900, "the": 1000})
    assert figures.idf("rare") > figures.idf("common") > figures.idf("the") > 0
    # statistics may be older than the frequencies
    assert CorpusStatistics(10, 5.0, {"the": 12}).idf("the") >= 0


@pytest.mark.parametrize(
    ("query", "candidates"),
    [([], ["tea"]), (["tea"], []), (["coffee"], ["tea", "water"]), (["tea"], ["", ""])],
)
def test_candidates_without_terms_of_the_query_score_0(query, candidates):
    held = [counts(query, text) for text in candidates]
    lengths = [len(text.split()) for text in candidates]
    scores = bm25_scores(held, lengths, statistics(query, CORPUS))
    assert scores.shape == (len(candidates),)
    assert not scores.any()


@given(
    corpus=st.lists(st.lists(words, min_size=1, max_size=12).map(" ".join), min_size=1, max_size=8),
    query=st.lists(words, max_size=5, unique=True),
)
def test_scores_of_postings_are_those_of_texts(corpus, query):
    figures = statistics(query, corpus)
    texts = [text.split() for text in corpus]
    postings = {}
    for term in figures.document_frequencies:
        rows = np.array([i for i, text in enumerate(texts) if term in text], np.int32)
        postings[term] = rows, np.array([texts[i].count(term) for i in rows], np.uint16)
    norms = length_norms(np.array([*map(len, texts)], np.int32), figures.average_length)
    scores = word_scores(postings, norms, figures)
    assert scores == pytest.approx(scored(query, corpus), rel=1e-5)


def test_largest_count_of_a_snapshot_does_not_overflow():
    norms = length_norms(np.array([70_000], np.int32), 10.0)
    figures = CorpusStatistics(100, 10.0, {"tea": 1})
    postings = {"tea": (np.array([0], np.int32), np.array([65_535], np.uint16))}
    (score,) = word_scores(postings, norms, figures)
    assert score == pytest.approx(figures.idf("tea") * (K1 + 1), rel=0.2)


def test_joint_statistics_are_those_of_all_texts():
    large, small = ["a b c d e f g h"] * 9 + ["a"], ["b c"]
    both = CorpusStatistics.together([statistics("ab", corpus) for corpus in (large, small)])
    assert both == statistics("ab", large + small)
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
