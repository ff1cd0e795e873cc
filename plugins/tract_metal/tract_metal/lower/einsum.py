"""Sums of products, pair by pair, each as a product of matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, Final

import mlx.core as mx

from tract_core.frozen import frozen
from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_metal.elements import wide
from tract_metal.lower.binary import FLOATS
from tract_metal.site import Site
from tract_metal.table import METAL

ROWS = Rows()

EXACT: Final = 1 << 10
"""How many products of two numbers of 8 bits f32 sums exactly."""


@ROWS.row(METAL, EinSum)
def lower_einsum(op: EinSum, site: Site) -> Callable[..., mx.array] | str:
    """Narrow floats are summed in f32 by MLX itself; integers of 8 bits in f32, so few at a time that it is exact."""
    if op.q_output is not None:
        return "quantised sums are scaled in f64"
    if op.acc.is_complex():
        return "MLX multiplies no matrices of complex numbers"
    if op.acc.is_integer() and any(fact.datum_type.itemsize > 1 for fact in site.facts):
        return "MLX multiplies no matrices of integers"
    if op.acc.is_integer() and len(op.axes.inputs) > 2:
        return "sums of several integer factors may not be exact in f32"
    return lambda *arrays: contracted(
        op, [Named(array, term) for array, term in zip(arrays, op.axes.inputs, strict=True)]
    )


@frozen
class Named:
    """``array``, and in ``term`` a name for each of its axes."""

    array: mx.array
    term: str

    def size(self, name: str) -> int:
        """Of an axis."""
        return self.array.shape[self.term.index(name)]

    def along(self, names: Sequence[str]) -> mx.array:
        """With its axes in another order."""
        return mx.transpose(self.array, [self.term.index(name) for name in names])


def contracted(op: EinSum, factors: Sequence[Named]) -> mx.array:
    """The whole sum of products."""
    (output,), kind = op.axes.outputs, factors[0].array.dtype
    named = [_diagonal(one) for one in factors]
    left = named[0]
    for index, right in enumerate(named[1:], 1):
        left = _pair(left, right, set(output).union(*(later.term for later in named[index + 1 :])))
    left = _sum_out(left, set(output))
    found = left.along(output)
    return found.astype(mx.int32 if op.acc.is_integer() and op.acc.itemsize == 4 else kind)


def _diagonal(x: Named) -> Named:
    """Each name once."""
    array, term = x.array, x.term
    while len(set(term)) < len(term):
        name = next(one for one in term if term.count(one) > 1)
        first = term.index(name)
        second = term.index(name, first + 1)
        array = mx.diagonal(array, 0, first, second)
        term = term[:first] + term[first + 1 : second] + term[second + 1 :] + name
    return Named(array, term)


def _pair(left: Named, right: Named, kept: set[str]) -> Named:
    """The product of two, summed over the axes that are not ``kept``."""
    left, right = _unstretched(left, right), _unstretched(right, left)
    left, right = _sum_out(left, kept | set(right.term)), _sum_out(right, kept | set(left.term))
    shared = [name for name in left.term if name in right.term]
    batch, inner = [one for one in shared if one in kept], [one for one in shared if one not in kept]
    rows, columns = ([one for one in x.term if one not in shared] for x in (left, right))
    lead, split, depth = ([left.size(one) for one in names] for names in (batch, rows, inner))
    tail = [right.size(one) for one in columns]
    a = mx.reshape(left.along([*batch, *rows, *inner]), (*lead, prod(split), prod(depth)))
    b = mx.reshape(right.along([*batch, *inner, *columns]), (*lead, prod(depth), prod(tail)))
    found = multiplied(a, b) if inner else _outer(a, b)
    return Named(mx.reshape(found, (*lead, *split, *tail)), "".join([*batch, *rows, *columns]))


def _outer(a: mx.array, b: mx.array) -> mx.array:
    if a.dtype not in FLOATS:
        return a.astype(mx.int32) * b.astype(mx.int32)
    return a * b


def multiplied(a: mx.array, b: mx.array) -> mx.array:
    """The product of [..., rows, depth] and [..., depth, columns]; integers of 8 bits give i32."""
    if a.dtype in FLOATS:
        return mx.matmul(a, b)
    total: Any = mx.zeros((*a.shape[:-1], b.shape[-1]), mx.int32)
    for begin in range(0, a.shape[-1], EXACT):
        part = slice(begin, begin + EXACT)
        found = mx.matmul(a[..., part].astype(mx.float32), b[..., part, :].astype(mx.float32))
        total = total + found.astype(mx.int32)
    return total


def _unstretched(x: Named, other: Named) -> Named:
    """Without the axes of size 1 that the other one has at another size."""
    drop = [name for name in x.term if x.size(name) == 1 and name in other.term and other.size(name) != 1]
    if not drop:
        return x
    return Named(mx.squeeze(x.array, [x.term.index(one) for one in drop]), "".join(n for n in x.term if n not in drop))


def _sum_out(x: Named, kept: set[str]) -> Named:
    drop = [axis for axis, name in enumerate(x.term) if name not in kept]
    if not drop:
        return x
    kind = x.array.dtype if x.array.dtype in FLOATS else mx.int32
    total = mx.sum(wide(x.array) if kind in FLOATS else x.array.astype(kind), axis=drop)
    return Named(total.astype(kind), "".join(name for name in x.term if name in kept))
