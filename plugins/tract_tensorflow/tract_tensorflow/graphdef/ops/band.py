"""Diagonals of matrices, and what lies around them."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.dims import dim_min, product
from tract_core.errors import FactError, Unsupported
from tract_core.model.conditions import may_equal
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_eye, wire_range
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


def _matrices(wire: GraphWiring) -> Wired:
    x = wire.tensor(0)
    if x.rank < 2:
        raise FactError(f"matrices are wanted, found {x.fact}")
    return x


@tf_op(ROWS, "MatrixBandPart", "BatchMatrixBandPart")
def band_part(node: GraphNode, wire: GraphWiring) -> Wired:
    """As many diagonals below and above the main one as the other inputs say, -1 for all; 0 elsewhere"""
    x = _matrices(wire)
    zero, one = wire.const(0), wire.const(1)
    rows, columns = (
        Wired(wire, wire.through(wire_range, zero, wire.const(size), one)) for size in (x.shape[-2], x.shape[-1])
    )
    distance = columns[None] - rows[:, None]  # to the right of the main diagonal
    lower, upper = (Wired(wire, wire.i64(wire.number(wire.input(slot)))).unsqueeze(range(2)) for slot in (1, 2))
    inside = ((lower < 0) | (-distance <= lower)) & ((upper < 0) | (distance <= upper))
    return inside.where(x, 0)


def _eye(x: Wired) -> Wired:
    """Where the main diagonals of the matrices in the last two axes are."""
    sizes = {"rows": x.shape[-2], "columns": x.shape[-1]}
    return Wired(x.wire, x.wire.through(wire_eye, diagonal=0, to=DatumType.BOOL, **sizes))


def _check_main(wire: GraphWiring, slot: int, count: int = 1) -> None:
    """Raise Unsupported for other diagonals than the main one."""
    if len(wire.slots) > slot:
        found = wire.known(wire.input(slot), "number of the diagonal")
        if found.size != 1 or found.any():
            raise Unsupported(f"diagonal {found.tolist()}, only the main one, 0, is known here")
    for further in range(slot + 1, slot + 1 + count):
        if len(wire.slots) > further:
            size = wire.known(wire.input(further), "number of rows or columns")
            if (size != -1).any():
                raise Unsupported(f"matrices of other sizes than those of the diagonal: {size.tolist()}")


@tf_op(ROWS, "MatrixDiag", "BatchMatrixDiag")
def matrix_diag(node: GraphNode, wire: GraphWiring) -> Wired:
    """Matrices of zeros with the elements of the last axis on their diagonals"""
    x = wire.tensor(0)
    if x.rank < 1:
        raise FactError(f"at least one axis is wanted, found {x.fact}")
    square = x[..., None].broadcast((*x.shape, x.shape[-1]))
    return _eye(square).where(square, 0)


@tf_op(ROWS, "MatrixDiagV2", "MatrixDiagV3")
def matrix_diag_with(node: GraphNode, wire: GraphWiring) -> Wired:
    """As MatrixDiag, with the fifth input elsewhere"""
    _check_main(wire, 1, 2)
    x = wire.tensor(0)
    if x.rank < 1:
        raise FactError(f"at least one axis is wanted, found {x.fact}")
    square = x[..., None].broadcast((*x.shape, x.shape[-1]))
    return _eye(square).where(square, Wired(wire, wire.number(wire.input(4))))


@tf_op(ROWS, "MatrixDiagPart", "MatrixDiagPartV2", "MatrixDiagPartV3", "BatchMatrixDiagPart")
def matrix_diag_part(node: GraphNode, wire: GraphWiring) -> Wired:
    """The diagonals of matrices"""
    _check_main(wire, 1, 0)
    x = _matrices(wire)
    if not may_equal(x.shape[-2], x.shape[-1]):
        size = dim_min(x.shape[-2], x.shape[-1])
        x = x[..., :size, :size]
    return _eye(x).where(x, 0).sum([x.rank - 1]).squeeze([x.rank - 1])


@tf_op(ROWS, "MatrixSetDiag", "MatrixSetDiagV2", "MatrixSetDiagV3", "BatchMatrixSetDiag")
def matrix_set_diag(node: GraphNode, wire: GraphWiring) -> Wired:
    """Matrices with other diagonals"""
    _check_main(wire, 2, 0)
    x, diagonal = _matrices(wire), wire.tensor(1)
    if not may_equal(x.shape[-2], x.shape[-1]):
        raise Unsupported(f"other diagonals for {x.fact}, which is not square")
    return _eye(x).where(diagonal[..., None], x)


@tf_op(ROWS, "Diag")
def diag(node: GraphNode, wire: GraphWiring) -> Wired:
    """A tensor of zeros with the input on its diagonal"""
    x = wire.tensor(0)
    size = x.shape.volume
    flat = x.reshape((size, 1)).broadcast((size, size))
    return _eye(flat).where(flat, 0).reshape((*x.shape, *x.shape))


@tf_op(ROWS, "DiagPart")
def diag_part(node: GraphNode, wire: GraphWiring) -> Wired:
    """The diagonal of a tensor whose first axes are as the last ones"""
    x = wire.tensor(0)
    half = x.rank // 2
    if x.rank % 2 or not half:
        raise FactError(f"an even number of axes is wanted, found {x.fact}")
    shape = x.shape[:half]
    size = product(shape)
    flat = x.reshape((size, size))
    return _eye(flat).where(flat, 0).sum([1]).reshape(shape)
