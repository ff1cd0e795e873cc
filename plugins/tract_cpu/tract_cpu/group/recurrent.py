"""The gates of recurrent networks: one kernel with the product of the state before them, where that can be."""

from __future__ import annotations

from typing import Final

from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_cpu.group.chain import Chain
from tract_cpu.group.groups import Gates
from tract_cpu.group.start import Start, read_along

COUNTS: Final[dict[type, tuple[int, ...]]] = {LstmEpilogue: (4, 1), GruEpilogue: (3, 3, 1)}
"""For each epilogue, how many gates each input holds."""


def gates_behind(start: Start, chain: Chain) -> Gates | None:
    """The product of a state with the chain behind it, and the epilogue that alone reads it as its gates."""
    node = _epilogue_behind(start, chain.outlet)
    if node is None or chain.expression.inputs[0].kind != "f":
        return None
    assert isinstance(node.op, LstmEpilogue | GruEpilogue)  # it was found as one
    hidden, result = node.op.hidden, start.known.element_at(OutletId(node.id))
    before, behind = (start.model.outlet_fact(one).shape for one in (chain.outlet, OutletId(node.id)))
    gates = COUNTS[type(node.op)][node.inputs.index(chain.outlet)]
    if result is None or result.kind != "f" or tuple(before) != (*behind[:-1], hidden * gates):
        return None
    others = ((outlet, None) for outlet in node.inputs if outlet != chain.outlet)
    reads = (*start.read(), *read_along(chain, None), *others)
    return Gates((*chain.nodes, node.id), reads, None, chain)


def _epilogue_behind(start: Start, outlet: OutletId) -> TypedNode | None:
    """The epilogue that alone reads a tensor, once, as its gates, when all else that it reads is there."""
    node = start.walk.only_reader(outlet)
    if node is None or node.inputs.count(outlet) != 1 or not isinstance(node.op, LstmEpilogue | GruEpilogue):
        return None
    if start.known.why_unfit(node.id) is not None or not isinstance(node.op.hidden, int):
        return None
    there = all(start.walk.has(one) for one in node.inputs if one != outlet)
    return node if there and COUNTS[type(node.op)][node.inputs.index(outlet)] > 1 else None
