"""Systems of linear equations, small ones of fixed sizes: elimination, row by row, of stacks of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import nan
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Div, Eq, Lt, Mul, Ne, Sub
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.elementwise import Abs, Ln, Sign, Sqrt
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import Slice
from tract_core.plugins.tables import Rows
from tract_torch.ops.elementwise import times
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_MOST: Final = 32
"""How many rows are eliminated one after the other, in as many pieces of the model."""


def most_rows(wire: NodeWiring, x: OutletId) -> int:
    """How many rows a matrix has. Raises Unsupported for more than are reasonable, or a number that is not fixed."""
    count = wire.shape(x)[-2]
    if not isinstance(count, int) or count > _MOST:
        raise Unsupported(f"elimination of {count} rows", hint=f"a fixed number of them is supported, up to {_MOST}")
    return count


def _part(wire: NodeWiring, x: OutletId, axis: int, begin: int, end: int) -> OutletId:
    """Some rows (axis -2) or columns (axis -1)."""
    return wire.op(Slice(wire.rank(x) + axis, begin, end), x)


def _eliminated(wire: NodeWiring, x: OutletId, columns: int) -> tuple[OutletId, list[OutletId], list[OutletId]]:
    """Gauss's and Jordan's elimination of the first columns, each by the largest element that is left (partial pivots).

    Gives what the rows are then, still to be divided by the pivots; the pivots, and for each whether rows were swapped.
    """
    rank = wire.rank(x)
    pivots: list[OutletId] = []
    swaps: list[OutletId] = []
    count = np.arange(columns).reshape((1,) * (rank - 2) + (-1, 1))
    for step in range(columns):
        is_here = wire.const(count == step)
        column = _part(wire, x, -1, step, step + 1)
        size = wire.select(wire.const(count >= step), wire.op(Abs(), column), wire.scalar(-1, column))
        place = wire.op(Reduce((rank - 2,), Reducer.ARG_MAX_FIRST), size)
        is_best = wire.op(Eq(), wire.const(count), place)
        best = wire.op(Reduce((rank - 2,), Reducer.SUM), wire.select(is_best, x, wire.scalar(0, x)))
        here = _part(wire, x, -2, step, step + 1)
        x = wire.select(is_here, best, wire.select(is_best, here, x))
        swaps.append(wire.op(Ne(), place, wire.scalar(step, place)))
        pivot = _part(wire, best, -1, step, step + 1)
        pivots.append(pivot)
        factors = wire.op(Div(), _part(wire, x, -1, step, step + 1), pivot)
        factors = wire.select(is_here, wire.scalar(0, factors), factors)
        x = wire.op(Sub(), x, wire.op(Mul(), factors, best))
    return x, pivots, swaps


def _solved(wire: NodeWiring, a: OutletId, b: OutletId) -> OutletId:
    """The x of ``a x = b``, for matrices a of full rank."""
    count, rank = most_rows(wire, a), wire.rank(a)
    batch = wire.shape(a)[:-2]
    b = wire.broadcast(b, (*batch, *wire.shape(b)[-2:]))
    a = wire.broadcast(a, (*wire.shape(b)[:-2], count, count))
    whole = wire.op(TypedConcat(rank - 1), a, b)
    found, pivots, _ = _eliminated(wire, whole, count)
    right = wire.op(Slice(rank - 1, count, wire.shape(whole)[-1]), found)
    return wire.op(Div(), right, pivots[0] if count == 1 else wire.op(TypedConcat(rank - 2), *pivots))


def turned(wire: NodeWiring, x: OutletId) -> OutletId:
    """With rows as columns."""
    rank = wire.rank(x)
    return wire.transpose(x, [*range(rank - 2), rank - 1, rank - 2])


def _identity(wire: NodeWiring, x: OutletId) -> OutletId:
    """1 on the diagonal, else 0, in the shape of x."""
    count = most_rows(wire, x)
    one = np.eye(count, dtype=wire.dtype(x).numpy).reshape((1,) * (wire.rank(x) - 2) + (count, count))
    return wire.broadcast(wire.const(one), wire.shape(x))


@aten(ROWS, "aten.linalg_solve", "aten.linalg_inv", "aten.inverse")
def solve(call: Call, wire: NodeWiring) -> OutletId:
    """The solution of systems of equations, of one right side or several; or the inverse"""
    if not call.has("B"):
        a = call.tensor("self" if "inverse" in call.name else "A")
        return _solved(wire, a, _identity(wire, a))
    a, b = call.tensor("A"), call.tensor("B")
    if wire.rank(b) == 1 or tuple(wire.shape(b)) == tuple(wire.shape(a)[:-1]):  # PyTorch takes these as vectors
        return wire.squeeze(_solved(wire, a, wire.unsqueeze(b, [wire.rank(b)])), [wire.rank(a) - 1])
    return _either_side(call, wire, a, b)


@aten(ROWS, "aten.linalg_inv_ex", "aten._linalg_solve_ex")
def solve_unchecked(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The same; whether the matrix has an inverse is not computed"""
    return (solve(call, wire),)


