"""Element-wise operators: a chain of them is one kernel."""

from __future__ import annotations

from tract_core.model.op import TypedOp
from tract_cpu.lower.fusion import chain_from
from tract_cpu.lower.lowering import Site
from tract_cpu.lower.map import map_step


def lower_element(op: TypedOp, site: Site) -> str | None:
    """The chain that begins with the operator."""
    chain = chain_from(site.lowering, site.node.node)
    if chain is None:
        return "native code does not know these types, or a symbolic size may have to stretch"
    result = site.lowering.new(chain.outlet)
    site.add(map_step(chain.expression, chain.operands, result, site.isa, chain.nodes))
    return None
