"""Files of arrays, mapped when they are read: safetensors, whose header says where each lies."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

PART = ".part"
"""How the name of a file ends that is being written."""
_DTYPES = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U16": "<u2", "U8": "|u1"}


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], about: dict[str, str]) -> None:
    """Write arrays; whoever reads meanwhile has the file before.

    Args:
        path: Of the file; its folder is made.
        arrays: By name.
        about: What else the file says.

    Raises:
        OSError: It cannot be written.
    """
    from safetensors.numpy import save_file

    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(f".{uuid4().hex}{PART}")
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    try:
        save_file(held, part, about)
        with part.open("rb+") as file:  # on disk before its name is, whatever happens
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_arrays(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """What `write_arrays` was given.

    The file is mapped rather than read, so that only the pages a search touches are, and several
    processes share them. It begins with the length of a JSON header, 8 bytes little endian.

    Raises:
        OSError: It cannot be read.
        KeyError, TypeError, ValueError, IndexError, RecursionError: It is damaged.
    """
    data = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    about: dict[str, str] = header.pop("__metadata__")
    return about, {name: _mapped(data[start:], place) for name, place in header.items()}


def forget_pages(array: NDArray[Any]) -> None:
    """Have what was read of a file leave memory, where an array is mapped; it is read again."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _mapped(data: NDArray[np.uint8], place: Any) -> NDArray[Any]:
    start, end = place["data_offsets"]
    return np.asarray(data[start:end]).view(_DTYPES[place["dtype"]]).reshape(place["shape"])
