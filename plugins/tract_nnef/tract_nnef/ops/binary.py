"""Operators that combine two tensors element by element.

Where ranks differ, axes of size 1 are added behind those of the lower rank, as the standard wants it; what is written
as a number takes the element type of the other operand.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType, QuantizedType
from tract_core.model.graph import OutletId
from tract_core.ops import binary
from tract_core.ops.cast import AsQuantized
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.reading.values import Value
from tract_nnef.registry import CORE, NNEF_WRITE, PY, STANDARD, reads
from tract_nnef.syntax.ast import Expression, Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_STANDARD: Final[Mapping[str, type[binary.Binary]]] = {
    "add": binary.Add,
    "sub": binary.Sub,
    "mul": binary.Mul,
    "div": binary.Div,
    "pow": binary.Pow,
    "min": binary.Min,
    "max": binary.Max,
    "lt": binary.Lt,
    "le": binary.Le,
    "gt": binary.Gt,
    "ge": binary.Ge,
    "eq": binary.Eq,
    "ne": binary.Ne,
    "and": binary.And,
    "or": binary.Or,
}
_EXTENDED: Final[Mapping[str, type[binary.Binary]]] = {
    "tract_core_xor": binary.Xor,
    "tract_core_bitand": binary.BitAnd,
    "tract_core_bitor": binary.BitOr,
    "tract_core_bitxor": binary.BitXor,
    "tract_shl": binary.ShiftLeft,
    "tract_shr": binary.ShiftRight,
}
_OPS: Final = {**_STANDARD, **_EXTENDED}
_NAMES: Final[Mapping[type, tuple[str, str]]] = {
    op: (name, STANDARD if name in _STANDARD else CORE) for name, op in _OPS.items()
}


@reads(ROWS, STANDARD, *(f"{name}(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>)" for name in _STANDARD))
@reads(ROWS, CORE, *(f"{name}(x: tensor<scalar>, y: tensor<scalar>) -> (z: tensor<scalar>)" for name in _EXTENDED))
def read_binary(call: Call) -> OutletId:
    """The operator of that name, on operands of one rank and type; of quantised ones on what they stand for.

    Integers of 32 bits that are added to a sum of quantised products, as a bias is, count in the steps of that sum.
    """
    op = _OPS[call.name]
    given = [call.value(name) for name in ("x", "y")]
    a, b = call.together(_in_steps(call, given) if op in (binary.Add, binary.Sub) else given)
    if op not in binary.ON_STORED:
        a, b = call.real(a), call.real(b)
    return call.op(op(), a, b)


def _in_steps(call: Call, given: Sequence[Value]) -> Sequence[Value]:
    kinds = [call.dtype(one) if isinstance(one, OutletId) else None for one in given]
    sums = next((kind for kind in kinds if isinstance(kind, QuantizedType)), None)
    if sums is None or sums.storage is not DatumType.I32 or sums.zero_point or DatumType.I32 not in kinds:
        return given
    return [
        call.op(AsQuantized(sums), one) if kind is DatumType.I32 and isinstance(one, OutletId) else one
        for one, kind in zip(given, kinds, strict=True)
    ]


@reads(ROWS, STANDARD, "add_n(x: tensor<scalar>[]) -> (y: tensor<scalar>)")
def read_add_n(call: Call) -> OutletId:
    """The sum of several tensors; of none, a zero."""
    total = call.constant_array(np.zeros(1, np.float32))
    for count, x in enumerate(call.inputs("x")):
        total = call.op(binary.Add(), *call.together([total, call.real(x)])) if count else call.real(x)
    return total


@ROWS.row(NNEF_WRITE, *_NAMES)
def write_binary(op: binary.Binary, node: Spelling) -> Invocation | None:
    """By its name in one registry or the other."""
    name, registry = _NAMES[type(op)]
    return node.invoke(name, *node.inputs, registry=registry)


@ROWS.row(NNEF_WRITE, binary.SubF)
def write_swapped(op: binary.SubF, node: Spelling) -> Invocation | None:
    """As a difference with swapped operands, which declutter swaps back where the second is known or smaller."""
    a, b = node.input_fact(0), node.input_fact(1)
    if node.allows(PY) and a.shape == b.shape and b.value is None:
        return None
    return node.invoke("sub", node.input(1), node.input(0))


@ROWS.row(NNEF_WRITE, binary.Rem, binary.FloorRem)
def write_remainder(op: binary.Rem | binary.FloorRem, node: Spelling) -> Invocation | None:
    """For engines that have no remainders: of integers by known ones, as what quotients leave.

    That comes back as other operators, so it is said as it is where that is allowed. Floats would lose digits.
    """
    divisor = node.input_fact(1).constant
    if node.allows(PY) or divisor is None or divisor.dtype.kind not in "iu":
        return None
    if (divisor == 0).any() or not (np.abs(divisor.astype(np.float64)) < np.iinfo(divisor.dtype).max // 2).all():
        return None  # by nothing, or sums may be larger than the type has
    a, b = node.inputs
    rest = _remainder(node, "rest", a, b)
    if rest is None or isinstance(op, binary.Rem):
        return rest
    moved = node.invoke("add", node.let("rest", rest), b)
    return None if moved is None else _remainder(node, "moved", node.let("moved", moved), b)


def _remainder(node: Spelling, what: str, a: Expression, b: Expression) -> Invocation | None:
    quotient = node.invoke("div", a, b)
    product = None if quotient is None else node.invoke("mul", node.let(f"{what}_quotient", quotient), b)
    return None if product is None else node.invoke("sub", a, node.let(f"{what}_product", product))
