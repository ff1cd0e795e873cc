"""Products whose matrix is chosen for each row by an index, as mixtures of experts have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.dims import Dim, is_one
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity, float_type, integers, same_type, wide
from tract_core.ops.gather import index_bytes, inside, want_inside
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class IndexedMatMul(TypedOp):
    """``y[i, ...] = weights[which[i, ...]] @ x[i, ...]``: each row is multiplied with a matrix of its own choice.

    The inputs are ``x`` [..., depth] and ``weights`` [matrices, columns, depth], floats of one type, and ``which``
    [...], integers. The output is [..., columns], with the axes of ``which``: an axis of ``x`` that has size 1 is
    stretched to them. A negative index counts from the end. Sums are f32 at least, and rounded once.
    """

    judges: ClassVar[tuple[int, ...]] = (2,)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The axes of the indices, then the columns. Raises FactError for types, ranks, sizes or an index."""
        x, weights, which = arity(self, inputs, 3)
        same_type(self, (float_type(self, x), weights))
        integers(self, which, "indices")
        if weights.rank != 3 or x.rank != which.rank + 1:
            wanted = "rows of one axis more than the indices, and weights of three axes"
            raise FactError(f"{self.name} wants {wanted}, found {x}, {weights} and {which}")
        if not may_equal(x.shape[-1], weights.shape[2]):
            raise FactError(f"{self.name}: rows of {x} do not fit matrices of {weights}")
        for axis, (size, count) in enumerate(zip(x.shape[:-1], which.shape, strict=True)):
            if not is_one(size) and not may_equal(size, count):
                raise FactError(f"{self.name}: axis {axis} of {x} does not fit the indices {which}")
        want_inside(which.constant, weights.shape[0])
        return (TypedFact.of(x.datum_type, (*which.shape, weights.shape[1])),)


@ROWS.row(REFERENCE, IndexedMatMul)
def reference(op: IndexedMatMul, x: Array, weights: Array, which: Array) -> Array:
    """Matrix by matrix, all rows that chose it."""
    compute, chosen = wide(x.dtype), inside(which, 0, len(weights)).reshape(-1)
    rows = np.broadcast_to(x, (*which.shape, x.shape[-1])).reshape(len(chosen), x.shape[-1])
    result = np.empty((len(chosen), weights.shape[1]), compute)
    for one in np.unique(chosen):
        its = chosen == one
        result[its] = np.matmul(rows[its].astype(compute, copy=False), weights[one].astype(compute, copy=False).T)
    return result.reshape(*which.shape, weights.shape[1]).astype(x.dtype, copy=False)


@ROWS.row(MEMORY, IndexedMatMul)
def memory(op: IndexedMatMul, made: int, x: Array, weights: Array, which: Array) -> int:
    """The output and the stretched rows, both of them twice and in the type of the sums, one matrix, and the indices"""
    compute, rows = wide(x.dtype).itemsize, which.size * (x.shape[-1] + weights.shape[1])
    return made + 2 * compute * rows + compute * weights[:1].size + 2 * index_bytes(which)


@ROWS.row(COST, IndexedMatMul)
def cost(op: IndexedMatMul, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """A row of a matrix for each element of the output."""
    return {f"FMA({inputs[0].datum_type.storage.name})": outputs[0].shape.volume * inputs[0].shape[-1]}


@ROWS.row(AXES, IndexedMatMul)
def axes(op: IndexedMatMul, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Axes of the indices go on, with those of rows that have their size; columns are those of the matrices."""
    x, weights, which = AxesMapping.disconnected([fact.rank for fact in inputs], []).inputs
    pairs = zip(x[:-1], which, inputs[0].shape, inputs[2].shape, strict=False)
    leading = "".join(own if is_one(size) and not is_one(count) else name for own, name, size, count in pairs)
    return AxesMapping((leading + weights[2], weights, which), (which + weights[1],))
