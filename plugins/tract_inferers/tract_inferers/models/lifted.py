"""A model for one agent, wired anew for several."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tract_core.dims import Dim, symbol
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.questions import node_axes
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.axis import MoveAxis, Reshape
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.concat import TypedConcat
from tract_core.ops.scan import Scan
from tract_inferers.models.follow import LOST, Trail, followed
from tract_inferers.models.wiring import name_outputs


def with_symbol(model: TypedModel, axes: Sequence[int | None], name: str) -> TypedModel:
    """The model for one agent, whose inputs have it along ``axes``, with the symbol ``name`` there in the place of 1.

    ``None`` is for inputs that are the same for all. Raises Unsupported, with the node, where it cannot be told where
    the agents stand.
    """
    target = empty_twin(model)
    target.symbols.add(name)
    lifting = _Lifting(model, target, name, followed(model, axes, None))
    for outlet, axis in zip(model.inputs, axes, strict=True):
        fact = model.outlet_fact(outlet)
        shape = fact.shape if axis is None else lifting.stretched(fact.shape, axis)
        lifting.wired[outlet] = target.add_source(model.outlet_name(outlet), fact.with_shape(shape))
    translate(model, lifting.wired, lifting.wire)
    target.set_outputs(lifting.wired[outlet] for outlet in model.outputs)
    name_outputs(target, model)
    return target


@dataclass(slots=True)
class _Lifting:
    """``wired``: the tensors of ``model`` in ``target``, in which ``name`` agents stand along the axes of ``trail``."""

    model: TypedModel
    target: TypedModel
    name: str
    trail: Trail
    wired: dict[OutletId, OutletId] = field(default_factory=dict[OutletId, OutletId])

    def wire(self, node: TypedNode, inputs: list[OutletId]) -> Sequence[OutletId]:
        """One node, for several agents. Raises Unsupported where it is one for one agent only."""
        axes = [self.trail.axes[outlet] for outlet in node.outlets()]
        before = [self.trail.axes[outlet] for outlet in node.inputs]
        if LOST in axes:
            raise _for_one(node)
        if isinstance(node.op, Scan):
            self._give_each(node, node.op.state_inputs, before, inputs)
        if isinstance(node.op, TypedConcat):
            self._give_each(node, range(len(inputs)), before, inputs)
        if isinstance(node.op, Reshape) and node.op.at <= (axis := before[0] or 0) < node.op.at + len(node.op.before):
            outlets = self._reshape(node.name, node.op, inputs[0], axis, axes[0] or 0)
        else:
            outlets = self.target.wire_node(node.name, self._op(node.op, before, axes[0]), inputs)
        for outlet, axis in zip(outlets, axes, strict=True):
            if axis is not None and self.target.outlet_fact(outlet).shape[axis] != symbol(self.name):
                raise _for_one(node)
        return outlets

    def stretched(self, shape: Sequence[Dim], axis: int) -> tuple[Dim, ...]:
        """The sizes for several agents."""
        return (*shape[:axis], symbol(self.name), *shape[axis + 1 :])

    def _op(self, op: TypedOp, before: Sequence[int | None], axis: int | None) -> TypedOp:
        """The operator for several agents, where it names the size of their axis, or has a body."""
        if axis is None:
            return op
        if isinstance(op, Scan):
            return replace(op, body=with_symbol(op.body, before, self.name))
        if isinstance(op, MultiBroadcastTo):
            return MultiBroadcastTo(self.stretched(op.shape, axis))
        return op

    def _reshape(self, name: str, op: Reshape, x: OutletId, source: int, place: int) -> Sequence[OutletId]:
        """Each agent's part arranged anew, with the agents in front meanwhile, and at ``place`` behind it."""
        before, after = ([*op.before], [*op.after])
        del before[source - op.at], after[place - op.at]
        (front,) = self.target.wire_node(f"{name}.front", MoveAxis(source, 0), [x])
        (arranged,) = self.target.wire_node(f"{name}.each", Reshape(op.at + 1, tuple(before), tuple(after)), [front])
        return self.target.wire_node(name, MoveAxis(0, place), [arranged])

    def _give_each(
        self, node: TypedNode, slots: Iterable[int], before: list[int | None], inputs: list[OutletId]
    ) -> None:
        """Give each agent those of the inputs ``slots`` that are the same for all, as the state of a loop at first."""
        mapping = node_axes(self.model, node)
        assert mapping is not None  # operators that lose the agents were refused
        letters = {term[axis] for term, axis in zip(mapping.inputs, before, strict=True) if axis is not None}
        for slot in slots:
            place = next((axis for axis, letter in enumerate(mapping.inputs[slot]) if letter in letters), None)
            if before[slot] is None and place is not None:
                shape = self.stretched(self.model.outlet_fact(node.inputs[slot]).shape, place)
                (inputs[slot],) = self.target.wire_node(
                    f"{node.name}.each-{slot}", MultiBroadcastTo(shape), [inputs[slot]]
                )
                before[slot] = place


def _for_one(node: TypedNode) -> Unsupported:
    problem = "is for one agent: behind it, it cannot be told where several would stand"
    hint = "BasicInferer takes it; or export it with an axis of agents"
    return Unsupported(problem, where=f"node {node.name!r} ({node.op.name})", hint=hint)
