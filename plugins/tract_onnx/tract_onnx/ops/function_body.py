"""Operators that the standard defines as functions of other operators: the definition is wired in their place.

The definitions come with the ``onnx`` package. Each says which version of the operator set it is written in, which need
not be the one that the file uses. An operator with a row of its own elsewhere is not listed here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

import onnx

from tract_core.dims import Dim, exact_div
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.model.conditions import may_equal, may_stretch
from tract_core.model.fact import ShapeFact, TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.inline import inline_body
from tract_core.plugins.tables import Rows
from tract_onnx.body import read_body
from tract_onnx.node import OnnxNode
from tract_onnx.registry import DEFAULT_DOMAIN, OnnxFn, onnx_op
from tract_onnx.tensors import ELEMENT_TYPES
from tract_onnx.wiring import Wiring

ROWS = Rows()

_CODES: Final = {kind: code for code, kind in ELEMENT_TYPES.items()}


_SIZES: Final[Mapping[str, Mapping[int, Sequence[str]]]] = {
    "Attention": {
        0: ("bqle", "blx"),
        1: ("bkse", "bsy"),
        2: ("bksf", "bsz"),
        3: ("BQL_", "QL_", "L_"),
        4: ("bkpe",),
        5: ("bkpf",),
        6: ("b",),
    },
    "RotaryEmbedding": {0: ("bhsd", "bs_"), 1: ("bsr", "mr"), 2: ("bsr", "mr"), 3: ("bs",)},
}
"""By the number of an input, a letter for each of its axes, in each rank that it may have.

