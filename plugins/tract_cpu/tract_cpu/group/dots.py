"""Which products are summed by neighbours: those of factors that surely fit what an instruction takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from tract_llvm.isa import Dot, Isa
from tract_llvm.language.tiles import STEPS
from tract_llvm.language.types import ElementType, other_sign

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_cpu.group.known import CpuKnown
from tract_cpu.group.ranges import IntegerRange, of_type, range_of
from tract_cpu.kernels.dots import DotGrouping


@frozen
class Factor:
    """What is multiplied: the type of its elements, and of integers, between which numbers they lie."""

    element: ElementType
    range: IntegerRange | None

    def fits(self, element: ElementType) -> bool:
        """Whether all of it surely is of a type."""
        if element.kind == "f":
            return self.element == element
        return self.range is not None and self.range.within(of_type(element))


def factor_of(known: CpuKnown, outlet: OutletId) -> Factor | None:
    """A tensor as a factor; ``None`` where native code does not know its type."""
    element = known.element(known.model.outlet_fact(outlet).datum_type.storage)
    return element and Factor(element, range_of(known, outlet))


def factor_of_array(element: ElementType, array: Array) -> Factor:
    """Numbers that are part of the model as a factor."""
    floats = element.kind == "f" or not array.size
    return Factor(element, None if floats else IntegerRange(int(array.min()), int(array.max())))


def grouping_of_channels(
    known: CpuKnown, factors: tuple[OutletId, OutletId], array: Array, sums: ElementType, groups: int = 1
) -> tuple[DotGrouping | None, bool]:
    """How a convolution's products are summed in groups of channels, and whether in tiles.

    They are of data whose elements are stored as the instruction takes them, or are copied so: to fewer bits, if these
    hold them all, or to more, if the instruction set says so. ``factors``: the data and the weights; ``array``: these
    as [output channels, input channels, ...], for ``groups`` of channels, 0 for none that tiles are for. Channels that
    a last group lacks are multiplied by zero, so that floats there may not be just anything.
    """
    left, element = factor_of(known, factors[0]), known.element_at(factors[1])
    if left is None or element is None:
        return None, False
    right, inputs, bits = factor_of_array(element, array), array.shape[1], left.element.bits

    def fills(found: DotGrouping, whole: int) -> bool:
        """Whether floats fill so many groups."""
        return left.element.kind != "f" or inputs % (found.size * whole) == 0

    tiles = tile_grouping_for(known.isa, left, right, sums.computed) if groups == 1 else None
    if tiles is not None and tiles.left.bits == bits and fills(tiles, STEPS) and 2 * inputs >= tiles.size * STEPS:
        return tiles, True
    found = grouping_for(known.isa, left, right, sums.computed)
    if found is None or not fills(found, 1) or (found.left.bits > bits and not known.isa.widens):
        return None, False
    return found, False


def grouping_for(
    isa: Isa, left: Factor | None, right: Factor | None, sums: ElementType, *, few: bool = False
) -> DotGrouping | None:
    """How products are summed in groups: ``sums``: the type of the sums; ``None`` where no instruction fits.

    ``few``: whether so few left factors meet each right one that it counts most how many bytes these have. Of integers
    the values count, not the types that they are stored in.
    """
    dots = [one for one in isa.dots if few or not one.is_for_few]
    return next((one for one in _groupings(dots) if _fits(one, left, right, sums)), None)


def tile_grouping_for(isa: Isa, left: Factor | None, right: Factor | None, sums: ElementType) -> DotGrouping | None:
    """The same for products of tiles, which are for factors as they are: there is an instruction for all signs."""
    return next((one for one in map(DotGrouping, isa.tiles) if _fits(one, left, right, sums)), None)


def _fits(one: DotGrouping, left: Factor | None, right: Factor | None, sums: ElementType) -> bool:
    """Whether factors are what an instruction takes, left ones with the other sign where these are flipped."""
    if left is None or right is None or one.dot.sums != sums.name or not _within_limit(one, left, right):
        return False
    return left.fits(other_sign(one.left) if one.flips else one.left) and right.fits(one.right)


def _within_limit(one: DotGrouping, left: Factor, right: Factor) -> bool:
    """Whether factors are as small as an instruction wants them."""
    limit, limited = one.dot.limit, left if one.dot.turned else right
    if not limit:
        return True
    as_they_are = not (one.flips and one.dot.turned)
    return as_they_are and limited.range is not None and limited.range.within(IntegerRange(-limit, limit))


def _groupings(dots: Sequence[Dot]) -> Iterator[DotGrouping]:
    """Of those that sum as many products at once, the ones first that take factors as they are."""
    for _, of_a_size in groupby(dots, key=lambda dot: dot.group):
        both = [DotGrouping(one) for dot in of_a_size for one in _both_ways(dot)]
        yield from both
        yield from (replace(one, flips=True) for one in both if one.left.kind != "f")


def _both_ways(dot: Dot) -> Sequence[Dot]:
    return (dot,) if dot.left == dot.right else (dot, dot.other_way())
