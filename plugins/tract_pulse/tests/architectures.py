"""Random networks over a signal as people build them, as ONNX files: what a block adds, and how long its output is.

How long each tensor is for each length of the signal is computed here, with numbers, so that what is joined fits, and
what no stream can do is not generated: whatever the network under test is made of, it has a stream.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import lcm
from typing import Any, Final

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

LONGEST: Final = 160
"""Lengths of tensors are known for signals of up to so many units."""

OPSET: Final = 18

END: Final = int(np.iinfo(np.int64).max)
"""Of a slice that goes on to the end."""


@dataclass(frozen=True)
class Signal:
    """A tensor of the network, [batch, channels, positions].

    ``lengths``: how many positions there are where the symbol is 0, 1, 2, ..., -1 where the network takes no such
    signal. ``rate``: how many positions there are more when the symbol is one more.
    """

    name: str
    channels: int
    lengths: np.ndarray[Any, Any] = field(compare=False)
    rate: Fraction = Fraction(1)

    def behind(self, other: Signal) -> int | None:
        """How much longer it is than another tensor, if that is the same number for all signals."""
        valid = (self.lengths >= 0) & (other.lengths >= 0)
        found = np.unique((self.lengths - other.lengths)[valid])
        return int(found[0]) if len(found) == 1 and self.rate == other.rate else None


class Architecture:
    """An ONNX file as it grows. ``unit``: the shortest pulse, in values of the symbol S."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.numbers = np.random.default_rng(seed)
        self.unit = 1
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.inputs: list[tuple[str, list[int | str]]] = []
        self.outputs: list[Signal] = []
        self._count = 0

    def between(self, low: int, high: int) -> int:
        return self.random.randint(low, high)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    def name(self, what: str = "x") -> str:
        self._count += 1
        return f"{what}_{self._count}"

    def source(self, name: str, channels: int, multiple: int = 1) -> Signal:
        """A signal that comes from outside, of ``multiple * S`` positions."""
        self.inputs.append((name, [1, channels, "S" if multiple == 1 else f"{multiple}*S"]))
        return Signal(name, channels, np.arange(LONGEST) * multiple, Fraction(multiple))

    def whole(self, name: str, *shape: int) -> str:
        self.inputs.append((name, list(shape)))
        return name

    def const(self, value: Any, dtype: Any = np.float32) -> str:
        array = np.asarray(value, dtype)
        name = self.name("c")
        self.constants.append(numpy_helper.from_array(array, name))
        return name

    def ints(self, *values: int) -> str:
        return self.const(values, np.int64)

    def weights(self, *shape: int) -> str:
        fan = max(1, int(np.prod(shape[1:])))
        return self.const(self.numbers.normal(size=shape) / fan**0.5)

    def node(self, op: str, *inputs: str, count: int = 1, **attributes: Any) -> Any:
        """Add a node; the name of its output, or of all of them."""
        outputs = [self.name(op.lower()) for _ in range(count)]
        self.nodes.append(helper.make_node(op, list(inputs), outputs, **attributes))
        return outputs[0] if count == 1 else outputs

    def slice(self, x: str, start: int | str, end: int | str, axis: int = 2, step: int = 1) -> str:
        """Positions from one on up to another one, which are numbers, or the names of tensors."""
        starts, ends = (one if isinstance(one, str) else self.ints(one) for one in (start, end))
        return self.node("Slice", x, starts, ends, self.ints(axis), self.ints(step))

    def length_of(self, x: Signal) -> str:
        """The length, computed in the network in one of the ways of exporters: of shape [1]."""
        shape = self.node("Shape", x.name)
        if self.chance(0.5):
            return self.slice(shape, 2, 3, axis=0)
        return self.node("Unsqueeze", self.node("Gather", shape, self.const(2, np.int64)), self.ints(0))

    def mark(self) -> tuple[int, ...]:
        """Where the file is now, for `rewind`."""
        return self.unit, len(self.nodes), len(self.constants), len(self.inputs), len(self.outputs)

    def rewind(self, mark: tuple[int, ...]) -> None:
        """Take back what came since."""
        self.unit, nodes, constants, inputs, outputs = mark
        kept = (self.nodes, nodes), (self.constants, constants), (self.inputs, inputs), (self.outputs, outputs)
        for listed, count in kept:
            del listed[count:]

    def told(self, x: Signal, name: str, **changes: Any) -> Signal:
        """The tensor ``name``, which is like ``x`` but for some changes."""
        found = replace(x, name=name, **changes)
        self.unit = lcm(self.unit, found.rate.denominator)
        return found

    def resized(self, x: Signal, name: str, lengths: Any, **changes: Any) -> Signal:
        """The tensor ``name``; signals for which it would have fewer than no positions are not taken."""
        lengths = np.asarray(lengths)
        kept = (x.lengths >= 0) & (lengths >= 0)
        return self.told(x, name, lengths=np.where(kept, lengths, -1), **changes)

    def fits(self, *signals: Signal) -> list[int]:
        """The values of the symbol for which all of these tensors are there."""
        valid = np.logical_and.reduce([one.lengths >= 0 for one in signals])
        return [int(count) for count in np.flatnonzero(valid)]

    def model(self) -> onnx.ModelProto:
        """The file."""
        inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in self.inputs]
        outputs = [helper.make_tensor_value_info(one.name, TensorProto.FLOAT, None) for one in self.outputs]
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=9)

    def facts(self) -> Sequence[str]:
        """The facts of the inputs, as texts."""
        return [",".join(map(str, (*shape, "f32"))) for _, shape in self.inputs]

    def arrays(self, length: int) -> list[Any]:
        """Random inputs, where the symbol is ``length``."""
        found: list[Any] = []
        for _, shape in self.inputs:
            sizes = [_size(size, length) if isinstance(size, str) else size for size in shape]
            found.append(self.numbers.normal(size=sizes).astype(np.float32))
        return found


def _size(text: str, value: int) -> int:
    factor, _, symbol = text.rpartition("*")
    assert symbol == "S"
    return int(factor or 1) * value
