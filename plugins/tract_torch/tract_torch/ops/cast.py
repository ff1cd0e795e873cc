"""Element types, and what leaves a tensor as it is."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(
    ROWS,
    "aten._to_copy",
    "aten.to.dtype",
    "aten.to.dtype_layout",
    "aten.to.device",
    "aten.type_as",
    "aten.clone",
    "aten.contiguous",
    "aten.detach",
    "aten.detach_",
    "aten.alias",
    "aten.detach_copy",
    "aten.lift",
    "aten.lift_fresh",
    "aten.lift_fresh_copy",
)
def same(call: Call, wire: NodeWiring) -> OutletId:
    """The same elements, in the type that is asked for"""
    return _converted(wire, call.input("self"), call.kind)


@aten(ROWS, "prims.convert_element_type")
def convert(call: Call, wire: NodeWiring) -> OutletId:
    """The same elements, in the type that is asked for"""
    return _converted(wire, call.input("a"), call.kind)


def _converted(wire: NodeWiring, x: OutletId, kind: DatumType) -> OutletId:
    """Elements in a type; floats become u8 by way of i64, so that -1.5 is 255."""
    whole = wire.cast(x, DatumType.I64) if kind is DatumType.U8 and wire.dtype(x).is_float() else x
    return wire.cast(whole, kind)


_DROPOUTS = ("dropout", "alpha_dropout", "feature_dropout", "feature_alpha_dropout")


@aten(ROWS, *(f"aten.{name}" for name in _DROPOUTS))
def dropout(call: Call, wire: NodeWiring) -> OutletId:
    """Nothing, in evaluation mode. Raises Unsupported in training mode"""
    if call.flag("train"):
        raise Unsupported("dropout in training mode", hint="give the module's own mode: training=self.training")
    return call.input("input")


@aten(ROWS, "aten.native_dropout")
def native_dropout(call: Call, wire: NodeWiring) -> tuple[OutletId, OutletId]:
    """Nothing, in evaluation mode, and a mask of what is kept: all. Raises Unsupported in training mode"""
    x = dropout(call, wire)
    return x, wire.broadcast(wire.const(np.ones((1,) * wire.rank(x), bool)), wire.shape(x))
