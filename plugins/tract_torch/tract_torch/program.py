"""An exported program becomes a typed model: node by node, each by its row of the table ``aten``."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx import Node

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, same_dim
from tract_core.errors import MissingOperator, ModelError, TractError, Unsupported, together
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.wiring import wire_one
from tract_core.plugins import Registry
from tract_torch.call import Call, Known
from tract_torch.lowering import Lowering
from tract_torch.naming import node_name
from tract_torch.registry import ATEN, AtenFn, find
from tract_torch.sizes import Names, dim_of
from tract_torch.tensors import array_of, datum_type


class Program:
    """An exported program on its way to a model. ``names``: what its symbols are called there."""

    def __init__(
        self,
        exported: torch.export.ExportedProgram,
        names: Names,
        registry: Registry,
        lowering: Lowering,
    ) -> None:
        self.kept: dict[str, np.ndarray[Any, Any]] = {}
        """Parameters that are to be kept, by name: they are inputs for now, so that nothing is folded with them."""
        self.exported, self.lowering = exported, lowering
        self.names = names
        self.registry = registry
        self.model = TypedModel(registry=registry)
        self._known: dict[Node, Known] = {}

    def typed(self, inputs: Sequence[str] | None, outputs: Sequence[str]) -> TypedModel:
        """The model. ``inputs``: names of its inputs, or None for the program's; ``outputs``: of its outputs.

        Raises MissingOperator, naming every operator without a row, and ModelError for nodes that cannot be wired.
        """
        functions = self._functions()
        for name in self.names.values():
            self.model.symbols.add(name)
        self._add_inputs(inputs)
        for node, function in functions.items():
            self._known[node] = self._wired(node, function)
        self._add_outputs(outputs)
        self._assert_ranges()
        self.model.check_consistency()
        return self.model

    def _functions(self) -> dict[Node, AtenFn | None]:
        """The row of each node that computes something; None for one that only picks, or is a size."""
        table = self.registry[ATEN]
        found: dict[Node, AtenFn | None] = {}
        missing: list[TractError] = []
        for node in self.exported.graph.nodes:
            if node.op != "call_function" or node.meta.get("val") is None:
                continue  # what yields nothing checks what PyTorch found out already
            picks = node.target is operator.getitem or not _tensors_of(node)
            found[node] = None if picks else find(table, str(node.target))
            if not picks and found[node] is None:
                missing.append(MissingOperator(f"there is no importer for {node.target}", where=place_of(node)))
        if missing:
            hint = "a plugin can add it: a row in the table 'aten', see docs/torch.md"
            raise together(missing, MissingOperator, "operators are missing", hint=hint)
        return found

    def _add_inputs(self, names: Sequence[str] | None) -> None:
        """Sources for what the user gives, constants for what the module holds."""
        nodes = {node.name: node for node in self.exported.graph.nodes if node.op == "placeholder"}
        given = iter(names) if names is not None else None
        for spec in self.exported.graph_signature.input_specs:
            node = nodes[spec.arg.name]
            if isinstance(spec.arg, ConstantArgument):
                continue  # a number or a text, which the program knows
            if not isinstance(spec.arg, TensorArgument):
                raise Unsupported(f"is {type(spec.arg).__name__}, wanted a tensor", where=f"input {node.name!r}")
            if spec.kind is InputKind.USER_INPUT:
                value = node.meta["val"]
                fact = TypedFact.of(datum_type(value.dtype), [dim_of(size, self.names) for size in value.shape])
                self._known[node] = self.model.add_source(next(given) if given else node.name, fact)
            elif node.users:
                self._known[node] = self._constant(str(spec.target), spec.kind)

    def _constant(self, name: str, kind: InputKind) -> OutletId:
        array = array_of(self._held(name))
        fact = TypedFact.of(DatumType.from_numpy(array.dtype), array.shape)
        if not self.lowering.keep_parameters or kind is InputKind.CONSTANT_TENSOR or not fact.datum_type.is_float():
            return self.model.add_const(name, array)
        self.kept[name] = array
        return self.model.add_source(name, fact)

    def _held(self, name: str) -> torch.Tensor:
        """A parameter, a buffer, or a constant of the module."""
        state = self.exported.state_dict
        return state[name] if name in state else cast("torch.Tensor", self.exported.constants[name])

    def _wired(self, node: Node, function: AtenFn | None) -> Known:
        if node.target is operator.getitem:
            source, place = cast("tuple[Node, int]", node.args)
            several = cast("Sequence[Known]", self._known[source])
            if place >= len(several):
                raise Unsupported(f"output {place} is read, and it is not computed here", where=place_of(source))
            return several[place]
        if function is None:
            return dim_of(node.meta["val"], self.names)
        try:
            name = self.model.unique_name(node_name(node, self.lowering.naming))
            found = function(Call(node, self._known, self.names, self.lowering), NodeWiring(self.model, name))
            outlets = [found] if isinstance(found, OutletId) else list(found)
            for outlet, wanted in zip(outlets, _tensors_of(node), strict=False):
                self._check(outlet, wanted)
        except TractError as error:
            raise error.at(place_of(node)) from error.__cause__
        self._name(name, outlets[0])
        return outlets if isinstance(node.meta["val"], (list, tuple)) else outlets[0]

    def _check(self, outlet: OutletId, wanted: torch.Tensor) -> None:
        """Raises ModelError where a tensor is another one than PyTorch says."""
        fact = self.model.outlet_fact(outlet)
        shape = [dim_of(size, self.names) for size in wanted.shape]
        if fact.datum_type is not datum_type(wanted.dtype) or len(shape) != fact.rank or _differ(fact.shape, shape):
            theirs = TypedFact.of(datum_type(wanted.dtype), shape)
            raise ModelError(f"it gives {fact}, PyTorch says {theirs}", hint="this is a defect of its importer")

    def _name(self, name: str, outlet: OutletId) -> None:
        """Let the node that yields the result have the name of the node of the program."""
        current = self.model.nodes[outlet.node].name
        if current.startswith(f"{name}.") and not outlet.slot:
            self.model.rename(outlet.node, self.model.unique_name(name))

    def _add_outputs(self, names: Sequence[str]) -> None:
        signature = self.exported.graph_signature
        changed = [spec.target for spec in signature.output_specs if spec.kind is not OutputKind.USER_OUTPUT]
        if changed:
            hint = "return what it is to remember, and take it as an input"
            raise Unsupported(f"the module changes what it holds: {', '.join(map(str, changed))}", hint=hint)
        (returned,) = next(node for node in self.exported.graph.nodes if node.op == "output").args
        values = cast("Sequence[Any]", returned)
        outlets = [self._output(value, name) for value, name in zip(values, names, strict=True) if value is not None]
        self.model.set_outputs(outlets)

    def _output(self, value: Any, name: str) -> OutletId:
        known = self._known[value] if isinstance(value, Node) else value
        if not isinstance(known, OutletId):
            return self.model.add_const(self.model.unique_name(name), cast("Any", known))
        taken = self.model.outlet_name(known)
        if taken != name and (known in self.model.inputs or known in self.model.outputs):
            return wire_one(self.model, self.model.unique_name(name), Identity(), known)
        if taken != name and not any(node.name == name for node in self.model.live_nodes()):
            self.model.set_label(known, name)
        return known

    def _assert_ranges(self) -> None:
        """What PyTorch found of each symbol: sizes for which the program was made, and no others."""
        for name, found in self.exported.range_constraints.items():
            size = dim_of(name, self.names)
            if isinstance(size, int):
                continue
            for relation, bound in ((">=", found.lower), ("<=", found.upper)):
                if bound.is_Integer and not (relation == ">=" and int(bound) <= 0):
                    self.model.symbols.add_assertion(f"{size}{relation}{int(bound)}")


def with_constants(model: TypedModel, values: Mapping[str, np.ndarray[Any, Any]]) -> TypedModel:
    """The same model, in place, in which inputs of these names are constants."""
    for outlet in [one for one in model.inputs if model.outlet_name(one) in values]:
        value = Constant(values[model.outlet_name(outlet)])
        model.inputs.remove(outlet)
        model.nodes[outlet.node].op = Const(value)
        model.set_outlet_fact(outlet, TypedFact.of_value(value))
    model.prune()
    return model


def _tensors_of(node: Node) -> list[torch.Tensor]:
    """The tensors that a node yields, as PyTorch sees them."""
    found = node.meta.get("val")
    values = found if isinstance(found, (list, tuple)) else [found]
    return [one for one in values if isinstance(one, torch.Tensor)]


def _differ(found: Sequence[Dim], wanted: Sequence[Dim]) -> bool:
    return any(same_dim(one, other) is False for one, other in zip(found, wanted, strict=True))


def place_of(node: Node) -> str:
    """Where a node is from: its name, the module, and the line of its source, as far as that is known."""
    stack: Mapping[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    modules = [path for path, _ in stack.values() if path and "_from_metadata_hook" not in path]
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines() if line.strip()]
    files = [line for line in lines if line.startswith("File ")]
    module = f" of module {modules[-1]!r}" if modules else ""
    return f"node {node.name!r} ({node.target}){module}{', ' + files[-1] if files else ''}"
