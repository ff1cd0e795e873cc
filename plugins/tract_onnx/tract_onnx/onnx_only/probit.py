"""The inverse of the normal distribution's cumulative function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import NormalDist

import numpy as np

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class Probit(TypedOp):
    """The number below which a standard normal variable is with probability x: infinite for 0 and 1, none outside."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError for anything but floats."""
        (x,) = arity(self, inputs, 1)
        return (float_type(self, x),)


def _inverse(probability: float) -> float:
    if 0 < probability < 1:
        return NormalDist().inv_cdf(probability)
    return {0.0: -np.inf, 1.0: np.inf}.get(probability, np.nan)


@ROWS.row(REFERENCE, Probit)
def reference(op: Probit, x: Array) -> Array:
    """statistics.NormalDist.inv_cdf: algorithm AS 241 of Wichura (1988)"""
    return np.asarray(np.frompyfunc(_inverse, 1, 1)(x.astype(np.float64))).astype(x.dtype)


@ROWS.row(COST, Probit)
def cost(op: Probit, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One transcendental function per element."""
    return {f"DIV({inputs[0].datum_type.storage.name})": outputs[0].shape.volume}


@ROWS.row(AXES, Probit)
def axes(op: Probit, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
