"""Tensors of one value, and of ones on a diagonal."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import CorruptModel, FactError
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.wiring_dyn import wire_eye, wire_fill
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "ConstantOfShape", since=9)
def constant_of_shape(node: OnnxNode, wire: Wiring) -> OutletId:
    """A tensor of the shape that the input holds, filled with the attribute ``value``, 0 by default"""
    value = node.array("value") if node.has("value") else np.zeros(1, np.float32)
    if value.size != 1:
        raise CorruptModel(f"the value of ConstantOfShape has {value.size} elements, 1 is wanted")
    return wire.through(wire_fill, wire.sizes(wire.input(0)), Constant(value.reshape(())))


@onnx_op(ROWS, "ConstantFill")
def constant_fill(node: OnnxNode, wire: Wiring) -> OutletId:
    """What ConstantOfShape was before version 9: a value in a given shape, that of a tensor, or one that it holds"""
    kind = node.element_type("dtype", DatumType.F32)
    x, more = wire.optional_input(0), node.integers("extra_shape", ())
    if x is None:
        sizes = wire.const(as_sizes("shape", node.integers("shape")))
    elif node.flag("input_as_shape"):
        sizes = wire.sizes(x)
    else:
        sizes = wire.const(wire.shape(x))
    if more:
        sizes = wire.op(TypedConcat(0), sizes, wire.const(as_sizes("extra_shape", more)))
    return wire.through(wire_fill, sizes, Constant(np.array(node.number("value", 0.0)).astype(kind.numpy)))


def as_sizes(name: str, values: Sequence[int]) -> Sequence[int]:
    """The value of an attribute that holds sizes. Raises CorruptModel for one that cannot be."""
    if any(size < 0 for size in values):
        raise CorruptModel(f"attribute {name!r} is {list(values)[:50]}, wanted sizes")
    return values


@onnx_op(ROWS, "EyeLike", since=9)
def eye_like(node: OnnxNode, wire: Wiring) -> OutletId:
    """A matrix of the input's shape, with ones on diagonal ``k``"""
    x = wire.fact(wire.input(0))
    if x.rank != 2:
        raise FactError(f"EyeLike wants a matrix, found {x}")
    to = node.element_type("dtype", x.datum_type.storage)
    rows, columns = x.shape
    return wire.through(wire_eye, rows=rows, columns=columns, diagonal=node.integer("k", 0), to=to)
