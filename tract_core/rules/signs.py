"""What the operators in front of a tensor say about the signs of its elements."""

from __future__ import annotations

import math
from typing import Any, Final

from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add, Div, Mul
from tract_core.ops.conv import Convolution
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Abs, Exp, Sigmoid, Square
from tract_core.ops.pool import SumPool
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.rules.pattern import uniform

_NEVER_NEGATIVE: Final = (Abs, Square, Exp, Sigmoid)
_SUMS: Final = (EinSum, Convolution, SumPool)
_SUMMED: Final = frozenset({Reducer.SUM, Reducer.MEAN_OF_SQUARES})


def never_negative(model: TypedModel, outlet: OutletId, depth: int = 4) -> bool:
    """Whether no element of a tensor of reals is below 0 or -0.0; they may well be not-a-number."""
    node = model.nodes[outlet.node]
    op: Any = node.op
    if model.outlet_fact(outlet).datum_type.is_complex():
        return False
    if isinstance(op, _NEVER_NEGATIVE) or (isinstance(op, Reduce) and op.reducer is Reducer.MEAN_OF_SQUARES):
        return True
    known = uniform(model, outlet)
    if known is not None:
        return math.copysign(1.0, known) > 0 or math.isnan(known)
    keeps = isinstance(op, (Add, Mul, Div)) or (isinstance(op, Reduce) and op.reducer is Reducer.SUM)
    return depth > 0 and keeps and all(never_negative(model, source, depth - 1) for source in node.inputs)


def zeros_without_sign(model: TypedModel, outlet: OutletId) -> bool:
    """Whether nobody can rely on the sign of a zero: there is no -0.0, or a sum in no certain order gave it."""
    op: Any = model.nodes[outlet.node].op
    summed = isinstance(op, _SUMS) or (isinstance(op, Reduce) and op.reducer in _SUMMED)
    return summed or never_negative(model, outlet)
