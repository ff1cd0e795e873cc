"""What a report on a file says beside its problems: what it is, and what in it counts for less than it seems."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from tract_core.errors import ModelError, Unsupported
from tract_onnx.graph import graphs_in
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


def undefined_attributes(proto: onnx.ModelProto) -> Iterator[Unsupported]:
    """The attributes that nodes have and the standard's definitions of their operators have not: nothing reads them."""
    versions = {opset.domain: opset.version for opset in proto.opset_import}
    pending = [proto.graph]
    while pending:
        for node in pending.pop().node:
            pending += [graph for attribute in node.attribute for graph in graphs_in(attribute)]
            defined = _defined(node, versions.get(node.domain, 0))
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


def _defined(node: onnx.NodeProto, version: int) -> set[str] | None:
    try:
        schema = onnx.defs.get_schema(node.op_type, version, "" if node.domain == DEFAULT_DOMAIN else node.domain)
    except onnx.defs.SchemaError:
        return None
    return set(schema.attributes)
