"""Chains of element-wise operators, and programs for rows: what is computed of elements at one position."""

from __future__ import annotations

from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.draft.map import map_step
from tract_cpu.group.groups import Elements
from tract_cpu.group.groups import Reduced as RowsGroup
from tract_cpu.lower.rows import placed_operand, rows_step
from tract_cpu.place.blocked import operands_in_blocks
from tract_cpu.place.chain import near, placed
from tract_cpu.place.wholes import result_for
from tract_cpu.table import KINDS

ROWS = Rows()


@ROWS.row(KINDS, Elements)
def lower_elements(site: Site) -> None:
    """A chain: of tensors in blocks of channels, or as they are."""
    lowering, form = site.lowering, site.group.form
    chain = placed(site, near(lowering) if form is None else operands_in_blocks(lowering, form))
    result = result_for(lowering, chain.outlet, form)
    site.add(map_step(chain.expression, chain.operands, result, site.isa, chain.nodes))


@ROWS.row(KINDS, RowsGroup)
def lower_rows(site: Site) -> None:
    """A program for rows."""
    assert isinstance(site.group, RowsGroup)  # as the table says
    region, form = site.group.region, site.group.form
    views = [placed_operand(site.lowering, region, tensor, form) for tensor in region.tensors]
    site.add(rows_step(site.lowering, region, views, form))
