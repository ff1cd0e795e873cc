"""Whether something behind a tensor turns a difference in the last digits into a large one.

Rules that change the last digits of a result ask this. Rounding to whole numbers, comparisons, the place of the
largest element and the like *jump*. Arithmetic *hands on* what comes in. Behind a matrix product, another sum, or a
function such as ``exp``, nobody can rely on last digits, which depend on the order of the sum and on the library that
computes the function; so what comes after those is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from functools import cache
from typing import Any, Final

from tract_core.model.bodies import bodies_of
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import binary, elementwise
from tract_core.ops.axis import AxisOp
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.conv import Convolution
from tract_core.ops.cumsum import Running
from tract_core.ops.downsample import Downsample
from tract_core.ops.einsum import EinSum
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.iff import Iff
from tract_core.ops.lrn import Lrn
from tract_core.ops.norm import RmsNorm
from tract_core.ops.pad import DynPad, Pad
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.reshape import DynReshape
from tract_core.ops.resize import DynResize, Resize
from tract_core.ops.scan import Scan
from tract_core.ops.scatter import ScatterElements, ScatterNd
from tract_core.ops.slice import DynSlice, Slice
from tract_core.ops.softmax import SoftmaxOp
from tract_core.ops.tile import DynTile, Tile

LOOKED_AT: Final = 1024
"""So many nodes are looked at; where there are more, something is taken to jump."""


class Effect(Enum):
    """What an operator makes of a difference in the last digits of what it reads."""

    JUMPS = "jumps"
    HANDS_ON = "hands on"
    BLURS = "blurs"


_HANDS_ON: Final = (
    *(AxisOp, Downsample, Gather, GatherElements, GatherNd, Identity, Iff, MultiBroadcastTo, Pad, Slice),
    *(DynPad, DynReshape, DynResize, DynSlice, DynTile, Resize, ScatterElements, ScatterNd, Tile, TypedConcat),
    *(binary.Add, binary.Div, binary.Max, binary.Min, binary.Mul, binary.Sub, binary.SubF),
    *(elementwise.Abs, elementwise.HardSwish, elementwise.LeakyRelu, elementwise.Neg, elementwise.Recip),
    *(elementwise.Rsqrt, elementwise.Sqrt, elementwise.Square),
)

_BLURS: Final = (
    *(Convolution, Running, EinSum, Lrn, RmsNorm, SoftmaxOp, SumPool, binary.Pow),
    *(elementwise.Acos, elementwise.Acosh, elementwise.Asin, elementwise.Asinh, elementwise.Atan, elementwise.Atanh),
    *(elementwise.Cos, elementwise.Cosh, elementwise.Erf, elementwise.Exp, elementwise.GeluApproximate),
    *(elementwise.GeluExact, elementwise.Ln, elementwise.PowConst, elementwise.Sigmoid, elementwise.Silu),
    *(elementwise.Sin, elementwise.Sinh, elementwise.Tan, elementwise.Tanh),
)


def feeds_jump(model: TypedModel, outlet: OutletId) -> bool:
    """Whether something that reads a tensor, or what is made of it, may turn a change in its last digits into more.

    What the outputs of the model are used for is not the model's concern. An operator that is not known jumps.
    """
    seen = {outlet.node}
    pending = [model.outlet(outlet)]
    while pending:
        for reader in pending.pop().successors:
            if reader.node in seen:
                continue
            node = model.nodes[reader.node]
            effect = _effect(node.op)
            if effect is Effect.JUMPS or len(seen) > LOOKED_AT:
                return True
            if effect is Effect.HANDS_ON:
                seen.add(reader.node)
                pending.extend(node.outputs)
    return False


def _effect(op: TypedOp) -> Effect:
    found = _effect_of_type(type(op))
    return found if isinstance(found, Effect) else found(op)


@cache
def _effect_of_type(kind: type) -> Effect | Callable[[Any], Effect]:
    return next((_EFFECTS[base] for base in kind.__mro__ if base in _EFFECTS), Effect.JUMPS)


def _of_cast(op: Cast) -> Effect:
    return Effect.HANDS_ON if op.to.is_float() and op.to.itemsize > 1 else Effect.JUMPS


def _of_reduce(op: Reduce) -> Effect:
    if op.reducer in (Reducer.MIN, Reducer.MAX):
        return Effect.HANDS_ON
    return Effect.BLURS if op.reducer in (Reducer.SUM, Reducer.PROD, Reducer.MEAN_OF_SQUARES) else Effect.JUMPS


def _of_max_pool(op: MaxPool) -> Effect:
    return Effect.HANDS_ON if op.indices is None else Effect.JUMPS


def _of_scan(op: Scan) -> Effect:
    """What a loop computes is handed on, unless something in its body jumps."""
    inner = [body.nodes[node] for body in bodies_of(op) for node in body.eval_order()]
    jumps = any(node.inputs and _effect(node.op) is Effect.JUMPS for node in inner)
    return Effect.JUMPS if jumps else Effect.HANDS_ON


_EFFECTS: Final[dict[type, Effect | Callable[[Any], Effect]]] = {
    **dict.fromkeys(_HANDS_ON, Effect.HANDS_ON),
    **dict.fromkeys(_BLURS, Effect.BLURS),
    Cast: _of_cast,
    MaxPool: _of_max_pool,
    Reduce: _of_reduce,
    Scan: _of_scan,
}
