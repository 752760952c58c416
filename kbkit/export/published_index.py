"""Search a published index as ``engine.js`` does in browsers.

`kbkit.retrieval.ranking` ranks the hits; candidates differ from those of other searches, since not
all vectors are loaded:

1. Lexical candidates and scores of whole documents are exact.
2. The query's vector is the sum of its terms' rows. Dense candidates are from the nearest clusters
   of chunks and those with the best lexical candidates (`IndexVectors`).
3. Summaries have separate rows and clusters.
4. A browser with the model uses its vector instead of the sums.
5. Vectors of unread clusters have the cosine of the centroid.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding import Vector
from kbkit.errors import ExportError
from kbkit.export import index_packing as packing
from kbkit.export.facts import intact
from kbkit.export.index_terms import UNIT, utf16_key
from kbkit.export.index_writer import FORMAT, SETTINGS, index_folder
from kbkit.models import Mode
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval import candidates
from kbkit.retrieval.corpora import best_scored, chunk_scores
from kbkit.retrieval.document_scores import DocumentScores, SummaryScores
from kbkit.retrieval.fusion import CorpusStatistics
from kbkit.retrieval.ranking import PHRASED, phrases_first, phrases_in, rank
from kbkit.stores.snapshots.snapshot import ChunkTable, Postings
from kbkit.text.analysis import analyzer

ASKED = 64
"""Maximum terms of a query in its vector."""


@dataclass(frozen=True, slots=True)
class PublishedHit:
    """A hit in a published knowledge base.

    Attributes:
        chunk: Its number in the index.
        page: Path of its document's page in the export, with ``.md``.
    """

    kb: str
    chunk: int
    score: float
    page: str
    title: str
    heading: str
    anchor: str
    text: str


FIRST = 50
"""Number of best rows by words that select further clusters."""


class Clusters(NamedTuple):
    """Number of clusters that a query reads.

    Attributes:
        further: Clusters with the best rows by words, each weighted ``1 / (10 + its place)``.
    """

    near: int
    further: int


_OF_CHUNKS = Clusters(near=4, further=6)
_OF_SUMMARIES = Clusters(near=2, further=1)
_OF_MODEL = Clusters(near=8, further=4)  # of summaries, in browsers with the model


class Near(NamedTuple):
    """Result of a search over clusters of vectors.

    Attributes:
        cosines: Cosines with the query, shape ``(n,)``; those of centroids for unread vectors.
        vectors: Unit vectors, zeros for unread ones; shape ``(n, dimensions)``.
    """

    rows: packing.Integers
    cosines: NDArray[np.float64]
    vectors: NDArray[np.float32]


class IndexVectors:
    """The vectors of chunks, or of summaries; `kind` is that of their shards."""

    def __init__(
        self, metadata: dict[str, Any], rows: int, kind: str, shard: Callable[[str], dict[str, Any]]
    ) -> None:
        self.dimensions: int = metadata.get("dimensions", 0)
        self.modelled: bool = metadata.get("model", False)
        """Whether the browsers' model embeds queries for them."""
        self._rows, self._kind, self._shard = rows, kind, shard
        self._scales = np.array(metadata.get("scales", ()))
        # -1 without a vector
        self._clusters = (
            packing.decode_varints(metadata["clusters"]) - 1 if metadata else np.full(rows, -1)
        )
        steps = np.array(metadata.get("steps", ()))
        centroids = packing.decode_nibbles(metadata.get("centroids", ""), max(1, self.dimensions))
        self._centroids = centroids * (steps / UNIT)[:, None]

    @property
    def has_vector(self) -> NDArray[np.bool_]:
        return np.asarray(self._clusters >= 0)

    def project(self, vector: Vector, axes: Mapping[str, Any]) -> NDArray[np.float64]:
        values = packing.from_base64(axes["v"]).view(np.int8).reshape(-1, len(vector))
        return np.asarray(values @ vector * np.array(axes["s"]))

    def near(self, query: NDArray[np.float64], best: packing.Integers, read: Clusters) -> Near:
        vectors = np.zeros((self._rows, self.dimensions), np.float32)
        if not query.any():
            return Near(np.zeros(0, np.int64), np.zeros(self._rows), vectors)
        query = query / np.linalg.norm(query)
        similarities = self._centroids @ query
        cosines = np.append(similarities, 0.0)[self._clusters]
        parts = [np.zeros(0, np.int64)]
        for number in self._to_read(similarities, best, read):
            rows, values = self._cluster(number)
            cosines[rows] = values @ query
            norms = np.linalg.norm(values, axis=1, keepdims=True)
            vectors[rows] = values / np.where(norms > 0, norms, 1)
            parts.append(rows)
        return Near(np.sort(np.concatenate(parts)), cosines, vectors)

    def _to_read(
        self, cosines: NDArray[np.float64], best: packing.Integers, limits: Clusters
    ) -> list[int]:
        first = self._clusters[best[:FIRST]] + 1  # 0 without a vector
        weights = np.bincount(first, 1 / (10 + np.arange(len(first))), len(cosines) + 1)[1:]
        # rounded, since browsers sum in another order
        nearest = np.argsort(-np.rint(cosines * 1e9), kind="stable")
        chosen: list[int] = nearest[: limits.near].tolist()
        others = [n for n in np.argsort(-weights, kind="stable").tolist() if n not in chosen]
        return chosen + [number for number in others if weights[number]][: limits.further]

    def _cluster(self, number: int) -> tuple[packing.Integers, NDArray[np.float64]]:
        values = self._shard(f"{self._kind}/{number}")
        steps = packing.decode_nibbles(values["v"], self.dimensions)
        return np.cumsum(packing.decode_varints(values["r"])), steps * self._scales


