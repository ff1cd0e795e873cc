"""Tensors that are made of numbers."""

from __future__ import annotations

import numpy as np

from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()

_VALUES = {"zeros": 0, "new_zeros": 0, "zeros_like": 0, "ones": 1, "new_ones": 1, "ones_like": 1}


@aten(ROWS, *(f"aten.{name}" for name in _VALUES))
def filled(call: Call, wire: NodeWiring) -> OutletId:
    """0 or 1 everywhere"""
    return _full(call, wire, _VALUES[call.name.split(".")[1]])


@aten(ROWS, "aten.full", "aten.full_like", "aten.new_full")
def full(call: Call, wire: NodeWiring) -> OutletId:
    """A number everywhere"""
    return _full(call, wire, call.value("fill_value"))


@aten(ROWS, "aten.scalar_tensor")
def scalar_tensor(call: Call, wire: NodeWiring) -> OutletId:
    """A number"""
    return call.operand("s", wire, call.kind)


def _full(call: Call, wire: NodeWiring, value: float) -> OutletId:
    shape = call.shape()
    return wire.broadcast(wire.const(np.full((1,) * len(shape), value, call.kind.numpy)), shape)


@aten(ROWS, "aten.arange.default", "aten.arange.start", "aten.arange.start_step")
def arange(call: Call, wire: NodeWiring) -> OutletId:
    """Numbers from one to another one, by steps"""
    start = call.operand("start", wire, call.kind) if call.has("start") else wire.const(np.zeros((), call.kind.numpy))
    step = call.operand("step", wire, call.kind) if call.has("step") else wire.const(np.ones((), call.kind.numpy))
    if not call.kind.is_integer() and not call.kind.is_float():
        raise Unsupported(f"a range of {call.kind}")
    return wire.through(wire_range, start, call.operand("end", wire, call.kind), step)
