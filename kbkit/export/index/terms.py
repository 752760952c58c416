"""The shards of terms: where each term stands, and its row of the query encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.export.index.content import IndexContent
from kbkit.export.index.geometry import Geometry
from kbkit.export.index.packing import LEVELS, Integers, encoded, nibbles, packed
from kbkit.stores.snapshot import Lists

UNIT = 65_536
"""Parts of 1 that scales of term vectors are written in."""
TERM_BYTES = 8_000
"""About what a shard of terms takes; a common term may take more by itself."""
_BESIDE = 16
"""About what a term takes beside its name, its postings and its row."""


def rounded(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], list[int]]:
    """Rows as steps of their own scale, which is given in parts of `UNIT`; 0 for rows of zeros."""
    largest = np.abs(matrix).max(axis=1, initial=0.0).astype(np.float64)
    scales = np.ceil(largest / LEVELS * UNIT).astype(np.int64)
    steps = np.where(scales > 0, scales, 1)[:, None] / UNIT
    values = np.clip(np.round(matrix / steps), -LEVELS, LEVELS).astype(np.int8)
    return values, scales.tolist()


def order_of(term: str) -> bytes:
    """What terms are sorted by: their UTF-16 code units, as JavaScript compares texts."""
    return term.encode("utf-16-be", "surrogatepass")


def term_shards(
    content: IndexContent, geometry: Geometry | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The shards of terms, each with a text that parts its terms from those before."""
    snapshot = content.snapshot
    postings = _postings(content)
    # terms that only left-out chunks have are left out
    used = [(n, term) for n, term in enumerate(snapshot.terms) if postings.counts[n]]
    used.sort(key=lambda entry: order_of(entry[1]))
    names = [term for _, term in used]
    numbers = np.array([n for n, _ in used], np.int64)
    vectors, scales = _term_vectors(content, geometry, names)
    texts = np.char.str_len(np.array(names))
    sizes = _BESIDE + texts + (scales > 0) * vectors.shape[1] * 2 // 3
    sizes += (postings.ends[numbers] - postings.begins[numbers]) * 4 // 3
    before = ""
    for start, end in pairwise(filled(sizes, TERM_BYTES)):
        part = slice(start, end)
        held = numbers[part].tolist()
        data = [postings.data[postings.begins[n] : postings.ends[n]] for n in held]
        values: dict[str, Any] = {
            "t": " ".join(names[part]),
            "n": postings.counts[numbers[part]].tolist(),
            "p": encoded(np.concatenate(data)),
        }
        if geometry is not None:
            values["s"] = scales[part].tolist()
            values["v"] = nibbles(vectors[part][scales[part] > 0])
        yield _parting(before, names[start]), values
        before = names[end - 1]


def filled(sizes: Integers, most: int) -> list[int]:
    """Where to divide things laid end to end, so that parts of several are no larger than that.

    Returns:
        Where each part begins, and where the last one ends.
    """
    starts, room = [], -1
    for number, size in enumerate(sizes.tolist()):
        if size > room:
            starts.append(number)
            room = most
        room -= size
    return [*starts, len(sizes)]


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
        counts: Postings of each term.
        data: Of each posting two varints: how many chunks further, and how often the term stands
            there, less 1, times 4, with 1 for the heading and 2 for the title.
        begins: Where the bytes of each term begin.
        ends: Where they end.
    """

    counts: Integers
    data: NDArray[np.uint8]
    begins: Integers
    ends: Integers


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
    data, places = packed(pairs.reshape(-1))
    counts = np.bincount(terms, minlength=len(snapshot.terms))
    borders = np.concatenate([[0], places])[2 * np.concatenate([[0], np.cumsum(counts)])]
    return _Postings(counts, data, borders[:-1], borders[1:])


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
    values, scales = rounded(vectors)
    return values, np.array(scales, np.int64)
