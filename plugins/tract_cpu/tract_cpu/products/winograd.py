"""Convolutions by Winograd's method: how their tiles are cut, and the call of the kernel."""

from __future__ import annotations

from math import prod
from typing import Final

from tract_llvm.isa import Isa

from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_cpu.draft.lowering import Site
from tract_cpu.group.winograd import most_tiles
from tract_cpu.kernels.winograd import WinogradPlan, positions
from tract_cpu.products.cut import SMALL_PIECES, evenly
from tract_cpu.products.weights import packed
from tract_cpu.products.windows import Parts, first, target_of
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep

CHUNK: Final = 2
"""Blocks of input channels whose weights are transformed at once."""


@frozen
class _Cut:
    """How the tiles are cut: into pieces, and these into as many as registers have sums for, as `WinogradPlan` says."""

    piece: int
    columns: int
    rest: tuple[int, ...]
    vectors: int


def _cut(isa: Isa, inputs: int, blocks: int, values: int, tiles: Dim) -> _Cut:
    """``blocks``: of output channels; ``values``: of a tile."""
    vectors = min(2, blocks)
    columns = (isa.registers - 1) // vectors - 1  # beside the sums, registers hold the vectors and one factor
    most = most_tiles(isa, inputs, values)
    if not isinstance(tiles, int) or not tiles:
        return _Cut(most, columns, tuple(one for one in SMALL_PIECES if one < columns), vectors)
    each = evenly(tiles, most)
    columns = evenly(each, columns)
    piece = min(-(-each // columns) * columns, tiles)
    over = {piece % columns, tiles % piece % columns} - {0}
    return _Cut(piece, columns, tuple(sorted(over, reverse=True)), vectors)


def winograd_step(site: Site, parts: Parts, tile: tuple[int, ...]) -> NativeStep:
    """The call of the kernel: sums of floats are of single products, those of integers of groups."""
    form, source, inputs = parts.form, parts.source.view, parts.weights.inputs
    axes = [one.place for one in parts.axes]
    step = source.strides[axes[-1]]
    assert isinstance(inputs, int)  # whoever chose the tile asked
    assert isinstance(step, int)  # the caller asked
    sizes, values = [parts.result.shape[axis] for axis in axes], prod(map(positions, tile))
    count = parts.result.shape[0] if parts.has_batch else 1
    tiles = product([count, *(ceil_div(size, m) for size, m in zip(sizes, tile, strict=True))])
    cut = _cut(site.isa, inputs, form.blocks, values, tiles)
    kernel = packed(site.lowering, parts.weights, 1, cut.vectors * form.block, parts.source.block)
    plan = WinogradPlan(
        tile=tile,
        columns=cut.columns,
        rest=cut.rest,
        vectors=cut.vectors,
        lanes=form.block,
        piece=cut.piece,
        chunk=CHUNK * form.block,
        whole=inputs % form.block == 0,
        column_step=step,
        element=source.element,
        weights=kernel.element,
        expression=parts.chain.expression,
        along_channels=tuple(view.strides[-1] != 0 for view in parts.chain.operands),
        grouping=None if parts.chain.expression.inputs[0].kind == "f" else parts.grouping,
    )
    _, runs, run = kernel.shape
    given = arguments(
        plan,
        tiles=tiles,
        runs=runs,
        channels=inputs,
        outputs=form.channels,
        sizes=sizes,
        input=first(parts).address,
        batch=source.strides[0] if parts.has_batch else 0,
        input_block=source.strides[form.axis],
        moves=[source.strides[axis] for axis in axes[:-1]],
        weights=kernel.address,
        weights_run=run,
        targets=[
            target_of(parts, view, [view.strides[axis] for axis in axes])
            for view in (*parts.chain.operands, parts.result)
        ],
    )
    return NativeStep(
        plan,
        given,
        ceil_div(tiles, cut.piece) * runs,
        parts.chain.nodes,
        (parts.result.storage,),
        scratch=plan.scratch(inputs),
        work=product(parts.result.shape) * product(parts.weights.view.shape[1:]),
    )
