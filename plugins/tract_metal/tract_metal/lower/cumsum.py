"""Elements joined one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import mlx.core as mx

from tract_core.ops.cumsum import CumLogSumExp, CumMax, CumMin, CumProd, CumSum, Running
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.lower.extremes import in_order
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()

_MEANING: Final[Mapping[type[Running], Callable[..., mx.array]]] = {
    CumSum: mx.cumsum,
    CumProd: mx.cumprod,
    CumMax: mx.cummax,
    CumMin: mx.cummin,
    CumLogSumExp: mx.logcumsumexp,
}


@ROWS.row(METAL, *_MEANING)
def lower_running(op: Running, site: Site) -> Callable[[mx.array], mx.array]:
    """Narrow floats are joined in f32."""
    join: Callable[..., Any] = _MEANING[type(op)]

    def along(x: mx.array) -> mx.array:
        return join(x, axis=op.axis, reverse=op.reverse, inclusive=not op.exclusive)

    def joined(x: mx.array) -> mx.array:
        if x.size == 0:
            return x
        if isinstance(op, CumMax | CumMin):
            return in_order(x, along, least=isinstance(op, CumMin))
        found = along(wide(x))
        return (found + mx.zeros_like(found) if isinstance(op, CumSum) else found).astype(x.dtype)

    return joined