class _Term(NamedTuple):
    rows: packing.Integers
    counts: NDArray[np.uint16]
    in_title: NDArray[np.bool_]
    in_heading: NDArray[np.bool_]
    vector: NDArray[np.float64]
    summary_vector: NDArray[np.float64]


class PublishedIndex:
    """The search index of one published knowledge base.

    Attributes:
        read: Names of the shards read so far, in order.

    Raises:
        ExportError: It is missing, damaged, or of another version of kbkit.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.read: list[str] = []
        self._shards: dict[str, dict[str, Any]] = {}
        core = self._shard("core")
        if core.get("format") != FORMAT:
            raise ExportError(f"{self.folder}: an index of another version; export again")
        self._columns = columns = _Columns(core)
        chunks, documents = len(columns.table), len(columns.table.document_ids)
        self._vectors = IndexVectors(core.get("vectors", {}), chunks, "v", self._shard)
        self._summaries = IndexVectors(core.get("summaries", {}), documents, "c", self._shard)

    @classmethod
    def open(cls, folder: str | Path) -> PublishedIndex:
        """Open the index in the pages' folder of an export; `ExportError` without one."""
        return cls(index_folder(Path(folder)))

    def search(
        self, query: str, limit: int = 10, *, vector: Vector | None = None
    ) -> list[PublishedHit]:
        """Search, best first.

        Args:
            query: A question or some words.
            limit: Maximum number of hits.
            vector: MiniLM's vector of the query, if MiniLM embedded the index.
        """
        pool, phrases = self.pool(query, vector), phrases_in(query)
        ranked = rank([pool], max(limit, PHRASED) if phrases else limit, Mode.HYBRID)
        hits = [self._hit(int(place.seq), place.parts.total) for place in ranked]
        return phrases_first(hits, phrases, lambda hit: f"{hit.title} {hit.text}")[:limit]

    def pool(self, query: str, vector: Vector | None = None) -> candidates.CandidatePool:
        """Return the candidates for a query; see `search`."""
        columns, table = self._columns, self._columns.table
        query_terms = tuple(analyzer(columns.language).query_terms(query))
        terms = {name: term for name in query_terms if (term := self._term(name)) is not None}
        postings = {name: (term.rows, term.counts) for name, term in terms.items()}
        statistics = CorpusStatistics(
            len(table), table.average_length, {name: len(term.rows) for name, term in terms.items()}
        )
        size = min(columns.retrieval.candidates, len(table))
        words = chunk_scores(table, postings, statistics)
        lexical = best_scored(words, size)
        embedded = list(terms.values())[:ASKED]
        query_vector = sum((term.vector for term in embedded), np.zeros(self._vectors.dimensions))
        if vector is not None and self._vectors.modelled:
            query_vector = self._vectors.project(vector, self._shard("m")["vectors"])
        nearest = self._vectors.near(query_vector, lexical, _OF_CHUNKS)
        cosines = nearest.cosines[nearest.rows].astype(np.float32)
        dense = nearest.rows[candidates.top_indices(cosines, size)]
        documents = self._documents(postings, embedded, vector)
        highest = words.max(initial=0.0)
        best = documents.best_rows(
            table, lambda rows: nearest.cosines[rows], words, highest, mask=None
        )
        chosen, ranked = candidates.merge_candidates(dense, lexical, size, best)
        term_count = max(1, len(query_terms))
        title, heading = np.zeros(len(chosen)), np.zeros(len(chosen))
        for term in terms.values():
            places, rows = candidates.places_in(term.rows, chosen)
            title[places] += term.in_title[rows]
            heading[places] += term.in_heading[rows]
        counts, lengths = candidates.counts_in(postings, chosen), table.lengths[chosen].tolist()
        owners = table.owners[chosen]
        which, pages, summary = documents.of_candidates(table, owners)
        return candidates.CandidatePool(
            kb=columns.name,
            language=columns.language,
            retrieval=columns.retrieval,
            terms=query_terms,
            seqs=chosen,
            ranked=ranked,
            document_ids=[str(owner) for owner in owners.tolist()],
            vectors=nearest.vectors[chosen],
            words=candidates.TermCounts(counts, lengths, statistics),
            pages=pages,
            which=which,
            embedder=documents.summaries.embedder,
            columns={
                "cosine": nearest.cosines[chosen],
                "title": title / term_count,
                "heading": heading / term_count,
                "sizes": table.sizes[owners].astype(np.float64),
                "summary": summary,
                "graph": np.zeros(len(chosen)),
                "learned": np.zeros(len(chosen)),
                "rating": columns.prior[chosen],
                "index": columns.indexes[owners],
            },
        ).with_words()

    def _documents(
        self, postings: Mapping[str, Postings], counted: Sequence[_Term], vector: Vector | None
    ) -> DocumentScores:
        weights = self._columns.retrieval
        scored = postings if weights.page_weight else {}
        scores = DocumentScores.of_words(self._columns.table, scored)
        if not weights.summary_weight:
            return scores
        summaries, limits = self._summaries, _OF_SUMMARIES
        query = sum((term.summary_vector for term in counted), np.zeros(summaries.dimensions))
        if vector is not None and summaries.modelled:
            query, limits = summaries.project(vector, self._shard("m")["summaries"]), _OF_MODEL
        matching = np.flatnonzero(scores.page)
        best = matching[np.argsort(-scores.page[matching], kind="stable")]
        cosines = summaries.near(query, best, limits).cosines
        present = summaries.has_vector
        cosines[~present] = cosines[present].mean() if present.any() else 0.0
        summary_scores = SummaryScores(cosines.astype(np.float32), self._columns.summary_embedder)
        return replace(scores, summaries=summary_scores)

    def _term(self, term: str) -> _Term | None:
        number = bisect_right(self._columns.firsts, utf16_key(term)) - 1
        if number < 0:
            return None
        values = self._shard(f"t/{number}")
        names = values["t"].split(" ")
        if term not in names:
            return None
        place = names.index(term)
        start, count = sum(values["n"][:place]), values["n"][place]
        pairs = packing.decode_varints(values["p"]).reshape(-1, 2)[start : start + count]
        return _Term(
            rows=np.cumsum(pairs[:, 0]),
            counts=(pairs[:, 1] // 4 + 1).astype(np.uint16),
            in_title=pairs[:, 1] & 2 > 0,
            in_heading=pairs[:, 1] & 1 > 0,
            vector=_row(values, "", place, self._vectors.dimensions),
            summary_vector=_row(values, "c", place, self._summaries.dimensions),
        )

    def _hit(self, row: int, score: float) -> PublishedHit:
        number = bisect_right(self._columns.texts, row) - 1
        shard = self._shard(f"x/{number}")
        text, heading, anchor = shard["x"][row - self._columns.texts[number]]
        owner = int(self._columns.table.owners[row])
        page, title = next((page, title) for n, page, title, *_ in shard["d"] if n == owner)
        return PublishedHit(self._columns.name, row, score, page, title, heading, anchor, text)

    def _shard(self, name: str) -> dict[str, Any]:
        if name not in self._shards:
            path = self.folder / f"{name}.js"
            with intact(path):
                self._shards[name] = packing.decode_shard(path.read_bytes())
            self.read.append(name)
        return self._shards[name]


class _Columns:
    def __init__(self, core: Mapping[str, Any]) -> None:
        self.name: str = core["name"]
        self.language: str = core["language"]
        self.retrieval = RetrievalSpec(
            **{field: core["settings"][name] for name, field in SETTINGS.items()}
        )
        lengths = packing.decode_varints(core["lengths"]).astype(np.int32)
        sizes = packing.decode_varints(core["sizes"])
        owners = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        ids = list(map(str, range(len(sizes))))
        self.table = ChunkTable(np.arange(len(lengths)), owners, lengths, ids)
        self.prior = np.zeros(len(lengths))
        for row, prior in core["prior"]:
            self.prior[row] = prior
        self.indexes = np.zeros(len(sizes))
        self.indexes[np.array(core["indexes"], np.int64)] = 1
        self.firsts = [utf16_key(first) for first in core["firsts"].split()]
        self.texts = [0, *np.cumsum(packing.decode_varints(core["texts"])).tolist()]
        self.summary_embedder: str = core.get("summaries", {}).get("embedder", "")


def _row(values: Mapping[str, Any], kind: str, place: int, width: int) -> NDArray[np.float64]:
    scales = values.get(f"{kind}s")
    if not scales or not scales[place]:
        return np.zeros(width)
    row = sum(scale > 0 for scale in scales[:place])
    steps = packing.decode_nibbles(values[f"{kind}v"], width)[row]
    return np.asarray(steps * (scales[place] / UNIT))
