"""Write the search index of a published knowledge base, which is read in parts.

``assets/engine.js`` searches it in the browser,
`kbkit.export.published_index` in Python.

The index is a folder of *shards*, scripts with one call ``kbkitShard({...})``. Browsers fetch them,
or load them as scripts under ``file://``.

- ``core``: data for each query: lengths, documents and clusters of all chunks, projection scales,
  centroids, stop words, the first term of each shard, the chunks of each text shard.
- ``t/N``: terms in order: postings, and the rows of the query encoders for chunks and summaries.
- ``v/N`` and ``c/N``: vectors of one cluster of chunks, or of summaries.
- ``m``: the maps from the model's vectors to those of chunks and summaries.
- ``x/N``: texts of chunks in order.
- ``a``: statement types of each chunk, the most common subjects, the first subject of each shard.
- ``s/N``: subjects in order, and their chunks.

Shards of terms, texts or subjects have a target size: smaller shards cost the writer and servers,
larger ones each query. ``stem`` is a script with the stemmer of the language.

Binary columns are base64 of little endian numbers; *varints* are base 128, low bits first.
"""

import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from kbkit.errors import ExportError
from kbkit.export import index_packing as packing
from kbkit.export import index_terms
from kbkit.export.facts import write_changed, writing
from kbkit.export.index_terms import IndexContent, IndexedDocument, IndexedVectors
from kbkit.models import StatementType, SubjectKind

SUBJECT_BYTES = 8_000
"""Target size of a shard of subjects."""
COMMONEST = 500
"""Subjects offered before a reader types."""
KINDS = tuple(SubjectKind)
_OVERHEAD = 12  # bytes of a subject


def frame_counts(annotations: index_terms.IndexedAnnotations) -> dict[str, int]:
    """Count chunks by statement type, the most frequent first."""
    counts = Counter[str]()
    for place, frame in enumerate(StatementType):
        counts[frame.value] = int((annotations.masks >> place & 1).sum())
    return {frame: count for frame, count in counts.most_common() if count}


def annotation_shards(annotations: index_terms.IndexedAnnotations) -> Iterator[tuple[str, bytes]]:
    ordered = sorted(
        annotations.subjects,
        key=lambda each: (index_terms.utf16_key(each.name.lower()), each.name, each.kind),
    )
    # names that differ in case stay in one shard
    groups = [list(members) for _, members in groupby(ordered, key=lambda each: each.name.lower())]
    sizes = [sum(map(_size, group)) for group in groups]
    starts = index_terms.split_by_size(np.array(sizes, np.int64), SUBJECT_BYTES)
    for number, (start, end) in enumerate(pairwise(starts)):
        part = [subject for group in groups[start:end] for subject in group]
        yield f"s/{number}", packing.encode_shard(_shard(part))
    commonest = sorted(
        annotations.subjects,
        key=lambda each: (-len(each.rows), index_terms.utf16_key(each.name), each.kind),
    )
    values = {
        "frames": [frame.value for frame in StatementType],
        "f": packing.encode_varints(annotations.masks),
        "firsts": [groups[start][0].name.lower() for start in starts[:-1]],
        "kinds": [kind.value for kind in KINDS],
        "top": [
            [each.name, KINDS.index(each.kind), len(each.rows)] for each in commonest[:COMMONEST]
        ],
    }
    yield "a", packing.encode_shard(values)


def _size(subject: index_terms.IndexedSubject) -> int:
    gaps = np.diff(subject.rows, prepend=0)
    packed = len(gaps) + int((gaps > 127).sum() + (gaps > 16_383).sum())
    return _OVERHEAD + len(subject.name) + packed * 4 // 3


def _shard(subjects: Sequence[index_terms.IndexedSubject]) -> Mapping[str, Any]:
    return {
        "m": [each.name for each in subjects],
        "d": [KINDS.index(each.kind) for each in subjects],
        "n": [len(each.rows) for each in subjects],
        "p": packing.encode_varints(
            np.concatenate([np.diff(each.rows, prepend=0) for each in subjects])
        ),
    }


