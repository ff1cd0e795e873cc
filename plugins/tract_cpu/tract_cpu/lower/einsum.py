"""Sums of products as matrix products: which axes are rows, columns and inner ones, and where the matrices lie."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from tract_llvm.elements.expressions import Expression
from tract_llvm.fuse.code_size import CHEAP
from tract_llvm.language.types import F32, ElementType
from tract_llvm.native_form.parameters import wire_product
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.storages import NOWHERE, Address
from tract_llvm.program.views import View

from tract_core.compile.products import ProductAxes, moves_only, stretched_shapes
from tract_core.dims import Dim, ceil_div, is_one, less_or_equal, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.einsum import EinSum
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.caches import CACHE_LINE, caches
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.draft.map import map_step
from tract_cpu.group.dots import factor_of, grouping_for, tile_grouping_for
from tract_cpu.group.einsum import Product
from tract_cpu.group.groups import Gates, Products
from tract_cpu.group.pairs import wire_pairs
from tract_cpu.kernels.dots import GROUPED, DotGrouping
from tract_cpu.kernels.in_blocks.bytes import grouping_of_bytes
from tract_cpu.kernels.in_blocks.matmul import TILES_AT_ONCE, BlockMatMulPlan, in_blocks
from tract_cpu.kernels.matmul import MatMulPlan
from tract_cpu.kernels.pack import PackPlan
from tract_cpu.kernels.sums import Tile, tile_for
from tract_cpu.kernels.tiles import TilesPlan, packed_row, tiles_for, whole_lines
from tract_cpu.lower.block_weights import CODES_FOR_BYTES, RowsInBlocks, bytes_of_rows
from tract_cpu.lower.recurrent import StateProduct, gates_step
from tract_cpu.lower.written_out import written_out
from tract_cpu.place.around import new_with_gaps
from tract_cpu.place.chain import PlacedChain, as_they_are, near, placed
from tract_cpu.products.cut import (
    RowCut,
    cut_rows,
    piece_of,
    reads_in_place,
    shared_evenly,
    tiles_per_task,
    whole_tiles,
)
from tract_cpu.products.dots import in_panels
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.block_weights import BlockWeights
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU, KINDS

ROWS = Rows()

_ANY_ELEMENT = 8
"""Bits of the narrowest elements: what masks them masks everything."""


@ROWS.row(CPU, EinSum)
def lower_einsum(op: EinSum, site: Site) -> str | None:
    """A product of two matrices, or of many pairs of them; of what else there is, several, or a view."""
    if op.q_output is not None:
        return written_out(site, partial(wire_product, op))
    if not isinstance(site.group, Product):
        return _lower_view(op, site) if _is_view(op, site) else written_out(site, partial(wire_pairs, op))
    lowering, axes = site.lowering, site.group.axes
    chain, views = placed(site, near(lowering)), _stretched(op, site)
    shape = dict(zip(op.axes.outputs[0], lowering.model.outlet_fact(site.outlet).shape, strict=True))
    right_at = site.node.inputs[axes.right]
    blocks = lowering.block_weights.get(right_at)
    left, right = (factor_of(lowering, site.node.inputs[slot]) for slot in (axes.left, axes.right))
    sums, known = chain.expression.inputs[0].computed, site.array(axes.right) is not None
    tiles = tile_grouping_for(site.isa, left, right, sums) if known and _pays_in_tiles(axes, shape) else None
    grouping = tiles or grouping_for(site.isa, left, right, sums, few=_has_few_rows(axes, shape))
    product_of = _Product(site, op, axes, chain, shape, grouping, in_tiles=tiles is not None, blocks=blocks)
    why = product_of.lower(views)
    if why is None or blocks is not None or right_at in lowering.narrow_weights:
        return why
    return product_of.lower([_arranged(site, op, axes, slot, view) for slot, view in enumerate(views)])


def _has_few_rows(axes: ProductAxes, shape: dict[str, Dim]) -> bool:
    """Whether there are few rows, or may be: few lose more by a kernel for many than many by one for few."""
    rows = product(shape[name] for name in axes.rows)
    return not isinstance(rows, int) or rows <= _FEW_ROWS


def _pays_in_tiles(axes: ProductAxes, shape: dict[str, Dim]) -> bool:
    """Whether there are so many rows that whole tiles of them take less time than as many vectors."""
    rows = product(shape[name] for name in axes.rows)
    return not isinstance(rows, int) or rows >= _ROWS_OF_TILES


_FEW_ROWS = 16
"""With more rows, multiplying takes longer than reading the right factors from the third cache."""

_ROWS_OF_TILES = 4
"""A tile is multiplied in as many cycles as vectors for two rows are, beside what is packed and laid down for it."""


@ROWS.row(KINDS, Gates)
def lower_gates(site: Site) -> None:
    """The product of a state with a matrix of the model, and the epilogue of the gates behind it."""
    op = site.node.op
    assert isinstance(op, EinSum)  # nothing else begins such a group
    chain, views = placed(site, near(site.lowering)), _stretched(op, site)
    site.add(gates_step(site, _of_state(op, site, chain, views)))


@ROWS.row(KINDS, Products)
def lower_products(site: Site) -> None:
    """Nothing is summed: a product for every element of the result, and the chain behind it."""
    op = site.node.op
    assert isinstance(op, EinSum)  # nothing else begins such a group
    shape, operands = tuple(site.node.facts[0].shape), list[View]()
    for term, view in zip(op.axes.inputs, _stretched(op, site), strict=True):
        axes = zip(term, view.shape, view.strides, strict=True)
        at: dict[str, Dim] = {name: stride for name, size, stride in axes if not is_one(size)}
        operands.append(replace(view, shape=shape, strides=tuple(at.get(name, 0) for name in op.axes.outputs[0])))
    chain = placed(site, as_they_are(site.lowering), operands)
    result = site.lowering.new(chain.outlet)
    site.add(map_step(chain.expression, chain.operands, result, site.isa, chain.nodes))


def _is_view(op: EinSum, site: Site) -> bool:
    return moves_only(op, site.facts(), site.node.facts[0])


def _stretched(op: EinSum, site: Site) -> list[View]:
    """The factors, with axes repeated that are longer in the other one."""
    pairs = zip(
        map(partial(_factor_at, site.lowering), site.node.inputs), stretched_shapes(op, site.facts()), strict=True
    )
    return [view.stretched(shape) for view, shape in pairs]


def _factor_at(lowering: Lowering, outlet: OutletId) -> View:
    """Where a factor is, in its own type; of one in blocks, which is nowhere unpacked, its shape."""
    if outlet in lowering.narrow_weights:
        return lowering.known_constant(lowering.narrow_weights[outlet])
    if outlet not in lowering.block_weights:
        return lowering.known_view(outlet)
    return View.contiguous(NOWHERE, F32, tuple(lowering.model.outlet_fact(outlet).shape))


def _lower_view(op: EinSum, site: Site) -> None:
    """A diagonal goes on along all of its axes at once."""
    (x,), (term,), (output,) = site.known_inputs(), op.axes.inputs, op.axes.outputs
    strides: dict[str, Dim] = dict.fromkeys(term, 0)
    for name, stride in zip(term, x.strides, strict=True):
        strides[name] = strides[name] + stride
    shape = tuple(site.node.facts[0].shape)
    site.place(replace(x, shape=shape, strides=tuple(strides[name] for name in output)))


def _arranged(site: Site, op: EinSum, groups: ProductAxes, slot: int, view: View) -> View:
    """A factor, copied so that its pairs follow each other, and its summed axes lie beside each other."""
    inside = groups.rows + groups.inner if slot == groups.left else groups.inner + groups.columns
    if slot != groups.left and groups.columns not in op.axes.outputs[0]:
        inside = groups.columns[:-1] + groups.inner + groups.columns[-1:]  # columns apart are further pairs
    term, array = op.axes.inputs[slot], site.array(slot)
    named = [term.index(name) for name in groups.pairs + inside if name in term]
    order = [*named, *(axis for axis in range(len(term)) if axis not in named)]
    turned = view.transposed(order)
    copied = site.lowering.contiguous(turned) if array is None else site.lowering.constant(array.transpose(order))
    assert copied is not None  # the type was that of the factor
    return copied.transposed([order.index(axis) for axis in range(len(order))])


def _of_state(op: EinSum, site: Site, chain: PlacedChain, views: Sequence[View]) -> StateProduct:
    """The product as one of rows and a matrix of the model: columns are the last axis of the result."""
    axes, (output,) = ProductAxes.of(op, [view.shape for view in views]), op.axes.outputs
    array, left, right = site.array(axes.right), views[axes.left], views[axes.right]
    assert array is not None  # it was looked at when groups were decided on
    term, state = op.axes.inputs[axes.right], op.axes.inputs[axes.left]
    strides = dict(zip(state, left.strides, strict=True))
    rows = tuple(strides[name] if name in axes.rows else 0 for name in output[:-1])
    matrix = array if term[0] == axes.inner else array.T
    return StateProduct(left, rows, strides[axes.inner], matrix, right.element, chain)


_Kinds = tuple[ElementType, ElementType, Expression, tuple[bool, ...], int]
"""Of a product: the types of both factors, the chain, which of its operands move along the columns, loops around."""


def _scratch(plan: MatMulPlan, rows: RowCut, tiles: Dim, lines: Dim, size: int) -> Dim:
    """Bytes for packed blocks of the left matrix, and an unpacked panel of the right one. ``size``: of a number."""
    panel: Dim = lines * rows.tile.columns * size if isinstance(plan, BlockMatMulPlan) and plan.many else 0
    if not plan.packs:
        return panel
    if isinstance(plan, TilesPlan):
        return tiles * rows.tile.rows * packed_row(lines) * size
    height, length = (rows.tile.pitch, lines) if plan.turns else (rows.tile.rows, lines + 2 * CACHE_LINE // size)
    return (tiles + len(rows.rests)) * height * length * size + panel


@frozen
class _Cut:
    """The loops of a product. Their strides are those of the factors, of further operands, and of the result."""

    rows: list[StridedLoop]
    columns: list[StridedLoop]
    pairs: list[StridedLoop]
    depth: StridedLoop


@frozen
class _Panels:
    """Packed right matrices: where they are, how many numbers each takes, and of which type."""

    address: Address
    each: Dim
    element: ElementType


@frozen
class _Product:
    """One product that is about to become steps. ``shape``: the sizes of the axes of the result.

    ``grouping``: how products are summed by neighbours; ``in_tiles``: whether in tiles. ``blocks``: the right matrix,
    where it lies in blocks.
    """

    site: Site
    op: EinSum
    groups: ProductAxes
    chain: PlacedChain
    shape: dict[str, Dim]
    grouping: DotGrouping | None
    in_tiles: bool
    blocks: BlockWeights | None = None

    def lower(self, views: Sequence[View]) -> str | None:
        """Add the steps, or say why there are none."""
        groups, lowering = self.groups, self.site.lowering
        left, right = views[groups.left], views[groups.right]
        output = self.op.axes.outputs[0]
        sizes = {
            **self.shape,
            **{n: s for n, s in zip(self.op.axes.inputs[0], views[0].shape, strict=True) if n in groups.inner},
        }
        left_at, right_at = self._strides(left, groups.left), self._strides(right, groups.right)
        inner = collapsed(
            [sizes[n] for n in groups.inner], [[at[n] for n in groups.inner] for at in (left_at, right_at)]
        )
        if len(inner) > 1:
            return "the summed axes do not lie beside each other in both factors"
        depth = inner[0] if inner else StridedLoop(1, (1, 1))
        result = replace(new_with_gaps(lowering, self.chain.outlet), element=self.chain.expression.result)
        operands = [dict(zip(output, view.strides, strict=True)) for view in self.chain.operands]
        result_at = dict(zip(output, result.strides, strict=True))
        places = [left_at, right_at, *operands, result_at]
        columns = self._loops(groups.columns, places)
        rows = self._loops(groups.rows, places)
        if columns and columns[-1].strides[-1] != 1:
            return "the columns of the result do not lie beside each other"
        cut = _Cut(rows, columns, self._loops(groups.pairs, places), depth)
        sums, width = self.chain.expression.inputs[0], columns[-1].size if columns else 1
        if self.in_tiles:
            tile = tiles_for(self.site.isa, sums, width)
        else:
            grouping = self.grouping
            squares = grouping is not None and bool(grouping.dot.square)
            few = grouping is not None and grouping.dot.is_for_few
            tile = tile_for(self.site.isa, sums, width, whole=grouping is not None, squares=squares, few=few)
        return self._add(tile, (left, right, result), cut)

    def _strides(self, view: View, slot: int) -> dict[str, Dim]:
        found: dict[str, Dim] = dict.fromkeys(self.op.axes.outputs[0], 0)
        term = zip(self.op.axes.inputs[slot], view.shape, view.strides, strict=True)
        return found | {name: 0 if is_one(size) else stride for name, size, stride in term}

    def _loops(self, names: str, places: Sequence[dict[str, Dim]]) -> list[StridedLoop]:
        return collapsed([self.shape[n] for n in names], [[at[n] for n in names] for at in places])

    def _add(self, tile: Tile, views: tuple[View, View, View], cut: _Cut) -> str | None:
        (left, right, result), depth, columns = views, cut.depth, cut.columns
        nothing = StridedLoop(1, (0,) * (3 + len(self.chain.operands)))
        row, column = cut.rows[-1] if cut.rows else nothing, columns[-1] if columns else nothing
        loops = [*cut.pairs, *columns[:-1], *cut.rows[:-1]]
        repeated = [loop for loop in loops if loop.strides[1] != 0]
        pair = collapsed([loop.size for loop in repeated], [[loop.strides[1] for loop in repeated]])
        if len(pair) > 1:
            return "the right factors of the pairs do not follow each other in memory"
        along = tuple(stride != 0 for stride in column.strides[2:-1])
        if any(stride not in {0, 1} for stride in column.strides[2:-1]):
            return "an operand behind the product does not lie along the columns"
        panels = self._panels(tile, right, (column, depth, pair[0] if pair else StridedLoop(1, (0,))), row.size)
        rows = whole_tiles(tile, row.size) if self.in_tiles else cut_rows(tile, row.size)
        count = ceil_div(column.size, tile.columns)
        cuts = self.blocks is None and self._sums_as_results()
        piece = piece_of(rows, depth.size, count, left.element.bytes) if cuts else None
        count = product([loop.size for loop in loops]) * count
        sums, lines, tiles = self.chain.expression.inputs[0].computed, self._lines(piece or depth.size), TILES_AT_ONCE
        size = max(sums.bytes, GROUPED.bytes)
        if self.blocks is None:
            tiles = tiles_per_task(rows, lines, count, size)
        if self.blocks is None and not self.in_tiles:
            rows, tiles = shared_evenly(rows, row.size, count, tiles)
        packs = self._packs(rows, left, row, depth, column)
        kinds = (left.element, panels.element, self.chain.expression, along, len(loops))
        stays = tuple(
            (down, across) == (0, 1) for down, across in zip(row.strides[2:-1], column.strides[2:-1], strict=True)
        )
        how = {"packs": packs, "together": self._together(left, depth), "cut": piece is not None}
        plan = self._plan(rows, kinds, depth, stays, **how)
        if self.blocks is not None:
            plan = in_blocks(plan, self.blocks.form, row.size, self._grouping_of_bytes(tile, loops, depth))
        pieces: dict[str, Given] = {} if piece is None else {"piece": piece}
        further = zip(self.chain.operands, row.strides[2:-1], strict=True)
        batch = zip(loops, self._panel_strides(loops, panels.each), strict=True)
        bytes_ = isinstance(plan, BlockMatMulPlan) and plan.bytes is not None
        given = arguments(
            plan,
            **(self._as_bytes(left, (row, depth)) if bytes_ else {}),
            rows=row.size,
            columns=column.size,
            depth=depth.size,
            whole=rows.whole,
            tiles=tiles,
            **pieces,
            left=left.address,
            left_row=row.strides[0],
            left_step=depth.strides[0],
            right=panels.address,
            further=[{"tensor": view.address, "row": stride} for view, stride in further],
            result=result.address,
            result_row=row.strides[-1],
            batch=[{"size": loop.size, "strides": [loop.strides[0], at, *loop.strides[2:]]} for loop, at in batch],
        )
        work = product([loop.size for loop in (*loops, row, column, depth)])
        scratch = _scratch(plan, rows, tiles, lines, size)
        tasks, results = count * ceil_div(rows.count, tiles), (result.storage,)
        self.site.add(NativeStep(plan, given, tasks, self.chain.nodes, results, scratch, work))
        return None

    def _grouping_of_bytes(self, tile: Tile, loops: Sequence[StridedLoop], depth: StridedLoop) -> DotGrouping | None:
        """How rows are multiplied as bytes, if they may be: of one matrix, in which they lie along the memory.

        Instructions that sum products of bytes fill whole registers, which matrices of a few columns do not.
        """
        site = self.site
        if self.blocks is None or not site.lowering.rounding.bytes or loops or depth.strides[0] != 1:
            return None
        if tile.lanes != site.isa.lanes(F32.bits):
            return None
        return grouping_of_bytes(site.isa) if self.blocks.form.bits <= CODES_FOR_BYTES else None

    def _as_bytes(self, left: View, loops: tuple[StridedLoop, StridedLoop]) -> Mapping[str, Given]:
        """Have the rows rounded to bytes in blocks, once for all products that read them."""
        assert self.blocks is not None  # the callers asked
        row, depth = loops
        cut = RowsInBlocks(row.size, row.strides[0], depth.size, self.blocks.form.length)
        return bytes_of_rows(self.site.lowering, self.site.node.inputs[self.groups.left], left, cut)

    def _plan(
        self,
        rows: RowCut,
        kinds: _Kinds,
        depth: StridedLoop,
        stays: tuple[bool, ...],
        *,
        packs: bool,
        together: bool,
        cut: bool,
    ) -> MatMulPlan:
        """The plan of the kernel. ``kinds``: types, and what moves; ``cut``: whether the summed axis is cut."""
        rolled = any(type(step.op) not in CHEAP for step in self.chain.expression.steps)
        return (TilesPlan if self.in_tiles else MatMulPlan)(
            rows.tile,
            rows.rests,
            *kinds,
            packs=packs,
            in_lines=depth.strides[0] == 1,
            grouping=self.grouping,
            together=together,
            rolled=rolled,
            masks=self.site.isa.masks_bits <= _ANY_ELEMENT,
            fetches=rows.count != 1 and self._comes_from_afar(),
            asks_ahead=rows.count == 1 and self._comes_from_afar(),
            pieces=cut,
            stays=stays if rolled else (),
        )

    def _comes_from_afar(self) -> bool:
        """Whether the right matrix is one of the model, and larger than the second level of the cache."""
        right = self.site.array(self.groups.right)
        return right is not None and right.nbytes > caches().second

    def _sums_as_results(self) -> bool:
        """Whether sums that are not done yet can lie in the result."""
        expression = self.chain.expression
        return self.grouping is None and expression.result == expression.inputs[0] == expression.inputs[0].computed

    def _packs(self, rows: RowCut, left: View, row: StridedLoop, depth: StridedLoop, column: StridedLoop) -> bool:
        """Whether blocks of the left matrix are packed: where they are read more than once, and not as well in place.

        ``rows``: how its rows are cut.
        """
        if self.in_tiles:
            return True
        if self.grouping is not None:
            whole = isinstance(depth.size, int) and not depth.size % self.grouping.size and not self.grouping.flips
            in_place = reads_in_place(rows.tile.rows, row.strides[0], depth.strides[0], left.element.bytes)
            return not (whole and in_place and self._together(left, depth))
        if isinstance(column.size, int) and column.size <= rows.tile.columns:
            return False
        plain = left.element == left.element.computed == self.chain.expression.inputs[0]
        in_place = reads_in_place(rows.tile.rows, row.strides[0], depth.strides[0], left.element.bytes)
        return not (plain and in_place) and (not is_one(row.size) or self._is_narrow(left))

    def _is_narrow(self, left: View) -> bool:
        """Whether numbers are converted as they are read, which is done for several at once as they are packed."""
        return self.site.lowering.held_apart(left.element) != left.element

    def _panels(self, tile: Tile, right: View, loops: tuple[StridedLoop, ...], rows: Dim) -> _Panels:
        """The packed right matrices. Constants are packed now.

        ``loops``: over columns, the summed axis, and pairs; ``rows``: how many there are.
        """
        if self.blocks is not None:
            view = self.site.lowering.block_panels(self.site.node.inputs[self.groups.right], tile.columns)
            return _Panels(view.address, product(view.shape), view.element)
        column, depth, pair = loops
        held = self._held(right.element, rows, depth.size * column.size)
        lines, grouping = self._lines(depth.size), self.grouping
        each = ceil_div(column.size, tile.columns) * tile.columns * lines
        element, count = held if grouping is None else GROUPED, pair.size
        if self._is_constant() and all(isinstance(one, int) for one in (each, count)):
            matrices = self._matrices(
                right, (count, depth.size, column.size), (pair.strides[0], depth.strides[1], column.strides[1])
            )
            view = self.site.lowering.made(
                (count, ceil_div(column.size, tile.columns), lines, tile.columns),
                element,
                lambda array: in_panels(array, (int(lines), tile.columns), grouping, element),
                matrices,
            )
            return _Panels(view.address, each, element)
        storage = self.site.lowering.room(count * each * element.bytes)
        plan = PackPlan(tile, right.element, held, column.strides[1] == 1, grouping)
        given = arguments(
            plan,
            columns=column.size,
            depth=depth.size,
            source=right.address,
            down=depth.strides[1],
            across=column.strides[1],
            pair=pair.strides[0],
            packed=Address(storage),
        )
        tasks = count * ceil_div(column.size, tile.columns)
        work = count * column.size * depth.size
        self.site.lowering.steps.append(NativeStep(plan, given, tasks, (), (storage,), work=work))
        return _Panels(Address(storage), each, element)

    def _is_constant(self) -> bool:
        """Whether the right matrix is one of the model."""
        outlet = self.site.node.inputs[self.groups.right]
        return self.site.array(self.groups.right) is not None or outlet in self.site.lowering.narrow_weights

    def _held(self, element: ElementType, rows: Dim, size: Dim) -> ElementType:
        """The type of right factors that are in no groups. ``size``: how many of them there are."""
        held = self.site.lowering.held_apart(element)
        outlet = self.site.node.inputs[self.groups.right]
        may_be_one = is_one(rows) or (not isinstance(rows, int) and outlet in self.site.lowering.narrow_weights)
        if may_be_one and less_or_equal(size * held.bytes, caches().second // 2) is not True:
            return element  # they may be read once, from far away, where they had best be short
        return held

    def _lines(self, depth: Dim) -> Dim:
        """How many lines a panel has."""
        grouping = self.grouping
        if grouping is None:
            return depth
        lines = ceil_div(depth, grouping.size)
        return whole_lines(lines) if self.in_tiles else lines + int(grouping.flips)

    def _together(self, left: View, depth: StridedLoop) -> bool:
        """Whether the neighbours of a left group lie in memory as they are multiplied."""
        return self.grouping is not None and depth.strides[0] == 1 and left.element.bits == self.grouping.left.bits

    def _matrices(self, right: View, shape: tuple[Any, ...], strides: tuple[Any, ...]) -> Array:
        """The right factors [pair, depth, column] where they are a constant of the model, or a copy of it."""
        array = self.site.lowering.draft.constants[right.storage.number]
        assert isinstance(array, np.ndarray)  # it is there before the program is
        array = np.ascontiguousarray(array)
        return as_strided(array, shape, [one * array.itemsize for one in strides], writeable=False)

    def _panel_strides(self, loops: Sequence[StridedLoop], each: Dim) -> list[Dim]:
        """How far apart the packed matrices are along each loop; 0 where it goes over one and the same."""
        found: list[Dim] = []
        step: Dim = each
        for loop in reversed(loops):
            repeats = loop.strides[1] == 0
            found.append(0 if repeats else step)
            if not repeats:
                step = step * loop.size
        return found[::-1]
