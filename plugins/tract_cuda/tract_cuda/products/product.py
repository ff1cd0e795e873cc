"""Products of matrices: launches by tiles, with the depth in one or several parts, and tiles by a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import F32, ElementType
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div
from tract_core.dims import product as product_of
from tract_core.frozen import frozen
from tract_cuda.kernels.blocks import BlockForm
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.kernels.product import AXES
from tract_cuda.kernels.products.dot import DotPlan
from tract_cuda.kernels.products.merge import MergePlan
from tract_cuda.kernels.products.mma import MmaPlan, MmaTile
from tract_cuda.kernels.products.mma_blocks import MmaBlocksPlan
from tract_cuda.kernels.products.tile import Tile, TilePlan
from tract_cuda.kernels.products.vector import VectorPlan
from tract_cuda.kernels.products.vector_blocks import VectorBlocksPlan
from tract_cuda.kernels.windows import Windows
from tract_cuda.language.matrices import HALVES, Factors
from tract_cuda.lowering import Lowering
from tract_cuda.maps import assumed, is_multiple, vector_width
from tract_cuda.positions import sizes_of, strides_of

TILES: Final = (
    Tile(128, 128, 8, 8, 8),
    Tile(128, 64, 8, 8, 4),
    Tile(64, 64, 16, 4, 4),
    Tile(32, 32, 16, 2, 2),
)
"""From the largest, which reads least for each sum, to the smallest, of which there are most blocks."""

FLAT: Final = Tile(16, 64, 32, 1, 4)
"""For few rows."""

BLOCK_TILES: Final = (
    Tile(128, 64, 32, 8, 4),
    Tile(64, 64, 32, 4, 4),
    Tile(32, 64, 32, 2, 4),
    Tile(32, 32, 32, 2, 2),
)
"""The same where the right factor lies in blocks, whose words are unpacked whole."""

OTHERS: Final = (
    Tile(64, 128, 8, 4, 8),
    Tile(128, 128, 16, 8, 8),
    Tile(64, 64, 8, 8, 8),
    Tile(64, 32, 16, 4, 4),
    Tile(32, 64, 16, 4, 4),
    Tile(32, 64, 32, 2, 4),
    Tile(32, 32, 32, 4, 4),
    Tile(16, 32, 32, 2, 2),
    Tile(16, 128, 16, 2, 4),
    Tile(8, 64, 32, 1, 4),
    Tile(4, 128, 32, 1, 4),
)
"""What is measured beside these."""

MMA_TILES: Final = (
    MmaTile(128, 128, 32, 4, 2, 4),
    MmaTile(128, 64, 32, 4, 2, 2),
    MmaTile(64, 64, 64, 3, 2, 2),
    MmaTile(32, 64, 64, 4, 2, 2),
)
"""The same on tensor cores, with depths as of halves: those of other elements have as many bytes."""

FLAT_MMA: Final = MmaTile(16, 64, 64, 4, 1, 4)
"""For few rows, on tensor cores."""

OTHERS_MMA: Final = (
    MmaTile(128, 128, 64, 3, 2, 2),
    MmaTile(128, 256, 32, 3, 2, 4),
    MmaTile(256, 128, 32, 3, 4, 2),
    MmaTile(64, 128, 64, 3, 2, 2),
    MmaTile(128, 64, 64, 3, 2, 2),
    MmaTile(64, 64, 32, 4, 2, 2),
    MmaTile(64, 32, 64, 4, 2, 1),
    MmaTile(32, 32, 64, 4, 1, 2),
    MmaTile(16, 128, 64, 4, 1, 4),
)
"""What is measured beside these, on tensor cores."""

_STEPS: Final = ("window.step", "window.batch", "window.pair")
"""How arguments of windows begin that are steps in memory."""

_SHORTEST: Final = 128
"""What of the depth is summed at once, at least."""

_MOST_PARTS: Final = 64
"""Of the depth, as the rule has it: what each of them sums is added up once more."""

_LEAST_WARPS: Final = 8
"""Of a multiprocessor, that it always has something to read."""

_SMALLEST_BITS: Final = 16
_LARGEST_BITS: Final = 64
"""Of numbers that tensor cores give, from here to there, two are written at once."""


@frozen
class WindowsOf:
    """The ``window`` of a convolution along its spatial axes, with so many ``channels`` at each position.

    ``arguments``: what `Windows` is called with beside that, by name.
    """

    window: tuple[int, ...]
    channels: Dim
    arguments: Mapping[str, Dim]

    @property
    def steps(self) -> list[Dim]:
        """The channels, and the arguments that are steps in memory: vectors of channels have to divide them."""
        return [self.channels, *(value for name, value in self.arguments.items() if name.startswith(_STEPS))]


@frozen
class BlocksOf:
    """How a right factor lies in blocks of a ``form`` along its ``depth``.

    ``others``: what blocks have beside their codes, as the form names it: [pairs, blocks, columns].
    """

    form: BlockForm
    depth: Dim
    others: tuple[View, ...]

    @property
    def is_ragged(self) -> bool:
        """Whether the last block may be a short one."""
        return not is_multiple(self.depth, self.form.length)

    def named(self) -> dict[str, View]:
        """What blocks have beside their codes, by name."""
        return {name: view for (name, _), view in zip(self.form.parts(), self.others, strict=True)}


@frozen
class Product:
    """A product of matrices, for many pairs of them, and what is computed of each element of the result.

    ``left``: [pairs, rows, depth]; ``right``: [pairs, depth, columns]; ``operands``, ``result``: [pairs, rows,
    columns]; the factors and operands with any strides, 0 among them. ``sums``: in which type products are summed.
    ``expression``: its first input is the sum, rounded to that type; the others are the operands. ``windows``: how the
    left factor is read where it is the windows of a convolution; its view is the data then. ``blocks``: how the right
    factor lies where that is in blocks; its view is [pairs, blocks, columns] of the begins of their codes then.
    ``tf32``: whether factors of f32 may be cut to 10 bits.
    """

    left: View
    right: View
    operands: tuple[View, ...]
    result: View
    sums: ElementType
    expression: Expression
    windows: WindowsOf | None = None
    blocks: BlocksOf | None = None
    tf32: bool = False

    @property
    def depth(self) -> Dim:
        """How many products each sum has."""
        return self.right.shape[1] if self.blocks is None else self.blocks.depth

    @property
    def inner_left(self) -> bool:
        """Whether the left factor lies with the depth side by side in memory, as windows do."""
        return self.windows is not None or self.left.strides[2] == 1

    @property
    def inner_right(self) -> bool:
        """Whether the right factor does, and not with its columns side by side, too."""
        return self.blocks is not None or (self.right.strides[1] == 1 and self.right.strides[2] != 1)

    def arguments(self, result: View | None = None) -> dict[str, View | Dim]:
        """What all kernels but that which adds up parts are called with. ``result``: another one, without operands."""
        sizes = sizes_of(self.result.shape) | {"depth": self.depth}
        return sizes | self.factors() | self.results(result)

    def factors(self) -> dict[str, View | Dim]:
        """Both factors, as kernels take them: windows without strides, but with how they are read."""
        if self.windows is None:
            blocks = {} if self.blocks is None else self.blocks.named()
            return strides_of({"left": self.left, "right": self.right, **blocks})
        found = {"left": self.left, **{f"left.{axis}": 0 for axis in range(AXES)}} | strides_of({"right": self.right})
        return found | {"window.channels": self.windows.channels, **self.windows.arguments}

    def results(self, result: View | None = None) -> dict[str, View | Dim]:
        """The result and the operands, as kernels take them; only another result where that is given."""
        if result is not None:
            return strides_of({"result": result})
        return strides_of({"result": self.result, **{f"operand{n}": one for n, one in enumerate(self.operands)}})


AnyTile = Tile | MmaTile

Choice = tuple[AnyTile, int]
"""A tile, and in how many parts the depth is summed."""


def tiles_for(product: Product) -> tuple[Sequence[AnyTile], AnyTile]:
    """The tiles that a product may be computed by, from the largest to the smallest, and that for few rows."""
    factors = factors_of(product)
    if factors is not None:
        return [as_deep(one, factors) for one in MMA_TILES], as_deep(FLAT_MMA, factors)
    return (TILES if product.blocks is None else BLOCK_TILES), FLAT


def by_rule(product: Product, multiprocessors: int) -> Choice:
    """The largest tile of which there are enough blocks for all multiprocessors, else the smallest, and parts."""
    pairs, rows, columns = map(assumed, product.result.shape)
    tiles, flat = tiles_for(product)
    fitting = [one for one in tiles if one.rows < 2 * rows and one.columns < 2 * columns] or [tiles[-1]]
    enough = (one for one in fitting if blocks(one, pairs, rows, columns) >= multiprocessors)
    tile = flat if rows <= flat.rows else next(enough, fitting[-1])
    count, depth = max(blocks(tile, pairs, rows, columns), 1), product.depth
    if not isinstance(depth, int) or count >= multiprocessors:
        return tile, 1
    return tile, max(1, min(2 * multiprocessors // count, depth // _SHORTEST, _MOST_PARTS))


def blocks(tile: AnyTile, pairs: int, rows: int, columns: int) -> int:
    """How many tiles there are."""
    return pairs * -(-rows // tile.rows) * -(-columns // tile.columns)


def add_tiles(lowering: Lowering, product: Product, choice: Choice, nodes: Sequence[int]) -> None:
    """Add the launches of a product by tiles."""
    tile, parts = choice
    if parts == 1:
        _add_whole(lowering, product, tile, nodes)
    else:
        _add_parts(lowering, product, tile, parts, nodes)


def as_deep(tile: MmaTile, factors: Factors) -> MmaTile:
    """The tile with a depth of as many bytes as it has of halves."""
    return replace(tile, depth=tile.depth * factors.each // HALVES)


def factors_of(product: Product) -> Factors | None:
    """What tensor cores multiply: types that they know, in pieces of 16 bytes, or in blocks that stand for such.

    ``None`` where factors are, or lie, otherwise.
    """
    left, right, windows = product.left, product.right, product.windows
    element = right.element if product.blocks is None else product.blocks.form.to
    found = Factors.of(left.element, element, product.sums, tf32=product.tf32 and product.blocks is None)
    if found is None or not (product.inner_right or found.turned):
        return None
    along = 1 if product.inner_right else 2
    places = [left.offset, product.depth]
    places += left.strides[:2] if windows is None else windows.steps
    if product.blocks is None:
        places += [right.offset, right.shape[along], *_across(right, along)]
    side_by_side = product.inner_left and (product.blocks is not None or right.strides[along] == 1)
    return found if side_by_side and all(is_multiple(one, found.each) for one in places) else None


def _plan(product: Product, tile: AnyTile, expression: Expression, result: View, *, parts: bool) -> KernelPlan:
    left, right, windows, blocks = product.left, product.right, product.windows, product.blocks
    whole = windows is not None and is_multiple(windows.channels, tile.depth)
    read = None if windows is None else Windows(windows.window, whole)
    if isinstance(tile, MmaTile):
        factors = factors_of(product)
        assert factors is not None, "such tiles are chosen where tensor cores multiply"
        mma = MmaPlan(tile, factors, product.inner_right, parts, expression, read, _in_pairs(result))
        return mma if blocks is None else MmaBlocksPlan(mma, blocks.form, blocks.is_ragged)
    return TilePlan(
        tile,
        left.element,
        right.element,
        product.sums,
        product.inner_left,
        product.inner_right,
        _wide_left(product),
        1 if blocks is not None else _wide(right, 1 if product.inner_right else 2, product.sums),
        parts,
        expression,
        read,
        None if blocks is None else blocks.form,
        blocks is not None and blocks.is_ragged,
    )


def _in_pairs(view: View) -> bool:
    """Whether columns of a result lie side by side, in whole pairs, of numbers of which one access writes two."""
    pairs, rows, columns = view.strides
    even = all(is_multiple(one, 2) for one in (view.offset, view.shape[2], pairs, rows))
    return columns == 1 and even and _SMALLEST_BITS <= view.element.bits < _LARGEST_BITS


def _wide_left(product: Product) -> int:
    """How many elements of the left factor are read at once; channels, where it is windows."""
    left, windows = product.left, product.windows
    if windows is None:
        return _wide(left, 2 if product.inner_left else 1, product.sums)
    return vector_width([left.element, product.sums], [left.offset, *windows.steps])


def _wide(view: View, axis: int, sums: ElementType) -> int:
    """How many elements are read at once along an axis."""
    if view.strides[axis] != 1 or view.element.bits < 8:
        return 1
    return vector_width([view.element, sums], [view.shape[axis], view.offset, *_across(view, axis)])


def _across(view: View, axis: int) -> list[Dim]:
    """The strides along the other axes."""
    return [stride for number, stride in enumerate(view.strides) if number != axis]


def _grid(product: Product, tile: AnyTile, parts: int) -> tuple[Dim, Dim, Dim]:
    pairs, rows, columns = product.result.shape
    return pairs * ceil_div(rows, tile.rows) * ceil_div(columns, tile.columns), 1, parts


def _add_whole(lowering: Lowering, product: Product, tile: AnyTile, nodes: Sequence[int]) -> None:
    plan = _plan(product, tile, product.expression, product.result, parts=False)
    given = product.arguments() | {"part": 0, "apart": 0}
    lowering.launch(plan, _grid(product, tile, 1), given, [product.result], nodes)


def _add_parts(lowering: Lowering, product: Product, tile: AnyTile, parts: int, nodes: Sequence[int]) -> None:
    """Parts of the depth are summed side by side, to memory of their own; then those are added up, in order."""
    shape, sums = product.result.shape, product.sums
    apart, part = product_of(shape), ceil_div(ceil_div(product.depth, parts), tile.depth) * tile.depth
    scratch = lowering.scratch(sums, (parts, *shape))
    first = View(scratch.storage, sums, shape, scratch.strides[1:])
    plan = _plan(product, tile, Expression((sums,)), first, parts=True)
    given = product.arguments(first) | {"part": part, "apart": apart}
    lowering.launch(plan, _grid(product, tile, parts), given, [scratch], nodes)
    merge = MergePlan(sums, product.expression)
    given = {"parts": parts, "apart": apart, "sums": scratch} | sizes_of(shape) | product.results()
    lowering.launch(merge, [ceil_div(apart, merge.threads)], given, [product.result], nodes)


def add_vectors(lowering: Lowering, product: Product, nodes: Sequence[int]) -> None:
    """For few rows: each number of the right factor is read once."""
    left, right, (pairs, rows, columns) = product.left, product.right, product.result.shape
    assert isinstance(rows, int), "the callers asked"
    inner, sums = product.inner_right, product.sums
    wide, warps = (min(_wide(left, 2, sums), _wide(right, 1, sums)), 4) if inner else (1, 16)
    plan = VectorPlan(rows, left.element, right.element, sums, inner, wide, warps, product.expression)
    grid = [pairs * ceil_div(columns, plan.columns)]
    lowering.launch(plan, grid, product.arguments(), [product.result], nodes)


def add_vectors_in_blocks(lowering: Lowering, product: Product, nodes: Sequence[int]) -> None:
    """For few rows and a right factor in blocks: each code is read once."""
    left, right, blocks, (pairs, rows, columns) = product.left, product.right, product.blocks, product.result.shape
    assert isinstance(rows, int) and blocks is not None, "the callers asked"  # noqa: PT018
    form, side_by_side = blocks.form, left.strides[2] == 1 and not blocks.is_ragged
    words = next(one for one in (4, 2, 1) if form.words % one == 0)
    at_once = vector_width([form.unit], [words, right.offset, *right.strides]) if form.units == 1 else 1
    wide = vector_width([left.element, F32], [form.run, left.offset, *left.strides[:2]]) if side_by_side else 1
    across = _columns_of_a_warp(assumed(pairs), assumed(columns), lowering.target.multiprocessors)
    plan = VectorBlocksPlan(
        rows, left.element, form, across, words, at_once, wide, blocks.is_ragged, 4, product.expression
    )
    grid = [pairs * ceil_div(columns, plan.columns)]
    lowering.launch(plan, grid, product.arguments(), [product.result], nodes)


def _columns_of_a_warp(pairs: int, columns: int, multiprocessors: int) -> int:
    """As many as leave warps enough for all multiprocessors: each element of the left factor is read once for them."""
    warps = pairs * columns // (multiprocessors * _LEAST_WARPS)
    return next((one for one in (4, 2) if one <= warps), 1)


def add_dots(lowering: Lowering, product: Product, nodes: Sequence[int]) -> None:
    """One thread for each sum: for whatever tiles are not made for."""
    plan = DotPlan(product.left.element, product.right.element, product.sums, product.expression)
    grid = [ceil_div(product_of(product.result.shape), plan.threads)]
    lowering.launch(plan, grid, product.arguments(), [product.result], nodes)
