"""The sum of two quantised tensors, as the kernels of TFLite for ADD and SUB compute it.

Source: the reference kernels of LiteRT.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops import binary
from tract_core.ops.expect import arity, broadcast_shapes, same_rank
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite_only.fixed_point import FixedPointSteps, divided_by_power, doubled_high_half, in_steps

ROWS = Rows()


@frozen
class Term:
    """One of the two: (integer - zero) * sign, times multiplier * 2**(-right - 31). ``right`` is not negative."""

    zero: int
    sign: int
    multiplier: int
    right: int


@frozen
class FixedPointSum(TypedOp):
    """Two tensors of integers of 8 bits in common steps, summed, in the steps of an output.

    ``left``: by how many bits both are shifted to the left first, which 32 bits have room for. ``multiplier``,
    ``shift``: of the sum; ``steps``: what is done to it.
    """

    by_element: ClassVar[bool] = True
    terms: tuple[Term, Term]
    left: int
    multiplier: int
    shift: int
    steps: FixedPointSteps

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The common shape, in the type of the output. Raises FactError for other types, ranks or sizes that differ."""
        arity(self, inputs, 2)
        same_rank(self, inputs)
        if any(fact.datum_type not in (DatumType.I8, DatumType.U8) for fact in inputs):
            raise FactError(f"FixedPointSum wants integers of 8 bits, found {inputs[0]} and {inputs[1]}")
        return (TypedFact(self.steps.to, broadcast_shapes(self, [one.shape for one in inputs])),)


@ROWS.row(REFERENCE, FixedPointSum)
def reference(op: FixedPointSum, a: Array, b: Array) -> Array:
    """Integer arithmetic on 64 bits."""
    first, second = (_in_common_steps(x, term, op.left) for x, term in zip((a, b), op.terms, strict=True))
    return in_steps(op.steps, first + second, np.array(op.multiplier), np.array(op.shift))


def _in_common_steps(x: Array, term: Term, left: int) -> Array:
    distance = (x.astype(np.int64) - term.zero) * (term.sign << left)
    return divided_by_power(doubled_high_half(distance, np.array(term.multiplier)), np.array(term.right))


@ROWS.row(COST, FixedPointSum)
def cost(op: FixedPointSum, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Three products per element."""
    return {"FMA(I64)": outputs[0].shape.volume * 3}


@ROWS.row(AXES, FixedPointSum)
def axes(op: FixedPointSum, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """As for any operator on elements."""
    return binary.axes(binary.Add(), inputs, outputs)  # only the facts are looked at
