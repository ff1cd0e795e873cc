"""The partial inverse of MaxPool."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim, product
from tract_core.errors import CorruptModel, FactError
from tract_core.model.conditions import may_be_at_most, may_be_of_shape
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.pad import PadConstant
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.wiring_dyn import wire_dyn_pad
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "MaxUnpool", since=9)
def max_unpool(node: OnnxNode, wire: Wiring) -> OutletId:
    """Zeros, with each element at the place that it was taken from

    Places count in the tensor that the window's attributes give; a larger output has zeros behind it.
    """
    x, places = wire.input(0), wire.i64(wire.input(1))
    if not may_be_of_shape(wire.shape(places), wire.shape(x)):
        raise FactError(f"as many places as elements are wanted, found {wire.fact(places)} for {wire.fact(x)}")
    shape, count = _pooled_from(node, wire, x), wire.shape(x).volume
    kind = wire.dtype(x).numpy
    zeros = wire.broadcast(wire.const(np.zeros(1, kind)), (product(shape),))
    filled = wire.op(ScatterElements(0), zeros, wire.reshape(places, (count,)), wire.reshape(x, (count,)))
    result = wire.reshape(filled, shape)
    wanted = wire.optional_input(2)
    if wanted is None:
        return result
    wanted = wire.sizes(wanted)
    wire.require_shape("shape of the output", wanted, (len(shape),))
    grown = wire.op(Sub(), wanted, wire.const(shape))
    pads = wire.op(TypedConcat(0), wire.const((0,) * len(shape)), grown)
    return wire.through(wire_dyn_pad, result, pads, PadConstant(Constant(np.zeros((), kind))))


def _pooled_from(node: OnnxNode, wire: Wiring, x: OutletId) -> tuple[Dim, ...]:
    """The shape of the smallest tensor of which the window gives as many elements as ``x`` has."""
    kernel, sizes = node.integers("kernel_shape"), wire.shape(x)
    rank = len(kernel)
    if len(sizes) != rank + 2:
        raise FactError(f"a window of {rank} axes wants a tensor of {rank + 2}, found {wire.fact(x)}")
    strides, pads = node.each("strides", rank, 1), node.each("pads", 2 * rank, 0)
    found = [
        (size - 1) * stride - before - after + width
        for size, stride, before, after, width in zip(sizes[2:], strides, pads[:rank], pads[rank:], kernel, strict=True)
    ]
    if any(not may_be_at_most(1, size) for size in found):
        raise CorruptModel(f"pads {list(pads)} leave nothing of {wire.fact(x)}: its sizes would be {found}")
    return (*sizes[:2], *found)
