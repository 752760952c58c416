"""One version of a knowledge base as arrays, its file, and codes of its vectors.

Codes are quantized vectors, two bits per number, to scan a million in milliseconds. Pairs of
neighbouring numbers are rounded to one of 16 centroids (product quantization: Jégou, Douze and
Schmid, 2011), which faiss scans in registers (André, Kermarrec and Le Scouarnec, 2015). Callers
score the candidates again by the vectors. Without faiss, searches use Chroma.
"""

import contextlib
import importlib.util
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from kbkit.stores.snapshots import array_files

_FORMAT = "8"
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
        starts = self.starts[which]
        lengths = self.starts[which + 1] - starts
        lists = np.repeat(np.arange(len(which)), lengths)
        places = np.arange(len(lists)) + np.repeat(starts - np.cumsum(lengths) + lengths, lengths)
        wanted = np.isin(self.values[places], list(numbers))
        return np.bincount(lists[wanted], minlength=len(which))


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
        encoded = text.encode()
        first = (bisect_right(self._firsts, encoded) - 1) * _BLOCK
        if first < 0:
            return 0
        start = int(self._ends[first - 1]) + 1 if first else 0
        end = int(self._ends[min(first + _BLOCK, len(self)) - 1])
        return first + bisect_left(self._data[start:end].tobytes().split(b"\0"), encoded)

    def __len__(self) -> int:
        return len(self._ends)

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            return list(self)[index]
        position = range(len(self))[index]
        start = int(self._ends[position - 1]) + 1 if position else 0
        return self._data[start : int(self._ends[position])].tobytes().decode()

    def __iter__(self) -> Iterator[str]:
        return iter(self._data.tobytes().decode().split("\0")[:-1])


Score = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""Returns one score per vector."""


@dataclass(frozen=True)  # without slots, for cached properties
class ChunkTable:
    """The chunks of a knowledge base by ``seq``, without terms and vectors.

    Attributes:
        seqs: ``chunks.seq``, shape ``(n,)``, ascending.
        owners: Index into `document_ids` for each chunk, shape ``(n,)``.
        lengths: Number of terms of each chunk, shape ``(n,)``.
        cache: Cache of searches.
    """

    seqs: NDArray[np.int64]
    owners: NDArray[np.int32]
    lengths: NDArray[np.int32]
    document_ids: Sequence[str]
    cache: dict[str, Any] = field(init=False, repr=False, compare=False, default_factory=dict)

    def __len__(self) -> int:
        return len(self.seqs)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Number of chunks of each document."""
        return np.bincount(self.owners, minlength=len(self.document_ids))

    @cached_property
    def average_length(self) -> float:
        return float(self.lengths.mean()) if len(self) else 0.0

    @cached_property
    def document_lengths(self) -> NDArray[np.int64]:
        counts = np.bincount(self.owners, self.lengths, len(self.document_ids))
        return counts.astype(np.int64)


