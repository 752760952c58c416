"""MiniLM's ONNX graph with integer products.

onnxruntime would convert the packaged model's 8-bit weights to floats. This graph multiplies them
by inputs rounded to two bytes with a scale per token; Dettmers et al., "LLM.int8()" (2022) round
them to one. A query takes half the time, its vector is equal to four digits, and the texts of a
batch do not affect each other.
"""

from __future__ import annotations

from collections.abc import Iterable
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
"""Fields of onnx.proto by number; a star marks lists. Other fields stay unchanged."""


@cache
def message(name: str) -> Any:
    from google.protobuf.message_factory import GetMessageClass

    return GetMessageClass(_pool().FindMessageTypeByName(f"kbkit.{name}"))


@cache
def _pool() -> Any:
    from google.protobuf.descriptor_pb2 import FieldDescriptorProto, FileDescriptorProto
    from google.protobuf.descriptor_pool import DescriptorPool

    file = FileDescriptorProto(name="kbkit/onnx.proto", package="kbkit", syntax="proto2")
    for name, fields in _MESSAGES.items():
        descriptor = file.message_type.add(name=name)
        for field, (number, value) in fields.items():
            label = "LABEL_REPEATED" if value.endswith("*") else "LABEL_OPTIONAL"
            kind = value.rstrip("*")
            added = descriptor.field.add(name=field, number=number, label=label)
            if kind in _MESSAGES:
                added.type, added.type_name = FieldDescriptorProto.TYPE_MESSAGE, f".kbkit.{kind}"
            else:
                added.type = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}")
    pool = DescriptorPool()
    pool.Add(file)
    return pool


_DTYPES: dict[int, type[Any]] = {1: np.float32, 3: np.int8}


def tensors(model: bytes) -> dict[str, NDArray[Any]]:
    return {
        tensor.name: np.frombuffer(tensor.raw_data, _DTYPES[tensor.data_type]).reshape(tensor.dims)
        for tensor in message("Model").FromString(model).graph.initializer
        if tensor.data_type in _DTYPES and tensor.raw_data
    }


_ZERO, _ONE, _LOW = "kbkit_zero", "kbkit_one", "kbkit_low"
_STEP, _MIN = "kbkit_step", "kbkit_least"
_CONSTANTS: dict[str, NDArray[Any]] = {
    _ZERO: np.array(128, np.uint8),
    _ONE: np.array(1, np.float32),
    _LOW: np.array(1 / 128, np.float32),  # a step of the second byte, in steps of the first
    _STEP: np.array(1 / 127, np.float32),
    _MIN: np.array(1e-12, np.float32),  # prevents a division by zero
}
_TYPES = {"float32": 1, "uint8": 2}
_INT, _INTS = 2, 7
_WITH_VNNI = frozenset({"AVX512_CLX", "AVX512_ICL", "AVX512_SPR"})
"""Instruction sets with 8-bit products, by numpy's names."""


def with_integer_products(model: bytes) -> bytes:
    """Convert a model that unpacks 8-bit weights to one that multiplies them as integers."""
    parsed = message("Model").FromString(model)
    graph = parsed.graph
    constants = {tensor.name for tensor in graph.initializer}
    nodes = list(graph.node)
    cast = {
        node.output[0]: node.input[0]
        for node in nodes
        if node.op_type == "Cast" and node.input[0] in constants
    }
    unpacked = {
        node.output[0]: (cast[node.input[0]], node.input[1])
        for node in nodes
        if node.op_type == "Mul" and node.input[0] in cast
    }
    rounded: set[str] = set()
    new_nodes: list[Any] = []
    for node in nodes:
        if node.op_type == "MatMul" and node.input[1] in unpacked:
            rows = node.input[0]
            if rows not in rounded:
                rounded.add(rows)
                new_nodes += _rounded(rows)
            new_nodes += _product(rows, *unpacked[node.input[1]], node.output[0])
        elif node.op_type == "Gather" and node.input[0] in unpacked:
            new_nodes += _gathered(*unpacked[node.input[0]], node.input[1], node.output[0])
        else:
            new_nodes.append(node)
    used = {name for node in new_nodes for name in node.input}
    new_nodes = [
        node
        for node in new_nodes
        if node.output[0] in used or not (node.output[0] in cast or node.output[0] in unpacked)
    ]
    used = {name for node in new_nodes for name in node.input}
    tensors = [tensor for tensor in graph.initializer if tensor.name in used]
    tensors += [_tensor(name, value) for name, value in _CONSTANTS.items()]
    del graph.node[:], graph.initializer[:]
    graph.node.extend(new_nodes)
    graph.initializer.extend(tensors)
    result: bytes = parsed.SerializeToString()
    return result


