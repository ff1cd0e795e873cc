"""A model that uses every text field of the format, so that a hostile text can be put into each of them in turn."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import onnx
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from onnx import TensorProto, helper, numpy_helper

Path = tuple[Any, ...]
"""Fields and places in lists that lead from a message to a text."""

TEXTS = (FieldDescriptor.TYPE_STRING, FieldDescriptor.TYPE_BYTES)


def model() -> onnx.ModelProto:
    """``y = relu(f(x)) + c``, a text that is normalised, an If, and all that may be said about them."""
    proto = helper.make_model(
        _graph(),
        functions=[_function()],
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("mine", 1), helper.make_opsetid("more", 3)],
        ir_version=10,
        producer_name="producer",
        producer_version="1",
        domain="domain",
        doc_string="of the model",
    )
    proto.metadata_props.add(key="key", value="value")
    return proto


def _graph() -> onnx.GraphProto:
    text = helper.make_tensor("words", TensorProto.STRING, [2], [b"one", b"two"])
    single = helper.make_tensor("word", TensorProto.STRING, [], [b"one"])
    nodes = [
        helper.make_node("Scale", ["x"], ["scaled"], name="scale", domain="mine", doc_string="of the node"),
        helper.make_node("Relu", ["scaled"], ["hidden"], name="relu"),
        helper.make_node("Add", ["hidden", "c"], ["y"], name="add"),
        helper.make_node("StringNormalizer", ["t"], ["u"], name="lower", case_change_action="LOWER", stopwords=["and"]),
        helper.make_node("StringConcat", ["words", "word"], ["v"], name="join"),
        helper.make_node("StringConcat", ["t", "word"], ["w"], name="end"),
        helper.make_node("If", ["b"], ["z"], name="if", then_branch=_branch("Neg"), else_branch=_branch("Abs")),
    ]
    graph = helper.make_graph(
        nodes,
        "graph",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["B", 3], doc_string="of the input"),
            helper.make_tensor_value_info("t", TensorProto.STRING, ["T"]),
            helper.make_tensor_value_info("b", TensorProto.BOOL, []),
        ],
        [
            helper.make_tensor_value_info("y", TensorProto.FLOAT, ["B", 3]),
            *(helper.make_tensor_value_info(name, TensorProto.STRING, [None]) for name in "uvw"),
            helper.make_tensor_value_info("z", TensorProto.FLOAT, ["B", 3]),
        ],
        [numpy_helper.from_array(np.ones(3, np.float32), "c"), text, single],
        doc_string="of the graph",
        value_info=[helper.make_tensor_value_info("hidden", TensorProto.FLOAT, ["B", 3])],
    )
    graph.input[0].type.denotation = "IMAGE"
    graph.input[0].type.tensor_type.shape.dim[0].denotation = "DATA_BATCH"
    graph.node[0].metadata_props.add(key="key", value="value")
    graph.metadata_props.add(key="key", value="value")
    graph.initializer[0].doc_string = "of the tensor"
    graph.quantization_annotation.add(tensor_name="y").quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="c")
    return graph


def _branch(op_type: str) -> onnx.GraphProto:
    result = helper.make_tensor_value_info("inside", TensorProto.FLOAT, ["B", 3])
    return helper.make_graph([helper.make_node(op_type, ["y"], ["inside"], name="inner")], "branch", [], [result])


def _function() -> onnx.FunctionProto:
    function = helper.make_function(
        "mine",
        "Scale",
        ["a"],
        ["b"],
        [helper.make_node("Constant", [], ["two"], value_float=2.0), helper.make_node("Mul", ["a", "two"], ["b"])],
        [helper.make_opsetid("", 20)],
        attributes=["unused"],
        doc_string="of the function",
    )
    function.metadata_props.add(key="key", value="value")
    return function


def texts_in(message: Message, path: Path = ()) -> Iterator[Path]:
    """Where ``message`` holds texts, at any depth."""
    for field, value in message.ListFields():
        if field.type == FieldDescriptor.TYPE_MESSAGE:
            many = [(field.name, value)] if isinstance(value, Message) else [(field.name, one) for one in value]
            for place, (name, one) in enumerate(many):
                yield from texts_in(one, (*path, name) if isinstance(value, Message) else (*path, name, place))
        elif field.type in TEXTS and field.name != "raw_data":
            if isinstance(value, (str, bytes)):
                yield (*path, field.name)
            else:
                yield from ((*path, field.name, place) for place in range(len(value)))


def with_text(proto: onnx.ModelProto, path: Path, more: str) -> onnx.ModelProto:
    """A copy with ``more`` put behind the text at ``path``, and behind the same text wherever it is a name."""
    changed = onnx.ModelProto()
    changed.CopyFrom(proto)
    old = _at(changed, path)
    new = old + more.encode() if isinstance(old, bytes) else old + more
    same = [one for one in texts_in(changed) if _at(changed, one) == old] if path[-1] != "doc_string" else [path]
    for one in {path, *(same if _is_name(path) else ())}:
        _set(changed, one, new)
    return changed


def _is_name(path: Path) -> bool:
    """Whether the text is referred to elsewhere, so that the model stays right only when all of them change."""
    return not any(step in ("metadata_props", "quant_parameter_tensor_names") for step in path)


def _at(message: Any, path: Path) -> Any:
    for step in path:
        message = message[step] if isinstance(step, int) else getattr(message, step)
    return message


def _set(message: Any, path: Path, value: str | bytes) -> None:
    *outer, last = path
    owner = _at(message, tuple(outer))
    if isinstance(last, int):
        owner[last] = value
    else:
        setattr(owner, last, value)