@dataclass(frozen=True)
class Snapshot(ChunkTable):
    """A chunk table with terms and vectors.

    Attributes:
        embedder: Fingerprint of the embedder of `vectors`.
        ids: ``chunks.id`` of all chunks.
        headings: Index into `heading_texts` for each chunk, shape ``(n,)``.
        vectors: Unit vectors, shape ``(n, dimensions)``.
        heading_texts: Heading paths without titles, each on one line.
        title_terms: Indexes into `terms` for each title.
        heading_terms: Indexes into `terms` for each heading text.
        starts: Offsets of each term's postings, and the end.
        rows: Chunk of each posting, ascending within a term.
    """

    embedder: str
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

    @cached_property
    def _rows(self) -> dict[str, int]:
        return {id_: row for row, id_ in enumerate(self.ids)}

    def rows_of(self, ids: Sequence[str]) -> NDArray[np.int64]:
        """Return the rows of chunks in the order of their ids; unknown ids are left out."""
        rows = self._rows
        return np.array([rows[id_] for id_ in ids if id_ in rows], np.int64)

    def holding(self, terms: Iterable[str]) -> dict[str, Postings]:
        """Map terms to postings by row; absent terms are left out."""
        return {term: self.postings(number) for term, number in self.numbers(terms).items()}

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

    def match_headings(self, has: Callable[[str], bool]) -> NDArray[np.bool_]:
        matches = np.array([has(text) for text in self.heading_texts], np.bool_)
        return matches[self.headings] if len(matches) else np.zeros(len(self), np.bool_)

    def numbers(self, terms: Iterable[str]) -> dict[str, int]:
        """Map terms to their index in `terms`; absent ones are left out."""
        number_of = ((term, self._number_of(term)) for term in terms)
        return {term: number for term, number in number_of if number is not None}

    @cached_property
    def _number_of(self) -> Callable[[str], int | None]:
        terms = self.terms

        @lru_cache(maxsize=_MAX_CACHED)
        def number_of(term: str) -> int | None:
            place = (
                terms.place(term) if isinstance(terms, MappedTexts) else bisect_left(terms, term)
            )
            return place if place < len(terms) and terms[place] == term else None

        return number_of

    def postings(self, number: int) -> tuple[NDArray[np.int32], NDArray[np.uint16]]:
        part = slice(int(self.starts[number]), int(self.starts[number + 1]))
        return self.rows[part], self.counts[part]


@dataclass(frozen=True, slots=True)
class SummaryPart:
    """Summaries that were embedded together: unit vectors by document number, zeros if missing."""

    numbers: NDArray[np.int32]
    vectors: NDArray[np.float32]
    cache: dict[str, Any] = field(repr=False, compare=False, default_factory=dict)

    @property
    def file(self) -> Path | None:
        return self.cache.get("file")


_ARRAYS = ("seqs", "owners", "lengths", "headings", "vectors", "starts", "rows", "counts")
_TEXTS = ("ids", "document_ids", "titles", "heading_texts", "terms")
_LISTS = ("title_terms", "heading_terms")


def save(snapshot: Snapshot, path: Path) -> None:
    """Write a snapshot; concurrent readers keep the old file."""
    tensors: dict[str, NDArray[Any]] = {name: getattr(snapshot, name) for name in _ARRAYS}
    for name in _LISTS:
        lists = getattr(snapshot, name)
        tensors[f"{name}.starts"], tensors[f"{name}.values"] = lists.starts, lists.values
    for name in _TEXTS:
        tensors[name] = _pack_texts(getattr(snapshot, name))
    array_files.write_arrays(path, tensors, {"format": _FORMAT, "embedder": snapshot.embedder})


def save_summaries(
    path: Path, embedder: str, document_ids: Sequence[str], vectors: NDArray[np.float32]
) -> None:
    arrays: dict[str, Any] = {"document_ids": _pack_texts(document_ids), "vectors": vectors}
    array_files.write_arrays(path, arrays, {"format": _FORMAT, "embedder": embedder})


def load_summaries(path: Path, embedder: str) -> tuple[list[str], NDArray[np.float32]]:
    """Map a file of `save_summaries`.

    Raises one of `DAMAGED` if it is missing, damaged or of another embedder or version.
    """
    metadata, arrays = array_files.read_arrays(path)
    ids, vectors = list(MappedTexts(arrays["document_ids"])), arrays["vectors"]
    if metadata != {"format": _FORMAT, "embedder": embedder} or len(vectors) != len(ids):
        raise ValueError(f"{path.name} is not the file of summaries that was written")
    return ids, vectors


def _pack_texts(texts: Iterable[str]) -> NDArray[np.uint8]:
    text = "".join(text.replace("\0", " ") + "\0" for text in texts)
    return np.frombuffer(text.encode(), np.uint8)


DAMAGED = (OSError, KeyError, TypeError, ValueError, IndexError, AttributeError, RecursionError)
"""Errors of `load`, `load_summaries` and other readers of files that are missing or damaged."""


