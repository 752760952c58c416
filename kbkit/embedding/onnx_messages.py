"""The parts of ONNX files that are read or written here, without the onnx package."""

from __future__ import annotations

from functools import cache
from typing import Any

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
