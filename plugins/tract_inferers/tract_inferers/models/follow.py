"""Follow the agents through a model: along which axis of which tensor they stand, as far as the table of axes tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.dims import symbol, symbols_of
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.questions import node_axes
from tract_core.model.source import TypedSource
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.broadcast import MultiBroadcastTo

LOST: Final = -1
"""The axis of a tensor in which the agents may stand anywhere, and may have met."""

Axes = Mapping[OutletId, int | None]
"""The axis of the agents in each tensor; ``None`` for what is the same whoever they are."""


@frozen
class Trail:
    """Where the agents stand. ``lost``: the first node behind which nothing is known of that, if there is one."""

    axes: Axes
    lost: TypedNode | None


def followed(model: TypedModel, inputs: Sequence[int], name: str | None) -> Trail:
    """Where the agents stand in each tensor, if they stand along the axes ``inputs`` of the inputs.

    ``name``: the symbol that is their number; ``None`` in a model for one agent.

    An axis that goes on from the input to the output of a node is one along which each position is computed from the
    same position. One that does not, says nothing more: the node may add up along it, or sort, or only take it apart.
    """
    axes: dict[OutletId, int | None] = dict(zip(model.inputs, inputs, strict=True))
    lost: TypedNode | None = None
    for node_id in model.eval_order([*model.inputs, *model.outputs]):
        node = model.nodes[node_id]
        if isinstance(node.op, TypedSource):
            continue
        found = behind(model, node, [axes[outlet] for outlet in node.inputs], name)
        if lost is None and LOST in found:
            lost = node
        axes.update(zip(node.outlets(), found, strict=True))
    return Trail(axes, lost)


def behind(model: TypedModel, node: TypedNode, before: Sequence[int | None], name: str | None) -> list[int | None]:
    """The axis of the agents in each output of a node, from those in its inputs. See `followed`."""
    if LOST in before:
        return [LOST] * len(node.outputs)
    tracked = [slot for slot, axis in enumerate(before) if axis is not None]
    if not tracked:
        return [_made(node.op, outlet.fact, name) for outlet in node.outputs]
    mapping = node_axes(model, node)
    if mapping is None:
        return [LOST] * len(node.outputs)
    letters = {mapping.inputs[slot][before[slot] or 0] for slot in tracked}
    letter = min(letters)
    whole = any(
        _has(mapping.inputs[slot], letter, fact)
        for slot, fact in enumerate(model.input_facts(node))
        if slot not in tracked
    )
    if len(letters) > 1 or whole or any(mapping.inputs[slot].count(letter) != 1 for slot in tracked):
        return [LOST] * len(node.outputs)
    return [term.index(letter) if term.count(letter) == 1 else LOST for term in mapping.outputs]


def _has(term: str, letter: str, fact: TypedFact) -> bool:
    """Whether a tensor that is the same for all agents has something else for each of them."""
    return letter in term and fact.shape[term.index(letter)] != 1


def _made(op: TypedOp, fact: TypedFact, name: str | None) -> int | None:
    """The axis of the agents in what comes from none of their observations."""
    if name is None or (name not in symbols_in(op) and name not in fact.symbols()):
        return None
    same = isinstance(op, MultiBroadcastTo) or not op.pure
    grown = [axis for axis, size in enumerate(fact.shape) if name in symbols_of(size)]
    return grown[0] if same and len(grown) == 1 and fact.shape[grown[0]] == symbol(name) else LOST