def products_overflow() -> bool:
    """Whether 8-bit products overflow: without VNNI, x86 adds two of them in 16 bits."""
    extensions = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return _WITH_VNNI.isdisjoint(extensions)


def _rounded(rows: str) -> Iterable[Any]:
    """Yield nodes for ``rows:bytes`` (first bytes, then second bytes) and ``rows:scale``."""
    yield _node("Abs", [rows], f"{rows}:sizes")
    yield _node("ReduceMax", [f"{rows}:sizes"], f"{rows}:largest", axes=[-1], keepdims=1)
    yield _node("Mul", [f"{rows}:largest", _STEP], f"{rows}:step")
    yield _node("Max", [f"{rows}:step", _MIN], f"{rows}:scale")
    yield _node("Div", [rows, f"{rows}:scale"], f"{rows}:scaled")
    yield _node("QuantizeLinear", [f"{rows}:scaled", _ONE, _ZERO], f"{rows}:first")
    yield _node("DequantizeLinear", [f"{rows}:first", _ONE, _ZERO], f"{rows}:whole")
    yield _node("Sub", [f"{rows}:scaled", f"{rows}:whole"], f"{rows}:rest")
    yield _node("QuantizeLinear", [f"{rows}:rest", _LOW, _ZERO], f"{rows}:second")
    yield _node("Concat", [f"{rows}:first", f"{rows}:second"], f"{rows}:bytes", axis=-2)


def _product(rows: str, weights: str, scale: str, output: str) -> Iterable[Any]:
    yield _node("MatMulInteger", [f"{rows}:bytes", weights, _ZERO], f"{output}:integers")
    yield _node("Cast", [f"{output}:integers"], f"{output}:floats", to=_TYPES["float32"])
    halves = [f"{output}:first", f"{output}:second"]
    yield _node("Split", [f"{output}:floats"], *halves, axis=-2)
    yield _node("Mul", [halves[1], _LOW], f"{output}:rest")
    yield _node("Add", [halves[0], f"{output}:rest"], f"{output}:whole")
    yield _node("Mul", [f"{output}:whole", scale], f"{output}:columns")
    yield _node("Mul", [f"{output}:columns", f"{rows}:scale"], output)


def _gathered(weights: str, scale: str, indices: str, output: str) -> Iterable[Any]:
    yield _node("Gather", [weights, indices], f"{output}:bytes")
    yield _node("Cast", [f"{output}:bytes"], f"{output}:floats", to=_TYPES["float32"])
    yield _node("Gather", [scale, indices], f"{output}:scale")
    yield _node("Mul", [f"{output}:floats", f"{output}:scale"], output)


def _node(op_type: str, inputs: list[str], *outputs: str, **attributes: int | list[int]) -> Any:
    node = message("Node")(op_type=op_type, input=inputs, output=outputs)
    for name, value in attributes.items():
        if isinstance(value, int):
            node.attribute.add(name=name, i=value, type=_INT)
        else:
            node.attribute.add(name=name, ints=value, type=_INTS)
    return node


def _tensor(name: str, value: NDArray[Any]) -> Any:
    return message("Tensor")(
        name=name, dims=value.shape, data_type=_TYPES[value.dtype.name], raw_data=value.tobytes()
    )
