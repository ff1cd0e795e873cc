"""Normalisation by means that forget exponentially, over streams that may come in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_be_of_shape, may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity, axis_in, float_type, same_type, wide
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class ExpNorm(TypedOp):
    """Base of the family. Inputs: x, and what the mean is before the first step, which has the axes of x but ``axis``.

    Along ``axis``, the mean becomes ``alpha * mean + (1 - alpha) * x`` in each step but the first ``skip`` ones, and
    each element is normalised by the mean of its step. The mean is kept between the turns of a running model, and the
    steps to skip are counted over all of them, unless ``stateless``: then each turn starts from the second input.
    """

    axis: int
    alpha: float
    skip: int = 0
    stateless: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of x. Raises FactError for anything but floats, and for a mean that does not go with x."""
        x, mean = arity(self, inputs, 2)
        same_type(self, inputs)
        axis_in(self, self.axis, x.rank)
        wanted = self.mean_shape(x)
        if not may_be_of_shape(mean.shape, wanted):
            raise FactError(f"{self.name} wants a mean of shape {list(wanted)} for {x}, found {mean}")
        return (float_type(self, x),)

    def mean_shape(self, x: TypedFact) -> tuple[Dim, ...]:
        """The axes of ``x`` but one."""
        return (*x.shape[: self.axis], *x.shape[self.axis + 1 :])

    def seen(self, x: Array) -> Array:
        """What the mean is of, for one step."""
        return x

    def normalised(self, x: Array, mean: Array) -> Array:
        """One step of the output."""
        raise NotImplementedError


@frozen
class ExpUnitNorm(ExpNorm):
    """``x / sqrt(mean)``, where the mean is that of the magnitudes of x, of at least ``epsilon`` each.

    ``complex``: whether the last axis, of size 2, holds real and imaginary parts, which have one magnitude; the mean
    does not have that axis.
    """

    complex: bool = False
    epsilon: float = 1e-14

    def mean_shape(self, x: TypedFact) -> tuple[Dim, ...]:
        """The axes of ``x`` but one, and without that of the pairs. Raises FactError where there are no pairs."""
        shape = ExpNorm.mean_shape(self, x)
        if not self.complex:
            return shape
        if self.axis == x.rank - 1 or not may_equal(x.shape[-1], 2):
            raise FactError(f"{self.name} wants a last axis of size 2, for real and imaginary parts, found {x}")
        return shape[:-1]

    def seen(self, x: Array) -> Array:
        """Magnitudes."""
        return np.maximum(np.hypot(x[..., 0], x[..., 1]) if self.complex else np.abs(x), self.epsilon)

    def normalised(self, x: Array, mean: Array) -> Array:
        """Divided by the root of the mean."""
        return x / np.sqrt(mean[..., None] if self.complex else mean)


@frozen
class ExpMeanNorm(ExpNorm):
    """``(x - mean) / scaling_factor``"""

    scaling_factor: float = 1.0

    def normalised(self, x: Array, mean: Array) -> Array:
        """With mean 0."""
        return (x - mean) / self.scaling_factor


@frozen
class FrozenMean:
    """A mean between turns: the steps that were seen, and the mean after them, ``None`` before the first turn."""

    steps: int
    mean: Array | None


class ExpNormState:
    """What an `ExpNorm` keeps between turns."""

    def __init__(self, op: ExpNorm) -> None:
        self.op = op
        self.steps = 0
        self.mean: Array | None = None

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """All steps of one turn, in f32 for narrower floats."""
        x, start = inputs
        op, kind = self.op, wide(x.dtype)
        mean: Array = start.astype(kind) if self.mean is None else self.mean
        old, new = np.asarray(op.alpha, kind), np.asarray(1 - op.alpha, kind)
        steps = self.steps
        found = np.empty_like(x)
        for place in range(x.shape[op.axis]):
            check_run_time()
            at = (slice(None),) * op.axis + (place,)
            step = x[at].astype(kind, copy=False)
            if steps >= op.skip:
                mean = op.seen(step) * new + mean * old
            steps += 1
            found[at] = op.normalised(step, mean)
        if not op.stateless:
            self.steps, self.mean = steps, mean
        return (found,)

    def freeze(self) -> FrozenMean:
        """A snapshot."""
        return FrozenMean(self.steps, None if self.mean is None else self.mean.copy())

    def thaw(self, frozen: FrozenMean) -> None:
        """Go back to a snapshot."""
        self.steps, self.mean = frozen.steps, frozen.mean


@ROWS.row(STATE, ExpNorm)
def state(op: ExpNorm, session: Session) -> ExpNormState:
    """Before the first turn."""
    return ExpNormState(op)


@ROWS.row(COST, ExpNorm)
def cost(op: ExpNorm, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Two multiplications and additions for the mean, and a division, for each element."""
    kind, count = inputs[0].datum_type.storage.name, inputs[0].shape.volume
    return {f"FMA({kind})": 2 * count, f"DIV({kind})": count}


@ROWS.row(AXES, ExpNorm)
def axes(op: ExpNorm, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis of x stays in place, in the mean too, but the one that it works along, and that of pairs."""
    pairs = [inputs[0].rank - 1] if isinstance(op, ExpUnitNorm) and op.complex else []
    alone = AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], [op.axis, *pairs])
    x = alone.inputs[0]
    mean = "".join(name for axis, name in enumerate(x) if axis != op.axis and axis not in pairs)
    return AxesMapping((x, mean), alone.outputs)
