"""A change to apply to a model.

A patch is a small model of its own, and the model that it changes is its target. A *tap* is an input of the patch; it
stands for an outlet of the target. A *shunt* says that an outlet of the patch takes the place of one of the target.
Rules make patches, and only a driver, the `Rewriter`, applies them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tract_core.errors import GraphError
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.refine import refine_facts
from tract_core.model.typed import TypedModel, TypedNode


@dataclass(slots=True)
class PatchResult:
    """What applying a patch changed, by ids in the target: nodes that are new, and nodes that have new neighbours."""

    added: list[int] = field(default_factory=list[int])
    touched: list[int] = field(default_factory=list[int])


class ModelPatch:
    """New nodes, and which outlets of the target they replace. Build it, then let the `Rewriter` apply it."""

    def __init__(self, target: TypedModel) -> None:
        self.target = target
        self.model = target.empty_like()
        self.model.conditions = target.conditions.layer()
        self.taps: dict[OutletId, OutletId] = {}
        self.shunts: list[tuple[OutletId, OutletId]] = []
        self.retired: list[int] = []
        self._tap_of: dict[OutletId, OutletId] = {}
        self._in_place: TypedNode | None = None
        """The node of the target in whose place there is one other operator."""

    @staticmethod
    def replace_op(
        model: TypedModel, node: TypedNode, op: TypedOp, inputs: Sequence[OutletId] | None = None
    ) -> ModelPatch:
        """``node`` computed by another operator, reading ``inputs`` (default: what the node reads)."""
        patch = ModelPatch(model)
        taps = [patch.tap(outlet) for outlet in (node.inputs if inputs is None else inputs)]
        outlets = patch.wire(node.name, op, taps)
        for old, new in zip(node.outlets(), outlets, strict=False):
            patch.shunt(old, new)
        patch.retire(node.id)
        if len(outlets) == len(node.outputs) and not node.op.announces:  # else both may be needed
            patch._in_place = node
        return patch

    @staticmethod
    def shunt_one(model: TypedModel, node: TypedNode, source: OutletId | None = None) -> ModelPatch:
        """``node``, of one output, removed: its readers read ``source`` (default: its first input) instead."""
        patch = ModelPatch(model)
        patch.shunt(OutletId(node.id), patch.tap(node.inputs[0] if source is None else source))
        return patch

    def tap(self, outlet: OutletId) -> OutletId:
        """An outlet of the patch that stands for ``outlet`` of the target; asked twice, the same one."""
        if outlet not in self._tap_of:
            fact = self.target.outlet_fact(outlet)
            inner = self.model.add_source(f"tap.{outlet}", fact)
            self._tap_of[outlet] = inner
            self.taps[inner] = outlet
        return self._tap_of[outlet]

    def wire(self, name: str, op: TypedOp, inputs: Sequence[OutletId]) -> tuple[OutletId, ...]:
        """Add a node to the patch, as `TypedModel.wire_node`."""
        return self.model.wire_node(name, op, inputs)

    def fact(self, outlet: OutletId) -> TypedFact:
        """The fact of an outlet of the patch."""
        return self.model.outlet_fact(outlet)

    def shunt(self, old: OutletId, new: OutletId) -> None:
        """Let the readers of ``old``, in the target, read ``new``, in the patch.

        Raises GraphError when the new tensor has another type, rank or size.
        """
        before, after = self.target.outlet_fact(old), self.model.outlet_fact(new)
        if not before.compatible_with(after):
            raise GraphError(f"a patch replaces {before} by {after}", where=str(self.target.nodes[old.node]))
        self.shunts.append((old, new))

    def retire(self, node_id: int, *, bound_elsewhere: bool = False) -> None:
        """Let a node of the target go that may check something (`TypedOp.checks`), and would stay without being read.

        Say so where what it checks surely holds, or where what takes its place checks it. ``bound_elsewhere``: what
        takes its place also binds the symbols that it announces, for which it would stay too.
        """
        op = self.target.nodes[node_id].op
        if op.checks or (bound_elsewhere and op.announces):
            self.retired.append(node_id)

    def apply(self) -> PatchResult:
        """Put the new nodes into the target, move the readers over, and remove what is left unread."""
        result = PatchResult()
        if self._in_place is not None and len(self.model.nodes) == len(self.taps) + 1:
            self._exchange(self._in_place, result)
            return result
        mapping = dict(self.taps)
        for node in self.model.nodes:
            if OutletId(node.id) in self.taps:
                continue
            inputs = [mapping[outlet] for outlet in node.inputs]
            added = self.target.add_node(node.name, node.op, [o.fact for o in node.outputs], inputs)
            result.added.append(added.id)
            mapping.update({old: OutletId(added.id, old.slot) for old in node.outlets()})
        for condition, origin in self.model.conditions:
            self.target.conditions.add(condition, origin)
        result.touched.extend(outlet.node for outlet in self.taps.values())
        self._retire()
        replaced = [(old, self._own_outlet(old, mapping[new], result)) for old, new in self.shunts]
        for old, new in replaced:
            self._move_readers(old, new, result)
        self._hand_over_names(replaced, result)
        return result

    def _exchange(self, node: TypedNode, result: PatchResult) -> None:
        """Give a node another operator: as little else changes as in any other way to do the same."""
        target, (new,) = self.target, [one for one in self.model.nodes if OutletId(one.id) not in self.taps]
        before = {outlet.node for outlet in node.inputs}
        for condition, origin in self.model.conditions:
            target.conditions.add(condition, origin)
        result.added.append(node.id)
        result.touched.extend(outlet.node for outlet in self.taps.values())
        self.retired = [node_id for node_id in self.retired if node_id != node.id]
        self._retire()
        target.rewire(node, new.op, [self.taps[outlet] for outlet in new.inputs])
        for old, outlet in zip(node.outlets(), new.outputs, strict=True):
            self._tell_readers(old, outlet.fact, result)
            if old in target.outputs:
                target.outlet_labels[old] = target.outlet_name(old)
            if old.slot == 0 and target.outlet_labels.get(old) == node.name:
                del target.outlet_labels[old]
        result.touched.extend(target.remove_dead(before))
        if not any(outlet.successors for outlet in node.outputs):
            result.touched.extend(target.remove_if_dead(node.id))

    def _tell_readers(self, outlet: OutletId, fact: TypedFact, result: PatchResult) -> None:
        """Let those who read an outlet know that its fact is another one."""
        target = self.target
        known = target.outlet_fact(outlet)
        target.set_outlet_fact(outlet, _both(known, fact))
        readers = [inlet.node for inlet in target.outlet(outlet).successors]
        result.touched.extend(readers)
        if _says_more(known, fact):
            shape = target.outlet_fact(outlet).shape
            result.touched.extend(refine_facts(target, known.shape, shape, readers))

    def _retire(self) -> None:
        for node_id in self.retired:
            from tract_core.model.identity import Identity

            self.target.nodes[node_id].op = Identity()

    def _own_outlet(self, old: OutletId, new: OutletId, result: PatchResult) -> OutletId:
        """``new``, or a copy of it where ``old`` is an output and ``new`` an input or another output of the target.

        Each of these has a name of its own, so that two of them are never one tensor.
        """
        target = self.target
        if new.node in result.added or old not in target.outputs or not target.is_interface(new):
            return new
        from tract_core.model.identity import Identity

        fact = target.outlet_fact(new)
        node = target.add_node(target.nodes[old.node].name, Identity(), [fact], [new])
        result.added.append(node.id)
        return OutletId(node.id)

    def _move_readers(self, old: OutletId, new: OutletId, result: PatchResult) -> None:
        target = self.target
        is_output = old in target.outputs
        label = target.outlet_name(old) if is_output else target.outlet_labels.get(old)
        before, after = target.outlet_fact(old), target.outlet_fact(new)
        target.set_outlet_fact(new, _both(before, after))
        readers = [inlet for inlet in target.outlet(old).successors if inlet.node not in result.added]
        for inlet in readers:
            target.reconnect(inlet, new)
            result.touched.append(inlet.node)
        if is_output:
            target.outputs = [new if outlet == old else outlet for outlet in target.outputs]
        if label is not None and new not in target.inputs:
            target.outlet_labels.pop(old, None)
            if is_output:  # its name is the model's, that of a tensor inside gives way
                target.outlet_labels[new] = label
            target.outlet_labels.setdefault(new, label)
        if _says_more(before, after):
            shape = target.outlet_fact(new).shape
            result.touched.extend(refine_facts(target, before.shape, shape, [inlet.node for inlet in readers]))

    def _hand_over_names(self, replaced: list[tuple[OutletId, OutletId]], result: PatchResult) -> None:
        """Once an old node is gone, the new one in its place gets its name."""
        target = self.target
        for old, new in replaced:
            name = target.nodes[old.node].name
            result.touched.extend(target.remove_if_dead(old.node))
            if new.node in result.added and not target.has_node(name):
                target.rename(new.node, name)
            if new.slot == 0 and target.outlet_labels.get(new) == target.nodes[new.node].name:
                del target.outlet_labels[new]
        for node_id in result.added:
            if not any(outlet.successors for outlet in target.nodes[node_id].outputs):
                result.touched.extend(target.remove_if_dead(node_id))


def _says_more(before: TypedFact, after: TypedFact) -> bool:
    """Whether a new fact says more than the old one, or something else."""
    return after is not before and (
        after.shape != before.shape or (after.value is not None) > (before.value is not None)
    )


def _both(before: TypedFact, after: TypedFact) -> TypedFact:
    """The new fact with what only the old one says."""
    if after.value is None and before.value is not None:
        after = replace(after, value=before.value)
    if before.shape != after.shape and before.shape.is_concrete:
        after = replace(after, shape=before.shape)
    return after


TypedModelPatch = ModelPatch
