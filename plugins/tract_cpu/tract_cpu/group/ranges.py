"""Between which numbers the elements of a tensor of integers surely lie, so that narrower products serve for it.

The table ``cpu_ranges`` says, for a type of operators, what follows for the result from what is known of the inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from tract_llvm.language.types import ElementType

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.binary import Add, Max, Min, Sub
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows, TableKey, function_row
from tract_cpu.group.known import CpuKnown

ROWS = Rows()

MOST_NODES: Final = 8
"""How far back is looked."""


@frozen
class IntegerRange:
    """From ``low`` to ``high``, both included."""

    low: int
    high: int

    @property
    def most(self) -> int:
        """How far from 0 its numbers are at most."""
        return max(-self.low, self.high)

    def within(self, other: IntegerRange) -> bool:
        """Whether every number of this range is one of the other."""
        return other.low <= self.low and self.high <= other.high


RangeFn = Callable[..., IntegerRange]
"""``(op, *ranges of the inputs) -> range``, as if there were no ends of the type."""

RANGES: TableKey[type, RangeFn] = TableKey(
    "cpu_ranges", "between which integers the results of an operator lie", function_row
)


def of_type(element: ElementType) -> IntegerRange:
    """The range of a type of integers, or of booleans."""
    if element.kind in {"u", "b"}:
        return IntegerRange(0, 2**element.bits - 1)
    return IntegerRange(-(2 ** (element.bits - 1)), 2 ** (element.bits - 1) - 1)


def range_of(known: CpuKnown, outlet: OutletId, nodes: int = MOST_NODES) -> IntegerRange | None:
    """The range of a tensor; ``None`` for what has no integers. ``nodes``: how far back to look."""
    element = known.element(known.model.outlet_fact(outlet).datum_type.storage)
    if element is None or element.kind == "f":
        return None
    whole = of_type(element)
    array = known.constant_array(outlet)
    if array is not None:
        return IntegerRange(int(array.min()), int(array.max())) if array.size else whole
    node = known.model.nodes[outlet.node]
    row = known.model.registry[RANGES].find(type(node.op))
    if row is None or not nodes:
        return whole
    inputs = [range_of(known, one, nodes - 1) for one in node.inputs]
    ranges = [one for one in inputs if one is not None]
    found = row(node.op, *ranges) if len(ranges) == len(inputs) else whole
    return found if found.within(whole) else whole


@ROWS.row(RANGES, AddAxis)
@ROWS.row(RANGES, RmAxis)
@ROWS.row(RANGES, MoveAxis)
@ROWS.row(RANGES, MultiBroadcastTo)
@ROWS.row(RANGES, Reshape)
@ROWS.row(RANGES, Slice)
@ROWS.row(RANGES, Cast)
def same(op: Any, x: IntegerRange) -> IntegerRange:
    """The numbers stay what they are."""
    return x


@ROWS.row(RANGES, Add)
def added(op: Add, a: IntegerRange, b: IntegerRange) -> IntegerRange:
    """From the sum of the low ends to that of the high ones."""
    return IntegerRange(a.low + b.low, a.high + b.high)


@ROWS.row(RANGES, Sub)
def less(op: Sub, a: IntegerRange, b: IntegerRange) -> IntegerRange:
    """From the lowest to the highest difference."""
    return IntegerRange(a.low - b.high, a.high - b.low)


@ROWS.row(RANGES, Max)
def larger(op: Max, a: IntegerRange, b: IntegerRange) -> IntegerRange:
    """Both ends are the larger ones."""
    return IntegerRange(max(a.low, b.low), max(a.high, b.high))


@ROWS.row(RANGES, Min)
def smaller(op: Min, a: IntegerRange, b: IntegerRange) -> IntegerRange:
    """Both ends are the smaller ones."""
    return IntegerRange(min(a.low, b.low), min(a.high, b.high))