@aten(ROWS, "aten.linalg_cholesky_ex")
def cholesky_unchecked(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The triangle of Cholesky; whether the matrix has one is not computed"""
    return (cholesky(call, wire),)


@aten(ROWS, "aten._linalg_svd", "aten._linalg_eigh", "aten.linalg_eig", "aten.linalg_eigvals", "aten.linalg_pinv")
def spectrum(call: Call, wire: NodeWiring) -> OutletId:
    """Refused: what only an iteration finds"""
    raise Unsupported(
        f"{call.name}: singular values and eigenvalues are found by iterations, which are not written here",
        hint="compute them outside, and hold them as a buffer or give them as an input; solve, inv, cholesky and qr of "
        "small matrices are taken",
    )


def _either_side(call: Call, wire: NodeWiring, a: OutletId, b: OutletId) -> OutletId:
    """The x of ``a x = b``, or of ``x a = b``."""
    if call.value("left"):
        return _solved(wire, a, b)
    return turned(wire, _solved(wire, turned(wire, a), turned(wire, b)))


@aten(ROWS, "aten.linalg_solve_triangular")
def solve_triangular(call: Call, wire: NodeWiring) -> OutletId:
    """The solution of systems of equations, of which only one triangle is looked at"""
    a = _triangle(wire, call.tensor("self"), upper=bool(call.value("upper")), unit=bool(call.value("unitriangular")))
    return _either_side(call, wire, a, call.tensor("B"))


def _triangle(wire: NodeWiring, x: OutletId, *, upper: bool, unit: bool = False) -> OutletId:
    """One triangle of matrices with the diagonal, which may be taken as 1; 0 elsewhere."""
    count, lead = most_rows(wire, x), (1,) * (wire.rank(x) - 2)
    mask = np.triu(np.ones((count, count), bool)) if upper else np.tri(count, dtype=bool)
    found = wire.select(wire.const(mask.reshape((*lead, count, count))), x, wire.scalar(0, x))
    diagonal = wire.const(np.eye(count, dtype=bool).reshape((*lead, count, count)))
    return wire.select(diagonal, wire.scalar(1, x), found) if unit else found


@aten(ROWS, "aten.det", "aten.linalg_det")
def determinant(call: Call, wire: NodeWiring) -> OutletId:
    """The determinant: the product of the pivots, whose sign changes with each swap of rows"""
    return _product(wire, _signed_pivots(call, wire))


@aten(ROWS, "aten.slogdet", "aten.linalg_slogdet")
def logarithm_of_determinant(call: Call, wire: NodeWiring) -> Sequence[OutletId]:
    """The sign of the determinant, and the logarithm of its magnitude"""
    pivots = _signed_pivots(call, wire)
    sign = _product(wire, [wire.op(Sign(), pivot) for pivot in pivots])
    logarithms = [wire.op(Ln(), wire.op(Abs(), pivot)) for pivot in pivots]
    return sign, reduce(lambda a, b: wire.op(Add(), a, b), logarithms)


@aten(ROWS, "aten.logdet")
def logdet(call: Call, wire: NodeWiring) -> OutletId:
    """The logarithm of the determinant; no number where that is negative"""
    sign, total = logarithm_of_determinant(call, wire)
    return wire.select(wire.op(Lt(), sign, wire.scalar(0, sign)), wire.scalar(nan, total), total)


def _product(wire: NodeWiring, factors: Sequence[OutletId]) -> OutletId:
    return reduce(lambda a, b: wire.op(Mul(), a, b), factors)


def _signed_pivots(call: Call, wire: NodeWiring) -> list[OutletId]:
    """The pivots, each negated where rows were swapped for it; without the axes of the matrices."""
    x = call.tensor("A" if "linalg" in call.name else "self")
    rank = wire.rank(x)
    _, pivots, swaps = _eliminated(wire, x, most_rows(wire, x))
    signed = (wire.select(swap, times(wire, pivot, -1), pivot) for pivot, swap in zip(pivots, swaps, strict=True))
    return [wire.squeeze(pivot, [rank - 2, rank - 1]) for pivot in signed]


@aten(ROWS, "aten.linalg_cholesky", "aten.cholesky")
def cholesky(call: Call, wire: NodeWiring) -> OutletId:
    """The triangle whose product with itself, turned, is the matrix; column by column"""
    x, columns = call.tensor("self"), list[OutletId]()
    rank = wire.rank(x)
    for step in range(most_rows(wire, x)):
        column = _part(wire, x, -1, step, step + 1)
        column = wire.op(Div(), column, wire.op(Sqrt(), _part(wire, column, -2, step, step + 1)))
        columns.append(column)
        x = wire.op(Sub(), x, wire.op(Mul(), column, turned(wire, column)))
    found = _triangle(wire, wire.op(TypedConcat(rank - 1), *columns), upper=False)
    return turned(wire, found) if call.value("upper") else found


@aten(ROWS, "aten.cholesky_solve", "aten.cholesky_inverse")
def cholesky_solve(call: Call, wire: NodeWiring) -> OutletId:
    """The solution of systems of equations, or the inverse, of a matrix whose triangle of Cholesky is given"""
    upper, inverts = bool(call.value("upper")), "inverse" in call.name
    factor = call.tensor("self" if inverts else "input2")
    low = _triangle(wire, turned(wire, factor) if upper else factor, upper=False)
    right = _identity(wire, factor) if inverts else call.tensor("self")
    return _solved(wire, turned(wire, low), _solved(wire, low, right))


_HALVINGS: Final = 10
_TERMS: Final = 12


@aten(ROWS, "aten.linalg_matrix_exp", "aten.matrix_exp")
def matrix_exp(call: Call, wire: NodeWiring) -> OutletId:
    """The exponential of matrices: Taylor's series of a small part of them, squared again and again; in f64"""
    x = wire.cast(call.tensor("self"), DatumType.F64)
    identity, small = _identity(wire, x), times(wire, x, 2.0**-_HALVINGS)
    found = identity
    for term in range(_TERMS, 0, -1):
        found = wire.op(Add(), identity, times(wire, wire.through(wire_matmul, small, found), 1 / term))
    for _ in range(_HALVINGS):
        found = wire.through(wire_matmul, found, found)
    return wire.cast(found, call.kind)
