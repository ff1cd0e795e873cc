"""Follow the agents through a model: along which axis of which tensor they stand, as far as the table of axes tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.dims import product, symbol, symbols_of
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.questions import node_axes
from tract_core.model.source import TypedSource
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.axis import AxisOp, Reshape
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cumsum import Running
from tract_core.ops.einsum import EinSum
from tract_core.ops.if_then_else import IfThenElse
from tract_core.ops.norm import RmsNorm
from tract_core.ops.reduce import Reduce
from tract_core.ops.scan import Scan
from tract_core.ops.softmax import SoftmaxOp
from tract_core.ops.topk import Topk

LOST: Final = -1
"""The axis of a tensor in which the agents may stand anywhere, and may have met."""

COUNTED: Final = -2
"""The axis of a tensor that depends on how many agents there are, and not on what they observe."""

_MIXES: Final = (EinSum, Reduce, RmsNorm, Running, Scan, SoftmaxOp, Topk)
"""Operators through which the axis of agents goes, or they meet: in a sum, or by their order."""

_NAMES_SIZES: Final = (AxisOp, MultiBroadcastTo, Scan)
"""Operators that name the number of agents as a size only, and not as a number to compute with."""

Axes = Mapping[OutletId, int | None]
"""The axis of the agents in each tensor; ``None`` for what is the same whoever they are."""


@frozen
class Trail:
    """Where the agents stand.

    ``lost``: the first node behind which nothing is known of that, if there is one. ``mixed``: the first one in which
    they meet for certain.
    """

    axes: Axes
    lost: TypedNode | None
    mixed: TypedNode | None


def followed(model: TypedModel, inputs: Sequence[int | None], name: str | None) -> Trail:
    """Where the agents stand in each tensor, if they stand along the axes ``inputs`` of the inputs.

    ``name``: the symbol that is their number; ``None`` in a model for one agent.

    An axis that goes on from the input to the output of a node is one along which each position is computed from the
    same position. One that does not, says nothing more: the node may add up along it, or sort, or only take it apart,
    as a reshape does. For some operators there is only the first.
    """
    axes: dict[OutletId, int | None] = dict(zip(model.inputs, inputs, strict=True))
    lost: TypedNode | None = None
    mixed: TypedNode | None = None
    for node_id in model.eval_order([*model.inputs, *model.outputs]):
        node = model.nodes[node_id]
        if isinstance(node.op, TypedSource):
            continue
        before = [axes[outlet] for outlet in node.inputs]
        found = behind(model, node, before, name)
        if LOST in found or COUNTED in found:
            lost = lost or node
            mixed = mixed or (node if _mixes(node.op, before) else None)
        axes.update(zip(node.outlets(), found, strict=True))
    return Trail(axes, lost, mixed)


def _mixes(op: TypedOp, before: Sequence[int | None]) -> bool:
    """Whether agents meet in an operator, given that their axis does not go through it."""
    if isinstance(op, IfThenElse):
        return before[0] not in (None, COUNTED)  # one condition for all
    return isinstance(op, _MIXES) and LOST not in before and COUNTED not in before


def behind(model: TypedModel, node: TypedNode, before: Sequence[int | None], name: str | None) -> list[int | None]:
    """The axis of the agents in each output of a node, from those in its inputs. See `followed`."""
    if LOST in before or COUNTED in before:
        counted = all(axis in (None, COUNTED) for axis in before)
        return [COUNTED if counted else LOST] * len(node.outputs)
    tracked = [slot for slot, axis in enumerate(before) if axis is not None]
    if not tracked:
        return [_made(node.op, outlet.fact, name) for outlet in node.outputs]
    if node.op.draws:
        return [_drawn(model.input_facts(node), before, outlet.fact) for outlet in node.outputs]
    if isinstance(node.op, Reshape) and node.op.at <= (axis := before[0] or 0) < node.op.at + len(node.op.before):
        return [kept_by(node.op, axis)]
    mapping = node_axes(model, node)
    counts = name is not None and not isinstance(node.op, _NAMES_SIZES) and name in symbols_in(node.op)
    if mapping is None or counts:
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


def kept_by(op: Reshape, axis: int) -> int:
    """Where an axis among those that are arranged anew stands behind it; `LOST` where it becomes part of another one.

    It stays an axis where as many elements lie in one step along it as before, and it has as many steps. One of size 1
    can be any axis of size 1.
    """
    place = axis - op.at
    size, before = op.before[place], product(op.before[:place])
    alike = [at for at, other in enumerate(op.after) if other == size]
    same = [at for at in alike if product(op.after[:at]) == before]
    found = same or (alike if size == 1 else [])
    return op.at + found[0] if found else LOST


def _has(term: str, letter: str, fact: TypedFact) -> bool:
    """Whether a tensor that is the same for all agents has something else for each of them."""
    return letter in term and fact.shape[term.index(letter)] != 1


def _drawn(inputs: Sequence[TypedFact], before: Sequence[int | None], output: TypedFact) -> int:
    """The axis of the agents in what is drawn for each of them by itself."""
    kept = {axis for fact, axis in zip(inputs, before, strict=True) if axis is not None and _shared(fact, output, axis)}
    return kept.pop() if len(kept) == 1 else LOST


def _shared(x: TypedFact, y: TypedFact, axis: int) -> bool:
    return axis < y.rank and x.shape[axis] == y.shape[axis]


def _made(op: TypedOp, fact: TypedFact, name: str | None) -> int | None:
    """The axis of the agents in what comes from none of their observations."""
    if name is None or (name not in symbols_in(op) and name not in fact.symbols()):
        return None
    same = isinstance(op, MultiBroadcastTo) or op.draws
    grown = [axis for axis, size in enumerate(fact.shape) if name in symbols_of(size)]
    return grown[0] if same and len(grown) == 1 and fact.shape[grown[0]] == symbol(name) else COUNTED
