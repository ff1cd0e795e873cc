"""Arrays of tensors, as loops of TensorFlow 1 have them, as the lists that TensorFlow 2 has in their place.

There, each operator takes a handle of the array and a number, the flow, by which they follow one another. Here, the
flow is the list itself, and nobody looks at the handle.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.raised_node import RaisedNode
from tract_tensorflow.graphdef.references import is_control

_AS_LISTS: Final[Mapping[str, tuple[str, tuple[int, ...]]]] = {
    "TensorArrayConcatV3": ("TensorListConcatV2", (1,)),
    "TensorArrayGatherV3": ("TensorListGather", (2, 1)),
    "TensorArrayReadV3": ("TensorListGetItem", (2, 1)),
    "TensorArrayScatterV3": ("TensorListScatterIntoExistingList", (3, 2, 1)),
    "TensorArraySizeV3": ("TensorListLength", (1,)),
    "TensorArrayWriteV3": ("TensorListSetItem", (3, 1, 2)),
}
"""For each operator, the one on lists, and which of the inputs that takes."""


def with_lists(nodes: Sequence[Message]) -> Sequence[Message]:
    """The nodes, with operators on lists in place of those on arrays. An operator that lacks an input stays."""
    found = [_as_list(node) for node in nodes]
    return found if any(a is not b for a, b in zip(found, nodes, strict=True)) else nodes


def _as_list(node: Message) -> Message:
    if node.op not in _AS_LISTS:
        return node
    op, slots = _AS_LISTS[node.op]
    inputs = [text for text in node.input if not is_control(text)]
    if len(inputs) <= max(slots):
        return node
    waits = [text for text in node.input if is_control(text)]
    return RaisedNode(node.name, op, [*(inputs[slot] for slot in slots), *waits], node.attr)
