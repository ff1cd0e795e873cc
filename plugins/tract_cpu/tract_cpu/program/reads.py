"""Operators whose sizes are what an input of theirs holds: read in the middle of a run, before native code goes on.

Or how many elements of an input are not zero, which native code counts first.

The table ``cpu_reads`` says, for a type of operators, what is read of which inputs (`Reads`). The sizes of the outputs,
and the numbers, are symbols for the steps behind, whose arguments are bound again once these have their values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tract_core.frozen import frozen
from tract_core.plugins.tables import TableKey
from tract_core.runtime.host import HostNode
from tract_cpu.program.counted import Counted

Shape = Sequence[int]

CountFn = Callable[[Any, HostNode], Counted]


@frozen
class Reading:
    """``shapes``: of the outputs. ``numbers``: what else steps need to know, as many as their operator always has."""

    shapes: Sequence[Shape]
    numbers: Sequence[int] = ()


@frozen
class Reads:
    """``slots``: the inputs that are read. ``read``: a function ``(op, shapes, *arrays)`` that returns a `Reading`.

    ``shapes``: of all inputs, in elements. It raises RunError where the meaning of the operator does. ``checks``:
    whether the kernel refuses where the inputs hold other sizes than were announced, so that sizes may be supposed.
    ``counted``: a function ``(lowering, node)`` that adds steps which count elements of these inputs, and returns a
    `Counted`; then the total is read, and no input.
    """

    slots: tuple[int, ...]
    read: Callable[..., Reading]
    checks: bool = False
    counted: CountFn | None = None


def _reads_row(key: str, value: object) -> str | None:
    return None if isinstance(value, Reads) else f"is a {type(value).__name__}, wanted Reads"


READS: TableKey[type, Reads] = TableKey("cpu_reads", "which sizes are read from inputs of an operator", _reads_row)


def number_name(node: int, place: int) -> str:
    """The name of the symbol for a number of a node, which no symbol of a model has."""
    return f"#{node}.{place}"
