"""Weights that stay in blocks, of which products make panels, and rows that are looked up in such."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from tract_llvm.language.types import F32
from tract_llvm.program.storages import Address
from tract_llvm.program.views import View

from tract_core.dims import Dim, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.group.block_weights import Packed
from tract_cpu.kernels.in_blocks.bytes import BYTES, BlockBytesPlan
from tract_cpu.kernels.in_blocks.rows import BlockRowsPlan
from tract_cpu.kernels.sums import tile_for
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.block_weights import NarrowWeights
from tract_cpu.program.program import STATUS, NativeStep, ViewStep
from tract_cpu.table import KINDS

ROWS = Rows()


@ROWS.row(KINDS, Packed)
def lower_packed(site: Site) -> None:
    """Nothing is computed until somebody reads them."""
    assert isinstance(site.group, Packed), "as the table says"
    weights = site.group.weights
    if isinstance(weights, NarrowWeights):
        site.lowering.narrow_weights[site.outlet] = weights.array
    else:
        site.lowering.block_weights[site.outlet] = weights
    site.lowering.steps.append(ViewStep((site.node.node,), ()))


def lower_rows(op: Gather, site: Site) -> None:
    """Rows are unpacked one by one; the panels are those of products with the same matrix."""
    lowering, outlet = site.lowering, site.node.inputs[0]
    weights, numbers = lowering.block_weights[outlet], lowering.contiguous(lowering.known_view(site.node.inputs[1]))
    width = tile_for(site.isa, F32, weights.columns).columns
    plan = BlockRowsPlan(weights.form, width, numbers.element)
    result, count = lowering.new(site.outlet), product(numbers.shape)
    given = arguments(
        plan,
        rows=weights.columns,
        blocks=weights.depth // weights.form.length,
        panels=lowering.block_panels(outlet, width).address,
        numbers=numbers.address,
        result=result.address,
        status=STATUS,
    )
    work = count * weights.depth
    site.add(NativeStep(plan, given, count, (site.node.node,), (result.storage,), work=work))


CODES_FOR_BYTES: Final = 6
"""Bits of the widest codes that rows of bytes are multiplied with: 16 bits hold two products."""


@frozen
class RowsInBlocks:
    """``count`` rows, so far ``apart``, each of ``depth`` numbers in blocks of ``length``."""

    count: Dim
    apart: Dim
    depth: Dim
    length: int


def bytes_of_rows(lowering: Lowering, outlet: OutletId, rows: View, cut: RowsInBlocks) -> Mapping[str, Given]:
    """The arguments that products want of rows as bytes: made by a step, once for all that read a tensor so."""
    key, count, depth, length = (outlet, cut), cut.count, cut.depth, cut.length
    if key not in lowering.bytes_of_rows:
        plan = BlockBytesPlan(rows.element, length, min(lowering.isa.lanes(F32.bits), length))
        each = depth // length
        made = [lowering.room(count * one) for one in (depth, each * F32.bytes, each * F32.bytes)]
        results: dict[str, Given] = {one.name: Address(at) for one, at in zip(BYTES, made, strict=True)}
        given = arguments(plan, row=cut.apart, blocks=each, rows=rows.address, **results)
        lowering.steps.append(NativeStep(plan, given, count, (), tuple(made), work=count * depth))
        lowering.bytes_of_rows[key] = results
    return lowering.bytes_of_rows[key]
