"""Products whose matrix is chosen for each row: rows are put in order first, and then multiplied matrix by matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.language.types import F32, INDEX, ElementType
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.storages import Address
from tract_llvm.program.views import View

from tract_core.data import DatumType
from tract_core.dims import Dim, ceil_div, dim_min, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.indexed_matmul import IndexedMatMul
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.caches import caches
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.kernels.in_blocks.bytes import grouping_of_bytes
from tract_cpu.kernels.in_blocks.matmul import TILES_AT_ONCE
from tract_cpu.kernels.indexed.in_blocks import IndexedBlockMatMulPlan, indexed_in_blocks
from tract_cpu.kernels.indexed.matmul import IndexedMatMulPlan
from tract_cpu.kernels.indexed.runs import RUN, RunsPlan
from tract_cpu.kernels.matmul import MatMulPlan
from tract_cpu.kernels.pack import PackPlan
from tract_cpu.kernels.sums import SMALL_TILES, Tile, tile_for
from tract_cpu.lower.block_weights import CODES_FOR_BYTES, RowsInBlocks, bytes_of_rows
from tract_cpu.products.dots import in_panels
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.table import CPU

ROWS = Rows()


@ROWS.row(CPU, IndexedMatMul)
def lower_indexed_matmul(op: IndexedMatMul, site: Site) -> None:
    """The runs of rows that chose the same matrix, and a product with a task for each run and panel of columns."""
    lowering, element = site.lowering, site.result()
    assert element is not None  # nodes whose results have other types are left to the host before
    x, which = (lowering.known_view(site.node.inputs[slot]) for slot in (0, 2))
    rows, (matrices, columns, depth) = _rows_of(lowering, x, which), site.facts()[1].shape
    expression = Expression((element,))
    tile = tile_for(site.isa, expression.inputs[0], columns)
    right, most = _panels(site, tile), TILES_AT_ONCE * tile.rows
    plan, bytes_ = _plan(site, rows, right.element, expression, tile)
    result = lowering.new(site.outlet)
    given = arguments(
        plan,
        **_runs(lowering, site.node.inputs[2], matrices, most),
        **bytes_,
        sharing=rows.sharing,
        rows=rows.count,
        columns=columns,
        depth=depth,
        whole=0,
        tiles=1,
        left=rows.view.address,
        left_row=rows.apart,
        left_step=rows.view.strides[-1],
        right=right.address,
        further=[],
        result=result.address,
        result_row=columns,
        batch=[],
    )
    many = isinstance(plan, IndexedBlockMatMulPlan) and plan.many
    scratch = depth * tile.columns * F32.bytes if many else 0
    tasks = _most_runs(rows.count, matrices, most) * ceil_div(columns, tile.columns)
    work = product([rows.count, columns, depth])
    site.add(NativeStep(plan, given, tasks, (site.node.node,), (result.storage,), scratch, work))


@frozen
class _Rows:
    """Left factors, ``lines`` of them, so far ``apart``; ``view``: where they are.

    ``count``: of rows of the result, of which so many, ``sharing``, have one line in common.
    """

    view: View
    count: Dim
    lines: Dim
    sharing: Dim
    apart: Dim


def _rows_of(lowering: Lowering, x: View, which: View) -> _Rows:
    """The left factors of rows, copied where these do not follow each other, some of them sharing one."""
    shape, count = which.shape, product(which.shape)
    for view in (x.stretched((*shape, x.shape[-1])), None):
        rows = view or lowering.contiguous(x).stretched((*shape, x.shape[-1]))
        loops = collapsed(shape, [rows.strides[:-1]])
        sharing = loops.pop().size if loops and loops[-1].strides[0] == 0 else 1
        if len(loops) < 2:
            line = loops[0] if loops else StridedLoop(1, (0,))
            return _Rows(rows, count, line.size, sharing, line.strides[0])
    whole = lowering.contiguous(x.stretched((*shape, x.shape[-1])))
    return _Rows(whole, count, count, 1, x.shape[-1])


def _plan(
    site: Site, rows: _Rows, right: ElementType, expression: Expression, tile: Tile
) -> tuple[MatMulPlan, Mapping[str, Given]]:
    """The plan of the product, and what it is told of rows as bytes."""
    lowering, step = site.lowering, rows.view.strides[-1]
    plan = IndexedMatMulPlan(
        tile,
        tuple(one for one in SMALL_TILES if one < tile.rows),
        rows.view.element,
        right,
        expression,
        along_columns=(),
        batch=0,
        packs=False,
        in_lines=step == 1,
        masks=site.isa.masks_bits <= _ANY_ELEMENT,
    )
    blocks = lowering.block_weights.get(site.node.inputs[1])
    if blocks is None:
        return plan, {}
    may_be_bytes = lowering.rounding.bytes and step == 1 and blocks.form.bits <= CODES_FOR_BYTES
    grouping = grouping_of_bytes(site.isa) if may_be_bytes else None
    in_blocks = indexed_in_blocks(plan, blocks.form, rows.count, grouping)
    if grouping is None:
        return in_blocks, {}
    cut = RowsInBlocks(rows.lines, rows.apart, blocks.depth, blocks.form.length)
    return in_blocks, bytes_of_rows(lowering, site.node.inputs[0], rows.view, cut)


_ANY_ELEMENT: Final = 8
"""Bits of the narrowest elements: what masks them masks everything."""


def _most_runs(rows: Dim, matrices: Dim, most: int) -> Dim:
    """How many runs of up to ``most`` rows there may be: each matrix has one that is not whole."""
    return dim_min(rows, matrices + rows // most)


def _runs(lowering: Lowering, outlet: OutletId, matrices: Dim, most: int) -> Mapping[str, Given]:
    """What products are told of the runs of rows: made by a step, once for all that choose by the same numbers."""
    key = outlet, matrices, most
    if key not in lowering.runs_of_rows:
        numbers = lowering.contiguous(lowering.known_view(outlet))
        plan, count = RunsPlan(numbers.element), product(numbers.shape)
        room = _most_runs(count, matrices, most)
        order, runs, counts = (lowering.room(size * INDEX.bytes) for size in (count, room * len(RUN), matrices))
        results: dict[str, Given] = {"order": Address(order), "runs": Address(runs)}
        given = arguments(
            plan,
            rows=count,
            matrices=matrices,
            most=most,
            room=room,
            numbers=numbers.address,
            **results,
            counts=Address(counts),
            status=STATUS,
        )
        lowering.steps.append(NativeStep(plan, given, 1, (), (order, runs, counts), work=count))
        lowering.runs_of_rows[key] = results
    return lowering.runs_of_rows[key]


# ---- matrices in panels


def _panels(site: Site, tile: Tile) -> View:
    """The packed matrices, one behind the other. Those of the model are packed now."""
    lowering, outlet = site.lowering, site.node.inputs[1]
    if outlet in lowering.block_weights:
        return lowering.block_panels(outlet, tile.columns)
    array = lowering.narrow_weights.get(outlet, site.array(1))
    matrices, columns, depth = site.facts()[1].shape
    shape = (matrices, ceil_div(columns, tile.columns), depth, tile.columns)
    if array is None:
        return _packed(lowering, lowering.known_view(outlet), tile, shape)
    element = lowering.element(DatumType.from_numpy(array.dtype))
    assert element is not None  # nodes that read others are left to the host before
    held = lowering.held_apart(element)
    if array.size * held.bytes > caches().second // 2:
        held = element  # they are read from far away, where they had best be short

    def make(found: Array) -> Array:
        return in_panels(found.transpose(0, 2, 1), (int(depth), tile.columns), None, held)

    return lowering.made(shape, held, make, array)


def _packed(lowering: Lowering, weights: View, tile: Tile, shape: Sequence[Dim]) -> View:
    """Matrices that only a run has, which it packs."""
    panels = lowering.like(replace(weights, shape=tuple(shape)), weights.element)
    matrix, across, down = weights.strides
    plan = PackPlan(tile, weights.element, weights.element, across == 1)
    given = arguments(
        plan,
        columns=weights.shape[1],
        depth=weights.shape[2],
        source=weights.address,
        down=down,
        across=across,
        pair=matrix,
        packed=panels.address,
    )
    lowering.steps.append(
        NativeStep(plan, given, shape[0] * shape[1], (), (panels.storage,), work=product(weights.shape))
    )
    return panels
