"""Shards of terms: postings, and rows of the query encoder."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.embedding.fitted import FittedEncoder
from kbkit.export.index.content import IndexContent
from kbkit.export.index.packing import LEVELS, Integers, encode_nibbles, pack_varints, to_base64
from kbkit.export.index.quantization import QuantizedVectors
from kbkit.stores.snapshots.snapshot import Lists

UNIT = 65_536
"""Parts of 1 that scales of term vectors are written in."""
TERM_BYTES = 8_000
"""Target size of a shard of terms; a common term may exceed it."""
_AT_ONCE = 300_000
"""Postings of a batch, which bounds memory."""
_ROWS_AT_ONCE = 4_000
"""Rows of the query encoder that are projected at once."""
_BESIDE = 16
"""Overhead of a term."""


def quantize_rows(matrix: NDArray[np.float32]) -> tuple[NDArray[np.int8], list[int]]:
    """Rows as steps of their own scale, which is given in parts of `UNIT`; 0 for rows of zeros."""
    largest = np.abs(matrix).max(axis=1, initial=0.0).astype(np.float64)
    scales = np.ceil(largest / LEVELS * UNIT).astype(np.int64)
    steps = np.where(scales > 0, scales, 1)[:, None] / UNIT
    values = np.clip(np.round(matrix / steps), -LEVELS, LEVELS).astype(np.int8)
    return values, scales.tolist()


def utf16_key(term: str) -> bytes:
    return term.encode("utf-16-be", "surrogatepass")


def term_shards(
    content: IndexContent, chunks: QuantizedVectors | None, cards: QuantizedVectors | None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Iterate over the shards of terms, each with the text that separates it from those before."""
    snapshot = content.snapshot
    postings = pack_postings(content)
    # terms that only left-out chunks have are left out
    used = [(n, term) for n, term in enumerate(snapshot.terms) if postings.counts[n]]
    used.sort(key=lambda entry: utf16_key(entry[1]))
    names = [term for _, term in used]
    numbers = np.array([n for n, _ in used], np.int64)
    tables = {}
    if content.encoder is not None and chunks is not None:
        tables[""] = _term_vectors(content.encoder, chunks, names)
    if content.cards is not None and cards is not None:
        tables["c"] = _term_vectors(content.cards.encoder, cards, names)
    sizes = _BESIDE + np.char.str_len(np.array(names, str))
    for vectors, scales in tables.values():
        sizes += (scales > 0) * vectors.shape[1] * 2 // 3
    sizes += (postings.ends[numbers] - postings.begins[numbers]) * 4 // 3
    before = ""
    for start, end in pairwise(split_by_size(sizes, TERM_BYTES)):
        part = slice(start, end)
        held = numbers[part].tolist()
        data = [postings.data[postings.begins[n] : postings.ends[n]] for n in held]
        values: dict[str, Any] = {
            "t": " ".join(names[part]),
            "n": postings.counts[numbers[part]].tolist(),
            "p": to_base64(np.concatenate(data)),
        }
        for key, (vectors, scales) in tables.items():
            values[f"{key}s"] = scales[part].tolist()
            values[f"{key}v"] = encode_nibbles(vectors[part][scales[part] > 0])
        yield _separator(before, names[start]), values
        before = names[end - 1]


def split_by_size(sizes: Integers, most: int) -> list[int]:
    """Return where to split consecutive parts, so that groups stay below a size."""
    starts, room = [], -1
    for number, size in enumerate(sizes.tolist()):
        if size > room:
            starts.append(number)
            room = most
        room -= size
    return [*starts, len(sizes)]


def _separator(before: str, first: str) -> str:
    for length in range(1, len(first)):
        if utf16_key(first[:length]) > utf16_key(before):
            return first[:length]
    return first


@dataclass(frozen=True, slots=True)
class Postings:
    """Packed postings of all terms of the snapshot.

    Attributes:
        data: Two varints for each posting: the distance in chunks, and the count less 1, times 4,
            plus 1 for the heading and 2 for the title.
    """

    counts: Integers
    data: NDArray[np.uint8]
    begins: Integers
    ends: Integers


def pack_postings(content: IndexContent, at_once: int = _AT_ONCE) -> Postings:
    """Pack the postings in batches of terms."""
    snapshot = content.snapshot
    places = np.full(len(snapshot), -1, np.int64)
    places[content.rows] = np.arange(len(content.rows))
    titles, headings = _sorted_keys(snapshot.title_terms), _sorted_keys(snapshot.heading_terms)
    parts, ends = [np.zeros(0, np.uint8)], [np.zeros(1, np.int64)]
    kept_of = [np.zeros(0, np.int64)]  # there may be no term at all
    total = 0
    for first, last in pairwise(split_by_size(np.diff(snapshot.starts), at_once)):
        span = slice(snapshot.starts[first], snapshot.starts[last])
        terms = np.repeat(np.arange(first, last), np.diff(snapshot.starts[first : last + 1]))
        rows = places[snapshot.rows[span]]
        kept = np.flatnonzero(rows >= 0)
        kept = kept[np.lexsort((rows[kept], terms[kept]))]
        terms, rows, old = terms[kept], rows[kept], snapshot.rows[span][kept]
        marks = 4 * (snapshot.counts[span][kept].astype(np.int64) - 1)
        marks += 2 * _contains(titles, snapshot.title_terms, snapshot.owners[old], terms)
        marks += _contains(headings, snapshot.heading_terms, snapshot.headings[old], terms)
        steps = np.diff(rows, prepend=0)
        new = np.flatnonzero(np.diff(terms, prepend=-1))
        steps[new] = rows[new]
        data, borders = pack_varints(np.stack([steps, marks], axis=1).reshape(-1))
        counts = np.bincount(terms - first, minlength=last - first)
        parts.append(data)
        ends.append(total + np.concatenate([[0], borders])[2 * np.cumsum(counts)])
        kept_of.append(counts)
        total += len(data)
    borders = np.concatenate(ends)
    return Postings(np.concatenate(kept_of), np.concatenate(parts), borders[:-1], borders[1:])


def _sorted_keys(lists: Lists) -> Integers:
    owners = np.repeat(np.arange(len(lists)), np.diff(lists.starts))
    return np.sort(lists.values.astype(np.int64) * (len(lists) + 1) + owners)


def _contains(
    there: Integers, lists: Lists, which: NDArray[np.int32], terms: Integers
) -> NDArray[np.bool_]:
    keys = terms * (len(lists) + 1) + which
    if not len(there):
        return np.zeros(len(keys), np.bool_)
    found = np.minimum(np.searchsorted(there, keys), len(there) - 1)
    return np.asarray(there[found] == keys)


def _term_vectors(
    encoder: FittedEncoder, quantized: QuantizedVectors, terms: Sequence[str]
) -> tuple[NDArray[np.int8], Integers]:
    """Project the query encoder's row of each term, with its scale; 0 for unknown terms."""
    scales = np.zeros(len(terms), np.int64)
    rows = {term: row for row, term in enumerate(encoder.terms)}
    held = np.array([rows.get(term, -1) for term in terms], np.int64)
    values = np.zeros((len(terms), quantized.projection.shape[1]), np.int8)
    there = np.flatnonzero(held >= 0)
    for start in range(0, len(there), _ROWS_AT_ONCE):
        part = there[start : start + _ROWS_AT_ONCE]
        projected = encoder.vectors[held[part]] @ quantized.projection
        values[part], scales[part] = quantize_rows(projected)
    return values, scales
