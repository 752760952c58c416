"""A query encoder fitted to vectors of chunks."""

import numpy as np
import pytest

from kbkit.embedding import open_embedder
from kbkit.embedding.fitted import FittedEncoder, fit
from kbkit.embedding.regression import term_vectors
from kbkit.errors import EmbedderError
from kbkit.recipes import StaticEmbedding
from kbkit.text.analysis import analyzer

WORDS = {
    "garden": "soil seed compost prune hedge tulip mulch lawn shade bulb root spade",
    "sea": "tide harbour anchor sail reef current buoy keel gale deck mast hull",
    "kitchen": "oven knead yeast broth simmer whisk pepper dough roast ladle stew crust",
    "music": "chord tempo violin choir rhythm octave melody flute pitch drum solo tune",
}
TOPICS = {topic: words.split() for topic, words in WORDS.items()}


def corpus(chunks=400, dimensions=32):
    """Chunks with words of one topic each, and vectors made of those of topic and words."""
    rng = np.random.default_rng(0)
    of_word = {
        word: rng.standard_normal(dimensions) + centre
        for words, centre in zip(TOPICS.values(), rng.standard_normal((4, dimensions)), strict=True)
        for word in words
    }
    names = list(TOPICS)
    topics = [names[i] for i in rng.integers(4, size=chunks)]
    terms = [[*rng.choice(TOPICS[topic], 4, replace=False).tolist(), "page"] for topic in topics]
    vectors = np.array([sum(of_word[t] for t in words[:-1]) for words in terms]) + 1.0
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors.astype(np.float32), terms, [words[:2] for words in terms], topics


@pytest.fixture(scope="module")
def fitted():
    vectors, terms, headings, _ = corpus()
    return fit(vectors, terms, embedder="model", heading_terms=headings)


def test_one_word_finds_its_topic(fitted):
    vectors, terms, _, topics = corpus()
    for word, topic in (("tulip", "garden"), ("gale", "sea"), ("yeast", "kitchen")):
        best = np.argsort(-(vectors @ fitted.encode([word])))[:20]
        assert {topics[i] for i in best} == {topic}
        assert sum(word in terms[i] for i in best) >= 15


def test_several_words_find_the_chunk_with_them(fitted):
    vectors, terms, _, _ = corpus()
    ranks = []
    for i in range(0, 400, 10):
        scores = vectors @ fitted.encode(terms[i])
        ranks.append(int((scores > scores[i]).sum()))
    assert np.median(ranks) < 3


def test_unknown_terms_give_zero(fitted):
    for terms in ([], ["unheard"], [""]):
        vector = fitted.encode(terms)
        assert vector.shape == (32,)
        assert not vector.any()


