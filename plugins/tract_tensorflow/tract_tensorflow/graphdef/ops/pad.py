"""Tensors made larger at their ends."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import Constant, DatumType, DType
from tract_core.dims import Dim
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.pad import PadConstant, PadReflect
from tract_core.ops.slice import wire_slice
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_dyn_pad, wire_pad
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


def zero_of(kind: DType) -> Constant:
    """0, false, or an empty text, of rank 0."""
    return Constant(np.array("", object) if kind is DatumType.STRING else np.zeros((), kind.numpy))


def _pads(wire: GraphWiring) -> Sequence[tuple[Dim, Dim]] | OutletId:
    """What is added before and after each axis: pairs where known, else first all before, then all after."""
    x, pads = wire.input(0), wire.input(1)
    wire.require_shape("list of paddings", pads, (wire.rank(x), 2))
    known = wire.dims(pads)
    if known is not None:
        return list(zip(known[0::2], known[1::2], strict=True))
    return wire.sizes(wire.transpose(pads, (1, 0)))


def _pad(wire: GraphWiring, value: OutletId | None) -> OutletId:
    x, pads, zero = wire.input(0), _pads(wire), PadConstant(zero_of(wire.dtype(wire.input(0))))
    if isinstance(pads, OutletId):
        return wire.through(wire_dyn_pad, x, pads, zero, value=value)
    if value is None:
        return wire.through(wire_pad, x, pads, zero)
    flat = wire.const([before for before, _ in pads] + [after for _, after in pads])
    return wire.through(wire_dyn_pad, x, flat, zero, value=value)


@tf_op(ROWS, "Pad")
def pad(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X with zeros around it"""
    return _pad(wire, None)


@tf_op(ROWS, "PadV2")
def pad_with(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X with the third input around it"""
    return _pad(wire, wire.number(wire.input(2)))


@tf_op(ROWS, "MirrorPad")
def mirror_pad(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X with its mirror images around it; SYMMETRIC repeats what is at the edge"""
    x, pads = wire.input(0), _pads(wire)
    if node.choice("mode", ("REFLECT", "SYMMETRIC")) == "REFLECT":
        if isinstance(pads, OutletId):
            return wire.through(wire_dyn_pad, x, pads, PadReflect())
        return wire.through(wire_pad, x, pads, PadReflect())
    if isinstance(pads, OutletId):
        raise Unsupported("the paddings of a symmetric MirrorPad are computed, wanted numbers or sizes of inputs")
    found = Wired(wire, x)
    for axis, (before, after) in enumerate(pads):
        found = _mirrored(found, axis, before, after)
    return found.outlet


def _mirrored(x: Wired, axis: int, before: Dim, after: Dim) -> Wired:
    size = x.shape[axis]
    parts = [x]
    if before != 0:
        parts.insert(0, _backwards(x.part(axis, 0, before), axis))
    if after != 0:
        parts.append(_backwards(x.part(axis, size - after, size), axis))
    return parts[0] if len(parts) == 1 else parts[0].op(TypedConcat(axis), *parts[1:])


def _backwards(x: Wired, axis: int) -> Wired:
    return x.through(wire_slice, axis, start=None, end=None, step=-1)
