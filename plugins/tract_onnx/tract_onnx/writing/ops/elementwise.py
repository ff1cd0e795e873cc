"""Functions of one tensor, element by element."""

from __future__ import annotations

from collections.abc import Mapping
from math import pi, sqrt
from typing import Final

from tract_core.ops import elementwise
from tract_core.ops.elementwise import ElementWise
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()

_PLAIN: Final[Mapping[type[ElementWise], str]] = {
    elementwise.Abs: "Abs",
    elementwise.Acos: "Acos",
    elementwise.Acosh: "Acosh",
    elementwise.Asin: "Asin",
    elementwise.Asinh: "Asinh",
    elementwise.Atan: "Atan",
    elementwise.Atanh: "Atanh",
    elementwise.Ceil: "Ceil",
    elementwise.Cos: "Cos",
    elementwise.Cosh: "Cosh",
    elementwise.Erf: "Erf",
    elementwise.Exp: "Exp",
    elementwise.Floor: "Floor",
    elementwise.HardSwish: "HardSwish",
    elementwise.IsNan: "IsNaN",
    elementwise.Ln: "Log",
    elementwise.Neg: "Neg",
    elementwise.Not: "Not",
    elementwise.Recip: "Reciprocal",
    elementwise.RoundHalfToEven: "Round",
    elementwise.Sigmoid: "Sigmoid",
    elementwise.Sign: "Sign",
    elementwise.Sin: "Sin",
    elementwise.Sinh: "Sinh",
    elementwise.Sqrt: "Sqrt",
    elementwise.Tan: "Tan",
    elementwise.Tanh: "Tanh",
}


def plain(op: ElementWise, node: Spelling) -> str:
    """The operator of that meaning"""
    return node.add(_PLAIN[type(op)], node.input())


for _kind in _PLAIN:
    ROWS.row(ONNX_WRITE, _kind)(plain)


@ROWS.row(ONNX_WRITE, elementwise.BitNot)
def bit_not(op: elementwise.BitNot, node: Spelling) -> str | None:
    """BitwiseNot, which there is from version 18 on"""
    return node.add("BitwiseNot", node.input()) if node.opset >= 18 else None


@ROWS.row(ONNX_WRITE, elementwise.IsInf)
def is_inf(op: elementwise.IsInf, node: Spelling) -> str:
    """IsInf"""
    signs = {"detect_positive": int(op.detect_positive), "detect_negative": int(op.detect_negative)}
    return node.add("IsInf", node.input(), **signs)


@ROWS.row(ONNX_WRITE, elementwise.Square)
def square(op: elementwise.Square, node: Spelling) -> str:
    """X * x"""
    return node.add("Mul", node.input(), node.input())


@ROWS.row(ONNX_WRITE, elementwise.Rsqrt)
def rsqrt(op: elementwise.Rsqrt, node: Spelling) -> str:
    """1 / sqrt(x)"""
    return node.add("Reciprocal", node.add("Sqrt", node.input()))


@ROWS.row(ONNX_WRITE, elementwise.PowConst)
def power(op: elementwise.PowConst, node: Spelling) -> str:
    """Pow"""
    return node.add("Pow", node.input(), node.constant(op.exponent, node.fact().datum_type))


@ROWS.row(ONNX_WRITE, elementwise.LeakyRelu)
def leaky_relu(op: elementwise.LeakyRelu, node: Spelling) -> str:
    """LeakyRelu"""
    return node.add("LeakyRelu", node.input(), alpha=op.alpha)


@ROWS.row(ONNX_WRITE, elementwise.Silu)
def silu(op: elementwise.Silu, node: Spelling) -> str:
    """X * sigmoid(x)"""
    return node.add("Mul", node.input(), node.add("Sigmoid", node.input()))


@ROWS.row(ONNX_WRITE, elementwise.Round)
def round_away(op: elementwise.Round, node: Spelling) -> str:
    """The sign times the magnitude, of whose fraction a half is enough for one more"""
    kind, x = node.fact().datum_type, node.input()
    magnitude = node.add("Abs", x)
    below = node.add("Floor", magnitude)
    more = node.add("GreaterOrEqual", node.add("Sub", magnitude, below), node.constant(0.5, kind))
    return node.add("Mul", node.add("Sign", x), node.add("Add", below, node.cast(more, kind)))


@ROWS.row(ONNX_WRITE, elementwise.GeluExact)
def gelu(op: elementwise.GeluExact, node: Spelling) -> str:
    """Gelu, which there is from version 20 on"""
    if node.opset >= 20:
        return node.add("Gelu", node.input())
    kind, x = node.fact().datum_type, node.input()
    erf = node.add("Erf", node.add("Mul", x, node.constant(sqrt(0.5), kind)))
    half = node.add("Mul", x, node.constant(0.5, kind))
    return node.add("Mul", half, node.add("Add", erf, node.constant(1, kind)))


@ROWS.row(ONNX_WRITE, elementwise.GeluApproximate)
def gelu_approximate(op: elementwise.GeluApproximate, node: Spelling) -> str:
    """Gelu with tanh; with a square, what it is made of"""
    if node.opset >= 20 and not op.fast_impl:
        return node.add("Gelu", node.input(), approximate="tanh")
    kind, x = node.fact().datum_type, node.input()
    many = node.add("Mul", x, x) if op.fast_impl else node.add("Mul", node.add("Mul", x, x), x)
    inner = node.add("Add", x, node.add("Mul", many, node.constant(0.044715, kind)))
    tanh = node.add("Tanh", node.add("Mul", inner, node.constant(sqrt(2 / pi), kind)))
    half = node.add("Mul", x, node.constant(0.5, kind))
    return node.add("Mul", half, node.add("Add", tanh, node.constant(1, kind)))
