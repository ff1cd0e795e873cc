"""Sums of products in registers, a tile of them at once: how many fit, and the loop that adds to them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from tract_llvm.isa import Isa
from tract_llvm.language.types import ElementType
from tract_llvm.language.values import Value

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.squares import TOGETHER

SMALL_TILES: Final = (8, 4, 2, 1)
"""How many rows the tiles have that compute what whole tiles leave over."""

_NARROWEST: Final = 128
"""Bits of the narrowest vectors that instruction sets have."""

SUMS_IN_FLIGHT: Final = 8
"""How many additions a processor has under way at once, about: two units, and four cycles for each."""

PRODUCTS_AT_ONCE: Final = 48
"""How many products of vectors a tile adds up before it asks whether there are more."""

STEPS_AT_ONCE: Final = 4
"""In how many steps along the inner axis at most."""

PRODUCTS_THAT_HIDE: Final = 16
"""With more products of vectors in a step, or with several instructions for each, asking for more steps costs nothing.

Factors of several steps would be read ahead then, and sums have to leave their registers for them.
"""

PRODUCTS_OF_A_BLOCK: Final = 112
"""How many products of vectors are written out at most where the summed axis is a block of channels."""


@frozen
class Tile:
    """How a product is cut.

    ``rows``: of a whole tile; ``vectors``: of ``lanes`` columns each, side by side.
    """

    rows: int
    vectors: int
    lanes: int

    @property
    def columns(self) -> int:
        """Of a tile, and of a panel."""
        return self.vectors * self.lanes

    @property
    def pitch(self) -> int:
        """How far apart the steps of a packed tile are: whole vectors."""
        return -(-self.rows // self.lanes) * self.lanes


def tile_for(
    isa: Isa,
    element: ElementType,
    columns: Dim | None = None,
    *,
    whole: bool = False,
    squares: bool = False,
    few: bool = False,
) -> Tile:
    """The tile with the most sums that fit the registers, beside a row of the panel and one element of the left.

    ``columns``: how many the result has; where they surely fit a narrower tile, its panel has fewer zeros to read.
    ``whole``: whether vectors are whole registers, as instructions want that sum products of neighbours. ``squares``:
    whether these have sums of two rows in a register: then all rows of the left are in registers, too.
    ``few``: whether there are so few rows that each element of the left had better meet more columns.
    """
    vectors = 4 if few else 2
    rows = (isa.registers - vectors - 1) // vectors
    if squares:
        rows = TOGETHER * ((isa.registers - vectors) // (TOGETHER * vectors + 1))
    lanes = isa.lanes(element.computed.bits)
    least = lanes if whole else _NARROWEST // element.computed.bits
    while isinstance(columns, int) and columns <= vectors * lanes // 2 and vectors * lanes > least:
        vectors, lanes = (1, lanes) if vectors > 1 else (1, lanes // 2)
    return Tile(rows, vectors, lanes)


class Sums:
    """The sums of one tile. A small tile has several chains of them, as one has to wait for each addition to end."""

    def __init__(
        self,
        k: Kernel,
        tile: Tile,
        type_: ElementType,
        height: int,
        *,
        grouping: DotGrouping | None = None,
        start: Sequence[Value] | None = None,
        chained: bool = True,
    ) -> None:
        """``start``: what each vector of every row starts at, 0 by default.

        ``chained``: whether there may be several chains. With one, sums do not depend on the height of the tile.
        """
        self._k, self._grouping = k, grouping
        products = height * tile.vectors
        self.chains = _power_of_two(SUMS_IN_FLIGHT // products) if chained else 1
        at_once = min(PRODUCTS_AT_ONCE // products, STEPS_AT_ONCE)
        written_out = self.chains == 1 and _is_worth_it(products, grouping)
        self._at_once = _power_of_two(at_once) if written_out else self.chains
        zeros = [k.constant(0, type_, tile.lanes)] * tile.vectors
        starts = [start or zeros, *[zeros] * (self.chains - 1)]
        self._sums = [[[k.variable(one) for one in line] for _ in range(height)] for line in starts]

    def along(
        self, steps: Value, add: Callable[[Value, int], None], begin: Callable[[Value], None] = lambda _: None
    ) -> list[list[Value]]:
        """The sums, by rows and vectors, when ``add(step, chain)`` has added the products of every step.

        ``begin(step)``: what is done before every few of them.
        """
        k, whole = self._k, steps - steps % self._at_once
        with k.loop("depth", whole, step=self._at_once) as d:
            begin(d)
            for one in range(self._at_once):
                add(d + one, one % self.chains)
        if self._at_once > 1:
            with k.loop("depth.rest", steps, whole) as d:
                add(d, 0)
        return self._totals()

    def add(self, chain: int, row: int, factor: Value, columns: Sequence[Value]) -> None:
        """Add the products of a factor with the elements of some columns to the sums of a row."""
        for total, column in zip(self._sums[chain][row], columns, strict=True):
            total.value = plus_products(self._k, self._grouping, total.value, factor, column)

    def _totals(self) -> list[list[Value]]:
        """The sums of all chains, by rows and vectors."""
        values = [[[total.value for total in row] for row in chain] for chain in self._sums]
        while len(values) > 1:
            values = [added(a, b) for a, b in zip(values[::2], values[1::2], strict=True)]
        return values[0]


def plus_products(k: Kernel, grouping: DotGrouping | None, total: Value, factor: Value, weights: Value) -> Value:
    """A sum plus the products of a step: single ones, or those of the neighbours in groups."""
    if grouping is None:
        return factor.times_plus(weights, total)
    return k.dots(grouping.dot, factor, weights, total)


def steps_at_once(steps: int, products: int, grouping: DotGrouping | None) -> int:
    """How many of the steps of a whole block are written out, a divisor of all of them.

    ``products``: of vectors, in each step.
    """
    most = PRODUCTS_OF_A_BLOCK // products if _is_worth_it(products, grouping) else 1
    return max(one for one in range(1, min(most, steps) + 1) if steps % one == 0)


def _is_worth_it(products: int, grouping: DotGrouping | None) -> bool:
    """Whether several steps are written out: few ``products`` of vectors each, which are one instruction each."""
    return products <= PRODUCTS_THAT_HIDE and (grouping is None or grouping.dot.adds)


def _power_of_two(number: int) -> int:
    """The largest one that is not above a number, or 1."""
    return 1 << max(number.bit_length() - 1, 0)


def added(a: list[list[Value]], b: list[list[Value]]) -> list[list[Value]]:
    """The sums of two sums, each by rows and vectors."""
    return [[one + other for one, other in zip(row, below, strict=True)] for row, below in zip(a, b, strict=True)]
