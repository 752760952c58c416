"""Similarity of queries to the questions that people rated chunks for."""

import numpy as np
import pytest

from kbkit.retrieval.document_scores import best_keys
from kbkit.retrieval.encoder_fitting import _ALIKE, LearnedQuestions
from kbkit.stores.catalog.ratings import QuestionVectors

pytestmark = pytest.mark.local

ASKED = {"green tea steeps": [10, 20], "bread bakes": [20], "green bread": [30]}
VECTORS = {
    "green tea steeps": np.array([1.0, 0.0], np.float32),
    "bread bakes": np.array([0.6, 0.8], np.float32),
}
TEA = ("green", "tea", "steep")


def questions(vectors=VECTORS, asked=ASKED):
    return LearnedQuestions.of(asked, QuestionVectors("e", vectors), "english")


def strength(alike):
    return pytest.approx((alike - _ALIKE) / (1 - _ALIKE))


def test_scores_of_questions_by_common_words():
    assert questions().scores(TEA) == {10: 1.0, 20: 1.0}, "two fifths are too little"
    assert questions().scores(("green", "tea")) == {10: strength(4 / 5), 20: strength(4 / 5)}
    assert questions().scores(("green", "bread", "loaf")) == {30: strength(4 / 5)}
    assert questions().scores(("bread", "bake")) == {20: 1.0}, "a half is none yet"
    # the more similar of two questions of a chunk counts
    scores = questions().scores(("bread", "bake", "tea", "steep"))
    assert scores == {10: strength(4 / 7), 20: strength(4 / 6)}
    assert questions().scores(("coffee",)) == {}
    assert questions().scores(()) == {}


def test_questions_can_be_left_out():
    assert 10 not in questions().scores(TEA, but="green tea steeps")
    assert questions().scores(TEA, but="no such question") == questions().scores(TEA)


def test_scores_of_questions_by_meaning():
    vector = np.array([0.8, 0.6], np.float32)  # cosines 0.8 and 0.96
    assert questions().scores((), vector) == {10: strength(0.8), 20: strength(0.96)}
    scores = questions().scores((), vector, usual=0.5)
    assert scores == {10: strength(0.3 / 0.5), 20: strength(0.46 / 0.5)}
    assert questions().scores((), vector, usual=1.0) == {}
    assert questions().scores(TEA, vector)[10] == 1.0, "words say more here"
    assert questions().scores((), np.ones(3, np.float32)) == {}, "of another model"
    assert questions({}).scores((), vector) == {}
    assert questions({}, {}).scores(TEA, vector) == {}


def test_best_learned_chunks_are_few():
    many = {seq: 0.5 + 0.5 * (seq == 99) for seq in range(1, 100)}
    assert best_keys(many).tolist() == [99, *range(1, 30)]
    assert best_keys({}).tolist() == []
