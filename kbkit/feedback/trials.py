"""Many settings of retrieval tried on the same queries, whose candidates are fetched once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.base import Matrix
from kbkit.feedback.measures import DEPTH
from kbkit.feedback.statistics import Values
from kbkit.feedback.tasks import Searchable, Task, Tasks, matched
from kbkit.models import Progress
from kbkit.progress import OnProgress
from kbkit.recipes import RetrievalSpec
from kbkit.retrieval.fusion import Features, Weights, discounts, fuse, normalised
from kbkit.retrieval.ranking import Pool, alike
from kbkit.retrieval.retriever import Query
from kbkit.stores import contents

Rows = NDArray[np.int64]

_DISCOUNTS = 1 / np.log2(np.arange(DEPTH) + 2)


@dataclass(frozen=True, slots=True)
class Trials:
    """The candidates of all queries, one query after the other, in arrays of shape ``(n,)``.

    Attributes:
        features: What ranking reads of them; cosine and BM25 are normalised query by query
            already, and no document is that of two queries, so that all can be fused at once.
        queries: The query of each candidate.
        items: What each candidate counts as: itself, or the page that it is part of.
        gains: What that is worth, 0 for what was not judged.
        ideal: The DCG of the best possible ranking of each query, shape ``(queries,)``.
        close: For each query with near duplicates, where its candidates begin, and their vectors.
        threshold: Cosine above which chunks are near duplicates.
    """

    features: Features
    queries: Rows
    items: Rows
    gains: Values
    ideal: Values
    close: tuple[tuple[int, Matrix], ...]
    threshold: float

    @classmethod
    def of(
        cls, kb: Searchable, tasks: Tasks, settings: RetrievalSpec, tell: OnProgress | None = None
    ) -> Trials:
        """Fetch the candidates of queries.

        Args:
            kb: Where to search.
            tasks: What is asked, and what it is worth.
            settings: Number of candidates, and which of them are near duplicates.
            tell: Called for each query.

        Raises:
            EmbedderError: The embedder failed.
        """
        parts = []
        for number, task in enumerate(tasks):
            if tell is not None:
                tell(Progress("candidates", number, len(tasks), task.query))
            pool = kb.retriever.pool(Query.of(task.query, DEPTH, retrieval=settings))
            parts.append(_Part.of(kb, pool, task, tasks.unit == "page"))
        return cls._joined(parts, tasks, settings.duplicates)

    @classmethod
    def _joined(cls, parts: Sequence[_Part], tasks: Tasks, threshold: float) -> Trials:
        starts = np.cumsum([0] + [len(part.items) for part in parts])

        def joined(name: str) -> Values:
            return np.concatenate([part.columns[name] for part in parts])

        return cls(
            features=Features(
                cosine=joined("cosine"),
                bm25=joined("bm25"),
                title=joined("title"),
                heading=joined("heading"),
                rating=np.zeros(starts[-1]),
                documents=_apart([part.documents for part in parts]),
                sizes=joined("sizes").astype(np.int64),
            ),
            queries=np.repeat(np.arange(len(parts)), np.diff(starts)),
            items=_apart([part.items for part in parts]),
            gains=np.concatenate([part.gains for part in parts]),
            ideal=np.array([_ideal(task) for task in tasks]),
            close=tuple(
                (int(start), part.vectors)
                for start, part in zip(starts, parts, strict=False)
                if _any_close(part.vectors, threshold)
            ),
            threshold=threshold,
        )

    def ndcg(self, settings: RetrievalSpec) -> Values:
        """nDCG@10 of each query with these settings, ratings left aside; shape ``(queries,)``."""
        weights = Weights(
            dense=settings.dense_weight,
            document=settings.document_weight,
            title=settings.title_weight,
            heading=settings.heading_weight,
            rating=0.0,
        )
        fused = fuse(self.features, weights)
        factors = discounts(
            fused.total, self.features.documents, self._alike(fused.total), settings.per_document
        )
        ranked = np.flatnonzero(fused.dense + fused.lexical > 0)
        total = fused.discounted(factors).total[ranked]
        order = ranked[np.lexsort((-total, self.queries[ranked]))]
        _, first = np.unique(self.items[order], return_index=True)
        best = order[np.sort(first)]  # of each item its best candidate, query by query
        queries = self.queries[best]
        starts = np.searchsorted(queries, np.arange(len(self.ideal)))
        places = np.arange(len(best)) - starts[queries]
        top = places < DEPTH
        worth = self.gains[best[top]] * _DISCOUNTS[places[top]]
        figures: Values = np.bincount(queries[top], worth, len(self.ideal)) / self.ideal
        return figures

    def _alike(self, total: Values) -> NDArray[np.bool_]:
        """Which candidates are near duplicates of better ones of the same query."""
        found = np.zeros(len(total), np.bool_)
        for start, vectors in self.close:
            part = slice(start, start + len(vectors))
            found[part] = alike(vectors, total[part], self.threshold)
        return found


@dataclass(frozen=True, slots=True)
class _Part:
    """The candidates of one query; see `Trials`."""

    columns: dict[str, Values]
    documents: Rows
    items: Rows
    gains: Values
    vectors: Matrix

    @classmethod
    def of(cls, kb: Searchable, pool: Pool, task: Task, by_page: bool) -> _Part:
        candidates = pool.candidates
        proper = slice(0, candidates.ranked)
        columns = {name: values[proper] for name, values in pool.columns.items()}
        columns["cosine"] = normalised(columns["cosine"])
        columns["bm25"] = normalised(columns["bm25"])
        documents = _numbered(candidates.document_ids[proper])
        if by_page:
            items, gains = _by_page(kb, candidates.seqs[proper], task)
        else:
            items = np.arange(candidates.ranked)
            gains = _by_chunk(kb, candidates.seqs[proper], task)
        return cls(columns, documents, items, gains, candidates.vectors[proper])


def _any_close(vectors: Matrix, threshold: float) -> bool:
    """Whether any two chunks could be near duplicates; most often none are."""
    closeness = vectors @ vectors.T
    np.fill_diagonal(closeness, -1)
    return threshold < 1 and bool((closeness > threshold).any())


def _by_chunk(kb: Searchable, seqs: Rows, task: Task) -> Values:
    with kb.retriever.database.read() as connection:
        known = contents.seqs_by_id(connection, list(task.gains))
    worth = {seq: float(task.gains[chunk_id]) for chunk_id, seq in known.items()}
    return np.array([worth.get(seq, 0.0) for seq in seqs.tolist()])


def _by_page(kb: Searchable, seqs: Rows, task: Task) -> tuple[Rows, Values]:
    """The page of each candidate, and what it is worth; two URIs of one page count once."""
    found = kb.retriever.chunks(seqs.tolist())
    uris = [found[seq][1].uri if seq in found else "" for seq in seqs.tolist()]
    names = {uri: matched(uri, task) for uri in dict.fromkeys(uris)}
    pages = [("relevant", names[uri]) if names[uri] else ("uri", uri) for uri in uris]
    gains = [float(task.gains.get(names[uri] or "", 0)) for uri in uris]
    return _numbered(pages), np.array(gains)


def _ideal(task: Task) -> float:
    gains = sorted(task.gains.values(), reverse=True)[:DEPTH]
    return float(gains @ _DISCOUNTS[: len(gains)])


def _numbered(values: Sequence[object]) -> Rows:
    numbers: dict[object, int] = {}
    return np.array([numbers.setdefault(value, len(numbers)) for value in values], np.int64)


def _apart(parts: Sequence[Rows]) -> Rows:
    """Numbers of several parts, one after the other, so that no two parts share one."""
    ends = np.cumsum([0] + [int(part.max(initial=-1)) + 1 for part in parts])
    return np.concatenate([part + end for part, end in zip(parts, ends, strict=False)])
