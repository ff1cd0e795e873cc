"""Local response normalisation: each element divided by a power of the energy of the channels around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, float_type, wide
from tract_core.ops.pool_spec import inside
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Lrn(TypedOp):
    """``x / (bias + alpha / size * sum of the squares of size channels around x) ** beta``

    The channels, on ``axis``, are those from ``(size - 1) // 2`` before to ``size // 2`` after, as far as they exist.
    """

    size: int
    alpha: float = 1e-4
    beta: float = 0.75
    bias: float = 1.0
    axis: int = 1

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError when it is not of floats, or lacks the axis."""
        (x,) = arity(self, inputs, 1)
        axis_in(self, self.axis, x.rank)
        if self.size < 1:
            raise FactError(f"{self.name}: a size of {self.size} channels; at least 1 is wanted")
        return (float_type(self, x),)


@ROWS.row(REFERENCE, Lrn)
def reference(op: Lrn, x: Array) -> Array:
    """The squares, shifted by each distance in the window, added up."""
    data = x.astype(wide(x.dtype), copy=False)
    squares, channels = np.moveaxis(np.square(data), op.axis, 0), x.shape[op.axis]
    energy = np.zeros_like(squares)
    for shift in range(max(-((op.size - 1) // 2), 1 - channels), min(op.size // 2, channels - 1) + 1):
        check_run_time()
        into, out_of = inside(shift, 1, channels, channels)
        energy[into] += squares[out_of]
    base = op.bias + op.alpha / op.size * np.moveaxis(energy, 0, op.axis)
    return np.multiply(data, np.power(base, -op.beta)).astype(x.dtype, copy=False)


@ROWS.row(MEMORY, Lrn)
def memory(op: Lrn, made: int, x: Array) -> int:
    """The elements and their squares, the energy, and steps on its way to a power"""
    return 5 * x.size * wide(x.dtype).itemsize + made


@ROWS.row(COST, Lrn)
def cost(op: Lrn, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Per element, one addition per channel of the window, one power and one division."""
    kind, volume = inputs[0].datum_type.name, inputs[0].shape.volume
    return {f"FMA({kind})": volume * op.size, f"DIV({kind})": volume * 2}


@ROWS.row(AXES, Lrn)
def axes(op: Lrn, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place but the channels, which look at each other."""
    mapping = AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
    term = mapping.outputs[0]
    return mapping.with_output(0, term[: op.axis] + mapping.free_name() + term[op.axis + 1 :])
