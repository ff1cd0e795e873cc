"""Diagonals of matrices."""

from __future__ import annotations

from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.model.conditions import may_be_at_most
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op, tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "MATRIX_DIAG")
@tflite_op(ROWS, "MATRIX_DIAG")
def matrix_diag(node: TfliteNode, wire: Wiring) -> Wired:
    """The last axis as the diagonal of square matrices, elsewhere 0"""
    x = wire.tensor(0)
    if x.rank == 0:
        raise FactError(f"at least one axis is wanted, found {x.fact}")
    size = x.shape[-1]
    return _is_diagonal(wire, size, size).where(x.unsqueeze([x.rank]), 0)


@quantized_op(ROWS, "MATRIX_SET_DIAG")
@tflite_op(ROWS, "MATRIX_SET_DIAG")
def matrix_set_diag(node: TfliteNode, wire: Wiring) -> Wired:
    """Matrices with another diagonal, which is as long as the shorter of their sides"""
    x, diagonal = wire.tensor(0), wire.tensor(1)
    if x.rank < 2 or diagonal.rank != x.rank - 1:
        raise FactError(f"matrices and their diagonals are wanted, found {x.fact} and {diagonal.fact}")
    rows, columns = x.shape[-2:]
    is_wide = may_be_at_most(rows, columns)
    wire.require_shape("diagonal", diagonal.outlet, (*x.shape[:-2], rows if is_wide else columns))
    return _is_diagonal(wire, rows, columns).where(diagonal.unsqueeze([x.rank - 1 if is_wide else x.rank - 2]), x)


def _is_diagonal(wire: Wiring, rows: Dim, columns: Dim) -> Wired:
    row, column = (
        Wired(wire, wire.through(wire_range, wire.const(0), wire.const(size), wire.const(1)))
        for size in (rows, columns)
    )
    return row.unsqueeze([1]).eq(column.unsqueeze([0]))
