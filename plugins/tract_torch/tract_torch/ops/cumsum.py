"""Running sums, products and extremes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Eq, Or
from tract_core.ops.cumsum import CumLogSumExp, CumMax, CumMin, CumProd, CumSum, Running
from tract_core.ops.elementwise import IsNan
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call
from tract_torch.wiring.positions import steps

ROWS = Rows()

_KINDS: Final[dict[str, type[Running]]] = {
    "cumsum": CumSum,
    "cumprod": CumProd,
    "logcumsumexp": CumLogSumExp,
    "cummax": CumMax,
    "cummin": CumMin,
}


@aten(ROWS, "aten.cumsum", "aten.cumprod", "aten.logcumsumexp")
def running(call: Call, wire: NodeWiring) -> OutletId:
    """The sum, the product, or the logarithm of the sum of exponentials, of the elements so far, along one axis"""
    x = wire.cast(call.input("self"), call.kind)
    kind = _KINDS[call.name.split(".")[1]]
    return wire.op(kind(call.axis("dim", wire.rank(x))), x) if wire.rank(x) else x


@aten(ROWS, "aten.cummax", "aten.cummin")
def extremes(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The largest or smallest element so far, along one axis, and where it was last; NaN, from the first NaN on

    An element that is the extreme so far gives its place; the largest such place is that of the last one.
    """
    x = call.input("self")
    if not wire.rank(x):
        return x, wire.const(0)
    axis = call.axis("dim", wire.rank(x))
    numbers = wire.cast(x, DatumType.U8) if call.kind is DatumType.BOOL else x
    found = wire.op(_KINDS[call.name.split(".")[1]](axis), numbers)
    extreme = wire.binary(Eq(), numbers, found)
    if call.kind.is_float():
        extreme = wire.binary(Or(), extreme, wire.op(IsNan(), numbers))
    here = steps(wire, 0, wire.shape(x)[axis])
    here = wire.unsqueeze(here, [place for place in range(wire.rank(x)) if place != axis])
    places = wire.op(CumMax(axis), wire.select(extreme, here, wire.scalar(0, here)))
    return wire.cast(found, call.kind), places