def test_small_differences_of_chunks_are_kept():
    # two distant subjects, each with two kinds of passages near each other
    kinds = [(subject, kind) for subject in (-1, 1) for kind in (-1, 1)] * 50
    vectors = np.array([(subject, 0.2 * kind, 1.0) for subject, kind in kinds], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    terms = [[f"subject{subject}", f"kind{kind}"] for subject, kind in kinds]
    query = fit(vectors, terms, embedder="model").encode(["subject1", "kind1"])
    assert 1.5 * 0.2 < query[1] / query[0] < 1  # 0.2 in chunks, 1 if whitened


def test_equal_input_gives_an_equal_encoder(fitted):
    vectors, terms, headings, _ = corpus()
    again = fit(vectors, terms, embedder="model", heading_terms=headings)
    np.testing.assert_array_equal(again.vectors, fitted.vectors)
    assert again.report == fitted.report


def test_shared_heading_counts_once_per_chunk():
    vectors, terms, _, _ = corpus(chunks=60)
    shared = [["harbour"]] * 60
    encoder = fit(vectors, terms, embedder="model", heading_terms=shared)
    # a heading of all chunks learns their mean
    alone = fit(vectors, terms, embedder="model", heading_terms=[[]] * 60)
    length = {e: np.linalg.norm(e.vectors[e.terms.index("harbour")]) for e in (encoder, alone)}
    assert length[encoder] < 0.5 * length[alone]


@pytest.mark.parametrize("chunks", [1, 2, 15])
def test_few_chunks_are_fitted(chunks):
    vectors, terms, headings, _ = corpus(chunks)
    encoder = fit(vectors, terms, embedder="model", heading_terms=headings)
    assert np.isfinite(encoder.vectors).all()


def test_prior_helps_with_few_chunks():
    vectors, terms, headings, topics = corpus()
    known = {word: vectors[topics.index(topic)] for topic in TOPICS for word in TOPICS[topic]}

    def mean_cosine(prior):
        options = {"embedder": "model", "heading_terms": headings[:12], "prior": prior}
        encoder = fit(vectors[:12], terms[:12], **options)
        rows = [i for i in range(12, 400) if encoder.encode(headings[i]).any()]
        queries = np.stack([encoder.encode(headings[i]) for i in rows])
        return float((queries * vectors[rows]).sum(axis=1).mean())

    assert mean_cosine(known) > mean_cosine({})


def test_word_vectors_move_a_rare_term_to_similar_ones():
    vectors, terms, headings, topics = corpus(600)
    rng = np.random.default_rng(5)
    general = dict(zip(TOPICS, rng.standard_normal((4, 8)), strict=True))
    words = {
        word: (general[topic] + rng.standard_normal(8) / 4).astype(np.float32)
        for topic in TOPICS
        for word in TOPICS[topic]
    }
    words["dinghy"] = general["sea"].astype(np.float32)
    odd = topics.index("music")
    terms[odd] = [*terms[odd], "dinghy"]

    def gain(words):
        encoder = fit(vectors, terms, embedder="model", heading_terms=headings, words=words)
        assert encoder.report["words"] is bool(words)
        scores = vectors @ encoder.encode(["dinghy"])
        return float(scores[np.array(topics) == "sea"].mean() - scores.mean())

    assert gain(words) > gain({}) + 0.05


def test_prior_is_the_vector_of_the_most_frequent_form():
    embedder = open_embedder(StaticEmbedding())
    terms_of = analyzer("english").terms
    texts = ["Caches are cached; caching a cache.", "caching and caching", "os.path"]
    prior = term_vectors(embedder, texts, terms_of)
    assert set(terms_of(" ".join(texts))) - {"os.path"} == set(prior)
    np.testing.assert_allclose(prior["cach"], embedder.embed_query("caching"), atol=1e-6)


def test_fitted_encoder_finds_mostly_the_chunks_of_its_model():
    embedder = open_embedder(StaticEmbedding())
    terms_of = analyzer("english").terms
    words = [word for topic in TOPICS.values() for word in topic]
    rng = np.random.default_rng(1)
    texts = [" ".join(rng.choice(words, 12)) for _ in range(300)]
    vectors = embedder.embed_passages(texts)
    encoder = fit(vectors, [terms_of(text) for text in texts], embedder=embedder.fingerprint)
    agreed = 0
    for _ in range(40):
        question = " ".join(rng.choice(words, 4, replace=False))
        by_model = set(np.argsort(-(vectors @ embedder.embed_query(question)))[:10])
        by_encoder = set(np.argsort(-(vectors @ encoder.encode(terms_of(question))))[:10])
        agreed += len(by_model & by_encoder)
    assert agreed > 0.5 * 400


def test_inconsistent_input_is_refused():
    vectors, terms, _, _ = corpus(30)
    with pytest.raises(EmbedderError, match="contains a term"):
        fit(vectors, [[]] * 30, embedder="model")
    with pytest.raises(EmbedderError, match="contains a term"):
        fit(np.zeros((0, 4), np.float32), [], embedder="model")
    vectors[3, 3] = np.nan
    with pytest.raises(EmbedderError, match="not finite"):
        fit(vectors, terms, embedder="model")
    with pytest.raises(EmbedderError, match="fit it again"):
        FittedEncoder("model", ("a", "b"), np.zeros((3, 4), np.float32), {})


def test_chunks_without_terms_give_finite_vectors():
    vectors, terms, headings, _ = corpus(100)
    terms[3], headings[3] = [], []
    encoder = fit(vectors, terms, embedder="model", heading_terms=headings)
    assert np.isfinite(encoder.vectors).all()
