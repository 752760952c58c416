"""One version of a knowledge base as arrays, and its file."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots.chunk_table import ChunkTable, Score, read_arrays, write_arrays

_FORMAT = "7"
Postings = tuple[NDArray[np.integer[Any]], NDArray[np.integer[Any]]]

_BLOCK = 64
"""Sorted texts per block; the first text of each block is in memory."""
_RUN = 16
"""Mean length of runs of rows from which reading in place is faster than copying."""
_MAX_CACHED = 10_000
"""Terms whose numbers are cached, because a query looks up each several times."""


@dataclass(frozen=True, slots=True)
class Lists:
    """Concatenated lists of distinct numbers; `starts` has their offsets and the end."""

    starts: NDArray[np.int64]
    values: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.starts) - 1

    def holding(self, numbers: Collection[int], which: NDArray[np.int32]) -> NDArray[np.int64]:
        """Count the numbers that each list contains, shape ``(len(which),)``."""
        if not numbers:
            return np.zeros(len(which), np.int64)
        first = self.starts[which]
        lengths = self.starts[which + 1] - first
        ends = np.cumsum(lengths)
        inside = np.arange(int(lengths.sum())) + np.repeat(first - (ends - lengths), lengths)
        values = self.values[inside]
        is_listed = np.zeros(len(values), np.bool_)
        for number in numbers:  # faster than `isin` for the few terms of a query
            is_listed |= values == number
        counted = np.concatenate([[0], np.cumsum(is_listed)])
        return np.asarray(counted[ends] - counted[ends - lengths], np.int64)


class MappedTexts(Sequence[str]):
    """NUL-terminated texts of a file, decoded on demand."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        self._data = data

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        return np.flatnonzero(self._data == 0)

    @cached_property
    def _firsts(self) -> list[bytes]:
        return [self[i].encode() for i in range(0, len(self), _BLOCK)]

    def place(self, text: str) -> int:
        wanted = text.encode()
        first = (bisect_right(self._firsts, wanted) - 1) * _BLOCK
        if first < 0:
            return 0
        start = int(self._ends[first - 1]) + 1 if first else 0
        end = int(self._ends[min(first + _BLOCK, len(self)) - 1])
        return first + bisect_left(self._data[start:end].tobytes().split(b"\0"), wanted)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return list(self)[index]
        which = range(len(self))[index]
        start = int(self._ends[which - 1]) + 1 if which else 0
        return self._data[start : int(self._ends[which])].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._data.tobytes().decode().split("\0")[:-1])


@dataclass(frozen=True, slots=True)
class Snapshot(ChunkTable):
    """A chunk table with terms and vectors.

    Attributes:
        ids: ``chunks.id`` of all chunks.
        headings: Index into `heading_texts` for each chunk, shape ``(n,)``.
        vectors: Unit vectors, shape ``(n, dimensions)``.
        heading_texts: Heading paths without titles, each on one line.
        title_terms: Indexes into `terms` for each title.
        heading_terms: Indexes into `terms` for each heading text.
        starts: Offsets of each term's postings, and the end.
        rows: Chunk of each posting, ascending within a term.
    """

    ids: Sequence[str]
    headings: NDArray[np.int32]
    vectors: NDArray[np.float32]
    titles: Sequence[str]
    heading_texts: Sequence[str]
    title_terms: Lists
    heading_terms: Lists
    terms: Sequence[str]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.uint16]
    _rows: dict[str, int] = field(default_factory=dict)

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Return the rows of chunks in the order of their ids; unknown ids are left out."""
        if len(self._rows) < len(self):
            self._rows.update({id_: row for row, id_ in enumerate(self.ids)})
        rows = self._rows
        return np.array([rows[id_] for id_ in ids if id_ in rows], np.int64)

    def holding(self, terms: Iterable[str]) -> dict[str, Postings]:
        """Map terms to postings by row; absent terms are left out."""
        return {term: self.postings(number) for term, number in self.numbers(terms).items()}

    def scored(self, score: Score) -> NDArray[np.float32]:
        return score(self.vectors)

    def vectors_of(self, rows: NDArray[np.int64]) -> NDArray[np.float32]:
        return self.vectors[rows]

    def scores_of(self, rows: NDArray[np.int64], score: Score) -> NDArray[np.float32]:
        # chunks of a document are adjacent, so long runs are scored without copying
        ends = np.flatnonzero(np.diff(rows) != 1) + 1
        if len(ends) * _RUN >= len(rows):
            return score(self.vectors[rows])
        scores = np.empty(len(rows), np.float32)
        for start, end in pairwise([0, *ends.tolist(), len(rows)]):
            first = int(rows[start])
            scores[start:end] = score(self.vectors[first : first + end - start])
        return scores

    def coverage(
        self, rows: NDArray[np.int64], terms: Iterable[str]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        term_ids = self.numbers(terms).values()
        return (
            self.title_terms.holding(term_ids, self.owners[rows]),
            self.heading_terms.holding(term_ids, self.headings[rows]),
        )

    def headed(self, has: Callable[[str], bool]) -> NDArray[np.bool_]:
        matches = np.array([has(text) for text in self.heading_texts], np.bool_)
        return matches[self.headings] if len(matches) else np.zeros(len(self), np.bool_)

    def numbers(self, terms: Iterable[str]) -> dict[str, int]:
        """Map terms to their index in `terms`; absent ones are left out."""
        kept: dict[str, int | None] = self.kept.setdefault("numbers", {})
        if len(kept) > _MAX_CACHED:
            kept.clear()
        number_of: dict[str, int] = {}
        for term in terms:
            number = kept.get(term, -1)
            if number == -1:
                number = kept[term] = self._number(term)
            if number is not None:
                number_of[term] = number
        return number_of

    def _number(self, term: str) -> int | None:
        terms = self.terms
        place = terms.place(term) if isinstance(terms, MappedTexts) else bisect_left(terms, term)
        return place if place < len(terms) and terms[place] == term else None

    def postings(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        part = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return self.rows[part], self.counts[part]


_ARRAYS = (
    "seqs",
    "owners",
    "lengths",
    "headings",
    "vectors",
    "sizes",
    "starts",
    "rows",
    "counts",
    "document_lengths",
    "summary_vectors",
)
_TEXTS = ("ids", "document_ids", "titles", "heading_texts", "terms")
_DECODED_TEXTS = ("document_ids",)
"""Texts that every search reads."""
_LISTS = ("title_terms", "heading_terms")
_OF_LISTS = ("starts", "values")


def save(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot; concurrent readers keep the old file."""
    tensors: dict[str, NDArray[Any]] = {name: getattr(snapshot, name) for name in _ARRAYS}
    for name in _LISTS:
        lists = getattr(snapshot, name)
        tensors[f"{name}.starts"], tensors[f"{name}.values"] = lists.starts, lists.values
    for name in _TEXTS:
        tensors[name] = _packed(getattr(snapshot, name))
    about = {
        "format": _FORMAT,
        "version": str(snapshot.version),
        "embedder": snapshot.embedder,
        "summaries_version": str(snapshot.summaries_version),
        "summary_embedder": snapshot.summary_embedder,
        "average_length": repr(snapshot.average_length),
    }
    write_arrays(path, tensors, about)


