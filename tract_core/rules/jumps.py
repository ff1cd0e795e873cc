"""Whether something behind a tensor turns a difference in the last digits into a large one.

Rules that change the last digits of a result ask this. Rounding to whole numbers, comparisons, the place of the
largest element and the like *jump*. Arithmetic *hands on* what comes in. Behind a matrix product, another sum, or a
function such as ``exp``, nobody can rely on last digits, which depend on the order of the sum and on the library that
computes the function; so what comes after those is not looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import cache
from typing import Any, Final

from tract_core.model.bodies import bodies_of
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.plugins.tables import key_text

LOOKED_AT: Final = 1024
"""So many nodes are looked at; where there are more, something is taken to jump."""


class Effect(Enum):
    """What an operator makes of a difference in the last digits of what it reads."""

    JUMPS = "jumps"
    HANDS_ON = "hands on"
    BLURS = "blurs"


_HANDS_ON: Final = {
    "axis": "AxisOp",
    "binary": "Add Div Max Min Mul Sub SubF",
    "broadcast": "MultiBroadcastTo",
    "concat": "TypedConcat",
    "downsample": "Downsample",
    "elementwise": "Abs HardSwish LeakyRelu Neg Recip Rsqrt Sqrt Square",
    "gather": "Gather GatherElements GatherNd",
    "iff": "Iff",
    "pad": "DynPad Pad",
    "reshape": "DynReshape",
    "resize": "DynResize Resize",
    "scatter": "ScatterElements ScatterNd",
    "slice": "DynSlice Slice",
    "tile": "DynTile Tile",
}
"""Operators, or a base class of theirs, by module of `tract_core.ops`: as text, as few models have all of them."""

_BLURS: Final = {
    "binary": "Pow",
    "conv": "Convolution",
    "cumsum": "Running",
    "einsum": "EinSum",
    "elementwise": "Acos Acosh Asin Asinh Atan Atanh Cos Cosh Erf Exp GeluApproximate GeluExact Ln PowConst "
    "Sigmoid Silu Sin Sinh Tan Tanh",
    "indexed_matmul": "IndexedMatMul",
    "lrn": "Lrn",
    "norm": "RmsNorm",
    "pool": "SumPool",
    "softmax": "SoftmaxOp",
}

_JUMPS: Final = {
    "binary": "And BitAnd BitOr BitXor Comparison FloorRem Or Rem ShiftLeft ShiftRight Xor",
    "elementwise": "BitNot Ceil FloatTest Floor Not Round RoundHalfToEven Sign",
}
"""Said of operators on elements, so that a test sees which of them nothing is said of: such an operator jumps, too."""


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
    return next((_EFFECTS[base] for base in map(key_text, kind.__mro__) if base in _EFFECTS), Effect.JUMPS)


def _of_cast(op: Any) -> Effect:
    return Effect.HANDS_ON if op.to.is_float() and op.to.itemsize > 1 else Effect.JUMPS


def _of_reduce(op: Any) -> Effect:
    if op.reducer.name in ("MIN", "MAX"):
        return Effect.HANDS_ON
    return Effect.BLURS if op.reducer.name in ("SUM", "PROD", "MEAN_OF_SQUARES") else Effect.JUMPS


def _of_max_pool(op: Any) -> Effect:
    return Effect.HANDS_ON if op.indices is None else Effect.JUMPS


def _of_scan(op: Any) -> Effect:
    """What a loop computes is handed on, unless something in its body jumps."""
    inner = [body.nodes[node] for body in bodies_of(op) for node in body.eval_order()]
    jumps = any(node.inputs and _effect(node.op) is Effect.JUMPS for node in inner)
    return Effect.JUMPS if jumps else Effect.HANDS_ON


def _keys(classes: Mapping[str, str]) -> list[str]:
    return [f"tract_core.ops.{module}:{name}" for module, names in classes.items() for name in names.split()]


_EFFECTS: Final[dict[str, Effect | Callable[[Any], Effect]]] = {
    **dict.fromkeys(_keys(_HANDS_ON), Effect.HANDS_ON),
    **dict.fromkeys(_keys(_BLURS), Effect.BLURS),
    **dict.fromkeys(_keys(_JUMPS), Effect.JUMPS),
    key_text(Identity): Effect.HANDS_ON,
    "tract_core.ops.cast:Cast": _of_cast,
    "tract_core.ops.pool:MaxPool": _of_max_pool,
    "tract_core.ops.reduce:Reduce": _of_reduce,
    "tract_core.ops.scan:Scan": _of_scan,
}