FORMAT = 10
FOLDER = "search"
DESCRIPTOR = "kb.json"
"""Names the folder of the newest index."""
SETTINGS = {
    **{
        kind: f"{kind}_weight"
        for kind in ("dense", "document", "title", "heading", "summary", "page", "rating")
    },
    "perDocument": "per_document",
    "duplicates": "duplicates",
    "candidates": "candidates",
}
"""Fields of a `RetrievalSpec` by their names in the index."""
TEXT_BYTES = 8_000
"""Target size of a shard of texts; a long one may exceed it."""
_DRAFT = ".draft"  # MkDocs ignores names with a leading dot


def write_index(content: IndexContent, directory: Path, state: str = "") -> Path:
    """Replace the index of an export if it changed.

    Returns:
        Its folder, whose name is a hash, for caches.
    """
    top = directory / FOLDER
    with writing(top, "the search index"):
        shutil.rmtree(top / _DRAFT, ignore_errors=True)  # of a killed export
        name = _write_shards(content, top / _DRAFT)
        if _read_descriptor(top).get("folder") == name:
            shutil.rmtree(top / _DRAFT)
        else:
            shutil.rmtree(top / name, ignore_errors=True)
            (top / _DRAFT).replace(top / name)
        descriptor = {"format": FORMAT, "folder": name, "state": state}
        write_changed(top / DESCRIPTOR, json.dumps(descriptor))
        for other in top.iterdir():
            if other.is_dir() and other.name != name:
                shutil.rmtree(other)
    return top / name


def is_written(directory: Path, state: str) -> bool:
    return _read_descriptor(directory / FOLDER).get("state") == state != ""


def _write_shards(content: IndexContent, folder: Path) -> str:
    digest = hashlib.blake2b(digest_size=8)
    for kind in ("t", "v", "c", "x", "s"):
        (folder / kind).mkdir(parents=True)
    for name, data in _shards(content):
        digest.update(f"{name} {len(data)}\n".encode() + data)
        (folder / f"{name}.js").write_bytes(data)
    return digest.hexdigest()


def remove_index(directory: Path) -> None:
    top = directory / FOLDER
    with writing(top, "the search index"):
        if (top / DESCRIPTOR).is_file():
            shutil.rmtree(top)


