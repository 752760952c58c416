"""A query encoder learned from a model's vectors of short texts."""

from __future__ import annotations

import numpy as np
import pytest

from kbkit.embedding.short_texts import MAX_HEADINGS, choose_texts, fit_to_texts
from kbkit.errors import EmbedderError

TERMS = [f"t{n}" for n in range(60)]


class Model:
    """Texts are the mean of hidden vectors of their terms, and something that all share."""

    def __init__(self, seed=0):
        rng = np.random.default_rng(seed)
        self.hidden = rng.standard_normal((len(TERMS), 24))
        self.shared = 2 * rng.standard_normal(24)

    def __call__(self, terms):
        vector = self.shared + sum(self.hidden[TERMS.index(term)] for term in terms)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def texts(count, seed=1):
    rng = np.random.default_rng(seed)
    return [tuple(rng.choice(TERMS, rng.integers(2, 6), replace=False)) for _ in range(count)]


def fitted(words=None):
    model, known = Model(), texts(600)
    vectors = np.stack([model(each) for each in known])
    return fit_to_texts(vectors, known, chunk_terms=known, words=words or {}, embedder="m")


@pytest.mark.slow
def test_it_foretells_what_the_model_makes_of_texts_it_has_not_seen():
    encoder, model = fitted(), Model()
    mean = np.mean([model(each) for each in texts(600)], axis=0)
    unseen = [each for each in texts(200, seed=2) if each not in set(texts(600))]
    assert len(unseen) > 100
    centred = np.stack([model(each) - mean for each in unseen])
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    found = np.stack([encoder.encode(each) for each in unseen]) @ centred.T
    assert np.mean(np.argmax(found, axis=1) == np.arange(len(unseen))) > 0.8


def test_words_help_where_no_text_has_a_term():
    model = Model()
    known = [each for each in texts(600) if "t0" not in each]
    vectors = np.stack([model(each) for each in known])
    words = {term: model([term]) for term in TERMS}
    chunks = [*known, ("t0",)]
    about = {"chunk_terms": chunks, "embedder": "m"}
    without = fit_to_texts(vectors, known, words={}, **about).encode(["t0"])
    having = fit_to_texts(vectors, known, words=words, **about).encode(["t0"])
    own = model(["t0"]) - vectors.mean(axis=0)
    assert having @ own > without @ own + 0.1


def test_equal_input_gives_an_equal_table():
    np.testing.assert_array_equal(fitted().vectors, fitted().vectors)


def test_texts_are_few_short_and_always_the_same():
    headings = [f"Heading {n}" for n in range(MAX_HEADINGS + 50)] + ["", "  "]
    chunks = ["one two three", "", "word " * 500, "x" * 5_000]
    chosen = choose_texts(headings, chunks)
    assert chosen == choose_texts(headings, chunks)
    assert len(chosen) == len(set(chosen)) <= MAX_HEADINGS + len(chunks)
    assert all(0 < len(text) <= 120 for text in chosen)
    assert choose_texts([], []) == []


def test_what_does_not_belong_together_is_refused():
    with pytest.raises(EmbedderError, match="2 texts"):
        fit_to_texts(
            np.zeros((1, 4), np.float32), [("a",), ("b",)], chunk_terms=[], words={}, embedder="m"
        )
    with pytest.raises(EmbedderError, match="no text"):
        fit_to_texts(np.zeros((1, 4), np.float32), [()], chunk_terms=[], words={}, embedder="m")