def save_summaries(
    path: Path, embedder: str, document_ids: Sequence[str], vectors: NDArray[np.float32]
) -> None:
    tensors: dict[str, NDArray[Any]] = {"document_ids": _packed(document_ids), "vectors": vectors}
    write_arrays(path, tensors, {"format": _FORMAT, "embedder": embedder})


def load_summaries(path: Path) -> tuple[str, list[str], NDArray[np.float32]] | None:
    """Load a file of `save_summaries`; ``None`` as in `load`."""
    try:
        about, arrays = read_arrays(path)
        ids, vectors = list(MappedTexts(arrays["document_ids"])), arrays["vectors"]
        whole = about["format"] == _FORMAT and vectors.ndim == 2 and len(vectors) == len(ids)
        return (str(about["embedder"]), ids, vectors) if whole else None
    except (OSError, KeyError, TypeError, ValueError, IndexError, RecursionError):
        return None


def _packed(texts: Iterable[str]) -> NDArray[np.uint8]:
    text = "".join(text.replace("\0", " ") + "\0" for text in texts)
    return np.frombuffer(text.encode(), np.uint8)


def load(path: Path) -> Snapshot | None:
    """Map a snapshot; ``None`` if it is missing, damaged or of another version."""
    try:
        about, arrays = read_arrays(path)
        if about["format"] != _FORMAT:
            return None
        values: dict[str, Any] = {name: arrays[name] for name in (*_ARRAYS, *_TEXTS)}
        for name in _LISTS:
            values[name] = Lists(*(arrays[f"{name}.{part}"] for part in _OF_LISTS))
        for name in _TEXTS:
            values[name] = MappedTexts(values[name])
        for name in _DECODED_TEXTS:
            values[name] = list(values[name])
        snapshot = Snapshot(
            version=int(about["version"]),
            embedder=about["embedder"],
            summaries_version=int(about["summaries_version"]),
            summary_embedder=about["summary_embedder"],
            average_length=float(about["average_length"]),
            **values,
        )
        return snapshot if _whole(snapshot) else None
    except (OSError, KeyError, TypeError, ValueError, IndexError, RecursionError):
        return None


def _whole(snapshot: Snapshot) -> bool:
    s = snapshot
    of_chunks = {len(column) for column in (s.ids, s.owners, s.lengths, s.headings, s.vectors)}
    of_documents = {
        *(len(column) for column in (s.titles, s.sizes, s.title_terms)),
        *(len(column) for column in (s.document_lengths, s.summary_vectors)),
    }
    return (
        of_chunks == {len(s)}
        and of_documents == {len(s.document_ids)}
        and len(s.heading_terms) == len(s.heading_texts)
        and all(len(x.values) == int(x.starts[-1]) for x in (s.title_terms, s.heading_terms))
        and len(s.starts) == len(s.terms) + 1
        and {len(s.rows), len(s.counts)} == {int(s.starts[-1])}
        and int(s.owners.max(initial=-1)) < len(s.document_ids)
        and int(s.headings.max(initial=-1)) < len(s.heading_texts)
    )
