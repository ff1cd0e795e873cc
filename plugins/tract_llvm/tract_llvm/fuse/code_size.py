"""How much code operators on elements are, so that no function grows without bound.

What a chain or a program for rows takes more goes into the next kernel, which reads what this one wrote: results are
the same. The time to compile a kernel grows with its code, and faster than that where it is long.
"""

from __future__ import annotations

from typing import Final

from tract_core.model.const import Const
from tract_core.ops.binary import (
    Add,
    And,
    BitAnd,
    BitOr,
    BitXor,
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
    Sub,
    SubF,
    Xor,
)
from tract_core.ops.cast import Cast
from tract_core.ops.elementwise import Abs, BitNot, IsInf, IsNan, LeakyRelu, Neg, Not, Square
from tract_core.ops.iff import Iff
from tract_llvm.elements.expressions import Apply, Composite
from tract_llvm.fuse.steps import RowStep

CHEAP: Final = frozenset({
    Add, And, BitAnd, BitOr, BitXor, Eq, Ge, Gt, Le, Lt, Max, Min, Mul, Ne, Or, Sub, SubF, Xor,
    Cast, Abs, BitNot, IsInf, IsNan, LeakyRelu, Neg, Not, Square, Iff,
})  # fmt: skip
"""Operators that are computed again in a later pass rather than laid down in memory."""

MOST_CODE: Final = 64
"""How much code a chain may be.

Measured with AVX-512: of a chain of 512 additions, one of an element takes 0.03 ns in kernels of 16 to 64 of them, and
0.05 in a single one. A product of matrices with 16 sines behind it takes 3 s to compile, 0.2 s for each, one with 128
takes 62 s.
"""

_COSTLY: Final = 4


def code_size(step: RowStep) -> int:
    """How much code a step is: 1 for a load, a sum or a cheap operator."""
    if isinstance(step, Apply) and isinstance(step.op, Composite):
        return sum(1 if isinstance(one.op, Const) else code_size(one) for one in step.op.expression.steps)
    return _COSTLY if isinstance(step, Apply) and type(step.op) not in CHEAP else 1
