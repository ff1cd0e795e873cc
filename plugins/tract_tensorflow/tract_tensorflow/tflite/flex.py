"""Operators of TensorFlow in files of TFLite, which converters call ``FlexNAME``: rows of the table ``tensorflow``.

What such an operator says is a list of two texts: its name in TensorFlow, and its node as a protobuf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tract_core.errors import CorruptModel
from tract_core.plugins import default_registry
from tract_tensorflow.tflite.flexbuffer import read_texts
from tract_tensorflow.tflite.options import CUSTOM
from tract_tensorflow.tflite.registry import TfliteFn

if TYPE_CHECKING:
    from tract_core.ops.wired import Results
    from tract_core.plugins import Registry
    from tract_tensorflow.graphdef.node import GraphNode
    from tract_tensorflow.tflite.node import TfliteNode
    from tract_tensorflow.tflite.wiring import Wiring

_FLEX: Final = f"{CUSTOM}Flex"


def flex_row(node: TfliteNode, registry: Registry | None) -> TfliteFn | None:
    """How an operator of TensorFlow is wired; ``None`` for another one, and for one that is not known. ModelError."""
    if not node.op_type.startswith(_FLEX):
        return None
    from tract_tensorflow.graphdef.registry import TENSORFLOW

    function = (registry or default_registry())[TENSORFLOW].find(node.op_type.removeprefix(_FLEX))
    if function is None:
        return None

    def flex(node: TfliteNode, wire: Wiring) -> Results:
        from tract_tensorflow.graphdef.wiring import GraphWiring

        return function(_graph_node(node, registry), GraphWiring(wire.model, wire.name, wire.slots))

    return flex


def _graph_node(node: TfliteNode, registry: Registry | None) -> GraphNode:
    from google.protobuf.message import DecodeError

    from tract_tensorflow.graphdef.file import TensorflowFile
    from tract_tensorflow.graphdef.node import GraphNode
    from tract_tensorflow.graphdef.operators import Operators
    from tract_tensorflow.graphdef.protos import CLASSES
    from tract_tensorflow.graphdef.registry import TENSORFLOW
    from tract_tensorflow.graphdef.tensors import TensorReader

    texts = read_texts(node.custom)
    if len(texts) != 2:
        raise CorruptModel(f"{node.op_type[:200]!r} says {len(texts)} texts, wanted its name and its node")
    try:
        found = CLASSES["NodeDef"].FromString(texts[1])
    except DecodeError:
        raise CorruptModel(f"the node that {node.op_type[:200]!r} says cannot be read") from None
    op_type = node.op_type.removeprefix(_FLEX)
    if found.op != op_type:
        raise CorruptModel(f"{node.op_type[:200]!r} says that it is {found.op[:200]!r}")
    ops = Operators((registry or default_registry())[TENSORFLOW])
    file = TensorflowFile(ops, TensorReader(len(texts[1]), node.file.limits), limits=node.file.limits)
    names = tuple(one.name for one in node.outputs)
    return GraphNode(op_type, found.name, dict(found.attr), names, file)
