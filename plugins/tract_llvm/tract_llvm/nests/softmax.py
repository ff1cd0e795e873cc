"""Softmax and its logarithm, in three passes: the largest element, the sum of the powers, and the result."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.ops.binary import Mul, Sub
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Exp, Ln, Recip
from tract_core.ops.reduce import Reducer
from tract_core.ops.softmax import LogSoftmax, Softmax, SoftmaxOp
from tract_core.plugins.tables import Rows
from tract_llvm.fuse.nest import Nest, nests
from tract_llvm.language.types import ElementType

ROWS = Rows()


def widened(nest: Nest, x: int) -> int:
    """A value in the type that it is computed in, which no operator rounds to fewer digits."""
    type_ = nest.type_of(x)
    return x if type_.computed is type_ else nest.apply(Cast(DatumType.F32), x, result=type_.computed)


def narrowed(nest: Nest, x: int, result: ElementType) -> int:
    """A value rounded to the type of the result."""
    return x if nest.type_of(x) is result else nest.apply(Cast(DatumType[result.name.upper()]), x, result=result)


def _shifted(nest: Nest, x: int) -> int:
    wide = widened(nest, x)
    return nest.apply(Sub(), wide, nest.fold(Reducer.MAX, wide))


@nests(ROWS, lambda op: op.axes, Softmax)
def softmax(op: SoftmaxOp, nest: Nest, x: int, result: ElementType) -> int:
    """Powers of what is left of the largest element, times one over their sum, which is at least 1."""
    powers = nest.apply(Exp(), _shifted(nest, x))
    share = nest.apply(Recip(), nest.fold(Reducer.SUM, powers))
    return narrowed(nest, nest.apply(Mul(), powers, share), result)


@nests(ROWS, lambda op: op.axes, LogSoftmax)
def log_softmax(op: SoftmaxOp, nest: Nest, x: int, result: ElementType) -> int:
    """What is left of the largest element, less the logarithm of the sum of the powers."""
    shifted = _shifted(nest, x)
    total = nest.fold(Reducer.SUM, nest.apply(Exp(), shifted))
    return narrowed(nest, nest.apply(Sub(), shifted, nest.apply(Ln(), total)), result)
