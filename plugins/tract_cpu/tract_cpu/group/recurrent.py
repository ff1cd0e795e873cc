"""The gates of recurrent networks: one kernel with the product of the state before them, where that can be."""

from __future__ import annotations

from tract_llvm.fuse.chain import Chain

from tract_core.compile.gates import epilogue_behind
from tract_core.model.graph import OutletId
from tract_cpu.group.groups import Gates
from tract_cpu.group.start import Start, read_along


def gates_behind(start: Start, chain: Chain) -> Gates | None:
    """The product of a state with the chain behind it, and the epilogue that alone reads it as its gates."""
    node = epilogue_behind(start.walk, chain.outlet, start.known.fits)
    result = None if node is None else start.known.element_at(OutletId(node.id))
    if node is None or result is None or result.kind != "f" or chain.expression.inputs[0].kind != "f":
        return None
    others = ((outlet, None) for outlet in node.inputs if outlet != chain.outlet)
    reads = (*start.read(), *read_along(chain, None), *others)
    return Gates((*chain.nodes, node.id), reads, None, chain)
