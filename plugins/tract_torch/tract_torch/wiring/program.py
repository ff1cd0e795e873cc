"""An exported program becomes a typed model: its inputs, its graph, its outputs, and what holds for its sizes."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx import Node

from tract_core.data import Constant, DatumType
from tract_core.errors import ModelWarning, Unsupported
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_one
from tract_core.plugins import Registry
from tract_torch.tensors import array_of, datum_type
from tract_torch.weights.qtensor import QTensor
from tract_torch.weights.wiring import wire_quantised
from tract_torch.wiring.call import Known
from tract_torch.wiring.graph import Graph, check_operators
from tract_torch.wiring.guards import assert_guards, assert_ranges, late_ranges
from tract_torch.wiring.lowering import Lowering
from tract_torch.wiring.sizes import Names, dim_of
from tract_torch.wiring.states import States


class Program:
    """An exported program on its way to a model.

    ``names``: what its symbols are called there. ``free``: those of any size. ``read``: buffers that the program was
    decided by, so that others cannot take their place.
    ``held``: quantised tensors, in the place of those of the program.
    """

    def __init__(
        self,
        exported: torch.export.ExportedProgram,
        names: Names,
        registry: Registry,
        lowering: Lowering,
        held: Mapping[str, QTensor],
        *,
        free: Collection[str] = (),
        read: Collection[str] = (),
    ) -> None:
        self.kept: dict[str, np.ndarray[Any, Any]] = {}
        """Parameters that are to be kept, by name: they are inputs for now, so that nothing is folded with them."""
        self.exported, self.lowering, self.held = exported, lowering, held
        self.names, self.free, self.read = names, free, read
        self.registry = registry
        self.model = TypedModel(registry=registry)
        self._first = _first_names(exported.state_dict)
        self.states = States(exported, self.model, lowering.states)
        self.graph = Graph(exported.graph_module, self.model, names, lowering)

    def typed(self, inputs: Sequence[str] | None, outputs: Sequence[str]) -> TypedModel:
        """The model. ``inputs``: names of its inputs, or None for the program's; ``outputs``: of its outputs.

        Raises MissingOperator, naming every operator without a row, and ModelError for nodes that cannot be wired.
        """
        check_operators(self.exported.graph_module, self.registry)
        for name in self.names.values():
            self.model.symbols.add(name)
        self._add_inputs(inputs)
        self._assert_sizes()
        self._add_outputs(self.graph.wired(), outputs)
        late = frozenset[str]().union(*(self.model.symbols_bound(node) for node in self.model.live_nodes()))
        for condition in late_ranges(self.exported, self.names, late):
            self.model.require(condition, "the program")
        for name in sorted(late):
            self.model.symbols.add(name)
        self._assert_sizes()
        self.model.check_consistency()
        return self.model

    @property
    def outlets(self) -> dict[Node, OutletId]:
        """The tensor that each node became which yields one, once the model is made."""
        return {node: known for node, known in self.graph.known.items() if isinstance(known, OutletId)}

    def arguments(self, tensors: Sequence[torch.Tensor], held: Mapping[str, torch.Tensor]) -> list[Any]:
        """What the graph of the program takes, where the user's inputs are these ``tensors``, in order.

        ``held``: what stands for the buffers of these names.
        """
        given = iter(tensors)
        found: list[Any] = []
        for spec in self.exported.graph_signature.input_specs:
            name = str(spec.target)
            if isinstance(spec.arg, ConstantArgument):
                found.append(spec.arg.value)
            elif spec.kind is InputKind.USER_INPUT:
                found.append(next(given))
            else:
                found.append(held[name] if name in held else self._held(name))
        return found

    def _assert_sizes(self) -> None:
        """Rely on what PyTorch found out about sizes: the program was made for these, and for no others."""
        assert_ranges(self.exported, self.names, self.model.symbols, self.free)
        for guard in assert_guards(self.exported, self.names, self.model.symbols, self.free):
            problem = f"PyTorch relies on {guard}, which no assertion says: other sizes are computed, and may be wrong"
            self.model.remarks.append(Unsupported(problem))
            warnings.warn(ModelWarning(problem), stacklevel=5)

    def _add_inputs(self, names: Sequence[str] | None) -> None:
        """Sources for what the user gives, constants for what the module holds."""
        nodes = {node.name: node for node in self.exported.graph.nodes if node.op == "placeholder"}
        given = iter(names) if names is not None else None
        for spec in self.exported.graph_signature.input_specs:
            node = nodes[spec.arg.name]
            if isinstance(spec.arg, ConstantArgument):
                continue  # a number or a text, which the program knows
            if not isinstance(spec.arg, TensorArgument):
                hint = "use tensors, numbers and texts in the module, and no generator or other object of PyTorch"
                kind = type(spec.arg).__name__
                raise Unsupported(f"is {kind}, wanted a tensor", where=f"input {node.name!r}", hint=hint)
            if spec.kind is InputKind.USER_INPUT:
                name = next(given) if given else node.name
                source = self.model.add_source(name, self._fact(node.meta["val"]))
                self.states.given(node.name, source)
                self.graph.known[node] = source
            elif str(spec.target) in self.states.held:
                self.graph.known[node] = self.states.source(str(spec.target), self._held(str(spec.target)))
            elif node.users:
                self.graph.known[node] = self._constant(self._first.get(str(spec.target), str(spec.target)), spec.kind)
        self.model.inputs = self.states.last(self.model.inputs)

    def _fact(self, value: torch.Tensor) -> TypedFact:
        return TypedFact.of(datum_type(value.dtype), [dim_of(size, self.names) for size in value.shape])

    def _constant(self, name: str, kind: InputKind) -> OutletId:
        if name in self.held:
            return wire_quantised(self.model, name, self.held[name])
        array = array_of(self._held(name))
        fact = TypedFact.of(DatumType.from_numpy(array.dtype), array.shape)
        is_fixed = kind is InputKind.CONSTANT_TENSOR or name in self.read or not fact.datum_type.is_float()
        if is_fixed or not self.lowering.keep_parameters:
            return self.model.add_const(name, array)
        self.kept[name] = array
        return self.model.add_source(name, fact)

    def _held(self, name: str) -> torch.Tensor:
        """A parameter, a buffer, or a constant of the module."""
        state = self.exported.state_dict
        return state[name] if name in state else cast("torch.Tensor", self.exported.constants[name])

    def _add_outputs(self, values: Sequence[Known | None], names: Sequence[str]) -> None:
        given = [
            value
            for value, spec in zip(values, self.exported.graph_signature.output_specs, strict=True)
            if spec.kind is OutputKind.USER_OUTPUT
        ]
        named = [(value, name) for value, name in zip(given, names, strict=True) if value is not None]
        for value, name in [*named, *self.states.results(values)]:
            self.model.outputs.append(self._output(value, name))
        if not self.model.outputs:
            raise Unsupported("the module returns no tensor", hint="return what the model is to compute")

    def _output(self, known: Known, name: str) -> OutletId:
        if not isinstance(known, (OutletId, int, float)):
            problem = f"is {known!r}, wanted a tensor or a number"
            raise Unsupported(problem, where=f"output {name!r}", hint="leave it out of what the module returns")
        if not isinstance(known, OutletId):
            return self.model.add_const(self.model.unique_name(name), known)
        taken = self.model.outlet_name(known)
        if taken != name and (known in self.model.inputs or known in self.model.outputs):
            return wire_one(self.model, self.model.unique_name(name), Identity(), known)
        if taken != name:
            self.model.set_label(known, self._free(name))
        return known

    def _free(self, name: str) -> str:
        """A name for an output: the one that is wanted, unless an input has it. Other nodes give way."""
        if any(self.model.outlet_name(outlet) == name for outlet in self.model.inputs):
            return self.model.unique_name(name)
        if self.model.has_node(name):
            self.model.rename(self.model.node_by_name(name).id, self.model.unique_name(name))
        return name


def _first_names(state: Mapping[str, torch.Tensor]) -> dict[str, str]:
    """What shared tensors are called: each name of one leads to the first."""
    first: dict[Any, str] = {}
    found: dict[str, str] = {}
    for name, tensor in state.items():
        if tensor.numel():
            place = tensor.data_ptr(), tensor.dtype, tensor.shape, tensor.stride()
            found[name] = first.setdefault(place, name)
    return found


def with_constants(model: TypedModel, values: Mapping[str, np.ndarray[Any, Any]]) -> TypedModel:
    """The same model, in place, in which inputs of these names are constants."""
    for outlet in [one for one in model.inputs if model.outlet_name(one) in values]:
        value = Constant(values[model.outlet_name(outlet)])
        model.inputs.remove(outlet)
        model.nodes[outlet.node].op = Const(value)
        model.set_outlet_fact(outlet, TypedFact.of_value(value))
    model.prune()
    return model
