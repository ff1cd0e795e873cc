"""Decide in which order nodes run, and when each tensor dies. Nothing is computed here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING, Final

from tract_core.errors import UntypableModel
from tract_core.model.substitute import symbols_needed, symbols_told

if TYPE_CHECKING:
    from tract_core.model.graph import OutletId
    from tract_core.model.typed import TypedModel

_NOTHING: Final = frozenset[str]()


def execution_order(model: TypedModel) -> list[int]:
    """Ids of the nodes that the outputs need, each after what it reads.

    Some symbols get their value in the middle of a run, as the number of elements that are not zero does. A node whose
    fields mention such a symbol comes after the node that binds it. Raises UntypableModel where two nodes would each
    have to come after the other.
    """
    order, roots = model.eval_order(), model.symbols.definitions.roots
    given = _NOTHING.union(*(model.outlet_fact(outlet).shape.symbols() for outlet in model.inputs))
    given = given.union(*(symbols_told(model.nodes[n].op) for n in order))
    sources = {outlet.node for outlet in model.inputs}
    needed = {n: _NOTHING if n in sources else roots(symbols_needed(model.nodes[n].op)) - given for n in order}
    binders = _binders(model, order, given, needed)
    if not binders:
        return order
    after = {n: {o.node for o in model.nodes[n].inputs} for n in order}
    for node_id in order:
        after[node_id] |= {binders[s] for s in needed[node_id] if s in binders and binders[s] != node_id}
    found = _sorted(order, after)
    if len(found) < len(order):
        placed = set(found)
        stuck = [model.nodes[node_id].name for node_id in order if node_id not in placed]
        raise UntypableModel(f"these nodes need sizes that only come out of each other: {', '.join(stuck[:10])}")
    return found


def _binders(
    model: TypedModel, order: Sequence[int], given: frozenset[str], needed: Mapping[int, frozenset[str]]
) -> dict[str, int]:
    """For each symbol that no input of the model binds, the node that binds it.

    That is the first node with the symbol in the shape of an output, and not in that of an input, nor among the symbols
    that the node, or one before it, needs. ``needed``: for each node, the symbols that it must know before it runs.
    """
    binders, roots = dict[str, int](), model.symbols.definitions.roots
    above: dict[int, frozenset[str]] = {}  # the symbols that a node needs, and those that the nodes before it need
    for node_id in order:
        node = model.nodes[node_id]
        above[node_id] = needed[node_id].union(*(above[outlet.node] for outlet in node.inputs))
        earlier = above[node_id].union(given, *(roots(fact.shape.symbols()) for fact in model.input_facts(node)))
        for fact in model.output_facts(node):
            for symbol in roots(fact.shape.symbols()) - earlier:
                binders.setdefault(symbol, node_id)
    return binders


def _sorted(order: Sequence[int], after: dict[int, set[int]]) -> list[int]:
    """The nodes in ``order``, but each one behind those that it must come ``after``. Nodes in a circle are left out."""
    place = {node_id: index for index, node_id in enumerate(order)}
    waiting = {node_id: len(needed) for node_id, needed in after.items()}
    readers: dict[int, list[int]] = {}
    for node_id, needed in after.items():
        for producer in needed:
            readers.setdefault(producer, []).append(node_id)
    ready = [place[node_id] for node_id, count in waiting.items() if count == 0]
    heapify(ready)
    result: list[int] = []
    while ready:
        node_id = order[heappop(ready)]
        result.append(node_id)
        for reader in readers.get(node_id, ()):
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heappush(ready, place[reader])
    return result


def last_uses(model: TypedModel, order: Sequence[int]) -> dict[int, list[OutletId]]:
    """For each node, the outlets that may be freed once it has run: it is the last that reads them."""
    last: dict[OutletId, int] = {}
    for node_id in order:
        node = model.nodes[node_id]
        for outlet in [*node.outlets(), *node.inputs]:
            last[outlet] = node_id
    dying: dict[int, list[OutletId]] = {}
    kept = frozenset(model.outputs)
    for outlet, node_id in last.items():
        if outlet not in kept:
            dying.setdefault(node_id, []).append(outlet)
    return dying
