"""Which products are summed by neighbours: those of factors that surely fit what an instruction takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_cpu.isa import Dot
from tract_cpu.kernels.dots import Grouping
from tract_cpu.language.types import BF16, ElementType, numpy_type, other_sign
from tract_cpu.lower.lowering import Lowering
from tract_cpu.lower.ranges import of_type, range_of


def grouping_for(lowering: Lowering, left: OutletId, right: OutletId, sums: ElementType) -> Grouping | None:
    """How products of two tensors are summed in groups: ``sums``: the type of the sums; ``None`` where none fits.

    Of integers the values count, not the types that they are stored in.
    """
    return next((one for one in _groupings(lowering.isa.dots) if _takes(lowering, one, left, right, sums)), None)


def _groupings(dots: Sequence[Dot]) -> Iterator[Grouping]:
    for dot in dots:
        both = [Grouping(one) for one in ((dot,) if dot.left == dot.right else (dot, dot.other_way()))]
        yield from both
        yield from (replace(one, flips=True) for one in both if one.left.kind != "f")


def _takes(lowering: Lowering, grouping: Grouping, left: OutletId, right: OutletId, sums: ElementType) -> bool:
    if sums.name != grouping.dot.sums:
        return False
    wanted = (other_sign(grouping.left) if grouping.flips else grouping.left), grouping.right
    if grouping.left.kind == "f":
        facts = (lowering.model.outlet_fact(one) for one in (left, right))
        return all(lowering.element(fact.datum_type) == one for fact, one in zip(facts, wanted, strict=True))
    return all(_fits(lowering, outlet, one) for outlet, one in zip((left, right), wanted, strict=True))


def _fits(lowering: Lowering, outlet: OutletId, element: ElementType) -> bool:
    found = range_of(lowering, outlet)
    return found is not None and found.within(of_type(element))


def grouped(matrices: Array, grouping: Grouping) -> Array:
    """Matrices [count, depth, columns] as [count, lines, columns]: groups along the depth, each a number of 32 bits.

    Behind the last row there are zeros. What sums start at is a line before them, where that is not zero.
    """
    element, size = grouping.right, grouping.size
    count, depth, columns = matrices.shape
    narrow = matrices.view(np.uint16) if element is BF16 else matrices.astype(numpy_type(element))
    even = np.pad(narrow, ((0, 0), (0, -depth % size), (0, 0)))
    groups = even.reshape(count, even.shape[1] // size, size, columns).transpose(0, 1, 3, 2)
    found: Array = np.ascontiguousarray(groups).view(np.int32)[..., 0]
    if not grouping.flips:
        return found
    start = matrices.sum(axis=1, dtype=np.int64, keepdims=True) * grouping.half
    return np.concatenate([start.astype(np.int32), found], axis=1)
