"""Encode and decode the numbers in shards."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Whole = NDArray[np.int64] | NDArray[np.int32]

_BEFORE, _BEHIND = "kbkitShard(", ");\n"
LEVELS = 7
"""Values of 4 bits are -7 to 7."""
OCTET = 127
"""Values of 8 bits are -127 to 127."""


def encode_shard(values: Mapping[str, Any]) -> bytes:
    return encode_call("kbkitShard", [values])


def encode_call(function: str, arguments: Sequence[Any]) -> bytes:
    text = ",".join(
        json.dumps(each, ensure_ascii=False, separators=(",", ":")) for each in arguments
    )
    # the two line ends that JSON allows in strings and old scripts do not
    text = text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029")
    return f"{function}({text});\n".encode("utf-8", "replace")


def decode_shard(data: bytes) -> dict[str, Any]:
    text = data.decode()
    if not text.startswith(_BEFORE) or not text.endswith(_BEHIND):
        raise ValueError("not a shard")
    values: dict[str, Any] = json.loads(text[len(_BEFORE) : -len(_BEHIND)])
    return values


def pack_varints(numbers: Whole) -> tuple[NDArray[np.uint8], Integers]:
    """Numbers of 0 and more as varints, and where the bytes of each end."""
    rest = np.asarray(numbers, np.int64)
    lengths = np.ones(len(rest), np.int64)
    for bits in range(7, 63, 7):
        lengths += rest >> bits > 0
    ends = np.cumsum(lengths)
    out = np.zeros(int(lengths.sum()), np.uint8)
    for place in range(int(lengths.max(initial=0))):
        more = lengths > place
        part = (rest[more] >> (7 * place)) & 0x7F
        out[(ends - lengths)[more] + place] = part | np.where(lengths[more] > place + 1, 0x80, 0)
    return out, ends


def encode_varints(numbers: Whole) -> str:
    return to_base64(pack_varints(numbers)[0])


def decode_varints(text: str) -> Integers:
    data = from_base64(text)
    last = np.flatnonzero(data < 0x80)
    if not len(last):
        return np.zeros(0, np.int64)
    starts = np.concatenate([[0], last[:-1] + 1])
    places = np.arange(len(data)) - np.repeat(starts, last - starts + 1)
    parts = (data & 0x7F).astype(np.int64) << (7 * places)
    return np.asarray(np.add.reduceat(parts, starts), np.int64)


def encode_nibbles(matrix: NDArray[np.int8]) -> str:
    """A matrix of -7 to 7, two values a byte, the first in the low half; its rows are even."""
    flat = (matrix.astype(np.int16) + 8).astype(np.uint8).reshape(-1)
    return to_base64((flat[0::2] | flat[1::2] << 4).astype(np.uint8))


def decode_nibbles(text: str, columns: int) -> NDArray[np.int8]:
    """Decode the output of `encode_nibbles`, shape ``(n, columns)``."""
    data = from_base64(text)
    flat = np.empty(2 * len(data), np.int8)
    flat[0::2] = (data & 0xF).astype(np.int8) - 8
    flat[1::2] = (data >> 4).astype(np.int8) - 8
    return flat.reshape(-1, columns)


def encode_bytes(matrix: NDArray[np.int8]) -> str:
    """A matrix of -127 to 127, a value a byte."""
    return to_base64(matrix.view(np.uint8).reshape(-1))


def decode_bytes(text: str, columns: int) -> NDArray[np.int8]:
    """Decode the output of `encode_bytes`, shape ``(n, columns)``."""
    return from_base64(text).view(np.int8).reshape(-1, columns)


def to_base64(data: NDArray[np.uint8]) -> str:
    """Bytes as base64."""
    return base64.b64encode(data.tobytes()).decode()


def from_base64(text: str) -> NDArray[np.uint8]:
    return np.frombuffer(base64.b64decode(text), np.uint8)
