"""Probabilities of many classes from those of every pair of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Final

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.limits import check_run_time
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

_TOLERANCE: Final = 0.005
"""How far, divided by the number of classes, the condition of the optimum may be missed: what exporters rely on."""

_CERTAIN: Final = 1e-7
"""Probabilities of pairs are kept this far from 0 and 1."""


@frozen
class CoupleProbabilities(TypedOp):
    """Probabilities of ``classes`` classes ([rows, classes]) from those of the first of each pair ([rows, pairs]).

    Pairs are in the order (0, 1), (0, 2), ..., (1, 2), ...; the input may be of any float type.
    """

    classes: int

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One column per class. Raises FactError unless there is one column per pair."""
        (x,) = arity(self, inputs, 1)
        pairs = self.classes * (self.classes - 1) // 2
        if x.rank != 2 or x.shape[1] != pairs:
            raise FactError(f"{self.name} of {self.classes} classes wants {pairs} columns, found {x}")
        return (float_type(self, x).with_shape((x.shape[0], self.classes)),)


@ROWS.row(REFERENCE, CoupleProbabilities)
def reference(op: CoupleProbabilities, x: Array) -> Array:
    """The second approach, algorithm 2, of Wu, Lin and Weng, JMLR 5 (2004), with the start and the end of libsvm"""
    count = op.classes
    pair = np.zeros((len(x), count, count), np.float64)
    for column, (i, j) in enumerate(combinations(range(count), 2)):
        pair[:, i, j] = np.clip(x[:, column], _CERTAIN, 1 - _CERTAIN)
        pair[:, j, i] = 1 - pair[:, i, j]
    matrix = -pair * pair.transpose(0, 2, 1)
    diagonal = np.arange(count)
    matrix[:, diagonal, diagonal] = (pair**2).sum(axis=1)
    result = np.full((len(x), count), 1 / count)
    going = np.arange(len(x))
    for _ in range(max(100, count)):
        check_run_time()
        product = np.einsum("rij,rj->ri", matrix[going], result[going])
        energy = (product * result[going]).sum(axis=1, keepdims=True)
        far = np.abs(product - energy).max(axis=1, initial=0) >= _TOLERANCE / count
        going, product = going[far], product[far]
        if not going.size:
            break
        result[going] = _swept(matrix[going], result[going], product)
    return result.astype(x.dtype)


def _swept(matrix: Array, p: Array, product: Array) -> Array:
    """Every probability improved in turn. ``product``: of the matrix and ``p``; both are kept up to date."""
    energy = (product * p).sum(axis=1)
    for t in range(p.shape[1]):
        slope = matrix[:, t, t]
        step = (energy - product[:, t]) / slope
        p[:, t] += step
        scale = 1 + step
        energy = (energy + step * (step * slope + 2 * product[:, t])) / scale**2
        product = (product + step[:, None] * matrix[:, t]) / scale[:, None]
        p = p / scale[:, None]
    return p


@ROWS.row(COST, CoupleProbabilities)
def cost(op: CoupleProbabilities, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """One product of a matrix with one row per class: how many are taken depends on the values."""
    return {"FMA(F64)": inputs[0].shape[0] * op.classes**2}


@ROWS.row(AXES, CoupleProbabilities)
def axes(op: CoupleProbabilities, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Rows stay in place."""
    return AxesMapping.natural_but([2], [2], [1])
