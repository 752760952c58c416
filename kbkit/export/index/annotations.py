"""The shards that filters by annotations need: frames of chunks, and where subjects are named."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from typing import Any

import numpy as np

from kbkit.export.index.content import IndexedAnnotations, IndexedSubject
from kbkit.export.index.packing import encode_shard, encode_varints
from kbkit.export.index.terms import split_by_size, utf16_key
from kbkit.models import Frame, SubjectKind
from kbkit.text.stopwords import stop_words

SUBJECT_BYTES = 8_000
"""About what a shard of subjects takes."""
COMMONEST = 500
"""Subjects that are offered before anything is typed."""
KINDS = tuple(SubjectKind)
"""What the numbers of kinds stand for."""
_BESIDE = 12
"""About what a subject takes beside its names and the chunks that speak of it."""


def frame_counts(annotations: IndexedAnnotations) -> dict[str, int]:
    """How many chunks make a statement of each frame, the most frequent first."""
    counts = {
        frame.value: int((annotations.masks >> place & 1).sum())
        for place, frame in enumerate(Frame)
    }
    return {
        frame: count for frame, count in sorted(counts.items(), key=lambda each: -each[1]) if count
    }


def annotation_shards(annotations: IndexedAnnotations) -> Iterator[tuple[str, bytes]]:
    """Every shard of annotations by name."""
    ordered = sorted(
        annotations.subjects, key=lambda each: (utf16_key(each.key), KINDS.index(each.kind))
    )
    # names of one normal form are never parted
    groups = [list(found) for _, found in groupby(ordered, key=lambda each: each.key)]
    sizes = [sum(map(_size, group)) for group in groups]
    starts = split_by_size(np.array(sizes, np.int64), SUBJECT_BYTES)
    for number, (start, end) in enumerate(pairwise(starts)):
        part = [subject for group in groups[start:end] for subject in group]
        yield f"s/{number}", encode_shard(_shard(part))
    commonest = sorted(
        annotations.subjects, key=lambda each: (-len(each.rows), utf16_key(each.name), each.kind)
    )
    about = {
        "frames": [frame.value for frame in Frame],
        "f": encode_varints(annotations.masks),
        "firsts": [groups[start][0].key for start in starts[:-1]],
        "stop": " ".join(sorted(stop_words("english"))),
        "kinds": [kind.value for kind in KINDS],
        "top": [
            [each.name, KINDS.index(each.kind), len(each.rows)] for each in commonest[:COMMONEST]
        ],
    }
    yield "a", encode_shard(about)


def shown_of(annotations: IndexedAnnotations | None, row: int) -> list[Any]:
    """What the text of a chunk has beside it: the number of its frame from 1, and entities."""
    if annotations is None:
        return []
    frame = annotations.frames[row]
    number = 0 if frame is None else list(Frame).index(frame) + 1
    entities = list(annotations.entities[row])
    return [number, entities] if entities else [number] if number else []


def _size(subject: IndexedSubject) -> int:
    gaps = np.diff(subject.rows, prepend=0)
    packed = len(gaps) + int((gaps > 127).sum() + (gaps > 16_383).sum())
    return _BESIDE + len(subject.key) + len(subject.name) + packed * 4 // 3


def _shard(subjects: Sequence[IndexedSubject]) -> Mapping[str, Any]:
    return {
        "k": [each.key for each in subjects],
        "d": [KINDS.index(each.kind) for each in subjects],
        # most names are their own normal form
        "m": [0 if each.name == each.key else each.name for each in subjects],
        "n": [len(each.rows) for each in subjects],
        "p": encode_varints(np.concatenate([np.diff(each.rows, prepend=0) for each in subjects])),
    }
