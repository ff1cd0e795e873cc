"""What programs for rows are made of: loads, operators on elements, and reductions, by the numbers of values."""

from __future__ import annotations

from tract_core.frozen import frozen
from tract_core.ops.reduce import Reducer
from tract_llvm.elements.expressions import Apply
from tract_llvm.language.types import ElementType


@frozen
class Load:
    """The element of a tensor, by the tensor's number. ``result``: the type of the value."""

    tensor: int
    result: ElementType


@frozen
class Fold:
    """All values of a row that have a number, ``operand``, reduced to one, whose type is ``result``."""

    reducer: Reducer
    operand: int
    result: ElementType


RowStep = Load | Apply | Fold


def operands_of(step: RowStep) -> tuple[int, ...]:
    """The numbers of the values that a step is computed of."""
    if isinstance(step, Load):
        return ()
    return step.operands if isinstance(step, Apply) else (step.operand,)
