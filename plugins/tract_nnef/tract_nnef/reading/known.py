"""Values that follow from constants alone, found out where a document wants a number.

Wiring carries integers along. Exporters divide sizes as floats, ``cast(floor(cast(8) / cast(2)))``, whose values are
computed here when somebody asks for them.
"""

from __future__ import annotations

from typing import Final

from tract_core.data import Value
from tract_core.dims import is_symbolic
from tract_core.model.fact import TypedFact, in_type
from tract_core.model.graph import OutletId
from tract_core.model.typed import EAGER_ELEMENTS, TypedModel, evaluate_values
from tract_core.model.typed_graph import TypedNode

FARTHEST: Final = 64
"""How many nodes are looked at: sizes are computed in fewer steps."""


def known_value(model: TypedModel, outlet: OutletId) -> Value | None:
    """The value of a tensor, which from then on is part of its fact; ``None`` where it depends on an input."""
    fact = model.outlet_fact(outlet)
    if fact.value is not None:
        return fact.value
    for node in _steps(model, outlet):
        found = _computed(model, node)
        if found is None:
            return None
        before = node.outputs[0].fact
        node.outputs[0].fact = TypedFact(before.datum_type, before.shape, in_type(found, before.datum_type))
    return model.outlet_fact(outlet).value


def _steps(model: TypedModel, outlet: OutletId) -> list[TypedNode]:
    """The nodes to compute, in order; none where one of them cannot be, or where there are too many."""
    found: dict[int, None] = {}
    waiting = [outlet.node]
    while waiting:
        node = model.nodes[waiting.pop()]
        if len(found) >= FARTHEST or not _can_be_computed(model, node):
            return []
        found[node.id] = None
        waiting += [one.node for one in node.inputs if model.outlet_fact(one).value is None and one.node not in found]
    return [model.nodes[place] for place in sorted(found)]  # a node is wired behind what it reads


def _can_be_computed(model: TypedModel, node: TypedNode) -> bool:
    volume = node.outputs[0].fact.shape.volume
    few = not is_symbolic(volume) and int(volume) <= EAGER_ELEMENTS
    return few and bool(node.inputs) and len(node.outputs) == 1 and node.op.pure and not node.op.unpacks


def _computed(model: TypedModel, node: TypedNode) -> Value | None:
    facts, output = model.input_facts(node), node.outputs[0].fact
    values = [fact.value for fact in facts if fact.value is not None and fact.value.array.size <= EAGER_ELEMENTS]
    if len(values) < len(facts) or not model.take_budget(node.op, facts, output, freed=0):
        return None
    found = evaluate_values(model.registry, node.op, values)
    return found if found is not None and found.array.shape == output.shape else None
