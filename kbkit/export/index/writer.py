"""Writes the search index of a published knowledge base."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.fitted import FittedEncoder
from kbkit.errors import ExportError
from kbkit.export.index.geometry import Geometry, place
from kbkit.export.index.packing import (
    LEVELS,
    Integers,
    encoded,
    nibbles,
    packed,
    shard,
    varints,
)
from kbkit.export.manifest import write_file
from kbkit.export.stemmers import stemmer_source
from kbkit.recipes import RetrievalSpec
from kbkit.stores.snapshot import Lists, Snapshot

FORMAT = 1
FOLDER = "search"
"""Where an export has its index."""
ABOUT = "kb.json"
"""Names the folder of the index that is the newest one."""
TERMS = 32
"""Terms of a shard."""
TEXTS = 8
"""Chunks of a shard of texts."""
UNIT = 65_536
"""Parts of 1 that scales of term vectors are written in."""


@dataclass(frozen=True, slots=True)
class IndexedChunk:
    """What is shown of a chunk.

    Attributes:
        text: Plain text.
        heading: Heading path on one line, the document's title left out.
        anchor: Where on the page it begins, or ``""``.
    """

    text: str
    heading: str
    anchor: str


@dataclass(frozen=True, slots=True)
class IndexedDocument:
    """A document whose chunks stand next to each other in the index.

    Attributes:
        path: Its page in the export, ``.md`` and all.
        title: Plain text.
        kind: Its type.
        tags: Plain texts.
        day: Days from 1970-01-01 to when it was fetched.
        stale: Whether it could not be fetched since.
        rating: Average of its ratings, 0 where there are none.
        chunks: Number of its chunks.
    """

    path: str
    title: str
    kind: str
    tags: Sequence[str]
    day: int
    stale: bool
    rating: float
    chunks: int


@dataclass(frozen=True, slots=True)
class IndexContent:
    """All that an index is made of.

    Attributes:
        snapshot: Postings and vectors of the chunks.
        rows: The snapshot's row of each chunk of the index, documents' chunks together.
        prior: What ratings say of each, from -1 to 1; see `kbkit.retrieval.fusion.rating_prior`.
        documents: In the order of their chunks.
        chunks: In order.
        encoder: The query encoder; without it only words are searched.
        stop_words: What the analyzer leaves out.
        settings: How to rank.
    """

    name: str
    title: str
    language: str
    snapshot: Snapshot
    rows: Integers
    prior: NDArray[np.float64]
    documents: Sequence[IndexedDocument]
    chunks: Sequence[IndexedChunk]
    encoder: FittedEncoder | None
    stop_words: Sequence[str]
    settings: RetrievalSpec


@dataclass(frozen=True, slots=True)
class IndexReport:
    """What was written.

    Attributes:
        folder: Of the newest index.
        shards: Number of its files.
        size: Their bytes.
        written: Whether it was not there before.
    """

    folder: Path
    shards: int
    size: int
    written: bool


def write_index(content: IndexContent, directory: Path) -> IndexReport:
    """Write an index into the folder of an export, in place of the one before.

    The folder's name says what it holds, so that browsers may keep its files for ever; nothing is
    written where nothing has changed.

    Args:
        content: What to write.
        directory: Where the pages of the export are.

    Raises:
        ExportError: It cannot be written.
    """
    shards = dict(_shards(content))
    digest = hashlib.blake2b(digest_size=8)
    for name, data in shards.items():
        digest.update(f"{name} {len(data)}\n".encode() + data)
    name = digest.hexdigest()
    top = directory / FOLDER
    size = sum(map(len, shards.values()))
    if _newest(top) == name:
        return IndexReport(top / name, len(shards), size, written=False)
    try:
        for path, data in shards.items():
            target = top / name / f"{path}.js"
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(data)
        write_file(top / ABOUT, json.dumps({"format": FORMAT, "folder": name}).encode())
        for other in top.iterdir():
            if other.is_dir() and other.name != name:
                shutil.rmtree(other)
    except OSError as error:
        raise ExportError(
            f"{top}: cannot write the search index ({error.strerror or error}); "
            "free the place or choose another folder"
        ) from error
    return IndexReport(top / name, len(shards), size, written=True)


def remove_index(directory: Path) -> None:
    """Remove the index from the folder of an export, if it has one.

    Raises:
        ExportError: It cannot be removed.
    """
    top = directory / FOLDER
    try:
        if (top / ABOUT).is_file():
            shutil.rmtree(top)
    except OSError as error:
        raise ExportError(f"{top}: cannot be removed ({error.strerror or error})") from error


def _newest(top: Path) -> str | None:
    try:
        about = json.loads((top / ABOUT).read_bytes())
        return str(about["folder"]) if (top / about["folder"]).is_dir() else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _shards(content: IndexContent) -> Iterator[tuple[str, bytes]]:
    """Every shard by name."""
    geometry = place(content.snapshot.vectors[content.rows]) if content.encoder else None
    terms = _terms(content, geometry)
    yield "core", shard(_core(content, geometry, [first for first, _ in terms]))
    for number, (_, values) in enumerate(terms):
        yield f"t/{number}", shard(values)
    if geometry is not None:
        order = np.argsort(geometry.clusters, kind="stable")
        parts = np.split(order, np.cumsum(np.bincount(geometry.clusters))[:-1])
        for number, rows in enumerate(parts):
            values = {"r": varints(np.diff(rows, prepend=0)), "v": nibbles(geometry.values[rows])}
            yield f"v/{number}", shard(values)
    yield from _texts(content)
    shown = (f"{chunk.heading}\n{chunk.text}" for chunk in content.chunks)
    titles = (document.title for document in content.documents)
    yield "stem", stemmer_source(content.language, chain(titles, shown)).encode()


def _core(
    content: IndexContent, geometry: Geometry | None, firsts: Sequence[str]
) -> dict[str, Any]:
    documents, snapshot, settings = content.documents, content.snapshot, content.settings
    kinds = sorted({document.kind for document in documents})
    tags = sorted({tag for document in documents for tag in document.tags})
    numbers = {tag: number for number, tag in enumerate(tags)}
    rated = np.flatnonzero(content.prior)
    lengths = snapshot.lengths[content.rows]
    values = {
        "format": FORMAT,
        "name": content.name,
        "title": content.title,
        "language": content.language,
        "stop": " ".join(sorted(content.stop_words)),
        "settings": {
            "dense": settings.dense_weight,
            "document": settings.document_weight,
            "title": settings.title_weight,
            "heading": settings.heading_weight,
            "rating": settings.rating_weight,
            "perDocument": settings.per_document,
            "duplicates": settings.duplicates,
            "candidates": settings.candidates,
        },
        "chunks": len(content.rows),
        "average": float(lengths.mean()) if len(lengths) else 0.0,
        "lengths": varints(lengths),
        "sizes": varints(np.array([document.chunks for document in documents], np.int64)),
        "kinds": kinds,
        "kind": varints(np.array([kinds.index(d.kind) for d in documents], np.int64)),
        "tags": tags,
        "tag": [[numbers[tag] for tag in document.tags] for document in documents] if tags else [],
        "days": varints(np.array([max(0, document.day) for document in documents], np.int64)),
        "stale": [number for number, document in enumerate(documents) if document.stale],
        "ratings": [[n, round(d.rating, 2)] for n, d in enumerate(documents) if d.rating],
        "prior": [[row, round(float(content.prior[row]), 4)] for row in rated.tolist()],
        "firsts": " ".join(firsts),
    }
    if geometry is not None:
        centroids, scales = _rounded(geometry.centroids)
        values |= {
            "dimensions": geometry.values.shape[1],
            "scales": [round(float(scale), 7) for scale in geometry.scales],
            "clusters": varints(geometry.clusters),
            "centroids": nibbles(centroids),
            "steps": scales,
        }
    return values


def _rounded(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], list[int]]:
    """Rows as steps of their own scale, which is given in parts of `UNIT`; 0 for rows of zeros."""
    largest = np.abs(matrix).max(axis=1, initial=0.0).astype(np.float64)
    scales = np.ceil(largest / LEVELS * UNIT).astype(np.int64)
    steps = np.where(scales > 0, scales, 1)[:, None] / UNIT
    values = np.clip(np.round(matrix / steps), -LEVELS, LEVELS).astype(np.int8)
    return values, scales.tolist()


def order_of(term: str) -> bytes:
    """What terms are sorted by: their UTF-16 code units, as JavaScript compares texts."""
    return term.encode("utf-16-be", "surrogatepass")


def _terms(content: IndexContent, geometry: Geometry | None) -> list[tuple[str, dict[str, Any]]]:
    """The shards of terms, each with a text that parts its terms from those before."""
    snapshot = content.snapshot
    postings = _postings(content)
    # terms that only left-out chunks have are left out
    used = [n for n in range(len(snapshot.terms)) if postings.ends[n + 1] > postings.ends[n]]
    used.sort(key=lambda n: order_of(snapshot.terms[n]))
    vectors, scales = _term_vectors(content, geometry, [snapshot.terms[n] for n in used])
    found = []
    before = ""
    for start in range(0, len(used), TERMS):
        numbers = used[start : start + TERMS]
        names = [snapshot.terms[n] for n in numbers]
        data = [postings.data[postings.bytes_of(n)] for n in numbers]
        values: dict[str, Any] = {
            "t": " ".join(names),
            "n": [int(postings.ends[n + 1] - postings.ends[n]) for n in numbers],
            "p": encoded(np.concatenate(data)),
        }
        if geometry is not None:
            part = slice(start, start + TERMS)
            there = np.flatnonzero(scales[part])
            values["s"] = scales[part].tolist()
            values["v"] = nibbles(vectors[part][there])
        found.append((_parting(before, names[0]), values))
        before = names[-1]
    return found


def _parting(before: str, first: str) -> str:
    """The shortest beginning of a term that comes behind another term."""
    for length in range(1, len(first)):
        if order_of(first[:length]) > order_of(before):
            return first[:length]
    return first


@dataclass(frozen=True, slots=True)
class _Postings:
    """Packed postings of all terms of the snapshot.

    Attributes:
        ends: Postings up to each term; one longer than there are terms.
        data: Of each posting two varints: how many chunks further, and how often the term stands
            there, less 1, times 4, with 1 for the heading and 2 for the title.
        places: Where the bytes of each varint end.
    """

    ends: Integers
    data: NDArray[np.uint8]
    places: Integers

    def bytes_of(self, term: int) -> slice:
        """Where the postings of a term stand."""
        first, last = 2 * int(self.ends[term]), 2 * int(self.ends[term + 1])
        return slice(int(self.places[first - 1]) if first else 0, int(self.places[last - 1]))


def _postings(content: IndexContent) -> _Postings:
    snapshot = content.snapshot
    places = np.full(len(snapshot), -1, np.int64)
    places[content.rows] = np.arange(len(content.rows))
    terms = np.repeat(np.arange(len(snapshot.terms)), np.diff(snapshot.starts))
    rows = places[snapshot.rows]
    kept = rows >= 0
    order = np.lexsort((rows[kept], terms[kept]))
    terms, rows = terms[kept][order], rows[kept][order]
    old = snapshot.rows[kept][order]
    counts = snapshot.counts[kept][order].astype(np.int64)
    in_title = _holds(snapshot.title_terms, snapshot.owners[old], terms)
    in_heading = _holds(snapshot.heading_terms, snapshot.headings[old], terms)
    new = np.ones(len(terms), np.bool_)
    new[1:] = terms[1:] != terms[:-1]
    steps = np.diff(rows, prepend=0)
    steps[new] = rows[new]
    pairs = np.stack([steps, 4 * (counts - 1) + 2 * in_title + in_heading], axis=1)
    data, ends = packed(pairs.reshape(-1))
    per_term = np.bincount(terms, minlength=len(snapshot.terms))
    return _Postings(np.concatenate([[0], np.cumsum(per_term)]), data, ends)


def _holds(lists: Lists, which: NDArray[np.int32], terms: Integers) -> NDArray[np.bool_]:
    """Whether each of some lists has the term beside it."""
    height = len(lists) + 1
    owners = np.repeat(np.arange(len(lists)), np.diff(lists.starts))
    there = np.sort(lists.values.astype(np.int64) * height + owners)
    keys = terms * height + which
    if not len(there):
        return np.zeros(len(keys), np.bool_)
    found = np.minimum(np.searchsorted(there, keys), len(there) - 1)
    return np.asarray(there[found] == keys)


def _term_vectors(
    content: IndexContent, geometry: Geometry | None, terms: Sequence[str]
) -> tuple[NDArray[np.int8], Integers]:
    """The row of each term in the query encoder, projected, and its scale; 0 where it has none."""
    if geometry is None or content.encoder is None:
        return np.zeros((len(terms), 2), np.int8), np.zeros(len(terms), np.int64)
    rows = {term: row for row, term in enumerate(content.encoder.terms)}
    held = np.array([rows.get(term, -1) for term in terms], np.int64)
    vectors = np.zeros((len(terms), geometry.projection.shape[1]), np.float32)
    there = held >= 0
    vectors[there] = content.encoder.vectors[held[there]] @ geometry.projection
    values, scales = _rounded(vectors)
    return values, np.array(scales, np.int64)


def _texts(content: IndexContent) -> Iterator[tuple[str, bytes]]:
    owners = np.repeat(
        np.arange(len(content.documents)), [document.chunks for document in content.documents]
    ).tolist()
    for number, start in enumerate(range(0, len(content.chunks), TEXTS)):
        part = slice(start, start + TEXTS)
        pages: Mapping[int, IndexedDocument] = {n: content.documents[n] for n in owners[part]}
        yield (
            f"x/{number}",
            shard(
                {
                    "x": [[c.text, c.heading, c.anchor] for c in content.chunks[part]],
                    "d": [[n, page.path, page.title] for n, page in pages.items()],
                }
            ),
        )