Equal letters are equal sizes; a size with a capital letter may also be 1. The definitions alone would let other axes
stretch too.
"""


@onnx_op(ROWS, "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss", since=12)
@onnx_op(ROWS, "BlackmanWindow", "HammingWindow", "HannWindow", since=17)
@onnx_op(ROWS, "Attention", "RotaryEmbedding", since=23)
@onnx_op(ROWS, "CausalConvWithState", "LinearAttention", since=27)
@onnx_op(ROWS, "SwiGLU", since=28)
@onnx_op(ROWS, "FlexAttention", domain="ai.onnx.preview")
def function_body(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | None]:
    """The nodes of the definition, with the attributes of the node put in. Raises Unsupported where there is none."""
    _check_sizes(node, wire)
    node = _with_own_names(node, wire.outer)
    facts = [None if outlet is None else wire.fact(outlet) for outlet in wire.slots]
    body = definition(node, facts)
    return inline(node, wire, body, _attributes(node, body))


def _check_sizes(node: OnnxNode, wire: Wiring) -> None:
    """Raise FactError unless axes that mean the same have one size."""
    known: dict[str, Dim] = {}
    for slot, layouts in _SIZES.get(node.op_type, {}).items():
        x = wire.optional_input(slot)
        shape = () if x is None else wire.shape(x)
        letters = next((text for text in layouts if len(text) == len(shape)), "_" * len(shape))
        for letter, size in zip(letters, shape, strict=True):
            wanted = known.setdefault(letter.lower(), size) if letter != "_" else size
            if not (may_stretch(size, wanted) if letter.isupper() else may_equal(size, wanted)):
                raise FactError(f"input {slot} has the shape [{ShapeFact(shape)}], where {size} should be {wanted}")
        known.update(_heads(node, known))


def _heads(node: OnnxNode, known: Mapping[str, Dim]) -> dict[str, Dim]:
    """The sizes of the heads of an Attention whose inputs have them all on one axis."""
    found: dict[str, Dim] = {}
    for whole, heads, each in (("x", "q", "e"), ("y", "k", "e"), ("z", "k", "f")):
        if whole in known:
            count = node.integer("q_num_heads" if heads == "q" else "kv_num_heads")
            size = {**known, **found}.get(each, exact_div(known[whole], count) or known[whole] // max(count, 1))
            if not may_equal(size * count, known[whole]):
                raise FactError(f"{known[whole]} numbers are given for {count} heads of {size}")
            found |= {heads: count, each: size}
    return found


def call_function(body: onnx.FunctionProto) -> OnnxFn:
    """What wires a call of a function that the file defines."""

    def call(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | None]:
        _check_call(node, wire, body)
        node = _with_own_names(node, wire.outer)
        defaults = {given.name: given for given in body.attribute_proto}
        return inline(node, wire, body, {**defaults, **node.attributes})

    return call


def _check_call(node: OnnxNode, wire: Wiring, body: onnx.FunctionProto) -> None:
    if len(wire.slots) > len(body.input):
        raise CorruptModel(f"{len(wire.slots)} inputs are given, the function takes {len(body.input)}")
    if len(node.output_names) > len(body.output):
        raise CorruptModel(f"{len(node.output_names)} outputs are read, the function has {len(body.output)}")
    computed = {*body.input, *(name for inner in body.node for name in inner.output)}
    for name in body.output:
        if name not in computed:
            raise CorruptModel(f"nothing computes the output {name[:200]!r} of the function")


def inline(
    node: OnnxNode, wire: Wiring, body: onnx.FunctionProto, attributes: Mapping[str, onnx.AttributeProto]
) -> Sequence[OutletId | None]:
    """The nodes of a function in the place of ``node``; ``attributes``: what those of the function stand for."""
    renamed = _outer_names(wire.outer)
    captured = {renamed[name]: outlet for name, outlet in wire.outer.items()}
    formal = dict(zip(body.input, wire.slots, strict=False))
    inner = _Renaming(f"{wire.name}.", formal, attributes)
    names = [name for slot, name in enumerate(body.output) if node.wants_output(slot)]
    graph = onnx.GraphProto(node=inner.nodes(body.node))
    graph.output.extend(onnx.ValueInfoProto(name=inner.names[name]) for name in names)
    outer = {inner.names[name]: outlet for name, outlet in formal.items() if outlet is not None}
    scope = Wiring(wire.model, wire.name, [], {**captured, **outer})
    versions = {opset.domain or DEFAULT_DOMAIN: opset.version for opset in body.opset_import}
    file = replace(node.file, versions={**node.file.versions, **versions})
    model = read_body(replace(node, file=file), scope, graph)
    outlets = dict(zip(names, inline_body(wire.model, model.model, model.captured), strict=True))
    return [outlets.get(name) for name in body.output]


def definition(node: OnnxNode, facts: Sequence[TypedFact | None]) -> onnx.FunctionProto:
    """The function that defines an operator for such inputs. Raises Unsupported when the standard has none."""
    domain = "" if node.domain == DEFAULT_DOMAIN else node.domain
    schema: Any = onnx.defs.get_schema(  # the stubs of the package lack what functions need
        node.op_type, node.version, domain
    )
    wanted = node.file.versions.get(DEFAULT_DOMAIN, 0)
    content: bytes = b""
    if schema.has_context_dependent_function:
        version = _newest(schema.context_dependent_function_opset_versions, wanted)
        types = [_type(fact).SerializeToString() for fact in facts]
        proto = _proto(node, domain).SerializeToString()
        content = schema.get_context_dependent_function_with_opset_version(version, proto, types)
    elif schema.has_function:
        content = schema.get_function_with_opset_version(_newest(schema.function_opset_versions, wanted))
    if not content:
        found = ", ".join("none" if fact is None else str(fact) for fact in facts)
        raise Unsupported(
            f"the standard gives no definition of {node.op_type} for inputs of type {found}",
            hint="where sizes are symbols, it may give one for numbers: try set_symbols",
        )
    body = onnx.FunctionProto()
    body.ParseFromString(content)
    return body


def _newest(versions: Sequence[int], wanted: int) -> int:
    """The version of the definition for files of version ``wanted``: it says itself what it is written in."""
    return max((version for version in versions if version <= wanted), default=min(versions))


def _proto(node: OnnxNode, domain: str) -> onnx.NodeProto:
    return onnx.NodeProto(
        op_type=node.op_type,
        domain=domain,
        name=node.name,
        input=node.input_names,
        output=node.output_names,
        attribute=node.attributes.values(),
    )


def _type(fact: TypedFact | None) -> onnx.TypeProto:
    if fact is None:
        return onnx.TypeProto()
    shape = [dim if isinstance(dim, int) else str(dim) for dim in fact.shape]
    code = _CODES.get(fact.datum_type.storage)
    if code is None:
        raise Unsupported(f"operators that are defined by others take tensors here, found {fact}")
    return onnx.helper.make_tensor_type_proto(code, shape)


def _attributes(node: OnnxNode, body: onnx.FunctionProto) -> dict[str, onnx.AttributeProto]:
    """What the names of attributes in the definition stand for: the defaults, and what the node gives."""
    domain = "" if node.domain == DEFAULT_DOMAIN else node.domain
    schema = onnx.defs.get_schema(node.op_type, node.version, domain)
    found = {name: given.default_value for name, given in schema.attributes.items() if given.default_value.name}
    found.update({given.name: given for given in body.attribute_proto})
    return {**found, **node.attributes}


def _with_own_names(node: OnnxNode, outer: Iterable[str]) -> OnnxNode:
    """``node`` with the tensors of the graphs in it, and those that they capture, under names that no function uses."""
    return replace(
        node, attributes={name: _attribute_with_own_names(given, outer) for name, given in node.attributes.items()}
    )


def _outer_names(outer: Iterable[str]) -> dict[str, str]:
    """Names for captured tensors, made of letters and digits: the ``onnx`` package writes definitions as text."""
    return {name: f"outer_tensor_{count}" for count, name in enumerate(outer)}


def _attribute_with_own_names(attribute: onnx.AttributeProto, outer: Iterable[str]) -> onnx.AttributeProto:
    """An attribute; the tensors of a graph in it, and those that it captures, under names that no definition uses."""
    if not attribute.HasField("g"):
        return attribute
    renaming = _Renaming(f"{attribute.name}_tensor_", {}, {})
    renaming.names.update(_outer_names(outer))
    copy = onnx.AttributeProto()
    copy.CopyFrom(attribute)
    copy.g.CopyFrom(renaming.graph(attribute.g))
    return copy


class _Renaming:
    """Copies the nodes of a definition under names of their own, with attributes in the place of references to them.

    ``formal``: what stands for each input of the definition; those that stand for nothing are left out of the nodes.
    """

    def __init__(
        self, prefix: str, formal: Mapping[str, OutletId | None], attributes: Mapping[str, onnx.AttributeProto]
    ) -> None:
        self._prefix = prefix
        self._attributes = attributes
        self.names: dict[str, str] = {name: "" if outlet is None else prefix + name for name, outlet in formal.items()}

    def nodes(self, nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
        """The nodes, those inside them too."""
        for node in nodes:
            self.names.update({name: self._prefix + name for name in node.output if name})
        return [self._node(node) for node in nodes]

    def _node(self, node: onnx.NodeProto) -> onnx.NodeProto:
        copy = onnx.NodeProto(op_type=node.op_type, domain=node.domain, name=node.name, overload=node.overload)
        copy.input.extend(self._renamed(node.input))
        copy.output.extend(self._renamed(node.output))
        copy.attribute.extend(self._resolved(node.attribute))
        return copy

    def _renamed(self, names: Sequence[str]) -> Iterator[str]:
        return (self.names.get(name, name) for name in names)

    def _resolved(self, attributes: Sequence[onnx.AttributeProto]) -> Iterator[onnx.AttributeProto]:
        for attribute in attributes:
            copy = onnx.AttributeProto()
            if not attribute.ref_attr_name:
                copy.CopyFrom(attribute)
            elif attribute.ref_attr_name in self._attributes:
                copy.CopyFrom(self._attributes[attribute.ref_attr_name])
                copy.name = attribute.name
            else:
                continue
            if copy.HasField("g"):
                copy.g.CopyFrom(self._inner(copy.g))
            yield copy

    def graph(self, graph: onnx.GraphProto) -> onnx.GraphProto:
        """A graph all of whose own tensors are renamed, and numbered."""
        defined = [*(info.name for info in graph.input), *(tensor.name for tensor in graph.initializer)]
        defined += [sparse.values.name for sparse in graph.sparse_initializer]
        defined += [name for node in graph.node for name in node.output if name]
        self.names.update({name: f"{self._prefix}{count}" for count, name in enumerate(dict.fromkeys(defined))})
        copy = self._inner(graph)
        for named in (*copy.input, *copy.initializer, *(sparse.values for sparse in copy.sparse_initializer)):
            named.name = self.names[named.name]
        del copy.value_info[:]
        return copy

    def _inner(self, graph: onnx.GraphProto) -> onnx.GraphProto:
        """A graph that reads renamed tensors, and keeps the names of its own."""
        copy = onnx.GraphProto()
        copy.CopyFrom(graph)
        del copy.node[:]
        copy.node.extend(self._node(node) for node in graph.node)
        for info in copy.output:
            info.name = self.names.get(info.name, info.name)
        return copy
