"""Pack vectors and lists for the database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from kbkit.errors import WorkspaceError

_T = TypeVar("_T")

_VARIABLES = 5_000
"""Values bound in one statement; SQLite allows 32,766, PostgreSQL 65,535."""


def pack(matrix: NDArray[np.float32]) -> list[bytes]:
    return [row.tobytes() for row in matrix.astype("<f2")]


def unpack(blobs: Sequence[bytes], dimensions: int) -> NDArray[np.float32]:
    """Vectors as they are computed with, shape ``(len(blobs), dimensions)``."""
    try:
        flat = np.frombuffer(b"".join(blobs), dtype="<f2")
        return flat.reshape(len(blobs), dimensions).astype(np.float32)
    except (TypeError, ValueError) as error:
        raise WorkspaceError(
            f"the catalog is damaged: a vector is not of {dimensions:,} numbers; `kbkit doctor` "
            "shows details; restore a backup"
        ) from error


def in_parts(values: Sequence[_T]) -> Iterator[Sequence[_T]]:
    for start in range(0, len(values), _VARIABLES):
        yield values[start : start + _VARIABLES]


def is_list_of_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