def load(path: Path) -> Snapshot:
    """Map a snapshot; raise one of `DAMAGED` if it is missing, damaged or of another version."""
    metadata, arrays = array_files.read_arrays(path)
    if metadata["format"] != _FORMAT:
        raise ValueError(f"{path.name} is of another version")
    values: dict[str, Any] = {name: arrays[name] for name in _ARRAYS}
    for name in _LISTS:
        values[name] = Lists(arrays[f"{name}.starts"], arrays[f"{name}.values"])
    for name in _TEXTS:
        values[name] = MappedTexts(arrays[name])
    values["document_ids"] = list(values["document_ids"])  # every search reads them
    snapshot = Snapshot(embedder=metadata["embedder"], **values)
    snapshot.cache["file"] = path
    return snapshot


MIN = 5_000
"""Vectors below which no codes are written."""
_CODES_FORMAT = "4"
_SAMPLE = 5_000
"""Vectors that determine the centroids."""
_AT_ONCE = 20_000
_BITS = 4


@cache
def available() -> bool:
    return importlib.util.find_spec("faiss") is not None


class JoinedCodes:
    """Codes of several parts, scanned as one; `firsts` has the first row of each, and the total."""

    def __init__(self, parts: Sequence[Any]) -> None:
        import faiss

        self.parts = parts
        self.firsts = np.cumsum([0, *(part.ntotal for part in parts)])
        threaded, successive_ids = False, True
        shards: Any = faiss.IndexShards
        self._index = shards(parts[0].d, threaded, successive_ids)
        for part in parts:
            self._index.add_shard(part)

    def nearest(
        self, vector: NDArray[np.float32], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        count = min(limit, self._index.ntotal)
        similarity, rows = self._index.search(np.ascontiguousarray(vector[None], np.float32), count)
        return rows[0], similarity[0]


def write_codes(path: Path, vectors: NDArray[np.float32]) -> None:
    """Quantize vectors, unless they are few or faiss is missing."""
    number, dimensions = vectors.shape
    if number < MIN or dimensions % 4 or not available():
        return
    import faiss

    faiss.omp_set_num_threads(1)  # in this thread; more threads would busy-wait
    fast_scan: Any = faiss.IndexPQFastScan
    codes = fast_scan(dimensions, dimensions // 2, _BITS, faiss.METRIC_INNER_PRODUCT)
    codes.pq.cp.max_points_per_centroid = _SAMPLE
    codes.train(np.ascontiguousarray(vectors[:: max(1, number // _SAMPLE)]))
    for start in range(0, number, _AT_ONCE):
        codes.add(np.ascontiguousarray(vectors[start : start + _AT_ONCE]))
    arrays = {"codes": faiss.serialize_index(codes)}
    array_files.write_arrays(path, arrays, {"format": _CODES_FORMAT})


def codes_path(file: Path) -> Path:
    return file.with_suffix(f".codes{file.suffix}")


def codes_of(coded: Snapshot | SummaryPart) -> Any:
    """Return the codes of vectors, an index of faiss; ``None`` without a file."""
    if "codes" not in coded.cache:
        file: Path | None = coded.cache.get("file")
        coded.cache["codes"] = load_codes(codes_path(file), coded.vectors) if file else None
    return coded.cache["codes"]


def renew_codes(coded: Snapshot | SummaryPart) -> None:
    """Write the codes of vectors in a file, unless this or another process has written them."""
    if "file" not in coded.cache or codes_of(coded) is not None:
        return
    coded.cache.pop("codes")
    if codes_of(coded) is None:
        write_codes(codes_path(coded.cache["file"]), coded.vectors)
        array_files.forget_pages(coded.vectors)
        coded.cache.pop("codes")


def load_codes(path: Path, vectors: NDArray[np.float32]) -> Any:
    """Load codes; ``None`` if the file is missing or does not fit the vectors."""
    if not available():
        return None
    with contextlib.suppress(*DAMAGED, RuntimeError):
        metadata, arrays = array_files.read_arrays(path)
        import faiss  # takes long, and small collections have no codes

        if metadata["format"] == _CODES_FORMAT:
            codes = faiss.deserialize_index(np.array(arrays["codes"]))
            return codes if (codes.ntotal, codes.d) == vectors.shape else None
    return None
