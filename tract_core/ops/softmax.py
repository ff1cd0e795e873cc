"""Exponentials along axes, scaled so that they sum to 1, and their logarithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, axis_in, float_type, wide
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


class SoftmaxOp(TypedOp):
    """Base of the family: floats in, floats of the same type and shape out, computed over ``axes`` together."""

    axes: tuple[int, ...]

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's type and shape. Raises FactError for anything but floats, and for axes that are not there."""
        (x,) = arity(self, inputs, 1)
        for axis in self.axes:
            axis_in(self, axis, x.rank)
        if not self.axes or len(set(self.axes)) < len(self.axes):
            raise FactError(f"{self.name} wants at least one axis, each once, not {list(self.axes)}; the input is {x}")
        return (float_type(self, x),)


@frozen
class Softmax(SoftmaxOp):
    """exp(x) / sum(exp(x)), the sum taken over ``axes``."""

    axes: tuple[int, ...]


@frozen
class LogSoftmax(SoftmaxOp):
    """The natural logarithm of `Softmax`, without its loss of precision. ``axes``: as of `Softmax`."""

    axes: tuple[int, ...]


def _shifted(op: SoftmaxOp, x: Array) -> Any:
    """``x`` in the computing type, its maximum subtracted so that no exponential overflows."""
    wide_x = x.astype(wide(x.dtype), copy=False)
    return wide_x - wide_x.max(axis=op.axes, keepdims=True, initial=-np.inf)


@ROWS.row(REFERENCE, Softmax)
def softmax(op: Softmax, x: Array) -> Array:
    """Exponentials of the shifted input, divided by their sum."""
    powers = np.exp(_shifted(op, x))
    return (powers / powers.sum(axis=op.axes, keepdims=True)).astype(x.dtype, copy=False)


@ROWS.row(REFERENCE, LogSoftmax)
def log_softmax(op: LogSoftmax, x: Array) -> Array:
    """The shifted input, less the logarithm of the sum of its exponentials."""
    shifted = _shifted(op, x)
    return (shifted - np.log(np.exp(shifted).sum(axis=op.axes, keepdims=True))).astype(x.dtype, copy=False)


@ROWS.row(COST, SoftmaxOp)
def cost(op: SoftmaxOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Per element: a subtraction and an addition, an exponential and a division (`LogSoftmax`: a subtraction)."""
    kind, volume = inputs[0].datum_type.storage.name, inputs[0].shape.volume
    adds, powers = (3, 1) if isinstance(op, LogSoftmax) else (2, 2)
    return {f"FMA({kind})": volume * adds, f"DIV({kind})": volume * powers}


@ROWS.row(AXES, SoftmaxOp)
def axes(op: SoftmaxOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes stay in place; a normalised one is another axis on each side, as each element depends on all of it."""
    return AxesMapping.natural_but([inputs[0].rank], [outputs[0].rank], op.axes)
