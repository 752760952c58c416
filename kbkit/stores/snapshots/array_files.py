"""Files of arrays with a checksum, in the safetensors format."""

import contextlib
import json
import mmap
import os
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kbkit.paths import replacing

CHECKED = ".checked"
"""Suffix of files that record a verified state."""
_MARK = b"CRC2"
_LARGE = 1 << 24
"""Bytes from which a verified state is recorded; verifying that many takes 4 milliseconds."""
_DTYPES = {"F32": "<f4", "I64": "<i8", "I32": "<i4", "U16": "<u2", "U8": "|u1"}


def write_arrays(path: Path, arrays: Mapping[str, NDArray[Any]], metadata: dict[str, str]) -> None:
    """Write arrays; concurrent readers keep the old file."""
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    path.parent.mkdir(exist_ok=True)
    contiguous = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    with replacing(path) as part:
        try:
            save_file(contiguous, part, metadata)
        except SafetensorError as error:  # contains the system's message
            raise OSError(f"{path.name}: cannot be written ({error})") from error
        end = _end_of(np.memmap(part, np.uint8, "r"))
        with part.open("ab") as file:
            file.write(end)
            file.flush()
            os.fsync(file.fileno())  # on disk before the rename


def check(path: Path) -> None:
    if path.stat().st_size < len(_MARK) + 4:
        raise ValueError(f"{path.name} is cut off")
    data = np.memmap(path, np.uint8, "r")
    if data[-len(_MARK) - 4 :].tobytes() != _end_of(data[: -len(_MARK) - 4]):
        raise ValueError(f"{path.name} is not as it was written")


def _end_of(data: Any) -> bytes:
    return _MARK + zlib.crc32(data).to_bytes(4, "little")


def read_arrays(path: Path) -> tuple[dict[str, str], dict[str, NDArray[Any]]]:
    """Map a file of `write_arrays`, in the safetensors format, into memory."""
    _check_once(path)
    data = np.memmap(path, np.uint8, "r")
    start = 8 + int.from_bytes(data[:8].tobytes(), "little")
    header = json.loads(data[8:start].tobytes())
    metadata: dict[str, str] = header.pop("__metadata__")
    return metadata, {name: _map_array(data[start:], place) for name, place in header.items()}


def _check_once(path: Path) -> None:
    status = path.stat()
    if status.st_size < _LARGE:
        check(path)
        return
    stamp = f"{status.st_ino} {status.st_size} {status.st_mtime_ns} {status.st_ctime_ns}"
    record = path.with_name(path.name + CHECKED)
    with contextlib.suppress(OSError, ValueError):
        if record.read_text(encoding="utf-8") == stamp:
            return
    check(path)
    # if it cannot be written, the next process verifies it again
    with contextlib.suppress(OSError), replacing(record) as part:
        part.write_text(stamp, encoding="utf-8")


def forget_pages(array: NDArray[Any]) -> None:
    """Evict a mapped file's pages from memory, until they are read again."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def _map_array(data: NDArray[np.uint8], place: Any) -> NDArray[Any]:
    start, end = place["data_offsets"]
    return np.asarray(data[start:end]).view(_DTYPES[place["dtype"]]).reshape(place["shape"])
