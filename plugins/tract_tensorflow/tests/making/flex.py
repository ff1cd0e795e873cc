"""Operators of TensorFlow in files of TFLite, which LiteRT has not: what is expected is computed here."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from model import Graph, Op, Tensor, file

Case = tuple[str, bytes, list[Any]]

EXPECTED: dict[str, list[Any]] = {}
"""By the name of a case."""


def expected(name: str) -> list[Any]:
    """The outputs of a case that was yielded."""
    return EXPECTED[name]


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """Without attributes, with one, with several outputs."""
    x = draw.standard_normal((3, 4), np.float32)
    yield case("Erf", x, [np.vectorize(math.erf)(x)])
    yield case("Softplus", x, [np.log1p(np.exp(x.astype(float)))])
    yield case("LeakyRelu", x, [np.where(x > 0, x, np.float32(0.25) * x)], alpha=0.25)


def case(name: str, x: Any, results: list[Any], **attributes: float) -> Case:
    results = [one.astype(np.float32) for one in results]
    EXPECTED[name] = results
    said = packed(name, node_of(name, attributes))
    tensors = [Tensor(x.shape), *(Tensor(one.shape) for one in results)]
    outputs = [*range(1, len(tensors))]
    return name, file(Graph(tensors, [Op(f"Flex{name}", [0], outputs, custom=said)], [0], outputs)), [x]


def node_of(name: str, attributes: dict[str, float]) -> bytes:
    """A node of TensorFlow as a protobuf: its name, its operator, and its attributes, the type among them."""
    values = {"T": b"\x30\x01", **{key: b"\x25" + np.float32(value).tobytes() for key, value in attributes.items()}}
    entries = [part(1, key.encode()) + part(2, value) for key, value in values.items()]
    return part(1, b"node") + part(2, name.encode()) + part(3, b"x") + b"".join(part(5, one) for one in entries)


def part(number: int, content: bytes) -> bytes:
    """A field of bytes, of fewer than 128."""
    return bytes([number << 3 | 2, len(content)]) + content


def packed(name: str, node: bytes) -> bytes:
    """A list of two texts; the library takes no text that is not UTF-8."""
    builder = flexbuffers.Builder()
    with builder.Vector():
        builder.String(name)
        builder.Blob(node)
    return bytes(builder.Finish())
