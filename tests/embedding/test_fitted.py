"""A query encoder fitted to chunk vectors: what it finds, and what it refuses."""

import numpy as np
import pytest

from kbkit.embedding import open_embedder
from kbkit.embedding.fitted import MAX_QUERY_ROWS, FittedEncoder, fit
from kbkit.embedding.regression import MAX_TERMS, term_vectors
from kbkit.errors import EmbedderError
from kbkit.recipes import StaticEmbedding
from kbkit.text.analysis import analyzer

TOPICS = {
    "garden": (
        "soil",
        "seed",
        "compost",
        "prune",
        "hedge",
        "tulip",
        "mulch",
        "lawn",
        "shade",
        "bulb",
        "root",
        "spade",
    ),
    "sea": (
        "tide",
        "harbour",
        "anchor",
        "sail",
        "reef",
        "current",
        "buoy",
        "keel",
        "gale",
        "deck",
        "mast",
        "hull",
    ),
    "kitchen": (
        "oven",
        "knead",
        "yeast",
        "broth",
        "simmer",
        "whisk",
        "pepper",
        "dough",
        "roast",
        "ladle",
        "stew",
        "crust",
    ),
    "music": (
        "chord",
        "tempo",
        "violin",
        "choir",
        "rhythm",
        "octave",
        "melody",
        "flute",
        "pitch",
        "drum",
        "solo",
        "tune",
    ),
}


def corpus(chunks=400, seed=0, dimensions=32):
    """Chunks of words of one topic; a chunk's vector is made of its topic's and its words'."""
    rng = np.random.default_rng(seed)
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


def test_several_words_find_the_chunk_that_has_them(fitted):
    vectors, terms, _, _ = corpus()
    ranks = []
    for i in range(0, 400, 10):
        scores = vectors @ fitted.encode(terms[i])
        ranks.append(int((scores > scores[i]).sum()))
    assert np.median(ranks) < 3


def test_a_query_is_the_scaled_sum_of_rows(fitted):
    rows = [fitted.terms.index(term) for term in ("oven", "tide")]
    total = fitted.vectors[rows].sum(axis=0)
    np.testing.assert_allclose(
        fitted.encode(["oven", "unheard", "tide", "oven"]), total / np.linalg.norm(total), rtol=1e-5
    )
    assert fitted.encode(["oven"]).dtype == np.float32


def test_unknown_terms_give_zero(fitted):
    for terms in ([], ["unheard"], [""]):
        vector = fitted.encode(terms)
        assert vector.shape == (32,)
        assert not vector.any()


def test_only_the_first_terms_of_a_query_are_looked_at(fitted):
    filler = [f"unheard{n}" for n in range(MAX_TERMS)]
    assert not fitted.encode([*filler, "oven"]).any()
    assert fitted.encode([*filler[1:], "oven"]).any()


def test_a_query_is_the_sum_of_a_bounded_number_of_rows():
    rows = np.eye(MAX_QUERY_ROWS + 10, dtype=np.float32)
    terms = tuple(f"term{n}" for n in range(len(rows)))
    assert (FittedEncoder("model", terms, rows, {}).encode(terms) > 0).sum() == MAX_QUERY_ROWS


