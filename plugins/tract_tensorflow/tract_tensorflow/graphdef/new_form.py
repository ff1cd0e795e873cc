"""A file in the form of TensorFlow 1 as one in that of TensorFlow 2: its branches, its loops, its arrays of tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tract_core.errors import TractError
from tract_tensorflow.graphdef.file import TensorflowFile
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.raised_node import RaisedFunction
from tract_tensorflow.graphdef.raising import is_old, raised
from tract_tensorflow.graphdef.references import Reference, in_function, in_graph
from tract_tensorflow.graphdef.tensor_arrays import with_lists


def in_new_form(
    file: TensorflowFile, nodes: Sequence[Message], wanted: Sequence[Reference]
) -> tuple[TensorflowFile, Sequence[Message]]:
    """The file, and the nodes of its graph that ``wanted`` tensors need. Raises LimitExceeded."""
    nodes = with_lists(nodes)
    if not is_old(nodes):
        return file, nodes
    found = raised(nodes, in_graph, wanted, taken=file.functions, max_depth=file.limits.max_depth)
    functions: Mapping[str, Message] = {**file.functions, **found.functions}
    return replace(file, functions=functions, refused={**file.refused, **found.refused}), found.nodes


def functions_in_new_form(file: TensorflowFile) -> TensorflowFile:
    """The file, with all its functions in the new form. Raises LimitExceeded."""
    functions, refused = dict(file.functions), dict[tuple[str, str], TractError]()
    for name, function in file.functions.items():
        nodes = with_lists(function.node_def)
        if is_old(nodes):
            functions |= _raised_function(file, function, nodes, functions, refused)
        elif nodes is not function.node_def:
            functions[name] = RaisedFunction(function.signature, nodes, function.ret)
    return replace(file, functions=functions, refused=refused) if functions != file.functions else file


def _raised_function(
    file: TensorflowFile,
    function: Message,
    nodes: Sequence[Message],
    functions: Mapping[str, Message],
    refused: dict[tuple[str, str], TractError],
) -> Mapping[str, Message]:
    """A function, and those that its branches and loops have become."""
    ops = {node.name: node.op for node in nodes}

    def reference(text: str) -> Reference:
        return in_function(text, ops, file.outputs)

    names = [one.name for one in function.signature.output_arg if one.name in function.ret]
    try:
        wanted = [reference(function.ret[name]) for name in names]
    except TractError:  # whoever reads the function says so
        return {}
    scope = function.signature.name
    found = raised(nodes, reference, wanted, scope=scope, taken=functions, max_depth=file.limits.max_depth)
    refused |= found.refused
    ret = dict(zip(names, found.results, strict=True))
    return {**found.functions, scope: RaisedFunction(function.signature, found.nodes, ret)}
