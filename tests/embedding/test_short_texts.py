"""A query encoder fitted to vectors of short texts."""

import numpy as np
import pytest

from kbkit.embedding.fitted import MAX_HEADINGS, choose_texts, fit_to_texts
from kbkit.errors import EmbedderError

TERMS = [f"t{n}" for n in range(60)]


class Model:
    """Vectors of texts are means of hidden vectors of terms, plus a shared vector."""

    def __init__(self):
        rng = np.random.default_rng(0)
        self.hidden = rng.standard_normal((len(TERMS), 24))
        self.shared = 2 * rng.standard_normal(24)

    def __call__(self, terms):
        vector = self.shared + sum(self.hidden[TERMS.index(term)] for term in terms)
        return (vector / np.linalg.norm(vector)).astype(np.float32)


def texts(count, seed=1):
    rng = np.random.default_rng(seed)
    return [tuple(rng.choice(TERMS, rng.integers(2, 6), replace=False)) for _ in range(count)]


def fitted():
    model, known = Model(), texts(600)
    vectors = np.stack([model(each) for each in known])
    return fit_to_texts(vectors, known, chunk_terms=known, words={}, embedder="m")


@pytest.mark.slow
def test_encoder_predicts_vectors_of_unseen_texts():
    encoder, model = fitted(), Model()
    mean = np.mean([model(each) for each in texts(600)], axis=0)
    unseen = [each for each in texts(200, seed=2) if each not in set(texts(600))]
    assert len(unseen) > 100
    centred = np.stack([model(each) - mean for each in unseen])
    centred /= np.linalg.norm(centred, axis=1, keepdims=True)
    cosines = np.stack([encoder.encode(each) for each in unseen]) @ centred.T
    assert np.mean(np.argmax(cosines, axis=1) == np.arange(len(unseen))) > 0.8


def test_word_vectors_help_with_terms_without_texts():
    model = Model()
    known = [each for each in texts(600) if "t0" not in each]
    vectors = np.stack([model(each) for each in known])
    words = {term: model([term]) for term in TERMS}
    options = {"chunk_terms": [*known, ("t0",)], "embedder": "m"}
    expected = model(["t0"]) - vectors.mean(axis=0)

    def cosine(words):
        return fit_to_texts(vectors, known, words=words, **options).encode(["t0"]) @ expected

    assert cosine(words) > cosine({}) + 0.1


def test_chosen_texts_are_few_short_and_reproducible():
    headings = [f"Heading {n}" for n in range(MAX_HEADINGS + 50)] + ["", "  "]
    chunks = ["one two three", "", "word " * 500, "x" * 5_000]
    chosen = choose_texts(headings, chunks)
    assert chosen == choose_texts(headings, chunks)
    assert len(chosen) == len(set(chosen)) <= MAX_HEADINGS + len(chunks)
    assert all(0 < len(text) <= 120 for text in chosen)
    assert choose_texts([], []) == []


def test_inconsistent_input_is_refused():
    vectors, options = np.zeros((1, 4), np.float32), {"chunk_terms": [], "words": {}}
    with pytest.raises(EmbedderError, match="no text"):
        fit_to_texts(vectors, [()], embedder="m", **options)
