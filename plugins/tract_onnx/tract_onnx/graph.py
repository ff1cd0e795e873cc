"""From a graph as the file holds it to the nodes of an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, TypeVar

import onnx

from tract_core.analysis.inference import InferenceModel, InferenceOp, Source, Unknown
from tract_core.errors import CorruptModel, LimitExceeded, TractError
from tract_core.frontend.order import ordered
from tract_core.limits import limits_now
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_onnx.facts import FactReader, announced_fact
from tract_onnx.file import OnnxFile
from tract_onnx.node import OnnxNode
from tract_onnx.op import OnnxOp
from tract_onnx.registry import DEFAULT_DOMAIN

T = TypeVar("T", onnx.TensorProto, onnx.SparseTensorProto)

MAX_NAME: Final = 4096
"""Characters in the name of a tensor or an operator."""


class GraphReader:
    """Puts one graph into a model. ``tensors``: where each tensor of the graph is in the model, by name."""

    def __init__(self, file: OnnxFile, graph: onnx.GraphProto, model: InferenceModel) -> None:
        self._file = file
        self._graph = graph
        self._model = model
        self._read = names_read(graph)
        self.tensors: dict[str, OutletId] = {}

    def add_all(self, inputs: Mapping[str, InferenceFact] | None = None) -> None:
        """Add constants, inputs, nodes and outputs.

        ``inputs``: facts for the inputs, when they are known better than the file knows them. Raises ModelError.
        """
        facts = FactReader(self._model.symbols, self._graph.input, own_symbols=self._file.own_symbols)
        self._add_constants()
        known = frozenset(self.tensors)
        for what, infos in (("inputs", self._graph.input), ("outputs", self._graph.output)):
            _check_count(sum(info.name not in known for info in infos), what)
        for info in self._graph.input:
            if info.name not in known:
                given = (inputs or {}).get(info.name)
                fact = self._fact(facts.input_fact, info) if given is None else given
                self.tensors[self._fresh(info.name)] = self._model.add_source(info.name, fact)
        self.add_nodes()
        self._note_facts(facts)
        self._set_outputs(facts)

    def add_outer(self, name: str, fact: InferenceFact) -> None:
        """Add an input that stands for a tensor of the graph around this one."""
        self.tensors[name] = self._model.add_source(name, fact)

    def _add_constants(self) -> None:
        for tensor in self._graph.initializer:
            self._add_constant(tensor.name, tensor, self._file.tensors.array)
        for sparse in self._graph.sparse_initializer:
            self._add_constant(sparse.values.name, sparse, self._file.tensors.sparse)

    def _add_constant(self, name: str, tensor: T, read: Callable[[T], Array]) -> None:
        """Add a constant; when it cannot be read, and that is only noted, something of its type and shape."""
        fresh = self._fresh(name)
        try:
            self.tensors[fresh] = self._model.add_const(name, read(tensor))
        except TractError as error:
            self._file.refuse(error)
            self.tensors[fresh] = OutletId(self._model.add_node(name, Source(), [announced_fact(tensor)]).id)

    def _fact(self, read: Callable[[onnx.ValueInfoProto], InferenceFact], info: onnx.ValueInfoProto) -> InferenceFact:
        """What the file says about a tensor; nothing, when that cannot be read and is only noted."""
        try:
            return read(info)
        except TractError as error:
            self._file.refuse(error)
            return InferenceFact()

    def _fresh(self, name: str) -> str:
        if not name:
            raise CorruptModel("an input or a constant of the graph has no name", where="graph")
        _check_name(name)
        if name in self.tensors:
            raise CorruptModel(f"two tensors are named {name[:200]!r}", where="graph")
        return name

    def add_nodes(self) -> None:
        """Add the nodes, each after what it reads; the file may have them in another order."""
        pending = list(self._graph.node)
        producers = self._producers(pending)
        needs = [_needs(node, producers, self.tensors) for node in pending]
        for index in ordered(needs, lambda index: _where(pending[index])):
            self._add_node(pending[index])

    def _producers(self, nodes: Iterable[onnx.NodeProto]) -> dict[str, int]:
        producers: dict[str, int] = {}
        for index, node in enumerate(nodes):
            for name in filter(None, node.output):
                _check_name(name)
                if name in producers or name in self.tensors:
                    raise CorruptModel(f"two tensors are named {name[:200]!r}", where=_where(node))
                producers[name] = index
        return producers

    def _add_node(self, proto: onnx.NodeProto) -> None:
        node = self._view(proto)
        if not any(node.output_names):
            return
        given = [name for name in proto.input if name]
        outer = tuple(captured(proto))
        inputs = [self.tensors[name] for name in (*given, *outer)]
        numbers = iter(range(len(given)))
        slots = tuple(next(numbers) if name else None for name in proto.input)
        called = self._file.functions.find(proto)
        op = self._op(node, slots, outer) if called is None else OnnxOp(node, called, slots, outer)
        name = next(filter(None, node.output_names))
        added = self._model.add_node(name, op, [InferenceFact()] * len(node.output_names), inputs)
        for outlet, output in zip(added.outlets(), node.output_names, strict=True):
            if output:
                self.tensors[output] = outlet
                if output != added.name:
                    self._model.set_label(outlet, output)

    def _view(self, proto: onnx.NodeProto) -> OnnxNode:
        _check_name(proto.op_type)
        domain = proto.domain or DEFAULT_DOMAIN
        attributes = {attribute.name: attribute for attribute in proto.attribute}
        if len(attributes) < len(proto.attribute):
            raise CorruptModel("an attribute is given twice", where=_where(proto))
        outputs = [name if not slot or name in self._read else "" for slot, name in enumerate(proto.output)]
        while outputs and not outputs[-1]:
            outputs.pop()
        return OnnxNode(
            op_type=proto.op_type,
            domain=domain,
            version=self._file.versions.get(domain, 0),
            name=proto.name,
            input_names=tuple(proto.input),
            output_names=tuple(outputs),
            output_count=len(proto.output),
            attributes=attributes,
            file=self._file,
        )

    def _op(self, node: OnnxNode, slots: tuple[int | None, ...], outer: tuple[str, ...]) -> InferenceOp:
        if node.version == 0:
            reason = f"the file uses domain {node.domain[:200]!r} and does not say which version of it"
            return Unknown(node.op_type, reason, "export the model again", node.name)
        function = self._file.ops.find(node.domain, node.op_type, node.version)
        if function is not None:
            return OnnxOp(node, function, slots, outer)
        known = self._file.ops.known(node.op_type)
        reason = f"operator {node.op_type[:200]!r} of {node.domain[:200]}, version {node.version}, is not known"
        if known:
            reason += f"; known is {', '.join(known)}"
        return Unknown(node.op_type, reason, self._file.ops.advice(node.domain, node.op_type), node.name)

    def _note_facts(self, facts: FactReader) -> None:
        for info in () if self._file.ignore_value_info else self._graph.value_info:
            outlet = self.tensors.get(info.name)
            if outlet is not None and self._is_computed(outlet):
                self._model.add_claim(outlet, self._fact(facts.inner_fact, info))

    def _set_outputs(self, facts: FactReader) -> None:
        if not self._graph.output:
            raise CorruptModel("the graph has no outputs", where="graph")
        outlets: list[OutletId] = []
        for info in self._graph.output:
            outlet = self.tensors.get(info.name)
            if outlet is None:
                raise CorruptModel(f"nothing computes the output {info.name[:200]!r}", where="graph")
            fact = self._fact(facts.inner_fact, info)
            fact = InferenceFact(
                None if self._file.ignore_output_types else fact.datum_type,
                None if self._file.ignore_output_shapes else fact.shape,
            )
            if self._is_computed(outlet):
                self._model.add_claim(outlet, fact)
            outlets.append(outlet)
        self._model.set_outputs(outlets)

    def _is_computed(self, outlet: OutletId) -> bool:
        return isinstance(self._model.nodes[outlet.node].op, (OnnxOp, Unknown))


def _check_count(count: int, what: str) -> None:
    allowed = limits_now().max_outputs
    if count > allowed:
        raise LimitExceeded(
            f"the graph has {count} {what}, {allowed} are allowed",
            where="graph",
            hint="a model that needs so many can be loaded with LoadLimits(max_outputs=...)",
        )


def _check_name(name: str) -> None:
    if len(name) > MAX_NAME:
        raise LimitExceeded(f"a name has {len(name)} characters, {MAX_NAME} are allowed", where=f"{name[:200]!r}...")


def captured(node: onnx.NodeProto, depth: int = 0) -> list[str]:
    """The names that the graphs inside a node take from around them. Raises LimitExceeded when they nest too deeply."""
    limit = limits_now().max_depth
    if depth > limit:
        raise LimitExceeded(f"graphs are nested more than {limit} deep", where=_where(node))
    found: dict[str, None] = {}
    for attribute in node.attribute:
        for graph in graphs_in(attribute):
            defined = {info.name for info in graph.input} | {tensor.name for tensor in graph.initializer}
            defined |= {sparse.values.name for sparse in graph.sparse_initializer}
            defined |= {name for inner in graph.node for name in inner.output}
            read = [name for inner in graph.node for name in (*inner.input, *captured(inner, depth + 1))]
            read += [info.name for info in graph.output]
            found.update(dict.fromkeys(name for name in read if name and name not in defined))
    return list(found)


def graphs_in(attribute: onnx.AttributeProto) -> Iterator[onnx.GraphProto]:
    """The graphs that an attribute holds."""
    if attribute.HasField("g"):
        yield attribute.g
    yield from attribute.graphs


def names_read(graph: onnx.GraphProto) -> frozenset[str]:
    """The names of all tensors that a node of the graph reads, or that are outputs of it."""
    found = {name for node in graph.node for name in node.input} | {info.name for info in graph.output}
    for node in graph.node:
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            found.update(captured(node))
    return frozenset(found)


def _needs(node: onnx.NodeProto, producers: Mapping[str, int], known: Mapping[str, OutletId]) -> list[int]:
    names = [*filter(None, node.input)]
    if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
        names += captured(node)
    unknown = [name for name in names if name not in known and name not in producers]
    if unknown:
        raise CorruptModel(f"it reads {unknown[0][:200]!r}, which nothing computes", where=_where(node))
    return sorted({producers[name] for name in names if name in producers}, reverse=True)


def _where(node: onnx.NodeProto) -> str:
    name = node.name or next(iter(node.output), "")
    return f"node {name[:200]!r} ({node.op_type[:200]})"
