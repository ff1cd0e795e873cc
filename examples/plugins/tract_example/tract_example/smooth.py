"""An exponential moving average along one axis, which goes on from one turn to the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim, same_dim
from tract_core.errors import FactError, InputError
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity, axis_in, float_type, wide
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@dataclass(frozen=True, slots=True)
class Smooth(TypedOp):
    """y[t] = decay * y[t-1] + (1 - decay) * x[t] along ``axis``, from y[-1] = 0 on.

    ``decay``: coefficients from 0 to 1, stretched as NumPy does to one slice of the input across ``axis``.
    """

    axis: int
    decay: Constant

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError for anything but floats, and coefficients that do not fit."""
        (x,) = arity(self, inputs, 1)
        slice_shape = across(axis_in(self, self.axis, x.rank), x.shape)
        sizes = self.decay.array.shape
        pairs = zip(reversed(sizes), reversed(slice_shape), strict=False)
        if len(sizes) > len(slice_shape) or any(size != 1 and same_dim(size, dim) is False for size, dim in pairs):
            raise FactError(f"Smooth: coefficients of shape {list(sizes)} do not fit {x} across axis {self.axis}")
        return (float_type(self, x),)


def across(axis: int, shape: Sequence[Dim]) -> tuple[Dim, ...]:
    """The shape of one slice: without the axis."""
    return (*shape[:axis], *shape[axis + 1 :])


class SmoothState:
    """The last output of one node."""

    def __init__(self, op: Smooth) -> None:
        self.op = op
        self.last: Array | None = None

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """One turn. Raises InputError when a slice has another shape than in the turn before."""
        (x,) = inputs
        steps = np.moveaxis(x.astype(wide(x.dtype)), self.op.axis, 0)
        last = self._start(steps)
        decay = self.op.decay.array.astype(steps.dtype)
        smoothed = np.empty_like(steps)
        for time, step in enumerate(steps):
            last = decay * last + (1 - decay) * step
            smoothed[time] = last
        self.last = last
        return (np.moveaxis(smoothed, 0, self.op.axis).astype(x.dtype),)

    def _start(self, steps: Array) -> Array:
        shape = steps.shape[1:]
        if self.last is None:
            return np.zeros(shape, steps.dtype)
        if self.last.shape != shape:
            raise InputError(
                f"a slice has shape {list(shape)}, and had {list(self.last.shape)} in the turn before",
                hint="use one state per stream, or spawn a new one",
            )
        return self.last

    def freeze(self) -> Any:
        """A copy of the last output."""
        return None if self.last is None else self.last.copy()

    def thaw(self, frozen: Any) -> None:
        """Go on from that output."""
        self.last = frozen


@ROWS.row(STATE, Smooth)
def state(op: Smooth, session: Session) -> SmoothState:
    """A filter at rest."""
    return SmoothState(op)


@ROWS.row(COST, Smooth)
def cost(op: Smooth, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Two multiplications and an addition per element."""
    return {f"FMA({inputs[0].datum_type.storage.name})": 2 * inputs[0].shape.volume}


@ROWS.row(AXES, Smooth)
def axes(op: Smooth, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """All axes stay in place; time, and axes with coefficients of their own, cannot be taken in parts."""
    rank = inputs[0].rank
    mapping = AxesMapping.natural([rank], [rank])
    sizes = (1,) * (rank - 1 - op.decay.array.ndim) + op.decay.array.shape
    own = [axis for axis, size in zip(across(op.axis, range(rank)), sizes, strict=True) if size != 1]
    for axis in (op.axis, *own):
        term = mapping.inputs[0]
        mapping = mapping.with_input(0, term[:axis] + mapping.free_name() + term[axis + 1 :])
    return mapping
