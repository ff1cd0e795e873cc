"""Tensors that are made of numbers."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from torch.fx import Node

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.non_zero import NonZero
from tract_core.ops.trilu import Trilu
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.tensors import array_of
from tract_torch.wiring.call import Call

ROWS = Rows()

_VALUES = {
    **dict.fromkeys(("zeros", "new_zeros", "zeros_like", "empty", "new_empty", "empty_like", "empty_permuted"), 0),
    **dict.fromkeys(("empty_strided", "new_empty_strided"), 0),
    **dict.fromkeys(("ones", "new_ones", "ones_like"), 1),
}
"""What is everywhere; where nobody has said anything, as PyTorch leaves that open, it is 0."""


@aten(ROWS, *(f"aten.{name}" for name in _VALUES))
def filled(call: Call, wire: NodeWiring) -> OutletId:
    """0 or 1 everywhere"""
    value = wire.const(np.array(_VALUES[call.name.split(".")[1]], call.kind.numpy))
    return _everywhere(call, wire, value)


@aten(ROWS, "aten.full", "aten.full_like", "aten.new_full")
def full(call: Call, wire: NodeWiring) -> OutletId:
    """A number everywhere"""
    return _everywhere(call, wire, call.operand("fill_value", wire, call.kind))


@aten(ROWS, "aten.copy", "aten.fill.Tensor", "aten.fill.Scalar")
def copied(call: Call, wire: NodeWiring) -> OutletId:
    """What stretches to a shape, in its place"""
    return _everywhere(call, wire, call.operand("src" if call.has("src") else "value", wire, call.kind))


def _everywhere(call: Call, wire: NodeWiring, x: OutletId) -> OutletId:
    shape = call.shape()
    return wire.broadcast(wire.unsqueeze(x, range(len(shape) - wire.rank(x))), shape)


@aten(ROWS, "aten.scalar_tensor", "prims.scalar_tensor")
def scalar_tensor(call: Call, wire: NodeWiring) -> OutletId:
    """A number"""
    return call.operand("s", wire, call.kind)


@aten(ROWS, *(f"aten.{name}_window" for name in ("hann", "hamming", "blackman", "bartlett", "kaiser")))
def window(call: Call, wire: NodeWiring) -> OutletId:
    """The numbers that PyTorch gives for such a window"""
    if any(isinstance(one, Node) for one in call.node.args):
        hint = "make it in the constructor of the module, for the longest one, and take a part"
        raise Unsupported("a window whose length is not known before a run", hint=hint)
    return wire.const(array_of(cast("Any", call.node.target)(*call.node.args, dtype=call.result.dtype)))


@aten(ROWS, "aten.tril_indices", "aten.triu_indices")
def triangle(call: Call, wire: NodeWiring) -> OutletId:
    """Rows and columns of the elements on and below a diagonal, or on and above it"""
    sizes = [call.dim(name) for name in ("row", "col")]
    ones = wire.broadcast(wire.const(np.ones((1, 1), np.int64)), sizes)
    kept = wire.op(Trilu("triu" in call.name), ones, wire.const(call.integer("offset")))
    return wire.cast(wire.op(NonZero(call.shape()[1]), kept), call.kind)


@aten(ROWS, "aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(call: Call, wire: NodeWiring) -> OutletId:
    """Numbers from one to another one, by steps"""
    start = call.operand("start", wire, call.kind) if call.has("start") else wire.const(np.zeros((), call.kind.numpy))
    step = call.operand("step", wire, call.kind) if call.has("step") else wire.const(np.ones((), call.kind.numpy))
    if not call.kind.is_integer() and not call.kind.is_float():
        raise Unsupported(f"a range of {call.kind}")
    return wire.through(wire_range, start, call.operand("end", wire, call.kind), step)
