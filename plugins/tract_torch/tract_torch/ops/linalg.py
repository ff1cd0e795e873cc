"""Systems of linear equations, small ones of fixed sizes: elimination, row by row, of stacks of matrices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import nan
from operator import add, mul
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()

_MOST: Final = 32
"""How many rows are eliminated one after the other, in as many pieces of the model."""


def most_rows(x: Wired) -> int:
    """How many rows a matrix has. Raises Unsupported for more than are reasonable, or a number that is not fixed."""
    count = x.shape[-2]
    if not isinstance(count, int) or count > _MOST:
        raise Unsupported(f"elimination of {count} rows", hint=f"a fixed number of them is supported, up to {_MOST}")
    return count


def _eliminated(x: Wired, columns: int) -> tuple[Wired, list[Wired], list[Wired]]:
    """Gauss's and Jordan's elimination of the first columns, each by the largest element that is left (partial pivots).

    Gives what the rows are then, still to be divided by the pivots; the pivots, and for each whether rows were swapped.
    """
    rows, pivots, swaps = x.rank - 2, list[Wired](), list[Wired]()
    count = np.arange(columns).reshape((1,) * rows + (-1, 1))
    for step in range(columns):
        is_here = x.operand(count == step)
        column = x[..., step : step + 1]
        place = x.operand(count >= step).where(abs(column), -1).argmax([rows])
        is_best = x.operand(count).eq(place)
        best = is_best.where(x, 0).sum([rows])
        x = is_here.where(best, is_best.where(x[..., step : step + 1, :], x))
        swaps.append(place.ne(step))
        pivots.append(best[..., step : step + 1])
        factors = x[..., step : step + 1] / pivots[-1]
        x = x - is_here.where(0, factors) * best
    return x, pivots, swaps


def _solved(a: Wired, b: Wired) -> Wired:
    """The x of ``a x = b``, for matrices a of full rank."""
    count = most_rows(a)
    b = b.broadcast((*a.shape[:-2], *b.shape[-2:]))
    a = a.broadcast((*b.shape[:-2], count, count))
    found, pivots, _ = _eliminated(a.concat([b], -1), count)
    return found[..., count:] / (pivots[0] if count == 1 else pivots[0].concat(pivots[1:], -2))


def turned(x: Wired) -> Wired:
    """With rows as columns."""
    rank = x.rank
    return x.transpose([*range(rank - 2), rank - 1, rank - 2])


def _identity(x: Wired) -> Wired:
    """1 on the diagonal, else 0, in the shape of x."""
    one = np.eye(most_rows(x), dtype=x.dtype.numpy)
    return x.operand(one[(None,) * (x.rank - 2)]).broadcast(x.shape)


@aten(ROWS, "aten.linalg_solve", "aten.linalg_inv", "aten.inverse")
def solve(call: Call, wire: NodeWiring) -> Wired:
    """The solution of systems of equations, of one right side or several; or the inverse"""
    a = call.tensor("self" if "inverse" in call.name else "A")
    if not call.has("B"):
        return _solved(a, _identity(a))
    b = call.tensor("B")
    if b.rank == 1 or tuple(b.shape) == tuple(a.shape[:-1]):  # PyTorch takes these as vectors
        return _solved(a, b[..., None])[..., 0]
    return _either_side(call, a, b)


@aten(ROWS, "aten.linalg_inv_ex", "aten._linalg_solve_ex")
def solve_unchecked(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """The same; whether the matrix has an inverse is not computed"""
    return (solve(call, wire),)


@aten(ROWS, "aten.linalg_cholesky_ex")
def cholesky_unchecked(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """The triangle of Cholesky; whether the matrix has one is not computed"""
    return (cholesky(call, wire),)


@aten(ROWS, "aten._linalg_svd", "aten._linalg_eigh", "aten.linalg_eig", "aten.linalg_eigvals", "aten.linalg_pinv")
def spectrum(call: Call, wire: NodeWiring) -> Wired:
    """Refused: what only an iteration finds"""
    raise Unsupported(
        f"{call.name}: singular values and eigenvalues are found by iterations, which are not written here",
        hint="compute them outside, and hold them as a buffer or give them as an input; solve, inv, cholesky and qr of "
        "small matrices are taken",
    )


def _either_side(call: Call, a: Wired, b: Wired) -> Wired:
    """The x of ``a x = b``, or of ``x a = b``."""
    return _solved(a, b) if call.flag("left") else turned(_solved(turned(a), turned(b)))


@aten(ROWS, "aten.linalg_solve_triangular")
def solve_triangular(call: Call, wire: NodeWiring) -> Wired:
    """The solution of systems of equations, of which only one triangle is looked at"""
    x, b = (call.tensor(name) for name in ("self", "B"))
    return _either_side(call, _triangle(x, upper=call.flag("upper"), unit=call.flag("unitriangular")), b)


def _triangle(x: Wired, *, upper: bool, unit: bool = False) -> Wired:
    """One triangle of matrices with the diagonal, which may be taken as 1; 0 elsewhere."""
    count, lead = most_rows(x), (None,) * (x.rank - 2)
    mask = np.triu(np.ones((count, count), bool)) if upper else np.tri(count, dtype=bool)
    found = x.operand(mask[lead]).where(x, 0)
    return x.operand(np.eye(count, dtype=bool)[lead]).where(1, found) if unit else found


@aten(ROWS, "aten.det", "aten.linalg_det")
def determinant(call: Call, wire: NodeWiring) -> Wired:
    """The determinant: the product of the pivots, whose sign changes with each swap of rows"""
    return reduce(mul, _signed_pivots(call, wire))


@aten(ROWS, "aten.slogdet", "aten.linalg_slogdet")
def logarithm_of_determinant(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """The sign of the determinant, and the logarithm of its magnitude"""
    pivots = _signed_pivots(call, wire)
    sign = reduce(mul, [pivot.sign() for pivot in pivots])
    return sign, reduce(add, [abs(pivot).log() for pivot in pivots])


@aten(ROWS, "aten.logdet")
def logdet(call: Call, wire: NodeWiring) -> Wired:
    """The logarithm of the determinant; no number where that is negative"""
    sign, total = logarithm_of_determinant(call, wire)
    return (sign < 0).where(nan, total)


def _signed_pivots(call: Call, wire: NodeWiring) -> list[Wired]:
    """The pivots, each negated where rows were swapped for it; without the axes of the matrices."""
    x = call.tensor("A" if "linalg" in call.name else "self")
    _, pivots, swaps = _eliminated(x, most_rows(x))
    return [swap.where(pivot * -1, pivot)[..., 0, 0] for pivot, swap in zip(pivots, swaps, strict=True)]


@aten(ROWS, "aten.linalg_cholesky", "aten.cholesky")
def cholesky(call: Call, wire: NodeWiring) -> Wired:
    """The triangle whose product with itself, turned, is the matrix; column by column"""
    x, columns = call.tensor("self"), list[Wired]()
    for step in range(most_rows(x)):
        column = x[..., step : step + 1]
        column = column / column[..., step : step + 1, :].sqrt()
        columns.append(column)
        x = x - column * turned(column)
    found = _triangle(columns[0].concat(columns[1:], -1), upper=False)
    return turned(found) if call.flag("upper") else found


@aten(ROWS, "aten.cholesky_solve", "aten.cholesky_inverse")
def cholesky_solve(call: Call, wire: NodeWiring) -> Wired:
    """The solution of systems of equations, or the inverse, of a matrix whose triangle of Cholesky is given"""
    inverts = "inverse" in call.name
    factor = call.tensor("self" if inverts else "input2")
    low = _triangle(turned(factor) if call.flag("upper") else factor, upper=False)
    right = _identity(factor) if inverts else call.tensor("self")
    return _solved(turned(low), _solved(low, right))


_HALVINGS: Final = 10
_TERMS: Final = 12


@aten(ROWS, "aten.linalg_matrix_exp", "aten.matrix_exp")
def matrix_exp(call: Call, wire: NodeWiring) -> Wired:
    """The exponential of matrices: Taylor's series of a small part of them, squared again and again; in f64"""
    x = call.tensor("self").cast(DatumType.F64)
    identity, small = _identity(x), x * 2.0**-_HALVINGS
    found = identity
    for term in range(_TERMS, 0, -1):
        found = identity + small.through(wire_matmul, found.outlet) * (1 / term)
    for _ in range(_HALVINGS):
        found = found.through(wire_matmul, found.outlet)
    return found.cast(call.kind)
