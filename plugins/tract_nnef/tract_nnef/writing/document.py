"""A model becomes a document, node by node, in order of execution."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType, QuantizedType, Value
from tract_core.errors import Unsupported
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.identity import Identity
from tract_core.model.source import TypedSource
from tract_core.model.substitute import symbols_in
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.version import version
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD
from tract_nnef.syntax import ast
from tract_nnef.syntax.names import plain_name
from tract_nnef.versions import FORMAT, PROPERTIES
from tract_nnef.writing.expressions import constant_expression, express, external_type
from tract_nnef.writing.spelling import Spelling

MOST_INLINE: Final = 8
"""Elements of a constant that is written where it is read."""


@dataclass(slots=True)
class Written:
    """What an archive holds: the document, the values of its variables by label, and how tensors are quantised."""

    document: ast.Document
    tensors: dict[str, Constant]
    quantization: list[ast.Quantization] = field(default_factory=list[ast.Quantization])


class Writer:
    """The document of a model, while it is written.

    ``registries``: those whose operators it may use. ``extended``: whether names that are no identifiers may be written
    as ``i"name"``. ``extern_all``: whether every constant becomes a variable.
    """

    def __init__(
        self, model: TypedModel, registries: Collection[str], *, extended: bool = False, extern_all: bool = False
    ) -> None:
        self.model = model
        self._registries = frozenset(registries)
        self._extended, self._extern_all = extended, extern_all
        self._used: set[str] = set()
        self._names: dict[OutletId, str] = {}
        self._taken: set[str] = set()
        self._aliases: dict[OutletId, OutletId] = {}
        self._body: list[ast.Assignment] = []
        self._tensors: dict[str, Constant] = {}
        self._quantization: list[ast.Quantization] = []
        self.fragments: list[ast.Fragment] = []

    def write(self) -> Written:
        """The document. Raises Unsupported, naming the node, for what the registries cannot say."""
        for outlet in self.model.inputs:
            self._source(outlet)
        for node_id in self.model.eval_order():
            self._node(self.model.nodes[node_id])
        inputs = tuple(self._names[outlet] for outlet in self.model.inputs)
        outputs = tuple(self._output(outlet) for outlet in self.model.outputs)
        graph = ast.Graph("network", inputs, outputs, tuple(self._body))
        fragments = (*self.fragments, *self._properties())
        document = ast.Document("1.0", tuple(self._extensions()), fragments, graph)
        return Written(document, self._tensors, self._quantization)

    # --- what spellings ask for ---

    def allows(self, registry: str) -> bool:
        """Whether the document may use a registry."""
        return registry == STANDARD or registry in self._registries

    def use(self, registry: str) -> bool:
        """The document uses a registry, if it may."""
        allowed = self.allows(registry)
        if allowed and registry != STANDARD:
            self._used.add(registry)
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
        if written is not None:
            return written
        label = self.new_name(wanted)
        self._tensors[label] = value
        return _variable(label, value)

    def new_name(self, wanted: str) -> str:
        """A name that no other tensor of the document has."""
        name = wanted if self._extended else plain_name(wanted)
        found, count = name, 0
        while found in self._taken:
            count += 1
            found = f"{name}_{count}"
        self._taken.add(found)
        return found

    def assign(self, targets: ast.Expression, value: ast.Expression) -> None:
        """Add a statement."""
        self._body.append(ast.Assignment(targets, value))

    # --- nodes ---

    def _source(self, outlet: OutletId) -> None:
        fact = self.model.outlet_fact(outlet)
        node = Spelling(self, self.model.nodes[outlet.node])
        shape = list(fact.shape)
        if fact.datum_type is DatumType.F32 and fact.shape.is_concrete:
            value = node.invoke("external", shape=shape)
        else:
            value = node.invoke(
                "tract_core_external", shape=shape, datum_type=external_type(fact.datum_type), registry=CORE
            )
        if value is None:
            raise self._refused(node.node)
        self._results(node.node, value)

    def _node(self, node: TypedNode) -> None:
        if isinstance(node.op, TypedSource | Const):
            return
        if isinstance(node.op, Identity):
            source = node.inputs[0]
            self._aliases[OutletId(node.id)] = self._aliases.get(source, source)
            return
        spell = self.model.registry[NNEF_WRITE].find(type(node.op))
        value = None if spell is None else spell(node.op, Spelling(self, node))
        if value is None:
            raise self._refused(node)
        self._results(node, value)

    def _refused(self, node: TypedNode) -> Unsupported:
        return Unsupported(
            f"{node.op.name} cannot be written with {', '.join(sorted(self._registries)) or 'the standard alone'}",
            where=f"node {node.name!r}",
            hint="allow more registries, as with_tract_core() does",
        )

    def _results(self, node: TypedNode, value: ast.Expression) -> None:
        targets = [ast.Identifier(self._name(outlet)) for outlet in node.outlets()]
        self.assign(targets[0] if len(targets) == 1 else ast.Tuple(tuple(targets)), value)

    def _name(self, outlet: OutletId) -> str:
        self._names[outlet] = name = self.new_name(self.model.outlet_name(outlet))
        kind = self.model.outlet_fact(outlet).datum_type
        if isinstance(kind, QuantizedType):
            self._quantization.append(ast.Quantization(name, _quantization(kind)))
        return name

    def _output(self, outlet: OutletId) -> str:
        found = self._aliases.get(outlet, outlet)
        if found in self._names:
            return self._names[found]
        value = self.tensor(found)
        if isinstance(value, ast.Identifier):
            return value.name
        self.assign(ast.Identifier(self._name(found)), value)
        return self._names[found]

    # --- constants ---

    def _inline(self, outlet: OutletId) -> ast.Expression | None:
        """A constant as it is written where it is read; ``None`` for one that becomes a variable."""
        value = self._value(outlet)
        if isinstance(value, Constant) and (
            self._extern_all or value.array.size > MOST_INLINE or self._readers(outlet) > 1
        ):
            return None
        return self._allowed(constant_expression(value))

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
        value = self._value(outlet)
        assert isinstance(value, Constant)  # sizes are written where they are read
        name = self._name(outlet)
        self._tensors[name] = value
        self.assign(ast.Identifier(name), _variable(name, value))

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
            pairs.append(ast.Tuple((ast.Literal(name), self.constant(f"property.{name}", value))))
        body = ast.Assignment(ast.Identifier("properties"), ast.Array(tuple(pairs)))
        kind = ast.ArrayOf(ast.TupleOf((ast.Primitive("string"), ast.TensorOf(ast.Primitive("scalar")))))
        return (ast.Fragment(PROPERTIES, (), (ast.Result("properties", kind),), (body,)),)

    def _extensions(self) -> Sequence[str]:
        lines = [f"tract_assert {one}" for one in self.model.symbols]
        lines += [f"tract_registry {name}" for name in sorted(self._used)]
        return [*sorted(lines), *(f"tract_symbol {name}" for name in sorted(self._symbols()))]

    def _symbols(self) -> frozenset[str]:
        """Those of the model, and those that only operators speak of, as what they announce."""
        return symbols_in(self.model).union(self.model.symbols.names)


def _variable(label: str, value: Constant) -> ast.Invocation:
    arguments = ast.Argument("label", ast.Literal(label)), ast.Argument("shape", express(list(value.array.shape)))
    return ast.Invocation("variable", arguments, ast.Primitive("scalar"))


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
