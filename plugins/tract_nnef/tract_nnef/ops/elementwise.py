"""Operators that compute each element from the one in the same place."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops import elementwise
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, STANDARD, TRANSFORMERS, reads
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
    "gelu": elementwise.GeluExact,
    "silu": elementwise.Silu,
}
"""How the standard calls what the tract engines write under other names."""

_OLD: Final[Mapping[str, type[elementwise.ElementWise]]] = {"tract_transformers_silu": elementwise.Silu}
"""Names from when there was another registry for it."""

_ROUNDING: Final = frozenset((elementwise.Ceil, elementwise.Floor, elementwise.Round, elementwise.RoundHalfToEven))
"""Functions that leave integers as they are."""

_OPS: Final = {**_STANDARD, **_EXTENDED, **_ALIASES, **_OLD}
_NAMES: Final[Mapping[type, tuple[str, str]]] = {
    **{op: (name, STANDARD) for name, op in _STANDARD.items()},
    **{op: (name, CORE) for name, op in _EXTENDED.items()},
}
_DECLARED: Final = "{}(x: tensor<scalar>) -> (y: tensor<scalar>)"


@reads(ROWS, STANDARD, *map(_DECLARED.format, (*_STANDARD, *_ALIASES)))
@reads(ROWS, CORE, *map(_DECLARED.format, (*_EXTENDED, *_OLD)))
@reads(ROWS, TRANSFORMERS, *map(_DECLARED.format, _OLD))
def read_elementwise(call: Call) -> OutletId:
    """The function of that name; of a quantised tensor, on what it stands for."""
    x, kind = call.real(call.input("x")), _OPS[call.name]
    if kind in _ROUNDING and call.dtype(x).is_integer():
        return x
    if kind is elementwise.BitNot and call.dtype(x).is_bool():
        kind = elementwise.Not
    return call.op(kind(), x)


@ROWS.row(NNEF_WRITE, *_NAMES)
def write_elementwise(op: elementwise.ElementWise, node: Spelling) -> Invocation | None:
    """By its name in one registry or the other."""
    name, registry = _NAMES[type(op)]
    return node.invoke(name, node.input(0), registry=registry)


@reads(ROWS, CORE, "tract_core_pow_const(input: tensor<scalar>, exponent: scalar) -> (output: tensor<scalar>)")
def read_pow_const(call: Call) -> OutletId:
    """A power that is known."""
    return call.op(elementwise.PowConst(call.number("exponent")), call.input("input"))


@ROWS.row(NNEF_WRITE, elementwise.PowConst)
def write_pow_const(op: elementwise.PowConst, node: Spelling) -> Invocation | None:
    """With the exponent as it is."""
    return node.invoke("tract_core_pow_const", node.input(0), exponent=op.exponent, registry=CORE)


_GELU: Final = "(input: tensor<scalar>, fast_impl: logical = false) -> (output: tensor<scalar>)"


@reads(ROWS, CORE, f"tract_core_gelu_approx{_GELU}", f"tract_transformers_gelu_approx{_GELU}")
@reads(ROWS, TRANSFORMERS, f"tract_transformers_gelu_approx{_GELU}")
def read_gelu_approx(call: Call) -> OutletId:
    """By the hyperbolic tangent, of a cubic or, in the fast form, of a square."""
    return call.op(elementwise.GeluApproximate(call.flag("fast_impl")), call.input("input"))


@ROWS.row(NNEF_WRITE, elementwise.GeluApproximate)
def write_gelu_approx(op: elementwise.GeluApproximate, node: Spelling) -> Invocation | None:
    """With the form that is wanted."""
    return node.invoke("tract_core_gelu_approx", node.input(0), fast_impl=op.fast_impl, registry=CORE)


@reads(
    ROWS,
    CORE,
    "tract_core_is_inf(input: tensor<scalar>, detect_positive: logical = true, detect_negative: logical = true)"
    " -> (output: tensor<logical>)",
)
def read_is_inf(call: Call) -> OutletId:
    """Of the signs that are asked for."""
    op = elementwise.IsInf(call.flag("detect_positive"), call.flag("detect_negative"))
    return call.op(op, call.input("input"))


@ROWS.row(NNEF_WRITE, elementwise.IsInf)
def write_is_inf(op: elementwise.IsInf, node: Spelling) -> Invocation | None:
    """With both signs, asked for or not."""
    signs = {"detect_positive": op.detect_positive, "detect_negative": op.detect_negative}
    return node.invoke("tract_core_is_inf", node.input(0), **signs, registry=CORE)


@reads(ROWS, STANDARD, "leaky_relu(x: tensor<scalar>, alpha: scalar) -> (y: tensor<scalar>)")
def read_leaky_relu(call: Call) -> OutletId:
    """``alpha`` times what is negative."""
    return call.op(elementwise.LeakyRelu(call.number("alpha")), call.real(call.input("x")))


@ROWS.row(NNEF_WRITE, elementwise.LeakyRelu)
def write_leaky_relu(op: elementwise.LeakyRelu, node: Spelling) -> Invocation | None:
    """By its slope."""
    return node.invoke("leaky_relu", node.input(0), alpha=op.alpha)


@ROWS.row(NNEF_WRITE, elementwise.GeluExact)
def write_gelu_exact(op: elementwise.GeluExact, node: Spelling) -> Invocation | None:
    """As ``x/2 * (1 + erf(x/sqrt(2)))``, in which it is found again when that is read.

    That form rounds more often, so that types narrower than f32 keep the operator where that can be said; so does one
    whose parts would have sizes in other words. Where the error function cannot be said, the name of the standard is
    left, which the established engine does not know.
    """
    kind = node.input_fact(0).datum_type
    if not node.allows(CORE):
        return node.invoke("gelu", node.input(0))
    if kind not in (DatumType.F32, DatumType.F64) and node.allows(PY):
        return None
    if node.allows(PY) and not node.is_settled(node.input_fact(0).shape):
        return None
    x, root = node.input(0), float(kind.numpy.type(math.sqrt(0.5)))
    inside = node.let("inside", node.invoke("mul", x, root))
    erf = node.let("erf", node.invoke("tract_core_erf", inside, registry=CORE))
    gate = node.let("gate", node.invoke("add", erf, 1.0))
    half = node.let("half", node.invoke("mul", x, 0.5))
    return node.invoke("mul", half, gate)
