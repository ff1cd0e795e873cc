"""A model becomes a document, node by node, in order of execution."""

from __future__ import annotations

from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from typing import Final

import numpy as np

from tract_core.data import Constant, Container, DatumType, QuantizedType, SymbolicArray, Value
from tract_core.data.blocks import Blocks
from tract_core.errors import TractError, Unsupported, Unwritable, together
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.op import TypedOp
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.version import version
from tract_nnef.archive.tensors import MAX_RANK, is_for_all
from tract_nnef.registry import ANY, CORE, NNEF, NNEF_WRITE, PY, STANDARD, Family, row_key
from tract_nnef.syntax import ast
from tract_nnef.syntax.names import plain_label, plain_name
from tract_nnef.versions import FORMAT, PROPERTIES
from tract_nnef.writing.expressions import (
    MOST_INLINE,
    cast_expression,
    constant_expression,
    express,
    external_type,
    sizes_in_words,
    variable,
)
from tract_nnef.writing.extensions import is_same_shape, own_lines, shape_line, symbol_lines
from tract_nnef.writing.for_others import said_for_others
from tract_nnef.writing.spelling import Spelling

TENSOR: Final = ast.TensorOf(ast.Primitive("scalar"))
"""What fragments say of their parameters and results: nothing about element types."""


@dataclass(slots=True)
class Written:
    """What an archive holds: the document, the values of its variables by label, and how tensors are quantised."""

    document: ast.Document
    tensors: dict[str, Constant | Blocks]
    quantization: list[ast.Quantization] = field(default_factory=list[ast.Quantization])
    submodels: dict[str, TypedModel] = field(default_factory=dict[str, TypedModel])
    """Models that are archives in this one, by their labels."""


@dataclass(slots=True)
class Shared:
    """What a graph and the bodies inside it are written to together.

    ``labels``, ``names``: those of tensors and of fragments that are taken. ``used``: registries.
    """

    tensors: dict[str, Constant | Blocks] = field(default_factory=dict[str, Constant | Blocks])
    quantization: list[ast.Quantization] = field(default_factory=list[ast.Quantization])
    fragments: list[ast.Fragment] = field(default_factory=list[ast.Fragment])
    used: set[str] = field(default_factory=set[str])
    labels: set[str] = field(default_factory=set[str])
    names: set[str] = field(default_factory=set[str])
    submodels: dict[str, TypedModel] = field(default_factory=dict[str, TypedModel])


