"""Quantised products as engines know them: what is known stands as integers right in front of what multiplies it.

Engines compute in integers where they see DequantizeLinear, a product, and QuantizeLinear, with nothing between. The
rows of single operators cannot see to that: they arrange weights behind what dequantises them, and add a bias as
numbers. So the nodes are looked at once more when all are there:

- what only arranges the axes of dequantised weights is done to their integers;
- a bias in whole steps of the sums becomes integers of 32 bits, with these steps;
- a product of matrices with such a bias behind it is Gemm;
- a table of bytes that is a function between two roundings is that function;
- data whose axes are arranged behind what dequantises it is rounded once more to the very same bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import onnx
from onnx import helper

from tract_core.data import Constant
from tract_core.model.fact import TypedFact
from tract_onnx.writing.tables import STEP, Spelled, function_of

Array = np.ndarray[Any, Any]

_MOVERS: Final = frozenset({"Transpose", "Reshape", "Unsqueeze", "Squeeze", "Flatten"})
_PRODUCTS: Final = frozenset({"Conv", "Gemm", "MatMul"})

_CLOSE: Final = 2.0**-22
"""A bias is in whole steps where f32 holds no more of the difference."""

_LARGEST: Final = 2**31 - 1


class Tensors(Protocol):
    """What keeps the tensors that are there."""

    @property
    def held(self) -> dict[str, Constant]:
        """They, by name."""
        ...

    def hold(self, value: Constant, where: str = "") -> str:
        """Hold one more, for a node of that name; equal small ones are one. Returns its name."""
        ...

    def hold_as(self, wanted: str, value: Constant) -> str:
        """Hold one more, by a name like that. Returns its name."""
        ...

    def free(self, wanted: str) -> str:
        """A name like that, which nothing has. It is taken from now on."""
        ...


class Quantized:
    """The nodes of a graph, in order, while they are looked at.

    ``facts``: of tensors of the model, by name; ``outputs``: names that stay.
    """

    def __init__(
        self,
        nodes: Sequence[onnx.NodeProto],
        tensors: Tensors,
        facts: Mapping[str, TypedFact],
        outputs: Sequence[str],
    ) -> None:
        self._nodes, self._tensors, self._facts = list(nodes), tensors, facts
        self._made = {name: node for node in self._nodes for name in node.output}
        self._before: dict[str, list[onnx.NodeProto]] = {}
        """What was added in front of nodes, by their names."""
        self._numbers = {node.input[0]: node for node in self._nodes if node.op_type == "DequantizeLinear"}
        """What makes numbers of integers, by the name of these."""
        self._readers: dict[str, int] = dict.fromkeys(outputs, 1)
        for name in (name for node in self._nodes for name in node.input):
            self._readers[name] = self._readers.get(name, 0) + 1

    def arranged(self) -> list[onnx.NodeProto]:
        """The nodes as they are to be written. Those that nothing reads any more are among them."""
        found = list[onnx.NodeProto]()
        for node in self._nodes:
            change = _CHANGES.get(node.op_type)
            found.append((None if change is None else change(self, node)) or node)
            self._made.update(dict.fromkeys(found[-1].output, found[-1]))
        return [one for node in found for one in (*self._before.get(node.name, ()), *self._in_front_of(node), node)]

    def _in_front_of(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """What is added in front of a product, which reads it."""
        if node.op_type not in _PRODUCTS:
            return []
        return [*self._bytes_again(node), *self._bias_in_steps(node)]

    def dequantizer(self, name: str) -> onnx.NodeProto | None:
        """The node that makes numbers of integers, where a tensor consists of those, however its axes are arranged."""
        node = self._made.get(name)
        while node is not None and node.op_type in _MOVERS:
            node = self._made.get(node.input[0])
        return node if node is not None and node.op_type == "DequantizeLinear" else None

    def array(self, name: str) -> Array | None:
        """A tensor that is there."""
        value = self._tensors.held.get(name)
        return None if value is None else value.array

    def weights(self, name: str) -> tuple[onnx.NodeProto, list[Array]] | None:
        """What dequantises integers that are there, and these, their scales, and zero points."""
        node = self._made.get(name)
        node = node if node is not None and node.op_type == "DequantizeLinear" else None
        arrays = [] if node is None else [self.array(one) for one in node.input]
        found = [one for one in arrays if one is not None]
        return None if node is None or len(found) < len(arrays) or len(found) != 3 else (node, found)

    # --- what arranges axes ---

    def in_front(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """Transpose(DequantizeLinear(integers)) -> DequantizeLinear(transposed integers), and so for other axes."""
        found = self.weights(node.input[0])
        change = None if found is None else self._change_of(node)
        if found is None or change is None:
            return None
        before, arrays = found
        axis, block = (_attribute(before, name, default) for name, default in (("axis", 1), ("block_size", 0)))
        moved = _moved(change, arrays, axis, bool(block))
        if moved is None:
            return None
        parts, axis = moved
        given = [self._tensors.hold_as(name, Constant(one)) for name, one in zip(before.input, parts, strict=True)]
        told = {"axis": axis, **({"block_size": block} if block else {})}
        found = helper.make_node("DequantizeLinear", given, [*node.output], name=node.name)
        found.attribute.extend(helper.make_attribute(name, number) for name, number in told.items())
        return found

    def _change_of(self, node: onnx.NodeProto) -> Callable[[Array], Array] | None:
        """What a node does to the axes of a tensor that is there."""
        if node.op_type == "Transpose":
            order = _attribute(node, "perm", None)
            return lambda x: x.transpose(order)
        axes = self.array(node.input[1]) if len(node.input) > 1 else None
        if axes is None:
            return None
        numbers = tuple(int(one) for one in axes)
        if node.op_type == "Reshape":
            return None if _attribute(node, "allowzero", 0) or 0 in numbers else lambda x: x.reshape(numbers)
        return (lambda x: np.expand_dims(x, numbers)) if node.op_type == "Unsqueeze" else lambda x: x.squeeze(numbers)

    # --- tables ---

    def as_function(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """Gather(table, bytes that were rounded) -> QuantizeLinear(f(DequantizeLinear(bytes))), where f is known"""
        table, place, reader = (
            self.array(node.input[0]),
            self._made.get(node.input[1]),
            self._numbers.get(node.output[0]),
        )
        stored = None if place is None or place.op_type != "Cast" else self._made.get(place.input[0])
        if table is None or table.shape != (256,) or table.dtype not in (np.uint8, np.int8) or reader is None:
            return None
        if (
            stored is None
            or stored.op_type != "QuantizeLinear"
            or not self._is_plain(stored)
            or not self._is_plain(reader)
        ):
            return None
        (scale, zero), made = ([self.array(name) for name in one.input[1:]] for one in (stored, reader))
        if scale is None or zero is None or made[0] is None or made[1] is None or made[1].dtype != table.dtype:
            return None
        every = np.arange(256, dtype=np.uint8).view(zero.dtype).astype(np.float32)
        spelled = function_of(table, (every - np.float32(zero)) * scale, (made[0], made[1]))
        return None if spelled is None else self._spelled(node, stored, reader, spelled)

    def _spelled(
        self, node: onnx.NodeProto, stored: onnx.NodeProto, reader: onnx.NodeProto, spelled: Spelled
    ) -> onnx.NodeProto:
        """The nodes of a function between two roundings: the last one; the others are in front of it."""
        numbers, found = (self._tensors.free(f"{node.name}.{label}") for label in ("numbers", spelled.operator))
        before = [
            helper.make_node("DequantizeLinear", [stored.output[0], *stored.input[1:]], [numbers], name=numbers),
            helper.make_node(spelled.operator, [numbers], [found], name=found),
        ]
        before[1].attribute.extend(helper.make_attribute(name, value) for name, value in spelled.attributes.items())
        if spelled.rounded:
            before += self._rounded(node.name, found)
        if spelled.times_input:
            product = self._tensors.free(f"{node.name}.product")
            before.append(helper.make_node("Mul", [numbers, before[-1].output[0]], [product], name=product))
        self._before[node.name] = before
        given = [before[-1].output[0], *reader.input[1:]]
        return helper.make_node("QuantizeLinear", given, [*node.output], name=node.name)

    def _rounded(self, name: str, gate: str) -> list[onnx.NodeProto]:
        """Numbers from 0 to 1, rounded to bytes."""
        stored, numbers = (self._tensors.free(f"{name}.gate.{label}") for label in ("quantized", "dequantized"))
        parameters = [self._tensors.hold(Constant(one), name) for one in (np.array(STEP), np.zeros((), np.uint8))]
        return [
            helper.make_node("QuantizeLinear", [gate, *parameters], [stored], name=stored),
            helper.make_node("DequantizeLinear", [stored, *parameters], [numbers], name=numbers),
        ]

    # --- biases ---

    def summed(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """A bias behind a product of matrices, as engines want it."""
        return self.as_gemm(node) or self.as_difference(node)

    def as_difference(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """Add(MatMul(x, weights in blocks), bias) -> Sub of the negated bias, where it would become Gemm

        ONNX Runtime multiplies weights in blocks where they are read by MatMul, and makes Gemm of the two before.
        """
        for product, bias in (node.input, reversed(node.input)):
            made, known, result = self._made.get(product), self.array(bias), self._facts.get(node.output[0])
            if made is None or made.op_type != "MatMul" or known is None or result is None or result.rank != 2:
                continue
            weights = self.weights(made.input[1])
            if weights is not None and _attribute(weights[0], "block_size", 0) and known.dtype == np.float32:
                negated = self._tensors.hold_as(bias, Constant(-known))
                return helper.make_node("Sub", [product, negated], [*node.output], name=node.name)
        return None

    def as_gemm(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        """Add(MatMul(dequantised x, dequantised weights), bias in whole steps) -> Gemm"""
        for product, bias in (node.input, reversed(node.input)):
            made, known = self._made.get(product), self.array(bias)
            if made is None or made.op_type != "MatMul" or known is None or self._readers[product] != 1:
                continue
            weights, result = self.weights(made.input[1]), self._facts.get(node.output[0])
            if weights is None or weights[1][0].ndim != 2 or result is None or result.rank != 2:
                continue
            flat = known.reshape(-1)
            steps = self._steps(made.input[0], made.input[1], 1)
            if steps is None or known.shape[-1:] != flat.shape or _whole(flat, steps) is None:
                continue
            given = [*made.input, self._tensors.hold_as(bias, Constant(flat))]
            return helper.make_node("Gemm", given, [*node.output], name=node.name)
        return None

    def _bytes_again(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """Reshape(DequantizeLinear(x)) in front of a product -> DequantizeLinear(QuantizeLinear(the same))"""
        name = node.input[0]
        before, direct = self.dequantizer(name), self._made.get(name)
        if before is None or direct is before or self.weights(node.input[1]) is None or not self._is_plain(before):
            return []
        stored, numbers = (self._tensors.free(f"{name}.{label}") for label in ("quantized", "dequantized"))
        parameters = before.input[1:]
        node.input[0] = numbers
        made = [
            helper.make_node("QuantizeLinear", [name, *parameters], [stored], name=stored),
            helper.make_node("DequantizeLinear", [stored, *parameters], [numbers], name=numbers),
        ]
        self._made.update({stored: made[0], numbers: made[1]})
        return made

    def _is_plain(self, node: onnx.NodeProto) -> bool:
        """Whether there is one scale that is known, of such a size that rounding gives the same bytes again."""
        scale = self.array(node.input[1])
        known = len(node.input) == 3 and self.array(node.input[2]) is not None
        return known and scale is not None and scale.size == 1 and 2.0**-100 < float(scale.reshape(-1)[0]) < 2.0**100

    def _bias_in_steps(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """What makes the bias of a product of integers; the node reads it from now on."""
        bias = self.array(node.input[2]) if len(node.input) == 3 else None
        if bias is None:
            return []
        outputs = 0 if node.op_type == "Conv" else 1 - _attribute(node, "transB", 0)
        steps = self._steps(node.input[0], node.input[1], outputs)
        whole = None if steps is None else _whole(bias, steps)
        if steps is None or whole is None:
            return []
        name = node.input[2]
        scale = np.broadcast_to(steps, bias.shape).astype(np.float32)
        given = [
            self._tensors.hold_as(f"{name}.{label}", Constant(one))
            for label, one in (("integers", whole), ("steps", scale))
        ]
        node.input[2] = self._tensors.free(f"{name}.numbers")
        return [helper.make_node("DequantizeLinear", given, [node.input[2]], name=node.input[2], axis=0)]

    def _steps(self, data: str, weights: str, outputs: int) -> Array | None:
        """The steps of sums of products: of data with one scale, and weights with one, or one for each output."""
        first, second = self.dequantizer(data), self.weights(weights)
        scale = None if first is None else self.array(first.input[1])
        if scale is None or scale.size != 1 or scale.dtype != np.float32 or second is None:
            return None
        node, (_, steps, _) = second
        if _attribute(node, "block_size", 0) or (steps.size > 1 and _attribute(node, "axis", 1) != outputs):
            return None
        return scale.reshape(-1) * steps.reshape(-1)


_CHANGES: Final[Mapping[str, Callable[[Quantized, onnx.NodeProto], onnx.NodeProto | None]]] = {
    **dict.fromkeys(("Transpose", "Reshape", "Unsqueeze", "Squeeze"), Quantized.in_front),
    "Add": Quantized.summed,
    "Gather": Quantized.as_function,
}


def _attribute(node: onnx.NodeProto, name: str, default: Any) -> Any:
    """An attribute of a node."""
    found = [one for one in node.attribute if one.name == name]
    return helper.get_attribute_value(found[0]) if found else default


def _whole(bias: Array, steps: Array) -> Array | None:
    """A bias as integers of 32 bits, where it consists of whole steps that fit."""
    if bias.dtype != np.float32 or bias.ndim != 1 or not bias.any() or not (np.isfinite(steps).all() and steps.all()):
        return None
    wide = steps.astype(np.float64)
    whole = np.rint(bias / wide)
    close = np.abs(whole * wide - bias) <= np.abs(bias) * _CLOSE
    fits = np.abs(whole) <= _LARGEST
    return whole.astype(np.int32) if close.all() and fits.all() else None


def _moved(
    change: Callable[[Array], Array], arrays: Sequence[Array], axis: int, in_blocks: bool
) -> tuple[list[Array], int] | None:
    """Integers, scales and zero points with other axes, and the axis along which scales vary then."""
    integers, scale, zero = arrays
    if not scale.ndim or scale.size == 1:
        return [change(integers), scale, zero], 0
    axis %= integers.ndim
    by_axis = [-1 if one == axis else 1 for one in range(integers.ndim)]
    places: Array = np.arange(integers.shape[axis], dtype=np.int64).reshape(by_axis)
    found = change(np.broadcast_to(places, integers.shape))
    along = [one for one in range(found.ndim) if _varies_along(found, one)]
    if found.shape.count(1) == found.ndim or len(along) != 1 or found.shape[along[0]] != integers.shape[axis]:
        return None
    if not in_blocks:
        return [change(integers), scale, zero], along[0]
    if found.ndim != integers.ndim or sorted(found.shape) != sorted(integers.shape):
        return None  # blocks are along an axis that stays among others
    return [change(one) for one in arrays], along[0]


def _varies_along(places: Array, axis: int) -> bool:
    """Whether positions along an axis are those of scales."""
    return places.shape[axis] > 1 and bool((np.diff(places, axis=axis) != 0).any())
