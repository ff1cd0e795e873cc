"""Element-wise operators and those that reduce: neighbours of them are one kernel."""

from __future__ import annotations

from tract_core.model.op import TypedOp
from tract_cpu.blocks.blocked import only_blocked, operands_in_blocks
from tract_cpu.blocks.wholes import new_blocked
from tract_cpu.draft.lowering import Site
from tract_cpu.elements.chain import chain_from
from tract_cpu.elements.map import map_step
from tract_cpu.elements.region import region_from
from tract_cpu.elements.rows import rows_step
from tract_cpu.program.form import Form


def lower_element(op: TypedOp, site: Site) -> str | None:
    """The program for rows that begins with the operator; where nothing is reduced, the chain.

    On tensors in blocks of channels where one of them is in blocks.
    """
    lowering, node = site.lowering, site.node.node
    form = _form(site)
    if _lower_region(site, form):
        return None
    if form is not None:
        chain = chain_from(lowering, node, operands_in_blocks(lowering, form))
        if chain is not None:
            result = new_blocked(lowering, chain.outlet, form)
            site.add(map_step(chain.expression, chain.operands, result, site.isa, chain.nodes))
            return None
        if _lower_region(site, None):
            return None
    chain = chain_from(lowering, node)
    if chain is None:
        return "native code does not know these types, or a symbolic size may have to stretch"
    operands = [lowering.near(view) for view in chain.operands]
    result = lowering.new(chain.outlet)
    site.add(map_step(chain.expression, operands, result, site.isa, chain.nodes))
    return None


def lower_nest(op: TypedOp, site: Site) -> str | None:
    """The program for rows that begins with the operator."""
    form = _form(site)
    if (form is not None and _lower_region(site, form)) or _lower_region(site, None):
        return None
    return "native code does not know this operator on these types, or a part of it"


def _lower_region(site: Site, form: Form | None) -> bool:
    """Add the program for rows that begins with the operator, if there is one. ``form``: see `region_from`."""
    region = region_from(site.lowering, site.node.node, form)
    if region is not None:
        site.add(rows_step(region, site.isa))
    return region is not None


def _form(site: Site) -> Form | None:
    """The form of the operands that are only there in blocks."""
    for outlet in site.node.inputs:
        blocked = only_blocked(site.lowering, outlet)
        if blocked is not None:
            return blocked.form
    return None
