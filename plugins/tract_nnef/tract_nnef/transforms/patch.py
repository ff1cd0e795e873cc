"""Rewire a model with statements of NNEF."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, NoReturn

from tract_core.errors import CorruptModel, TractError, TransformError, Unsupported, meant
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.plugins.parameters import texts
from tract_nnef.documents.operators import Operators
from tract_nnef.documents.reader import Reader
from tract_nnef.reading.call import Call
from tract_nnef.reading.expressions import Scope
from tract_nnef.reading.names import NamedValues, names_in
from tract_nnef.reading.values import Value
from tract_nnef.syntax import ast
from tract_nnef.syntax.parser import parse_statements


@dataclass(frozen=True, slots=True)
class Patch:
    """Rewire a model with statements of NNEF, as ``logits = logits / 2.0;``.

    A name stands for the tensor of the model that has it, and, once something was assigned to it, for that. What is
    assigned to the name of a tensor takes its place for whatever reads it, and as an output.
    """

    name: ClassVar[str] = "patch"
    body: str = field(metadata={"doc": "statements of NNEF, in which names are those of tensors of the model"})
    new_outputs: Sequence[str] = field(
        default=(), metadata={"doc": "names of tensors that become outputs, behind those that there are"}
    )

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with the statements in it.

        Raises TransformError for statements that cannot be read, for names that are not there, for a tensor of another
        type or shape than the one in whose place it is, and for one that would be computed from itself.
        """
        result = model.clone()
        added = texts(self.name, "new_outputs", self.new_outputs)
        try:
            patching = _Patching(result)
            patching.read(parse_statements(self.body))
            patching.replace()
            patching.add_outputs(added)
        except TransformError:
            raise
        except TractError as error:
            hint = None if isinstance(error, CorruptModel) and error.hint == CorruptModel.advice else error.hint
            raise TransformError(f"patch: {error.problem}", where=error.where, hint=hint) from None
        result.prune()
        return result


class _Patching:
    """A model, and the statements that it is changed by."""

    def __init__(self, model: TypedModel) -> None:
        self.model = model
        self.tensors = {model.outlet_name(outlet): outlet for node in model.live_nodes() for outlet in node.outlets()}
        self.own = len(model.nodes)
        """How many nodes are those of the model."""
        self.reader = Reader(model, Operators.all(model.registry), NoTensors())
        self.reader.keep_names(self.tensors.values())
        self.assigned: dict[str, Value] = {}

    def read(self, statements: Sequence[ast.Assignment]) -> None:
        """Add the nodes of the statements, beside the model's."""
        scope = Scope(self.reader, NamedValues[Value](self.tensors))
        for one in statements:
            names = {name: f"{name}.patch" if name in self.tensors else name for name in names_in(one.targets)}
            self.reader.statements([replace(one, targets=_renamed(one.targets, names))], scope)
            for name, written in names.items():
                value = scope.names.pop(written)
                assert value is not None  # it was assigned
                scope.names.assign(name, value)
                self.assigned[name] = value

    def replace(self) -> None:
        """Put what was assigned to the names of tensors in their places."""
        for name, value in self.assigned.items():
            old = self.tensors.get(name)
            if old is not None:
                self._put(name, old, self._tensor(name, value))

    def add_outputs(self, names: Sequence[str]) -> None:
        """More outputs. Raises TransformError for names that are not there, and where something is assigned in vain."""
        for name in names:
            value = self.assigned.get(name, self.tensors.get(name))
            if value is None:
                raise self._unknown(name, f"there is no tensor {name!r} to be an output")
            outlet = self._tensor(name, value)
            if self.model.outlet_name(outlet) != name:
                (outlet,) = self.model.wire_node(self.model.unique_name(name), Identity(), [outlet])
            if outlet not in self.model.outputs:
                self.model.set_outputs([*self.model.outputs, outlet])
        for name, value in self.assigned.items():
            unread = isinstance(value, OutletId) and not self._is_read(value)
            if name not in self.tensors and name not in names and unread:
                raise self._unknown(
                    name, f"{name!r} is assigned, and nothing reads it: the model has no tensor of that name"
                )

    def _put(self, name: str, old: OutletId, new: OutletId) -> None:
        if old == new:
            return
        model = self.model
        before, after = model.outlet_fact(old), model.outlet_fact(new)
        if not before.compatible_with(after):
            raise TransformError(f"patch: {name!r} is {before}, and what is put in its place is {after}")
        readers = [inlet for inlet in model.outlet(old).successors if inlet.node < self.own]
        if {inlet.node for inlet in readers} & {*model.order_of_edges([new])}:
            raise TransformError(f"patch: {name!r} would be computed from itself")
        for inlet in readers:
            model.reconnect(inlet, new)
        if before.value is not None:
            self._forget_values(new)
        if old in model.outputs:
            model.set_outputs(new if outlet == old else outlet for outlet in model.outputs)
        if old not in model.inputs:
            model.outlet_labels.pop(old, None)
            if old.slot == 0 and model.nodes[old.node].name == name:
                model.rename(old.node, model.unique_name(f"{name}.before"))
            self._rename(new, name)

    def _forget_values(self, changed: OutletId) -> None:
        """What was known of tensors because one was a constant that is another one now."""
        waiting = [changed]
        while waiting:
            for inlet in self.model.outlet(waiting.pop()).successors:
                for outlet in self.model.nodes[inlet.node].outlets():
                    held = self.model.outlet(outlet)
                    if held.fact.value is not None:
                        held.fact = held.fact.without_value()
                        waiting.append(outlet)

    def _rename(self, outlet: OutletId, name: str) -> None:
        """Give a tensor of the statements a name; one of the model keeps its own."""
        if outlet.node < self.own:
            return
        if outlet.slot == 0:
            self.model.rename(outlet.node, name)
        else:
            self.model.set_label(outlet, name)

    def _is_read(self, outlet: OutletId) -> bool:
        return bool(self.model.outlet(outlet).successors) or self.model.is_interface(outlet)

    def _tensor(self, name: str, value: Value) -> OutletId:
        if isinstance(value, OutletId):
            return value
        return Call(self.reader, "patch", name, targets=[name], arguments={name: value}).input(name)

    def _unknown(self, name: str, problem: str) -> TransformError:
        near = meant(name, self.tensors)
        hint = f"did you mean {near[0]!r}?" if near else "name it in new_outputs, or one of the model's tensors"
        return TransformError(f"patch: {problem}", hint=hint)


class NoTensors:
    """A patch has no files beside it."""

    def stored(self, label: str, key: str = "") -> NoReturn:
        """Raises Unsupported."""
        raise Unsupported(f"a patch has no tensors beside it, and asks for {label!r}", hint="write numbers out")

    tensor = submodel = resource = stored


def _renamed(targets: ast.Expression, names: Mapping[str, str]) -> ast.Expression:
    if isinstance(targets, ast.Identifier):
        return ast.Identifier(names[targets.name])
    if isinstance(targets, (ast.Array, ast.Tuple)):
        return replace(targets, items=tuple(_renamed(item, names) for item in targets.items))
    return targets
