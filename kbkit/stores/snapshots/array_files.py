"""Files of arrays, mapped when they are read: safetensors, whose header says where each lies.

Behind the arrays stands a CRC-32 of all before it. A file is read through to compare it when it is
opened; a large one only where it has been touched since somebody did so.
"""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import sys
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from numpy.typing import NDArray

PART = ".part"
"""How the name of a file ends that is being written."""
CHECKED = ".checked"
"""How the name of a file ends that says of another which state of it was compared."""
_MARK = b"CRC2"
_AT_ONCE = 1 << 20
_LARGE = 1 << 24
"""Bytes of a file that is not read through each time: 4 milliseconds of a processor."""
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
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    path.parent.mkdir(exist_ok=True)
    part = path.with_suffix(f".{uuid4().hex}{PART}")
    held = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    try:
        try:
            save_file(held, part, about)
        except SafetensorError as error:  # what the system says is a text in it
            raise OSError(f"{path.name}: cannot be written ({error})") from error
        with part.open("rb+") as file:
            end = _MARK + _crc(file).to_bytes(4, "little")
            file.seek(0, os.SEEK_END)
            file.write(end)
            file.flush()
            os.fsync(file.fileno())  # on disk before its name is, whatever happens
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def check(path: Path) -> None:
    """Compare a file with the checksum at its end.

    Raises:
        OSError: It cannot be read.
        ValueError: It is not as it was written.
    """
    with path.open("rb") as file:
        before = os.fstat(file.fileno()).st_size - len(_MARK) - 4
        if before < 0:
            raise ValueError(f"{path.name} is cut off")
        crc = _crc(file, before)
        if file.read() != _MARK + crc.to_bytes(4, "little"):
            raise ValueError(f"{path.name} is not as it was written")


def _crc(file: BinaryIO, most: int = sys.maxsize) -> int:
    """CRC-32 of what comes, up to so many bytes."""
    crc = 0
    while most and (data := file.read(min(_AT_ONCE, most))):
        crc = zlib.crc32(data, crc)
        most -= len(data)
    return crc


def read_arrays(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """What `write_arrays` was given.

    The file is mapped rather than read, so that only the pages a search touches are, and several
    processes share them. It begins with the length of a JSON header, 8 bytes little endian.

    Raises:
        OSError: It cannot be read.
        KeyError, TypeError, ValueError, IndexError, RecursionError: It is damaged.
    """
    _check_once(path)
    data = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    about: dict[str, str] = header.pop("__metadata__")
    return about, {name: _mapped(data[start:], place) for name, place in header.items()}


def _check_once(path: Path) -> None:
    """`check`, unless a large file is as it was when somebody did so."""
    found = path.stat()
    if found.st_size < _LARGE:
        check(path)
        return
    stamp = f"{found.st_ino} {found.st_size} {found.st_mtime_ns} {found.st_ctime_ns}"
    beside = path.with_name(path.name + CHECKED)
    with contextlib.suppress(OSError, ValueError):
        if beside.read_text(encoding="utf-8") == stamp:
            return
    check(path)
    with contextlib.suppress(OSError):  # then it is read through again
        part = beside.with_suffix(f".{uuid4().hex}{PART}")
        part.write_text(stamp, encoding="utf-8")
        part.replace(beside)


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
