"""An exported program becomes a typed model: its inputs, its graph, its outputs, and what holds for its sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np
import torch
from torch.export.graph_signature import ConstantArgument, InputKind, OutputKind, TensorArgument
from torch.fx import Node

from tract_core.data import Constant, DatumType
from tract_core.errors import Unsupported
from tract_core.model.const import Const
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_one
from tract_core.plugins import Registry
from tract_torch.call import Known
from tract_torch.graph import Graph, check_operators
from tract_torch.lowering import Lowering
from tract_torch.sizes import Names, dim_of
from tract_torch.tensors import array_of, datum_type
from tract_torch.weights.qtensor import QTensor
from tract_torch.weights.wiring import wire_quantised


class Program:
    """An exported program on its way to a model.

    ``names``: what its symbols are called there. ``held``: quantised tensors, in the place of those of the program.
    """

    def __init__(
        self,
        exported: torch.export.ExportedProgram,
        names: Names,
        registry: Registry,
        lowering: Lowering,
        held: Mapping[str, QTensor],
    ) -> None:
        self.kept: dict[str, np.ndarray[Any, Any]] = {}
        """Parameters that are to be kept, by name: they are inputs for now, so that nothing is folded with them."""
        self.exported, self.lowering, self.held = exported, lowering, held
        self.names = names
        self.registry = registry
        self.model = TypedModel(registry=registry)
        self._first = _first_names(exported.state_dict)
        self.graph = Graph(exported.graph_module, self.model, names, lowering)

    def typed(self, inputs: Sequence[str] | None, outputs: Sequence[str]) -> TypedModel:
        """The model. ``inputs``: names of its inputs, or None for the program's; ``outputs``: of its outputs.

        Raises MissingOperator, naming every operator without a row, and ModelError for nodes that cannot be wired.
        """
        check_operators(self.exported.graph_module, self.registry)
        for name in self.names.values():
            self.model.symbols.add(name)
        self._add_inputs(inputs)
        self._add_outputs(self.graph.wired(), outputs)
        self._assert_ranges()
        self.model.check_consistency()
        return self.model

    @property
    def outlets(self) -> dict[Node, OutletId]:
        """The tensor that each node became which yields one, once the model is made."""
        return {node: known for node, known in self.graph.known.items() if isinstance(known, OutletId)}

    def arguments(self, tensors: Sequence[torch.Tensor]) -> list[Any]:
        """What the graph of the program takes, where the user's inputs are these ``tensors``, in order."""
        given = iter(tensors)
        found: list[Any] = []
        for spec in self.exported.graph_signature.input_specs:
            if isinstance(spec.arg, ConstantArgument):
                found.append(spec.arg.value)
            else:
                found.append(next(given) if spec.kind is InputKind.USER_INPUT else self._held(str(spec.target)))
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
                self.graph.known[node] = self.model.add_source(next(given) if given else node.name, fact)
            elif node.users:
                self.graph.known[node] = self._constant(self._first.get(str(spec.target), str(spec.target)), spec.kind)

    def _constant(self, name: str, kind: InputKind) -> OutletId:
        if name in self.held:
            return wire_quantised(self.model, name, self.held[name])
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

    def _add_outputs(self, values: Sequence[Known | None], names: Sequence[str]) -> None:
        signature = self.exported.graph_signature
        changed = [spec.target for spec in signature.output_specs if spec.kind is not OutputKind.USER_OUTPUT]
        if changed:
            hint = "return what it is to remember, and take it as an input"
            raise Unsupported(f"the module changes what it holds: {', '.join(map(str, changed))}", hint=hint)
        outlets = [self._output(value, name) for value, name in zip(values, names, strict=True) if value is not None]
        self.model.set_outputs(outlets)

    def _output(self, known: Known, name: str) -> OutletId:
        if not isinstance(known, (OutletId, int, float)):
            raise Unsupported(f"is {known!r}, wanted a tensor or a number", where=f"output {name!r}")
        if not isinstance(known, OutletId):
            return self.model.add_const(self.model.unique_name(name), known)
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
