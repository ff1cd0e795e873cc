"""One element of operators of others."""

from __future__ import annotations

from tract_llvm.elements.expressions import elements
from tract_llvm.language.types import element_type
from tract_llvm.language.values import Value

from tract_core.data import Constant
from tract_core.model.const import Const
from tract_core.plugins.tables import Rows
from tract_cpu.cpu_only.composed import Composed

ROWS = Rows()


@elements(ROWS, "fiub", Composed)
def composed(op: Composed, *operands: Value) -> Value:
    """The operators that it is made of, one after the other."""
    found: Value = op.expression.compute(operands)
    return found


def number(op: Const, like: Value) -> Value:
    """The number that a constant holds, as often as another value has lanes."""
    assert isinstance(op.value, Constant)  # it was looked at
    element = element_type(op.value.datum_type.storage)
    assert element is not None  # and so was its type
    return like.function.constant(op.value.array.reshape(-1)[0].item(), element.computed, like.lanes)
