"""The retriever of words against scores of all chunks."""

from types import SimpleNamespace

import numpy as np
import pytest

from kbkit.retrieval.candidates import top_indices
from kbkit.retrieval.corpora import best_scored, chunk_scores
from kbkit.retrieval.document_scores import DocumentScores, SummaryScores
from kbkit.retrieval.fusion import CorpusStatistics, bm25_scores
from kbkit.retrieval.query import QueryVector
from kbkit.stores.snapshots.snapshot import ChunkTable, MappedTexts

pytestmark = pytest.mark.local

CHUNKS = 4_000


def table(rng, *, together=True):
    owners = rng.integers(0, CHUNKS // 5, CHUNKS).astype(np.int32)
    owners = np.sort(owners) if together else owners
    lengths = rng.integers(3, 200, CHUNKS).astype(np.int32)
    number = CHUNKS // 5
    return ChunkTable(
        seqs=np.arange(1, CHUNKS + 1),
        owners=owners,
        lengths=lengths,
        document_ids=[str(i) for i in range(number)],
    )


def postings_of(rng, shares):
    postings = {}
    for i, share in enumerate(shares):
        rows = np.flatnonzero(rng.random(CHUNKS) < share).astype(np.int32)
        if len(rows):
            postings[f"t{i}"] = rows, rng.geometric(0.5, len(rows)).astype(np.uint16)
    return postings


def statistics_of(chunks, postings):
    frequencies = {term: len(rows) for term, (rows, _) in postings.items()}
    return CorpusStatistics(CHUNKS, chunks.average_length, frequencies)


@pytest.mark.parametrize("seed", range(40))
def test_best_chunks_by_words(seed):
    rng = np.random.default_rng(seed)
    chunks = table(rng)
    shares = rng.choice([0.0005, 0.005, 0.02, 0.1, 0.4, 0.9], rng.integers(0, 7))
    postings = postings_of(rng, shares)
    statistics = statistics_of(chunks, postings)
    counts = [{} for _ in range(CHUNKS)]
    for term, (rows, times) in postings.items():
        for row, count in zip(rows.tolist(), times.tolist(), strict=True):
            counts[row][term] = count
    scores = chunk_scores(chunks, postings, statistics)
    expected = bm25_scores(counts, chunks.lengths.tolist(), statistics)
    assert scores == pytest.approx(expected, rel=1e-5)
    mask = rng.random(CHUNKS) < rng.choice([0.01, 0.3]) if seed % 3 == 0 else None
    limit = int(rng.choice([1, 10, 100, CHUNKS]))
    passing = np.flatnonzero(scores if mask is None else scores * mask)
    assert (
        best_scored(scores, limit, mask).tolist()
        == passing[top_indices(scores[passing], limit)].tolist()
    )


@pytest.mark.parametrize("together", [True, False])
def test_best_chunk_of_each_of_the_best_documents(together):
    rng = np.random.default_rng(3)
    chunks = table(rng, together=together)
    postings = postings_of(rng, [0.01])
    documents = DocumentScores.of_words(chunks, postings)
    words = rng.integers(1, 4, CHUNKS).astype(np.float32)  # many are equal
    cosines = rng.integers(1, 4, CHUNKS) / 4
    mask = rng.random(CHUNKS) < 0.7
    rows = documents.best_rows(chunks, lambda rows: cosines[rows], words, words.max(), mask=mask)
    owners = chunks.owners[rows].tolist()
    assert len(set(owners)) == len(owners) == 30
    scores = words / words.max() + cosines / cosines[np.isin(chunks.owners, owners) & mask].max()
    for row, owner in zip(rows.tolist(), owners, strict=True):
        others = np.flatnonzero((chunks.owners == owner) & mask)
        assert row == others[np.argmax(scores[others])]


@pytest.mark.parametrize("together", [True, False])
def test_words_of_documents_are_counted_in_any_order_of_chunks(together):
    rng = np.random.default_rng(2)
    chunks = table(rng, together=together)
    postings = postings_of(rng, [0.01, 0.6])
    scores = DocumentScores.of_words(chunks, postings)
    for term, (rows, times) in postings.items():
        expected = np.bincount(chunks.owners[rows], times, len(chunks.sizes))
        documents, counts = scores.counts[term]
        assert documents.tolist() == np.flatnonzero(expected).tolist()
        assert counts.tolist() == expected[documents].tolist()


@pytest.mark.parametrize("number", [0, 1, 63, 64, 65, 400])
def test_place_of_a_text_among_sorted_texts(number):
    texts = sorted(f"é{i * 7 % 400}" if i % 3 else f"w{i}\U0001f600" for i in range(number))
    packed = MappedTexts(np.frombuffer("".join(f"{text}\0" for text in texts).encode(), np.uint8))
    for text in [*texts, "", "a", "w", "é20", "\U0001f600"]:
        assert packed.place(text) == sum(known < text for known in texts)


def test_usual_score_of_summaries_does_not_depend_on_order():
    rng = np.random.default_rng(4)
    vectors = rng.normal(0.1, 1, (5_000, 32)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    query = SimpleNamespace(summary_query=QueryVector(vectors[0]), summary_embedder="e", graph=None)

    def usual(order):
        chunks = SimpleNamespace(
            is_small=True,
            cache={},
            summaries=(),
            state=SimpleNamespace(summary_embedder="e"),
            sizes=order,
            summary_scores=lambda score: score(vectors[order]),
        )
        return SummaryScores.of(chunks, query, None).usual

    orders = [rng.permutation(len(vectors)) for _ in range(8)]
    assert len({usual(order) for order in orders}) == 1