def index_folder(directory: Path) -> Path:
    """Return the folder of the newest index of an export."""
    top = directory / FOLDER
    try:
        return top / str(json.loads((top / DESCRIPTOR).read_bytes())["folder"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ExportError(f"{top}: no search index ({error}); export first") from error


def _read_descriptor(top: Path) -> dict[str, Any]:
    try:
        values: dict[str, Any] = json.loads((top / DESCRIPTOR).read_bytes())
        complete = values["format"] == FORMAT and (top / values["folder"] / "core.js").is_file()
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return values if complete else {}


def _shards(content: IndexContent) -> Iterator[tuple[str, bytes]]:
    parts = list(_quantize(content))
    firsts = []
    for number, (first, values) in enumerate(index_terms.term_shards(content, parts)):
        firsts.append(first)
        yield f"t/{number}", packing.encode_shard(values)
    for part in parts:
        yield from _vector_shards(part)
    of_model = (part for part in parts if part.encoder.embedder == content.model)
    if axes := {part.name: _axes(part.quantized) for part in of_model}:
        yield "m", packing.encode_shard(axes)
    texts = np.array([len(chunk.text) for chunk in content.chunks], np.int64)
    places = index_terms.split_by_size(texts, TEXT_BYTES)
    yield from _text_shards(content, places)
    if content.annotations is not None:
        yield from annotation_shards(content.annotations)
    yield "core", packing.encode_shard(_core(content, parts, firsts, places))
    chunk_texts = (f"{chunk.heading}\n{chunk.text}" for chunk in content.chunks)
    titles = (document.title for document in content.documents)
    yield "stem", index_terms.stemmer_source(content.language, chain(titles, chunk_texts)).encode()


def _quantize(content: IndexContent) -> Iterator[IndexedVectors]:
    if content.encoder is not None:
        vectors, total = packing.quantize(content.snapshot.vectors, content.rows), len(content.rows)
        yield IndexedVectors("vectors", "v", "", vectors, np.arange(total), total, content.encoder)
    summaries = content.summaries
    if summaries is not None and len(numbers := np.flatnonzero(summaries.vectors.any(axis=1))):
        vectors = packing.quantize(summaries.vectors, numbers, packing.SUMMARIES)
        total = len(content.documents)
        yield IndexedVectors("summaries", "c", "c", vectors, numbers, total, summaries.encoder)


def _axes(vectors: packing.QuantizedVectors) -> dict[str, Any]:
    axes = vectors.projection.T
    steps = np.abs(axes).max(axis=1) / packing.OCTET
    values = np.round(axes / np.where(steps > 0, steps, 1)[:, None]).astype(np.int8)
    return {"v": packing.to_base64(values), "s": [round(float(step), 7) for step in steps]}


def _vector_shards(part: IndexedVectors) -> Iterator[tuple[str, bytes]]:
    vectors = part.quantized
    order = np.argsort(vectors.clusters, kind="stable")
    clusters = np.split(order, np.cumsum(np.bincount(vectors.clusters))[:-1])
    for number, rows in enumerate(clusters):
        values = {
            "r": packing.encode_varints(np.diff(part.numbers[rows], prepend=0)),
            "v": packing.encode_nibbles(vectors.values[rows]),
        }
        yield f"{part.kind}/{number}", packing.encode_shard(values)


def _core(
    content: IndexContent, parts: Sequence[IndexedVectors], firsts: list[str], places: list[int]
) -> dict[str, Any]:
    documents, snapshot = content.documents, content.snapshot
    types = [document.document_type for document in documents]
    kinds = sorted(set(types))
    tags = sorted({tag for document in documents for tag in document.tags})
    numbers = {tag: number for number, tag in enumerate(tags)}
    rated = np.flatnonzero(content.prior)
    lengths = snapshot.lengths[content.rows]
    values: dict[str, Any] = {
        "format": FORMAT,
        "name": content.name,
        "title": content.title,
        "language": content.language,
        "stop": " ".join(sorted(content.stop_words)),
        "settings": {name: getattr(content.retrieval, field) for name, field in SETTINGS.items()},
        "chunks": len(content.rows),
        "average": float(lengths.mean()) if len(lengths) else 0.0,
        "lengths": packing.encode_varints(lengths),
        "sizes": packing.encode_varints([document.chunks for document in documents]),
        "kinds": kinds,
        "kind": packing.encode_varints([kinds.index(kind) for kind in types]),
        "tags": tags,
        "tag": [[numbers[tag] for tag in document.tags] for document in documents] if tags else [],
        "days": packing.encode_varints([max(0, document.day) for document in documents]),
        "stale": [number for number, document in enumerate(documents) if document.stale],
        "ratings": [[n, round(d.rating, 2)] for n, d in enumerate(documents) if d.rating],
        "prior": [[row, round(float(content.prior[row]), 4)] for row in rated.tolist()],
        "indexes": [number for number, document in enumerate(documents) if document.is_index],
        "firsts": " ".join(firsts),
        "texts": packing.encode_varints(np.diff(places)),
    }
    if content.annotations is not None:
        values["frames"] = frame_counts(content.annotations)
    return values | {part.name: _about_vectors(part, content.model) for part in parts}


def _about_vectors(part: IndexedVectors, model: str) -> dict[str, Any]:
    """Describe vectors for the core; numbers of clusters start at 1, 0 is none."""
    vectors, embedder = part.quantized, part.encoder.embedder
    clusters = np.zeros(part.total, np.int64)
    clusters[part.numbers] = vectors.clusters + 1
    centroids, steps = index_terms.quantize_rows(vectors.centroids)
    return {
        "dimensions": vectors.values.shape[1],
        "scales": [round(float(scale), 7) for scale in vectors.scales],
        "clusters": packing.encode_varints(clusters),
        "centroids": packing.encode_nibbles(centroids),
        "steps": steps,
        **({"embedder": embedder} if part.name == "summaries" else {}),
        "model": embedder == model,
    }


def _text_shards(content: IndexContent, places: Sequence[int]) -> Iterator[tuple[str, bytes]]:
    owners = np.repeat(
        np.arange(len(content.documents)), [document.chunks for document in content.documents]
    ).tolist()
    for number, (start, end) in enumerate(pairwise(places)):
        part = slice(start, end)
        pages: Mapping[int, IndexedDocument] = {n: content.documents[n] for n in owners[part]}
        values = {
            "x": content.chunks[part],
            "d": [
                [n, page.path, page.label or page.title, page.section] for n, page in pages.items()
            ],
        }
        yield f"x/{number}", packing.encode_shard(values)
