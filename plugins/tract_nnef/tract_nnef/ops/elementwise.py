"""Operators that compute each element from the one in the same place."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_core.model.graph import OutletId
from tract_core.ops import elementwise
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_STANDARD: Final[Mapping[str, type[elementwise.ElementWise]]] = {
    "abs": elementwise.Abs,
    "acos": elementwise.Acos,
    "acosh": elementwise.Acosh,
    "asin": elementwise.Asin,
    "asinh": elementwise.Asinh,
    "atan": elementwise.Atan,
    "atanh": elementwise.Atanh,
    "ceil": elementwise.Ceil,
    "cos": elementwise.Cos,
    "cosh": elementwise.Cosh,
    "exp": elementwise.Exp,
    "floor": elementwise.Floor,
    "log": elementwise.Ln,
    "neg": elementwise.Neg,
    "not": elementwise.Not,
    "recip": elementwise.Recip,
    "round": elementwise.Round,
    "rsqrt": elementwise.Rsqrt,
    "sigmoid": elementwise.Sigmoid,
    "sign": elementwise.Sign,
    "sin": elementwise.Sin,
    "sinh": elementwise.Sinh,
    "sqrt": elementwise.Sqrt,
    "square": elementwise.Square,
    "tan": elementwise.Tan,
    "tanh": elementwise.Tanh,
}
_EXTENDED: Final[Mapping[str, type[elementwise.ElementWise]]] = {
    "tract_core_round_even": elementwise.RoundHalfToEven,
    "tract_core_erf": elementwise.Erf,
    "tract_core_hard_swish": elementwise.HardSwish,
    "tract_core_bitnot": elementwise.BitNot,
    "tract_core_is_nan": elementwise.IsNan,
    "tract_core_silu": elementwise.Silu,
}
_ALIASES: Final[Mapping[str, type[elementwise.ElementWise]]] = {
    "rcp": elementwise.Recip,
    "sqr": elementwise.Square,
}
"""How the standard calls what the tract engines write under other names."""

_OPS: Final = {**_STANDARD, **_EXTENDED, **_ALIASES}
_NAMES: Final[Mapping[type, tuple[str, str]]] = {
    **{op: (name, STANDARD) for name, op in _STANDARD.items()},
    **{op: (name, CORE) for name, op in _EXTENDED.items()},
}
_DECLARED: Final = "{}(x: tensor<scalar>) -> (y: tensor<scalar>)"


@reads(ROWS, STANDARD, *map(_DECLARED.format, (*_STANDARD, *_ALIASES)))
@reads(ROWS, CORE, *map(_DECLARED.format, _EXTENDED))
def read_elementwise(call: Call) -> OutletId:
    """The function of that name."""
    return call.op(_OPS[call.name](), call.tensor("x"))


@ROWS.row(NNEF_WRITE, *_NAMES)
def write_elementwise(op: elementwise.ElementWise, node: Spelling) -> Invocation | None:
    """By its name in one registry or the other."""
    name, registry = _NAMES[type(op)]
    return node.invoke(name, node.input(0), registry=registry)
