"""Follow axes through a whole model: which axis of which input becomes which axis of which output.

Axes that one node connects are one axis. It passes through the model when no node on the way mixes its positions (a
sum, a softmax) and nothing constant has a size along it, so that taking a part of it in the inputs gives that part of
the outputs.
"""

from __future__ import annotations

from collections.abc import Iterable

from tract_core.dims import is_one
from tract_core.model.axes import AxesMapping, letters
from tract_core.model.graph import OutletId
from tract_core.model.questions import node_axes
from tract_core.model.typed import TypedModel, TypedNode

AxisId = tuple[OutletId, int]
"""One axis of one tensor."""


def axes_of_model(
    model: TypedModel,
    same: Iterable[tuple[OutletId, OutletId]] = (),
    broken: Iterable[AxisId] = (),
) -> AxesMapping:
    """The axes mapping of a model.

    ``same``: pairs of tensors whose axes are the same, one by one, as the state of a loop. ``broken``: axes that do not
    pass, for a reason outside the model.
    """
    classes = _Classes()
    for node_id in model.eval_order([*model.inputs, *model.outputs]):
        _follow(model, model.nodes[node_id], classes)
    for a, b in same:
        for axis in range(model.outlet_fact(a).rank):
            classes.join((a, axis), (b, axis))
    for axis_id in broken:
        classes.spoil(axis_id)
    names: dict[AxisId, str] = {}
    fresh = iter(letters())

    def name(axis: AxisId) -> str:
        root = classes.root(axis)
        if root in classes.spoiled:
            return next(fresh)
        if root not in names:
            names[root] = next(fresh)
        return names[root]

    def term(outlet: OutletId) -> str:
        return "".join(name((outlet, axis)) for axis in range(model.outlet_fact(outlet).rank))

    return AxesMapping(tuple(map(term, model.inputs)), tuple(map(term, model.outputs)))


class _Classes:
    """Sets of connected axes, each known by its root, and the roots of those that do not pass."""

    def __init__(self) -> None:
        self._parents: dict[AxisId, AxisId] = {}
        self.spoiled: set[AxisId] = set()

    def root(self, axis: AxisId) -> AxisId:
        while axis in self._parents:
            axis = self._parents[axis]
        return axis

    def join(self, a: AxisId, b: AxisId) -> None:
        a, b = self.root(a), self.root(b)
        if a != b:
            self._parents[b] = a
            if b in self.spoiled:
                self.spoiled.add(a)

    def spoil(self, axis: AxisId) -> None:
        self.spoiled.add(self.root(axis))


def _follow(model: TypedModel, node: TypedNode, classes: _Classes) -> None:
    mapping = _mapping(model, node)
    if mapping is None:
        return
    for axis in mapping.axes():
        ends = [(node.inputs[slot], place) for slot, places in enumerate(axis.inputs) for place in places]
        ends += [(OutletId(node.id, slot), place) for slot, places in enumerate(axis.outputs) for place in places]
        for end in ends[1:]:
            classes.join(ends[0], end)
        ends_here = not (any(axis.inputs) and any(axis.outputs)) and not all(_is_unit(model, end) for end in ends)
        unclear = any(len(places) > 1 for places in [*axis.inputs, *axis.outputs])
        if ends_here or unclear:
            classes.spoil(ends[0])


def _is_unit(model: TypedModel, axis: AxisId) -> bool:
    return is_one(model.outlet_fact(axis[0]).shape[axis[1]])


def _mapping(model: TypedModel, node: TypedNode) -> AxesMapping | None:
    """The node's mapping; ``None`` for an input of the model."""
    if OutletId(node.id) in model.inputs:
        return None
    inputs, outputs = model.input_facts(node), model.output_facts(node)
    return node_axes(model, node) or AxesMapping.disconnected(
        [fact.rank for fact in inputs], [fact.rank for fact in outputs]
    )
