"""Numbers at equal distances."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, same_type, scalar, wide
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Range(TypedOp):
    """``start``, ``start + step``, ... up to and without ``end``: three inputs of rank 0 and of one type.

    ``length``: how many there will be, which is ``(end - start) / step`` rounded up, or 0 where that is negative.
    """

    length: Dim
    announces: ClassVar[tuple[str, ...]] = ("length",)
    judges: ClassVar[tuple[int, ...]] = (2,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """``length`` numbers of the type of the inputs. Raises FactError unless these are real numbers of rank 0."""
        start, *_ = arity(self, inputs, 3)
        same_type(self, inputs)
        for fact, role in zip(inputs, ("start", "end", "step"), strict=True):
            scalar(self, fact, role)
        if not (start.datum_type.is_float() or start.datum_type.is_integer()):
            raise FactError(f"Range does not take {start.datum_type.short}")
        return (start.with_shape((self.length,)),)


@ROWS.row(REFERENCE, Range)
def reference(op: Range, start: Array, end: Array, step: Array) -> Array:
    """Start + i * step, computed in f32 by narrow floats and rounded once"""
    kind, count = wide(start.dtype), count_steps(start, end, step)
    check_tensor((count,), max(kind.itemsize, 8))
    steps = np.arange(count).astype(kind)
    return np.add(start.astype(kind), np.multiply(steps, step.astype(kind))).astype(start.dtype)


def count_steps(start: Array, end: Array, step: Array) -> int:
    """How many numbers there are, for three arrays of one element. Raises RunError when that is no number."""
    kind = np.float64 if start.dtype.kind not in "iu" else object
    first, last, stride = (x.astype(kind).item() for x in (start, end, step))
    if stride == 0:
        raise RunError("the step is 0")
    if kind is object:
        return max(-((first - last) // stride), 0)
    count = (last - first) / stride
    if not math.isfinite(count):
        raise RunError(f"from {first:g} to {last:g} in steps of {stride:g} there is no number of steps")
    return max(math.ceil(count), 0)


@ROWS.row(SYMBOLIC, Range)
def symbolic(op: Range, start: Array, end: Array, step: Array) -> Array:
    """Start + i * step, where the length is known"""
    first, stride = start.item(), step.item()
    result = np.empty(int(op.length), dtype=object)
    result[:] = [first + index * stride for index in range(int(op.length))]
    return result


@ROWS.row(MEMORY, Range)
def memory(op: Range, made: int, start: Array, end: Array, step: Array) -> int:
    """The numbers of the steps, what they are times the step, and the sums"""
    return count_steps(start, end, step) * (8 + 2 * max(wide(start.dtype).itemsize, 4))


@ROWS.row(COST, Range)
def cost(op: Range, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One multiplication with addition per element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(AXES, Range)
def axes(op: Range, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """The axis of the output comes from nowhere."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [1])