def test_what_chunks_differ_little_in_is_not_lost():
    """Two subjects far apart, and two kinds of passages in each that lie near each other."""
    kinds = [(subject, kind) for subject in (-1, 1) for kind in (-1, 1)] * 50
    vectors = np.array([(subject, 0.2 * kind, 1.0) for subject, kind in kinds], np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    terms = [[f"subject{subject}", f"kind{kind}"] for subject, kind in kinds]
    asked = fit(vectors, terms, embedder="model").encode(["subject1", "kind1"])
    assert 1.5 * 0.2 < asked[1] / asked[0] < 1  # 0.2 as chunks have it, 1 would be whitened


def test_common_terms_count_less(fitted):
    """The word that every chunk has moves no query."""
    with_it, without = fitted.encode(["page", "reef"]), fitted.encode(["reef"])
    assert with_it @ without > 0.99


def test_lambda_is_chosen_on_held_out_chunks(fitted):
    report = fitted.report
    assert report["questions"] >= 20
    scores = {float(key): value for key, value in report["held_out"].items()}
    assert report["lambda"] in scores
    assert scores[report["lambda"]] == max(scores.values())
    assert 0.1 < max(scores.values()) <= 1
    assert (report["chunks"], report["terms"], report["prior"]) == (400, 49, False)


def test_equal_input_gives_an_equal_table(fitted):
    vectors, terms, headings, _ = corpus()
    again = fit(vectors, terms, embedder="model", heading_terms=headings)
    np.testing.assert_array_equal(again.vectors, fitted.vectors)
    assert again.report == fitted.report


def test_chunks_without_headings_are_enough():
    vectors, terms, _, topics = corpus()
    encoder = fit(vectors, terms, embedder="model")
    assert encoder.report["headings"] is False
    assert encoder.report["questions"] >= 20
    best = np.argsort(-(vectors @ encoder.encode(["flute"])))[:20]
    assert {topics[i] for i in best} == {"music"}


def test_a_shared_heading_counts_as_often_as_it_stands_there():
    """Ten chunks under one heading leave what ten rows of it would."""
    vectors, terms, _, _ = corpus(chunks=60)
    shared = [["harbour"]] * 60
    encoder = fit(vectors, terms, embedder="model", heading_terms=shared)
    # all chunks together lie nowhere but in the middle, and that is what the heading learns
    alone = fit(vectors, terms, embedder="model", heading_terms=[[]] * 60)
    length = {e: np.linalg.norm(e.vectors[e.terms.index("harbour")]) for e in (encoder, alone)}
    assert length[encoder] < 0.5 * length[alone]


@pytest.mark.parametrize("chunks", [1, 2, 15])
def test_few_chunks_are_fitted_without_a_choice(chunks):
    vectors, terms, headings, _ = corpus(chunks)
    encoder = fit(vectors, terms, embedder="model", heading_terms=headings)
    assert encoder.report["questions"] == 0
    assert np.isfinite(encoder.vectors).all()


def test_a_prior_speaks_where_there_are_few_chunks():
    """Words that one chunk has get what the model says of them."""
    vectors, terms, headings, topics = corpus(400)
    few = slice(0, 12)
    known = {word: vectors[topics.index(topic)] for topic in TOPICS for word in TOPICS[topic]}
    scores = {}
    for prior in (None, known):
        encoder = fit(
            vectors[few], terms[few], embedder="model", heading_terms=headings[few], prior=prior
        )
        asked = [i for i in range(12, 400) if encoder.encode(headings[i]).any()]
        queries = np.stack([encoder.encode(headings[i]) for i in asked])
        scores[prior is None] = float((queries * vectors[asked]).sum(axis=1).mean())
    assert scores[False] > scores[True]


def test_a_prior_of_other_terms_changes_nothing(fitted):
    vectors, terms, headings, _ = corpus()
    other = {"elsewhere": np.ones(32, np.float32)}
    encoder = fit(vectors, terms, embedder="model", heading_terms=headings, prior=other)
    np.testing.assert_allclose(encoder.vectors, fitted.vectors, atol=1e-5)


def test_words_tell_what_a_rare_term_means_in_general():
    """A word of one page, beside another subject, comes nearer to its like by meaning."""
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
    found = {}
    for told in (None, words):
        encoder = fit(vectors, terms, embedder="model", heading_terms=headings, words=told)
        scores = vectors @ encoder.encode(["dinghy"])
        found[told is None] = float(scores[np.array(topics) == "sea"].mean() - scores.mean())
        assert encoder.report["words"] is (told is not None)
    assert found[False] > found[True] + 0.05


def test_vectors_of_other_words_add_nothing(fitted):
    vectors, terms, headings, _ = corpus()
    other = {"elsewhere": np.ones(8, np.float32)}
    encoder = fit(vectors, terms, embedder="model", heading_terms=headings, words=other)
    np.testing.assert_allclose(encoder.vectors, fitted.vectors, atol=1e-5)


def test_words_that_all_chunks_share_map_to_nothing_wrong():
    vectors, terms, _, _ = corpus(60)
    same = {"page": np.ones(8, np.float32)}
    encoder = fit(vectors, terms, embedder="model", words=same)
    assert np.isfinite(encoder.vectors).all()


def test_the_prior_is_the_vector_of_the_commonest_form():
    embedder = open_embedder(StaticEmbedding())
    terms_of = analyzer("english").terms
    texts = ["Caches are cached; caching a cache.", "caching and caching", "os.path"]
    found = term_vectors(embedder, texts, terms_of)
    assert set(terms_of(" ".join(texts))) - {"os.path"} == set(found)
    np.testing.assert_allclose(found["cach"], embedder.embed_query("caching"), atol=1e-6)


def test_vectors_of_a_real_model_are_reached():
    """Questions embedded by the table find what the model itself finds."""
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
        own = set(np.argsort(-(vectors @ embedder.embed_query(question)))[:10])
        found = set(np.argsort(-(vectors @ encoder.encode(terms_of(question))))[:10])
        agreed += len(own & found)
    assert agreed > 0.5 * 400


def test_what_does_not_fit_together_is_refused():
    vectors, terms, headings, _ = corpus(30)
    with pytest.raises(EmbedderError, match="one row per chunk"):
        fit(vectors[:-1], terms, embedder="model")
    with pytest.raises(EmbedderError, match="29 chunks were given for 30"):
        fit(vectors, terms, embedder="model", heading_terms=headings[:-1])
    with pytest.raises(EmbedderError, match="contains a term"):
        fit(vectors, [[]] * 30, embedder="model")
    with pytest.raises(EmbedderError, match="contains a term"):
        fit(np.zeros((0, 4), np.float32), [], embedder="model")
    vectors[3, 3] = np.nan
    with pytest.raises(EmbedderError, match="not finite"):
        fit(vectors, terms, embedder="model")
    with pytest.raises(EmbedderError, match="fit it again"):
        FittedEncoder("model", ("a", "b"), np.zeros((3, 4), np.float32), {})


def test_chunks_without_terms_are_no_trouble():
    vectors, terms, headings, _ = corpus(100)
    terms[3], headings[3] = [], []
    encoder = fit(vectors, terms, embedder="model", heading_terms=headings)
    assert np.isfinite(encoder.vectors).all()


def test_chunks_that_are_held_out_have_no_part_in_what_they_choose_between():
    """Where vectors are chance, only who has seen a chunk could find it by its words."""
    vectors = np.random.default_rng(0).normal(size=(200, 64)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    terms = [[f"alpha{n}", f"beta{n}", f"gamma{n % 7}"] for n in range(200)]
    report = fit(vectors, terms, embedder="e").report
    assert report["questions"] == 40
    assert max(report["held_out"].values()) < 0.2
