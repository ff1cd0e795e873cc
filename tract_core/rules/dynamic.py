"""Operators that take sizes as inputs become their static form when these inputs are known."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final

from tract_core.data import Constant
from tract_core.errors import FactError
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis_dyn import DynMoveAxes
from tract_core.ops.broadcast_dyn import DynBroadcast
from tract_core.ops.fill import DynFill
from tract_core.ops.one_hot import DynOneHot, OneHot
from tract_core.ops.pad import DynPad
from tract_core.ops.reshape import DynReshape
from tract_core.ops.resize import DynResize, static_form
from tract_core.ops.slice import DynSlice, Slice
from tract_core.ops.tile import DynTile
from tract_core.ops.topk import Topk
from tract_core.ops.wiring import wire_one
from tract_core.ops.wiring_dyn import wire_dyn_pad, wire_dyn_reshape, wire_expand, wire_fill, wire_move_axes, wire_tile
from tract_core.plugins.keys import DECLUTTER
from tract_core.plugins.tables import Rows

ROWS = Rows()

Wire = Callable[[TypedModel, str, Any, Sequence[OutletId]], "OutletId | None"]
"""``(model, name, op, inputs) -> outlet``: the operator wired again, now that its parameters are known."""


def _slice(model: TypedModel, name: str, op: DynSlice, inputs: Sequence[OutletId]) -> OutletId:
    start, end = (model.outlet_fact(outlet).dims for outlet in inputs[1:])
    assert start is not None  # the rule asked
    assert end is not None  # the rule asked
    return wire_one(model, name, Slice(op.axis, start[0], end[0]), inputs[0])


def _expand(model: TypedModel, name: str, op: DynBroadcast, inputs: Sequence[OutletId]) -> OutletId:
    return wire_expand(model, name, *inputs)


def _tile(model: TypedModel, name: str, op: DynTile, inputs: Sequence[OutletId]) -> OutletId:
    return wire_tile(model, name, *inputs)


def _one_hot(model: TypedModel, name: str, op: DynOneHot, inputs: Sequence[OutletId]) -> OutletId:
    dim = model.outlet_fact(inputs[1]).dims
    assert dim is not None  # the rule asked
    return wire_one(model, name, OneHot(op.axis, dim[0], op.off, op.on), inputs[0])


def _pad(model: TypedModel, name: str, op: DynPad, inputs: Sequence[OutletId]) -> OutletId | None:
    value = inputs[2] if len(inputs) == 3 else None
    if value is not None and not isinstance(model.outlet_fact(value).value, Constant):
        return None
    return wire_dyn_pad(model, name, inputs[0], inputs[1], op.mode, value=value)


def _resize(model: TypedModel, name: str, op: DynResize, inputs: Sequence[OutletId]) -> OutletId | None:
    static = static_form(op, [model.outlet_fact(outlet) for outlet in inputs])
    return None if static is None else wire_one(model, name, static, inputs[0])


_STATIC: Final[dict[type[TypedOp], Wire]] = {
    DynReshape: lambda model, name, op, inputs: wire_dyn_reshape(model, name, *inputs, allow_zero=op.allow_zero),
    DynBroadcast: _expand,
    DynFill: lambda model, name, op, inputs: wire_fill(model, name, inputs[0], op.value),
    DynTile: _tile,
    DynMoveAxes: lambda model, name, op, inputs: wire_move_axes(model, name, *inputs, back=op.back),
    DynSlice: _slice,
    DynOneHot: _one_hot,
    DynPad: _pad,
    DynResize: _resize,
}


@rewrites(*_STATIC)
def static_when_known(model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
    """DynReshape, DynSlice, DynPad ... of parameters that are known -> Reshape, Slice, Pad ..."""
    parameters = node.inputs if isinstance(op, DynFill) else node.inputs[1:]
    if any(model.outlet_fact(outlet).value is None for outlet in parameters):
        return None
    patch = ModelPatch(model)
    taps = [patch.tap(outlet) for outlet in node.inputs]
    try:
        result = _STATIC[type(op)](patch.model, node.name, op, taps)
    except FactError:
        return None  # the parameters make no sense: the node says so if it ever runs
    if result is None or type(patch.model.producer(result).op) is type(op):
        return None
    if not node.outputs[0].fact.compatible_with(patch.fact(result)):
        return None  # what was announced is not true, which the run reports
    patch.shunt(OutletId(node.id), result)
    return patch


@rewrites(Topk)
def known_count(model: TypedModel, node: TypedNode, op: Topk) -> ModelPatch | None:
    """Topk(x, k) of an announced size -> Topk of the size that k is known to be"""
    known = model.outlet_fact(node.inputs[1]).dims
    if known is None or known[0] == op.k:
        return None
    return ModelPatch.replace_op(model, node, replace(op, k=known[0]))


for rule in (static_when_known, known_count):
    ROWS.add(DECLUTTER, rule.name, rule)
