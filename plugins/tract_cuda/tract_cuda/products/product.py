"""Products of matrices: launches by tiles, with the depth in one or several parts, and tiles by a rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import BF16, F16, F32, ElementType
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div
from tract_core.dims import product as product_of
from tract_core.frozen import frozen
from tract_cuda.kernels.dot import THREADS, DotPlan
from tract_cuda.kernels.merge import THREADS as MERGE_THREADS
from tract_cuda.kernels.merge import MergePlan
from tract_cuda.kernels.mma import EACH, MmaPlan, MmaTile
from tract_cuda.kernels.tile import AXES, Tile, TilePlan
from tract_cuda.kernels.vector import VectorPlan
from tract_cuda.kernels.windows import Windows
from tract_cuda.lowering import Lowering
from tract_cuda.maps import is_multiple

TILES: Final = (
    Tile(128, 128, 8, 8, 8),
    Tile(128, 64, 8, 8, 4),
    Tile(64, 64, 16, 4, 4),
    Tile(32, 32, 16, 2, 2),
)
"""From the largest, which reads least for each sum, to the smallest, of which there are most blocks."""

FLAT: Final = Tile(16, 64, 32, 1, 4)
"""For few rows."""

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
"""The same for halves, on tensor cores."""

FLAT_MMA: Final = MmaTile(16, 64, 64, 4, 1, 4)

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

_STEPS: Final = ("window.step", "window.batch")
"""How arguments of windows begin that are steps in memory."""

_UNKNOWN: Final = 64
"""What a symbolic size is taken for."""

_SHORTEST: Final = 128
"""What of the depth is summed at once, at least."""

_MOST_PARTS: Final = 64

_WIDE: Final = 16
"""Bytes that one thread reads at once."""

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


@frozen
class Product:
    """A product of matrices, for many pairs of them, and what is computed of each element of the result.

    ``left``: [pairs, rows, depth]; ``right``: [pairs, depth, columns]; ``operands``, ``result``: [pairs, rows,
    columns]; the factors and operands with any strides, 0 among them. ``sums``: in which type products are summed.
    ``expression``: its first input is the sum, rounded to that type; the others are the operands. ``windows``: how the
    left factor is read where it is the windows of a convolution; its view is the data then.
    """

    left: View
    right: View
    operands: tuple[View, ...]
    result: View
    sums: ElementType
    expression: Expression
    windows: WindowsOf | None = None

    @property
    def depth(self) -> Dim:
        """How many products each sum has."""
        return self.right.shape[1]

    def tensors(self, result: View | None = None) -> dict[str, View | Dim]:
        """The result, another one where it is given, and the operands, with their strides, as kernels take them."""
        named = {"result": result or self.result}
        named |= {f"operand{number}": one for number, one in enumerate(self.operands if result is None else ())}
        return _with_strides(named)

    def sizes(self) -> dict[str, View | Dim]:
        """Pairs, rows and columns, as kernels take them."""
        return {f"size{axis}": size for axis, size in enumerate(self.result.shape)}


AnyTile = Tile | MmaTile

Choice = tuple[AnyTile, int]
"""A tile, and in how many parts the depth is summed."""


def tiles_for(product: Product) -> tuple[Sequence[AnyTile], AnyTile]:
    """The tiles that a product may be computed by, from the largest to the smallest, and that for few rows."""
    return (MMA_TILES, FLAT_MMA) if fits_tensor_cores(product) else (TILES, FLAT)


def by_rule(product: Product, multiprocessors: int) -> Choice:
    """The largest tile of which there are enough blocks for all multiprocessors, else the smallest, and parts."""
    pairs, rows, columns = (size if isinstance(size, int) else _UNKNOWN for size in product.result.shape)
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


def fits_tensor_cores(product: Product) -> bool:
    """Whether the factors are halves that lie in pieces of 16 bytes."""
    left, right, windows = product.left, product.right, product.windows
    if left.element != right.element or left.element not in {F16, BF16} or product.sums is not F32:
        return False
    along = 1 if right.strides[1] == 1 and right.strides[2] != 1 else 2
    others = [stride for axis, stride in enumerate(right.strides) if axis != along]
    steps = [right.offset, left.offset, right.shape[along], *others]
    if windows is None:
        straight, steps = left.strides[2] == 1, [*steps, product.depth, *left.strides[:2]]
    else:
        named = [value for name, value in windows.arguments.items() if name.startswith(_STEPS)]
        straight, steps = True, [*steps, windows.channels, *named]
    return straight and right.strides[along] == 1 and all(is_multiple(one, EACH) for one in steps)


def _plan(product: Product, tile: AnyTile, expression: Expression, result: View, *, parts: bool) -> TilePlan | MmaPlan:
    left, right, windows = product.left, product.right, product.windows
    whole = windows is not None and is_multiple(windows.channels, tile.depth)
    read = None if windows is None else Windows(windows.window, whole)
    if isinstance(tile, MmaTile):
        inner = right.strides[1] == 1 and right.strides[2] != 1
        return MmaPlan(tile, left.element, inner, parts, expression, read, _in_pairs(result))
    inner_left, inner_right = (
        windows is not None or left.strides[2] == 1,
        right.strides[1] == 1 and right.strides[2] != 1,
    )
    return TilePlan(
        tile,
        left.element,
        right.element,
        product.sums,
        inner_left,
        inner_right,
        _wide_window(product) if windows is not None else _wide(left, 2 if inner_left else 1, product.sums),
        _wide(right, 1 if inner_right else 2, product.sums),
        parts,
        expression,
        read,
    )


def _in_pairs(view: View) -> bool:
    """Whether columns of a result lie side by side, in whole pairs, of numbers of which one access writes two."""
    pairs, rows, columns = view.strides
    even = all(is_multiple(one, 2) for one in (view.offset, view.shape[2], pairs, rows))
    return columns == 1 and even and _SMALLEST_BITS <= view.element.bits < _LARGEST_BITS


def _wide_window(product: Product) -> int:
    """How many channels are read at once."""
    windows, view = product.windows, product.left
    assert windows is not None, "the callers asked"
    steps = [value for name, value in windows.arguments.items() if name.startswith(_STEPS)]
    most = min(_WIDE // view.element.bytes, _WIDE // product.sums.bytes)
    while most > 1 and not all(is_multiple(one, most) for one in (windows.channels, view.offset, *steps)):
        most //= 2
    return max(most, 1)


def _wide(view: View, axis: int, sums: ElementType) -> int:
    """How many elements are read at once along an axis."""
    others = [stride for number, stride in enumerate(view.strides) if number != axis]
    most = min(_WIDE // view.element.bytes if view.element.bits >= 8 else 1, _WIDE // sums.bytes)
    if view.strides[axis] != 1:
        return 1
    while most > 1 and not all(is_multiple(one, most) for one in (view.shape[axis], view.offset, *others)):
        most //= 2
    return most


def _given(product: Product, part: Dim, apart: Dim, result: View | None = None) -> dict[str, View | Dim]:
    factors = _with_strides({"left": product.left, "right": product.right})
    if product.windows is not None:
        factors = {"left": product.left, **_with_strides({"right": product.right}), **product.windows.arguments}
        factors |= {f"left.{axis}": 0 for axis in range(AXES)} | {"window.channels": product.windows.channels}
    return product.sizes() | {"depth": product.depth, "part": part, "apart": apart} | factors | product.tensors(result)


def _with_strides(tensors: dict[str, View]) -> dict[str, View | Dim]:
    found: dict[str, View | Dim] = {}
    for name, view in tensors.items():
        found[name] = view
        found |= {f"{name}.{axis}": stride for axis, stride in enumerate(view.strides)}
    return found


def _grid(product: Product, tile: AnyTile, parts: int) -> tuple[Dim, Dim, Dim]:
    pairs, rows, columns = product.result.shape
    return pairs * ceil_div(rows, tile.rows) * ceil_div(columns, tile.columns), 1, parts


def _add_whole(lowering: Lowering, product: Product, tile: AnyTile, nodes: Sequence[int]) -> None:
    plan = _plan(product, tile, product.expression, product.result, parts=False)
    lowering.launch(plan, _grid(product, tile, 1), _given(product, 0, 0), [product.result], nodes)


def _add_parts(lowering: Lowering, product: Product, tile: AnyTile, parts: int, nodes: Sequence[int]) -> None:
    """Parts of the depth are summed side by side, to memory of their own; then those are added up, in order."""
    shape, sums = product.result.shape, product.sums
    apart, part = product_of(shape), ceil_div(ceil_div(product.depth, parts), tile.depth) * tile.depth
    scratch = lowering.scratch(sums, (parts, *shape))
    first = View(scratch.storage, sums, shape, scratch.strides[1:])
    plan = _plan(product, tile, Expression((sums,)), first, parts=True)
    lowering.launch(plan, _grid(product, tile, parts), _given(product, part, apart, first), [scratch], nodes)
    given = {"parts": parts, "apart": apart, "sums": scratch} | product.sizes() | product.tensors()
    merge = MergePlan(sums, product.expression)
    lowering.launch(merge, [ceil_div(apart, MERGE_THREADS)], given, [product.result], nodes)


def add_vectors(lowering: Lowering, product: Product, nodes: Sequence[int]) -> None:
    """For few rows: each number of the right factor is read once."""
    left, right, (pairs, rows, columns) = product.left, product.right, product.result.shape
    assert isinstance(rows, int), "the callers asked"
    inner = right.strides[1] == 1 and right.strides[2] != 1
    both = min(_wide(left, 2, product.sums), _wide(right, 1, product.sums)) if inner else 1
    plan = VectorPlan(
        rows, left.element, right.element, product.sums, inner, both, 4 if inner else 16, product.expression
    )
    given = product.sizes() | {"depth": product.depth} | product.tensors()
    given |= _with_strides({"left": left, "right": right})
    lowering.launch(plan, [pairs * ceil_div(columns, plan.columns)], given, [product.result], nodes)


def add_dots(lowering: Lowering, product: Product, nodes: Sequence[int]) -> None:
    """One thread for each sum: for whatever tiles are not made for."""
    plan = DotPlan(product.left.element, product.right.element, product.sums, product.expression)
    given = product.sizes() | {"depth": product.depth} | product.tensors()
    given |= _with_strides({"left": product.left, "right": product.right})
    count = product_of(product.result.shape)
    lowering.launch(plan, [ceil_div(count, THREADS)], given, [product.result], nodes)
