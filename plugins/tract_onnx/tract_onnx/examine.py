"""What a report on a file says beside its problems: what it is, and what in it counts for less than it seems."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

import onnx

from tract_core.errors import ModelError, TractError, Unsupported
from tract_onnx.local_functions import Key, all_nodes, function_key, function_name, key_of
from tract_onnx.registry import DEFAULT_DOMAIN


def description(proto: onnx.ModelProto) -> dict[str, str]:
    """What the file is, for people."""
    sets = ", ".join(f"{opset.domain or DEFAULT_DOMAIN} {opset.version}" for opset in proto.opset_import)
    producer = f"{proto.producer_name} {proto.producer_version}".strip()
    return {
        "format": f"ONNX, version {proto.ir_version}",
        "operator sets": sets or "none",
        **({"producer": producer} if producer else {}),
    }


def undefined_attributes(proto: onnx.ModelProto) -> Iterator[TractError]:
    """The attributes that nodes have and the definitions of their operators have not: nothing reads them.

    Operators are defined by the standard, and by the functions of the file, whose nodes are looked at too.
    """
    functions = {function_key(function): function for function in proto.functions}
    versions = _versions(proto.opset_import)
    yield from _undefined(proto.graph.node, versions, functions)
    for key, function in functions.items():
        inside = {**versions, **_versions(function.opset_import)}
        yield from (error.at(function_name(key)) for error in _undefined(function.node, inside, functions))


def _undefined(
    nodes: Sequence[onnx.NodeProto], versions: Mapping[str, int], functions: Mapping[Key, onnx.FunctionProto]
) -> Iterator[Unsupported]:
    for node in all_nodes(nodes):
        called = functions.get(key_of(node))
        defined = _by_standard(node, versions) if called is None else _by_function(called)
        extra = sorted({attribute.name for attribute in node.attribute} - defined) if defined is not None else []
        if extra:
            name = node.name or next(iter(node.output), "")
            yield Unsupported(
                f"{', '.join(extra)} is no attribute of {node.op_type} and is ignored",
                where=f"node {name[:200]!r} ({node.op_type})",
                hint="find out what the exporter meant by it",
            )


def defaults(proto: onnx.ModelProto) -> Iterator[ModelError]:
    """The initialisers that a caller may override, as the standard has it: inputs too, since version 4 of the format.

    Before, every initialiser had to be among the inputs, which says nothing.
    """
    inputs = {info.name for info in proto.graph.input} if proto.ir_version >= 4 else set[str]()
    sparse = (tensor.values.name for tensor in proto.graph.sparse_initializer)
    for name in (*(tensor.name for tensor in proto.graph.initializer), *sparse):
        if name in inputs:
            yield ModelError(
                "an input with a default value is taken as a constant",
                where=f"input {name[:200]!r}",
                hint="name it among the inputs to give it a value: --input-node, or set_input_names in Python",
            )


def _versions(opsets: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {opset.domain or DEFAULT_DOMAIN: opset.version for opset in opsets}


def _by_standard(node: onnx.NodeProto, versions: Mapping[str, int]) -> set[str] | None:
    domain = node.domain or DEFAULT_DOMAIN
    try:
        schema = onnx.defs.get_schema(node.op_type, versions.get(domain, 0), "" if domain == DEFAULT_DOMAIN else domain)
    except onnx.defs.SchemaError:
        return None
    return set(schema.attributes)


def _by_function(function: onnx.FunctionProto) -> set[str]:
    return {*function.attribute, *(given.name for given in function.attribute_proto)}
