"""One element of the operators that combine two elements."""

from __future__ import annotations

from math import copysign, isnan

from tract_core.ops.binary import (
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
    Div,
    Eq,
    Ge,
    Gt,
    Le,
    Lt,
    Max,
    Min,
    Mul,
    Ne,
    Or,
    ShiftLeft,
    ShiftRight,
    Sub,
    SubF,
    Xor,
)
from tract_core.ops.iff import Iff
from tract_core.plugins.tables import Rows
from tract_llvm.elements.expressions import CARRIED, COMPLEX, elements
from tract_llvm.language.function import where
from tract_llvm.language.types import bits_of
from tract_llvm.language.values import Value

ROWS = Rows()


@elements(ROWS, "fiu", Add, commutes=True)
def add(op: Add, a: Value, b: Value) -> Value:
    """The sum."""
    return a + b


@elements(ROWS, "fiu", Sub)
def subtract(op: Sub, a: Value, b: Value) -> Value:
    """The difference."""
    return a - b


@elements(ROWS, "fiu", SubF)
def subtract_from(op: SubF, a: Value, b: Value) -> Value:
    """The difference, the other way round."""
    return b - a


@elements(ROWS, "fiu", Mul, commutes=True)
def multiply(op: Mul, a: Value, b: Value) -> Value:
    """The product."""
    return a * b


@elements(ROWS, "fiu", Div)
def divide(op: Div, a: Value, b: Value) -> Value:
    """The quotient; integers towards zero, by zero zero; the least integer divided by -1 wraps around to itself."""
    if a.type.kind == "f":
        return a / b
    none = b.equals(0)
    if a.type.kind == "u":
        return where(none, a.like(0), a / where(none, b.like(1), b))
    turned = b.equals(-1)
    return where(none, a.like(0), where(turned, -a, a / where(none | turned, b.like(1), b)))


@elements(ROWS, "fiu", Min)
def smaller(op: Min, a: Value, b: Value) -> Value:
    """The smaller one, of two zeros -0.0; not a number if either is not."""
    return _extreme(a, b, largest=False)


@elements(ROWS, "fiu", Max)
def larger(op: Max, a: Value, b: Value) -> Value:
    """The larger one, of two zeros 0.0; not a number if either is not."""
    return _extreme(a, b, largest=True)


def _extreme(a: Value, b: Value, *, largest: bool) -> Value:
    """One comparison where a number is known, which says what a tie with it gives; else what IEEE 754-2019 says."""
    if a.type.kind != "f":
        return where(a > b if largest else a < b, a, b)
    x, limit = (a, b) if b.number is not None else (b, a)
    known = limit.number
    if known is None or isnan(known):
        if a.type.bits > a.function.isa.extremes_bits:
            return _written_out(a, b, largest=largest)
        return a.function.intrinsic("maximum" if largest else "minimum", a, b).with_digits_of(a, b)
    wins_ties = (copysign(1, known) > 0) == largest  # over the other zero, as anything else that is equal is the same
    beyond = ("<=" if wins_ties else "<") if largest else (">=" if wins_ties else ">")
    return where(x.compared(beyond, known), limit, x)


def _written_out(a: Value, b: Value, *, largest: bool) -> Value:
    """The same by comparisons; equal numbers differ in the sign of zero, if at all."""
    one, other = (value.bits(bits_of(value.type)) for value in (a, b))
    tie = (one & other if largest else one | other).bits(a.type)
    ordered = where(a > b if largest else a < b, a, where(a.equals(b), tie, b))
    return where(a.differs(a) | b.differs(b), a + b, ordered)


@elements(ROWS, "b", And, commutes=True)
@elements(ROWS, "iu", BitAnd, commutes=True)
def both(op: And | BitAnd, a: Value, b: Value) -> Value:
    """Every bit that both have"""
    return a & b


@elements(ROWS, "b", Or, commutes=True)
@elements(ROWS, "iu", BitOr, commutes=True)
def either(op: Or | BitOr, a: Value, b: Value) -> Value:
    """Every bit that one of them has"""
    return a | b


@elements(ROWS, "b", Xor, commutes=True)
@elements(ROWS, "iu", BitXor, commutes=True)
def one_of(op: Xor | BitXor, a: Value, b: Value) -> Value:
    """Every bit that just one of them has"""
    return a ^ b


@elements(ROWS, "iu", ShiftLeft)
def shift_left(op: ShiftLeft, a: Value, b: Value) -> Value:
    """A times 2 to the power b; by more bits than there are, and by less than none, 0."""
    inside = _is_shift(b)
    return where(inside, a << where(inside, b, b.like(0)), a.like(0))


@elements(ROWS, "iu", ShiftRight)
def shift_right(op: ShiftRight, a: Value, b: Value) -> Value:
    """A divided by 2 to the power b; by more bits than there are, and by less than none, only the sign is left."""
    inside = _is_shift(b)
    return (
        a >> where(inside, b, b.like(b.type.bits - 1))
        if a.type.kind == "i"
        else where(inside, a >> where(inside, b, b.like(0)), a.like(0))
    )


def _is_shift(b: Value) -> Value:
    return b < b.type.bits if b.type.kind == "u" else (b >= 0) & (b < b.type.bits)


@elements(ROWS, "fiub", Eq, commutes=True)
def equal(op: Eq, a: Value, b: Value) -> Value:
    """Whether both are the same number."""
    return a.equals(b)


@elements(ROWS, "fiub", Ne, commutes=True)
def not_equal(op: Ne, a: Value, b: Value) -> Value:
    """Whether they are not the same number."""
    return a.differs(b)


@elements(ROWS, "fiu", Lt)
def less(op: Lt, a: Value, b: Value) -> Value:
    """Whether the first is smaller."""
    return a < b


@elements(ROWS, "fiu", Gt)
def greater(op: Gt, a: Value, b: Value) -> Value:
    """Whether the first is larger."""
    return a > b


@elements(ROWS, "fiu", Le)
def less_or_equal(op: Le, a: Value, b: Value) -> Value:
    """Whether the first is not larger; false for not-a-number."""
    return a <= b


@elements(ROWS, "fiu", Ge)
def greater_or_equal(op: Ge, a: Value, b: Value) -> Value:
    """Whether the first is not smaller; false for not-a-number."""
    return a >= b


@elements(ROWS, "fiub" + CARRIED + COMPLEX, Iff)
def iff(op: Iff, condition: Value, if_true: Value, if_false: Value) -> Value:
    """if_true where the condition holds, else if_false"""
    return where(condition, if_true, if_false)
