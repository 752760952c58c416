"""Vectors as the catalog keeps them, and lists as one statement takes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

_T = TypeVar("_T")

_VARIABLES = 5_000
"""Values bound in one statement; SQLite allows 32,766, PostgreSQL 65,535."""


def pack(matrix: NDArray[np.float32]) -> list[bytes]:
    """Vectors as the catalog keeps them: float16, little endian."""
    return [row.tobytes() for row in matrix.astype("<f2")]


def unpack(blobs: Sequence[bytes], dimensions: int) -> NDArray[np.float32]:
    """Vectors as they are computed with, shape ``(len(blobs), dimensions)``."""
    flat = np.frombuffer(b"".join(blobs), dtype="<f2")
    return flat.reshape(len(blobs), dimensions).astype(np.float32)


def in_parts(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    """Parts of a list, each short enough for the variables of one statement."""
    for start in range(0, len(values), _VARIABLES):
        yield values[start : start + _VARIABLES]
