"""Element-wise operators and those that reduce: neighbours of them are one kernel."""

from __future__ import annotations

from tract_core.model.op import TypedOp
from tract_cpu.lower.fusion import chain_from
from tract_cpu.lower.lowering import Site
from tract_cpu.lower.map import map_step
from tract_cpu.lower.region import region_from
from tract_cpu.lower.rows import rows_step


def lower_element(op: TypedOp, site: Site) -> str | None:
    """The program for rows that begins with the operator; where nothing is reduced, the chain."""
    region = region_from(site.lowering, site.node.node)
    if region is not None:
        site.add(rows_step(region, site.isa))
        return None
    chain = chain_from(site.lowering, site.node.node)
    if chain is None:
        return "native code does not know these types, or a symbolic size may have to stretch"
    result = site.lowering.new(chain.outlet)
    site.add(map_step(chain.expression, chain.operands, result, site.isa, chain.nodes))
    return None


def lower_nest(op: TypedOp, site: Site) -> str | None:
    """The program for rows that begins with the operator."""
    region = region_from(site.lowering, site.node.node)
    if region is None:
        return "native code does not know this operator on these types, or a part of it"
    site.add(rows_step(region, site.isa))
    return None