class Writer:
    """The document of a model, while it is written.

    ``registries``: those whose operators it may use. ``extended``: whether names that are no identifiers may be written
    as ``i"name"``. ``extern_all``: whether every constant becomes a variable, ``held``: the names of those that do
    anyway.
    """

    def __init__(
        self,
        model: TypedModel,
        registries: Collection[str],
        *,
        extended: bool = False,
        extern_all: bool = False,
        held: Collection[str] = (),
    ) -> None:
        self.model = said_for_others(model) if CORE in registries and PY not in registries else model
        self._registries = frozenset(registries)
        self._extended, self._extern_all, self._held = extended, extern_all, held
        self._shared, self._place, self._whole = Shared(), "", False
        self._names: dict[OutletId, str] = {}
        self._taken = set(model.symbols.names)  # an expression means the tensor where both have one name
        self._aliases: dict[OutletId, OutletId] = {}
        self._body: list[ast.Assignment] = []
        self._shapes: list[str] = []

    def write(self) -> Written:
        """The document. Raises Unwritable, naming every node that the registries cannot say."""
        outputs = self._nodes(self.model.inputs)
        inputs = tuple(self._names[outlet] for outlet in self.model.inputs)
        graph = ast.Graph("network", inputs, outputs, tuple(self._body))
        fragments = (*self._shared.fragments, *self._properties())
        document = ast.Document("1.0", tuple(self._extensions(outputs)), fragments, graph)
        return Written(document, self._shared.tensors, self._shared.quantization, self._shared.submodels)

    # --- bodies ---

    def fragment(self, body: TypedModel, wanted: str) -> tuple[ast.Fragment, Sequence[str]]:
        """Write a body as a fragment, whose name begins like ``wanted``.

        Its parameters are the inputs of the body, its results the outputs, in order. The facts of the inputs are for
        the operator to say: `Reader.fragment` wants them. Returned too are extension lines of the body, where it knows
        anything beside its graph; properties are not written: see `body`.
        """
        inner = self._inner(body, wanted)
        parameters = [ast.Parameter(inner._name(outlet), TENSOR) for outlet in body.inputs]
        inner._add_fragment(parameters)
        knows = len(body.conditions) or list(body.symbols) or body.symbols.scenarios
        return self._shared.fragments[-1], [*symbol_lines(body), *own_lines(body, {})] if knows else []

    def body(self, model: TypedModel, wanted: str) -> tuple[str, Sequence[str], Sequence[tuple[str, str]]]:
        """Write all of a body as a fragment, and return what `Reader.body` makes the body of.

        That is the name of the fragment, which has no parameters (its inputs are statements in it), the extension
        lines of the body, and its properties, as pairs of a name and the label of a tensor.
        """
        inner = self._inner(model, wanted)
        inner._whole = True
        outputs = inner._add_fragment((), model.inputs)
        held = [(name, self.hold(f"property.{name}", Constant(model.properties[name]))) for name in model.properties]
        lines = [*symbol_lines(model), *own_lines(model, inner._interface(outputs)), *inner._shapes]
        return inner._place, lines, held

    def submodel(self, wanted: str, model: TypedModel) -> str:
        """Keep a model as an archive in this one. Returns its label, which begins like ``wanted``."""
        label = free_name(plain_name(wanted), self._shared.labels)
        self._shared.submodels[label] = model
        return label

    def _inner(self, body: TypedModel, wanted: str) -> Writer:
        inner = Writer(body, self._registries, extended=self._extended, extern_all=self._extern_all)
        inner._shared, inner._place = self._shared, free_name(plain_name(wanted), self._shared.names)
        return inner

    def _add_fragment(self, parameters: Sequence[ast.Parameter], inputs: Sequence[OutletId] = ()) -> Sequence[str]:
        """The fragment of this body. Returns the names of its results, which no parameter and no other result has.

        ``inputs``: those that are statements in it.
        """
        taken, outputs = {parameter.name for parameter in parameters}, list[str]()
        for name in self._nodes(inputs):
            again = name
            if name in taken:
                again = self.new_name(name)
                self.assign(ast.Identifier(again), ast.Identifier(name))
            taken.add(again)
            outputs.append(again)
        results = tuple(ast.Result(name, TENSOR) for name in outputs)
        self._shared.fragments.append(ast.Fragment(self._place, tuple(parameters), results, tuple(self._body)))
        return outputs

    # --- what spellings ask for ---

    def allows(self, registry: str) -> bool:
        """Whether the document may use a registry."""
        return registry == STANDARD or registry in self._registries

    def use(self, registry: str) -> bool:
        """The document uses a registry, if it may."""
        allowed = self.allows(registry)
        if allowed and registry != STANDARD:
            self._shared.used.add(registry)
        return allowed

    def tensor(self, outlet: OutletId) -> ast.Expression:
        """The name of a tensor, or its value where that is a small constant which nothing else reads."""
        outlet = self._aliases.get(outlet, outlet)
        if outlet not in self._names:
            inline = self._inline(outlet)
            if inline is not None:
                return inline
            self._variable(outlet)
        return ast.Identifier(self._names[outlet])

    def constant(self, wanted: str, value: Constant) -> ast.Expression:
        """A constant that is no node: its value, or the variable of the label ``wanted`` that holds it."""
        small = not self._extern_all and value.array.size <= MOST_INLINE
        written = self._allowed(constant_expression(value)) if small else None
        return _variable(self.hold(wanted, value), value) if written is None else written

    def hold(self, wanted: str, value: Constant | Blocks) -> str:
        """Keep a tensor beside the text, and return its label, which begins like ``wanted``.

        Raises Unwritable for elements that only this project reads, where the archive is for others too.
        """
        if not (self.allows(PY) or isinstance(value, Blocks) or is_for_all(value.array)):
            kind = f"elements of {value.datum_type.short}"
            hint = f"convert the model to f32 or f16, or allow the registry {PY}, for archives that stay here"
            raise Unwritable(f"{wanted!r} has {kind}, which other engines do not read", hint=hint)
        place = f"{self._place}." if self._place else ""
        label = free_name(plain_label(f"{place}{wanted}"), self._shared.labels)
        self._shared.tensors[label] = value
        return label

    def new_name(self, wanted: str) -> str:
        """A name that no other tensor of the document has."""
        return free_name(wanted if self._extended and wanted else plain_name(wanted), self._taken)

    def assign(self, targets: ast.Expression, value: ast.Expression) -> None:
        """Add a statement. Raises Unsupported for a size that the registries cannot say."""
        size = sizes_in_words(value)
        if size is not None and not self.use(PY):
            raise Unwritable(f"the size {size} cannot be written without the registry {PY}", hint=self._more())
        self._body.append(ast.Assignment(targets, value))

    # --- nodes ---

    def _source(self, source: TypedNode) -> None:
        fact = self.model.outlet_fact(OutletId(source.id))
        node = Spelling(self, source)
        shape = list(fact.shape)
        if fact.datum_type is DatumType.F32 and fact.shape.is_concrete:
            value = node.invoke("external", shape=shape)
        elif isinstance(fact.datum_type, Container) or (fact.datum_type is DatumType.TDIM and self.allows(PY)):
            value = self._spelled_by_family(source.op, node)
        else:
            value = node.invoke(
                "tract_core_external", shape=shape, datum_type=external_type(fact.datum_type), registry=CORE
            )
        if value is None:
            raise self._refused(source)
        self._results(source, value)

    def _nodes(self, inputs: Sequence[OutletId]) -> tuple[str, ...]:
        """Statements for ``inputs``, and for all nodes that the outputs need. Returns the names of the outputs."""
        refused: list[Unwritable] = []
        for node in (self.model.nodes[outlet.node] for outlet in inputs):
            with self._noting(node, refused):
                self._source(node)
        for node in self._in_order():
            with self._noting(node, refused):
                self._node(node)
                self._note_shapes(node)
        outputs: list[str] = []
        for outlet in self.model.outputs:
            with self._noting(self.model.nodes[outlet.node], refused):
                outputs.append(self._output(outlet))
        if len(refused) > 1:
            raise together(refused, Unwritable, f"{len(refused)} nodes cannot be written", hint=self._more())
        if refused:
            raise refused[0]
        return tuple(outputs)

    @contextmanager
    def _noting(self, node: TypedNode, refused: list[Unwritable]) -> Generator[None]:
        """Inside, what cannot be said of a node is noted, and the node has a name for those that read it."""
        try:
            yield
        except Unsupported as error:
            where = error.where or f"node {node.name!r}"
            refused.append(Unwritable(error.problem, where=where, hint=error.hint))
            self._names.update((outlet, node.name) for outlet in node.outlets())

    def _note_shapes(self, node: TypedNode) -> None:
        """The shapes that whoever reads this would find in other words."""
        if not self.model.symbols.names or not node.inputs:
            return
        try:
            found = self.model.facts_for(node.op, self.model.input_facts(node))
        except TractError:
            return  # a model that contradicts itself
        for outlet, fact in zip(node.outlets(), found, strict=True):
            shape = self.model.outlet_fact(outlet).shape
            if outlet in self._names and fact.shape != shape and is_same_shape(self.model, fact.shape, shape):
                self._shapes.append(shape_line(self._names[outlet], shape))

    def _in_order(self) -> Iterator[TypedNode]:
        """The nodes that are needed, each after what it reads, in the order in which they were wired where that is one.

        What is known of symbols when a node is wired is part of its facts.
        """
        needed = self.model.eval_order()
        waiting = {node_id: len({outlet.node for outlet in self.model.nodes[node_id].inputs}) for node_id in needed}
        readers: dict[int, list[int]] = {node_id: [] for node_id in needed}
        for node_id in needed:
            for source in {outlet.node for outlet in self.model.nodes[node_id].inputs}:
                readers[source].append(node_id)
        ready = [node_id for node_id, count in waiting.items() if not count]
        heapify(ready)
        while ready:
            node_id = heappop(ready)
            yield self.model.nodes[node_id]
            for reader in readers[node_id]:
                waiting[reader] -= 1
                if not waiting[reader]:
                    heappush(ready, reader)

    def _node(self, node: TypedNode) -> None:
        if isinstance(node.op, (TypedSource, Const)):
            return
        if isinstance(node.op, Identity) and not self._is_needed(OutletId(node.id)):
            source = node.inputs[0]
            self._aliases[OutletId(node.id)] = self._aliases.get(source, source)
            return
        if isinstance(node.op, Identity) and not self._whole:
            self._results(node, self.tensor(node.inputs[0]))
            return
        spell = self.model.registry[NNEF_WRITE].find(type(node.op))
        spelling = Spelling(self, node)
        value = None if spell is None else spell(node.op, spelling)
        if value is None:
            value = self._spelled_by_family(node.op, spelling)
        self._results(node, value)

    def _is_needed(self, outlet: OutletId) -> bool:
        """Whether a tensor that is another one too has a name of its own: where it is an output."""
        return outlet in self.model.outputs and (self._whole or not self._place)

    def _spelled_by_family(self, op: TypedOp, node: Spelling) -> ast.Expression:
        """By a registry that may be used and that spells any operator. Raises Unsupported where there is none."""
        for registry in sorted(self._registries):
            row = self.model.registry[NNEF].find(row_key(registry, ANY))
            found = row.spell(op, node) if isinstance(row, Family) else None
            if found is not None:
                return found
        raise self._refused(node.node)

    def _refused(self, node: TypedNode) -> Unwritable:
        return Unwritable(
            f"{node.op.name} cannot be written with {', '.join(sorted(self._registries)) or 'the standard alone'}",
            where=f"node {node.name!r}",
            hint=self._more(),
        )

    def _more(self) -> str:
        """What to do about what cannot be written."""
        left_out = [name for name in (CORE, PY) if name not in self._registries]
        return f"allow {', '.join([*left_out, 'another registry'])}: docs/nnef.md has the methods and the flags"

    def _results(self, node: TypedNode, value: ast.Expression) -> None:
        targets = [ast.Identifier(self._name(outlet)) for outlet in node.outlets()]
        self.assign(targets[0] if len(targets) == 1 else ast.Tuple(tuple(targets)), value)

    def _name(self, outlet: OutletId) -> str:
        self._names[outlet] = name = self.new_name(self.model.outlet_name(outlet))
        kind = self.model.outlet_fact(outlet).datum_type
        if isinstance(kind, QuantizedType):
            place = f"{self._place}." if self._place else ""
            self._shared.quantization.append(ast.Quantization(f"{place}{name}", _quantization(kind)))
        return name

    def _output(self, outlet: OutletId) -> str:
        value = self.tensor(outlet)
        source = self._aliases.get(outlet, outlet)
        if source in self._names:
            return self._names[source]
        self.assign(ast.Identifier(self._name(outlet)), value)
        return self._names[outlet]

    # --- constants ---

    def _inline(self, outlet: OutletId) -> ast.Expression | None:
        """A constant as it is written where it is read; ``None`` for one that becomes a statement."""
        value = self._value(outlet)
        if isinstance(value, SymbolicArray):
            plain = value.symbols() and value.array.size and self._readers(outlet) <= 1
            return self._sizes(outlet, value) if plain or not self.allows(PY) else None
        if self._extern_all or value.array.size > MOST_INLINE or self._readers(outlet) > 1:
            return None
        if self.model.outlet_name(outlet) in self._held:
            return None
        return self._allowed(constant_expression(value))

    def _sizes(self, outlet: OutletId, value: SymbolicArray) -> ast.Expression | None:
        """Sizes that are elements: as integers they are cast, for on their own they have a type of their own."""
        kind = self.model.outlet_fact(outlet).datum_type
        written = constant_expression(value, alike=not self.allows(PY))
        if kind is DatumType.TDIM or written is None:
            return written
        return self._allowed(cast_expression(written, kind))

    def _allowed(self, value: ast.Expression | None) -> ast.Expression | None:
        """What may be written: without the registry that casts, nothing is cast."""
        return None if isinstance(value, ast.Invocation) and not self.use(CORE) else value

    def _readers(self, outlet: OutletId) -> int:
        return len(self.model.outlet(outlet).successors) + self.model.is_interface(outlet)

    def _value(self, outlet: OutletId) -> Value:
        op = self.model.nodes[outlet.node].op
        assert isinstance(op, Const), op  # everything else has a name before it is read
        return op.value

    def _variable(self, outlet: OutletId) -> None:
        """A statement for a constant: a variable where that can say it."""
        value = self._value(outlet)
        if isinstance(value, SymbolicArray) or value.array.ndim > MAX_RANK:
            node = self.model.nodes[outlet.node]
            self._results(node, self._spelled_by_family(node.op, Spelling(self, node)))
            return
        name = self._name(outlet)
        self.assign(ast.Identifier(name), _variable(self.hold(self.model.outlet_name(outlet), value), value))

    # --- around the graph ---

    def _properties(self) -> Sequence[ast.Fragment]:
        """The fragment that holds the model's properties, and who wrote it in which format."""
        if not self.allows(CORE):
            return ()
        held = {name: Constant(self.model.properties[name]) for name in sorted(self.model.properties)}
        for name, text in (("tract_nnef_ser_version", version()), ("tract_nnef_format_version", FORMAT)):
            held[name] = Constant(np.array(text, object))
        pairs: list[ast.Expression] = []
        for name, value in held.items():
            written = self._allowed(constant_expression(value)) or self.constant(f"property.{name}", value)
            pairs.append(ast.Tuple((ast.Literal(name), written)))
        body = ast.Assignment(ast.Identifier("properties"), ast.Array(tuple(pairs)))
        kind = ast.ArrayOf(ast.TupleOf((ast.Primitive("string"), ast.TensorOf(ast.Primitive("scalar")))))
        return (ast.Fragment(PROPERTIES, (), (ast.Result("properties", kind),), (body,)),)

    def _extensions(self, outputs: Sequence[str]) -> Iterator[str]:
        yield from (f"tract_registry {name}" for name in sorted(self._shared.used))
        yield from symbol_lines(self.model, ours=self.allows(PY))
        if self.allows(PY):
            yield from own_lines(self.model, self._interface(outputs))
            yield from self._shapes

    def _interface(self, outputs: Sequence[str]) -> Mapping[str, str]:
        """What the inputs and outputs are called, by what is written for them."""
        written = [*(self._names[outlet] for outlet in self.model.inputs), *outputs]
        outlets = [*self.model.inputs, *self.model.outputs]
        return {name: self.model.outlet_name(outlet) for name, outlet in zip(written, outlets, strict=True)}


def free_name(wanted: str, taken: set[str]) -> str:
    """``wanted``, with a number behind it where that is taken. It is taken from now on."""
    found, count = wanted, 0
    while found in taken:
        count += 1
        found = f"{wanted}_{count}"
    taken.add(found)
    return found


def _variable(label: str, value: Constant) -> ast.Invocation:
    return variable(label, value.array.shape)


def _quantization(kind: QuantizedType) -> ast.Invocation:
    values = {
        "zero_point": kind.zero_point,
        "scale": kind.scale,
        "bits": 8 * kind.storage.itemsize,
        "signed": kind.storage.is_signed(),
        "symmetric": kind.zero_point == 0,
    }
    arguments = tuple(ast.Argument(name, express(value)) for name, value in values.items())
    return ast.Invocation("zero_point_linear_quantize", arguments)
