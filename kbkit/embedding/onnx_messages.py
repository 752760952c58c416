"""The parts of ONNX files that are read or written here, without the onnx package."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

_MESSAGES = {
    "Model": {"graph": (7, "Graph")},
    "Graph": {"node": (1, "Node*"), "initializer": (5, "Tensor*")},
    "Node": {
        "input": (1, "string*"),
        "output": (2, "string*"),
        "op_type": (4, "string"),
        "attribute": (5, "Attribute*"),
    },
    "Attribute": {
        "name": (1, "string"),
        "i": (3, "int64"),
        "ints": (8, "int64*"),
        "type": (20, "int64"),
    },
    "Tensor": {
        "dims": (1, "int64*"),
        "data_type": (2, "int64"),
        "name": (8, "string"),
        "raw_data": (9, "bytes"),
    },
}
"""Fields of onnx.proto by number; a star marks lists. Others pass through as they are."""


@cache
def message(name: str) -> Any:
    """The class of a message by its name in onnx.proto, in a pool beside the onnx package's."""
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(_pool().FindMessageTypeByName(f"kbkit.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    file = FileDescriptorProto(name="kbkit/onnx.proto", package="kbkit", syntax="proto2")
    for name, fields in _MESSAGES.items():
        kept = file.message_type.add(name=name)
        for field, (number, said) in fields.items():
            label = "LABEL_REPEATED" if said.endswith("*") else "LABEL_OPTIONAL"
            kind = said.rstrip("*")
            added = kept.field.add(name=field, number=number, label=label)
            if kind in _MESSAGES:
                added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".kbkit.{kind}"
            else:
                added.type = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}")
    pool = DescriptorPool()
    pool.Add(file)
    return pool


_TYPES: dict[int, type[Any]] = {1: np.float32, 3: np.int8}
_VARINT, _BYTES = 0, 2


def tensors(model: memoryview) -> dict[str, NDArray[Any]]:
    """The constants of a model by name, floats and int8, which share its memory.

    Args:
        model: What a model's file holds: one that is known, since nothing is checked here.
    """
    (graph,) = (
        value for number, value in _fields(model) if number == _MESSAGES["Model"]["graph"][0]
    )
    numbers = {name: number for name, (number, _) in _MESSAGES["Tensor"].items()}
    found = {}
    for number, value in _fields(graph):
        if number != _MESSAGES["Graph"]["initializer"][0]:
            continue
        fields = list(_fields(value))
        said = dict(fields)
        if said.get(numbers["data_type"]) in _TYPES and numbers["raw_data"] in said:
            shape = [length for field, length in fields if field == numbers["dims"]]
            kind = _TYPES[said[numbers["data_type"]]]
            values = np.frombuffer(said[numbers["raw_data"]], kind).reshape(shape)
            found[str(said[numbers["name"]], "utf-8")] = values
    return found


def _fields(message: memoryview) -> Iterator[tuple[int, Any]]:
    """Numbers and values of a message's fields, as protocol buffers have them on the wire."""
    at = 0

    def varint() -> int:
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value
            shift += 7

    while at < len(message):
        key = varint()
        if key & 7 == _VARINT:
            yield key >> 3, varint()
        else:
            length = varint() if key & 7 == _BYTES else 8 if key & 7 == 1 else 4
            yield key >> 3, message[at : at + length]
            at += length
