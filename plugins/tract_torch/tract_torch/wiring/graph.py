"""The nodes of one graph become nodes of a model: the graph of a program, or that of a branch or a loop in it."""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import torch
from torch.fx import GraphModule, Node

from tract_core.dims import Dim, same_dim
from tract_core.errors import MissingOperator, ModelError, TractError, Unsupported, together
from tract_core.frontend.rows import call_row, outlets_of
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins import Registry
from tract_torch.naming import node_name
from tract_torch.tensors import array_of, datum_type
from tract_torch.wiring.call import Call, Known
from tract_torch.wiring.lowering import Lowering
from tract_torch.wiring.rows import ATEN, AtenFn, find, name_of
from tract_torch.wiring.sizes import Names, dim_of, is_size, wire_number


class Graph:
    """A graph on its way into ``model``. ``names``: what symbols are called there, ``lowering``: what was chosen.

    ``known``: what each node is, so far; whoever makes a `Graph` adds what the placeholders are.
    """

    def __init__(self, module: GraphModule, model: TypedModel, names: Names, lowering: Lowering) -> None:
        self.module = module
        self.model = model
        self.names = names
        self.lowering = lowering
        self.known: dict[Node, Known] = {}

    def called(self, operands: Sequence[Known]) -> list[Known | None]:
        """What the graph returns for these operands, one per placeholder. Raises ModelError."""
        placeholders = [node for node in self.module.graph.nodes if node.op == "placeholder"]
        self.known |= dict(zip(placeholders, operands, strict=True))
        return self.wired()

    def wired(self) -> list[Known | None]:
        """What the graph returns, with its nodes wired. Raises ModelError for one that cannot be."""
        table = self.model.registry[ATEN]
        for node in computing(self.module):
            found = self._wired(node, function_of(node, table))
            if found is not None:
                self.known[node] = found
        return [self._returned(value) for value in returned(self.module)]

    def _returned(self, value: Any) -> Known | None:
        if not isinstance(value, Node):
            return cast("Known | None", value)  # a number, or None
        known = self.known.get(value)
        if isinstance(known, OutletId) or isinstance(value.meta["val"], (list, tuple)):
            return known
        return wire_number(value.meta["val"], self.names, self._wiring(value))

    def _wiring(self, node: Node) -> NodeWiring:
        return NodeWiring(self.model, self.model.unique_name(node_name(node, self.lowering.naming)))

    def _wired(self, node: Node, function: AtenFn | None) -> Known | None:
        """What a node is; None for a number that is no size, which is computed where it is used."""
        if node.op == "get_attr":
            held = _attribute(self.module, str(node.target))
            return self.model.add_const(str(node.target), array_of(held)) if isinstance(held, torch.Tensor) else None
        if node.target is operator.getitem:
            source, place = cast("tuple[Node, int]", node.args)
            several = cast("Sequence[Known]", self.known[source])
            if place >= len(several):
                raise Unsupported(f"output {place} is read, and it is not computed here", where=place_of(source))
            return several[place]
        if function is None:
            value = node.meta["val"]
            return dim_of(value, self.names) if is_size(value) else None
        try:
            wire = self._wiring(node)
            call = Call(node, wire, self.known, self.names, self.lowering)
            outlets = outlets_of(self.model, function, call_row(self.model.registry, function, call, wire))
            for outlet, wanted in zip(outlets, tensors_of(node), strict=False):
                if outlet is not None:
                    self._check(outlet, wanted)
        except TractError as error:
            raise error.at(place_of(node)) from error.__cause__
        first = next(iter(outlets), None)
        if first is not None:
            self._name(wire.name, first)
        return outlets if isinstance(node.meta["val"], (list, tuple)) else first

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


def computing(module: GraphModule) -> Iterator[Node]:
    """The nodes of a graph that yield something: what yields nothing checks what PyTorch found out already."""
    for node in module.graph.nodes:
        if node.op == "get_attr" or (node.op == "call_function" and node.meta.get("val") is not None):
            yield node


def returned(module: GraphModule) -> Sequence[Any]:
    """What a graph returns: nodes, numbers and None."""
    (values,) = next(node for node in module.graph.nodes if node.op == "output").args
    return cast("Sequence[Any]", values if isinstance(values, (list, tuple)) else [values])


def function_of(node: Node, table: Any) -> AtenFn | None:
    """The row of a node; None for one that only picks, is a size, or has no row."""
    if node.op == "get_attr" or node.target is operator.getitem:
        return None
    name = name_of(node.target)
    found = find(table, name.replace("aten.", "complex.", 1)) if _has_complex(node) else None
    return found or find(table, name)


def _has_complex(node: Node) -> bool:
    """Whether complex numbers go in, or come out."""
    around = [node, *node.all_input_nodes]
    return any(tensor.dtype.is_complex for one in around for tensor in tensors_of(one))


def check_operators(module: GraphModule, registry: Registry) -> None:
    """Raises MissingOperator, naming every operator without a row, in branches and loops too."""
    missing = list(_missing(module, registry[ATEN]))
    if missing:
        hint = "a plugin can add it: a row in the table 'aten', see docs/torch.md"
        raise together(missing, MissingOperator, "operators are missing", hint=hint)


def _missing(module: GraphModule, table: Any) -> Iterator[TractError]:
    for node in computing(module):
        held = _attribute(module, str(node.target)) if node.op == "get_attr" else None
        picks = node.op == "get_attr" or node.target is operator.getitem or not tensors_of(node)
        if isinstance(held, GraphModule):
            yield from _missing(held, table)
        elif not picks and function_of(node, table) is None:
            yield MissingOperator(f"there is no importer for {node.target}", where=place_of(node))


def _attribute(module: GraphModule, path: str) -> Any:
    held: Any = module
    for name in path.split("."):
        held = getattr(held, name)
    return held


def tensors_of(node: Node) -> list[torch.Tensor]:
    """The tensors that a node yields, as PyTorch sees them."""
    found = node.meta.get("val")
    values = found if isinstance(found, (list, tuple)) else [found]
    return [one for one in values if isinstance(one, torch.Tensor)]


def _differ(found: Sequence[Dim], wanted: Sequence[Dim]) -> bool:
    return any(same_dim(one, other) is False for one, other in zip(found, wanted, strict=True))


def origin_of(node: Node) -> tuple[str, str] | None:
    """The path of the module that a node is from, and its class; None where that is not known or the module itself."""
    stack: Mapping[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    held = [(path, kind) for path, kind in stack.values() if path and "_from_metadata_hook" not in path]
    if not held:
        return None
    path, kind = held[-1]
    return path, kind.rpartition(".")[2] if isinstance(kind, str) else kind.__name__


def source_of(node: Node) -> str | None:
    """The line of source that a node is from, as ``File "network.py", line 7, in forward``, as far as that is known."""
    lines = [line.strip() for line in (node.meta.get("stack_trace") or "").splitlines()]
    files = [line for line in lines if line.startswith("File ")]
    return files[-1] if files else None


def place_of(node: Node) -> str:
    """Where a node is from: its name, the module, and the line of its source, as far as that is known."""
    module, source = origin_of(node), source_of(node)
    named = f" of module {module[0]!r}" if module else ""
    return f"node {node.name!r} ({node.target}){named}{f', {source}' if source else ''}"
