"""A graph that writes nothing, as a model that is ready to run, with the weights that it has at that moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch.fx import GraphModule, Node

from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.data import DatumType
from tract_core.dims import symbol, symbols_of
from tract_core.errors import InputError, Unsupported
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.typed import TypedModel
from tract_core.ops.wiring import wire_one
from tract_core.plugins import default_registry
from tract_torch.dynamo.layouts import known_size
from tract_torch.dynamo.options import Options
from tract_torch.dynamo.outputs import Returned
from tract_torch.dynamo.weights import Weights, bound
from tract_torch.tensors import array_of, datum_type
from tract_torch.wiring.call import Known
from tract_torch.wiring.graph import Graph, check_operators, place_of
from tract_torch.wiring.lowering import Lowering
from tract_torch.wiring.sizes import expression_of


class Lowered:
    """A graph, with those of its arguments in the places ``weights`` bound to it. ``args``: of the first call.

    Raises MissingOperator, naming all that is missing, and Unsupported or ModelError where it is no model.
    """

    def __init__(self, module: GraphModule, weights: Sequence[int], args: Sequence[Any], options: Options) -> None:
        _check(module)
        placeholders: list[Node] = module.graph.find_nodes(op="placeholder")
        self._symbols = _symbols(placeholders)
        self._outputs = Returned(module, self._symbols)
        held = bound(args, weights)
        self.weights = Weights(held)
        self._fed: list[int] = []
        """Places of the arguments that are inputs of the model, in its order."""
        self._runnable = self._prepared(held, options) if self._outputs.computed else None

    def run(self, args: Sequence[Any]) -> list[Any]:
        """All outputs of the graph."""
        values = {name: int(args[place]) for name, place in self._symbols.items()}
        laid = self._outputs.laid(values)
        results = self._outputs.empty(laid)
        if self._runnable is not None:
            self._runnable.run([_array(args[place]) for place in self._fed], [array_of(one) for one in results])
        return self._outputs.of(args, results, laid, values)

    def _prepared(self, held: Mapping[int, torch.Tensor], options: Options) -> Runnable:
        model = Model.from_typed(self._wired(self._outputs.computing(), held).declutter())
        before = _types(model.typed)
        for transform in options.transforms:
            model.transform(transform)
        if _types(model.typed) != before:
            hint = "as 'f32_to_f16(keep_io_types: true)' does, which leaves them"
            raise InputError("a transform changes types of inputs or outputs", where="torch.compile", hint=hint)
        return options.found_runtime().prepare(model)

    def _wired(self, module: GraphModule, held: Mapping[int, torch.Tensor]) -> TypedModel:
        registry = default_registry()
        check_operators(module, registry)
        model = TypedModel(registry=registry)
        for name in self._symbols:
            model.symbols.add(name)
        graph, placeholders = Graph(module, model, {}, Lowering()), module.graph.find_nodes(op="placeholder")
        for place, node in enumerate(placeholders):
            if isinstance(node.meta["val"], torch.Tensor) and node.users:
                graph.known[node] = self._given(model, node, place, held)
        self._tell_sizes(model, placeholders)
        for place, known in enumerate(graph.wired()):
            model.outputs.append(_named(model, known, f"output_{place}"))
        model.check_consistency()
        return model

    def _given(self, model: TypedModel, node: Node, place: int, held: Mapping[int, torch.Tensor]) -> OutletId:
        """A constant for a weight that is bound, else an input."""
        if place in held:
            return model.add_const(node.name, array_of(held[place]))
        self._fed.append(place)
        value: torch.Tensor = node.meta["val"]
        sizes = [known_size(size, self._symbols) for size in value.shape]
        return model.add_source(node.name, TypedFact.of(datum_type(value.dtype), sizes))

    def _tell_sizes(self, model: TypedModel, placeholders: Sequence[Node]) -> None:
        """Inputs without content for symbols that are numbers of the caller, and no size of an input."""
        shapes = [model.outlet_fact(outlet).shape for outlet in model.inputs]
        told = {symbols_of(size) for shape in shapes for size in shape}
        for name, place in self._symbols.items():
            if placeholders[place].users and frozenset([name]) not in told:
                _check_sign(placeholders[place].meta["val"])
                self._fed.append(place)
                model.add_source(model.unique_name(name), TypedFact.of(DatumType.U8, (symbol(name),)))


def _symbols(placeholders: Sequence[Node]) -> dict[str, int]:
    """The symbols that arguments are the values of, and the places of these."""
    found: dict[str, int] = {}
    for place, node in enumerate(placeholders):
        value = node.meta.get("val")
        expression = expression_of(value) if isinstance(value, torch.SymInt) else None
        if expression is not None and expression.is_Symbol:
            found.setdefault(expression.name, place)
    return found


def _array(given: Any) -> np.ndarray[Any, Any]:
    """An argument as an input of a model: a number is as many bytes that nobody looks at."""
    return array_of(given) if isinstance(given, torch.Tensor) else np.empty(given, np.uint8)


def _types(model: TypedModel) -> list[Any]:
    return [model.outlet_fact(outlet).datum_type for outlet in (*model.inputs, *model.outputs)]


def _named(model: TypedModel, known: Known | None, name: str) -> OutletId:
    """An output of the model, which is no input of it, nor another output."""
    if not isinstance(known, OutletId):
        raise Unsupported(f"a result is {known!r}, wanted a tensor")
    if known in model.inputs or known in model.outputs:
        return wire_one(model, name, Identity(), known)
    model.set_label(known, name)
    return known


def _check(module: GraphModule) -> None:
    """Raises Unsupported for a graph that draws random numbers, or has tensors that are not on the CPU."""
    for node in module.graph.nodes:
        value = node.meta.get("val")
        if isinstance(value, torch.Tensor) and (value.device.type != "cpu" or value.layout != torch.strided):
            raise Unsupported(f"{node.name!r} is {value.layout} on {value.device}, wanted a tensor on the CPU")
        if _draws(node):
            raise Unsupported(
                f"{node.target} draws random numbers, which PyTorch alone can repeat", where=place_of(node)
            )


def _draws(node: Node) -> bool:
    """Whether a node always draws random numbers. What does so in training alone is refused by its own row."""
    if torch.Tag.nondeterministic_seeded not in getattr(node.target, "tags", ()):
        return False
    schema: Any = getattr(node.target, "_schema", None)
    return not {"dropout_p", "train", "training"}.intersection(one.name for one in schema.arguments)


def _check_sign(number: torch.SymInt) -> None:
    found = number.node.shape_env.var_to_range[expression_of(number)]
    if found.lower < 0:
        raise Unsupported(f"the number {number} may be negative, wanted a size")
