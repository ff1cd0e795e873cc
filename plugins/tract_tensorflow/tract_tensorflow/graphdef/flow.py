"""What goes through a function unchanged, or changes in a known way: told from its nodes, before types are known."""

from __future__ import annotations

from typing import Final

from tract_core.frozen import frozen
from tract_tensorflow.graphdef.graph import result_of
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.references import is_control

_LONGEST: Final = 100
"""Nodes that hand a tensor on, one after the other."""

_ADDS: Final = frozenset({"Add", "AddV2"})


class Flow:
    """The nodes of a function. ``slots``: which argument each is, by name."""

    def __init__(self, function: Message) -> None:
        self._function = function
        self.nodes = {node.name: node for node in function.node_def}
        self.slots = {one.name: slot for slot, one in enumerate(function.signature.input_arg)}
        self.results = [result_of(function, one.name) for one in function.signature.output_arg]

    def origin(self, text: str) -> str:
        """Where a tensor comes from, through nodes that hand it on: a text as the function names tensors."""
        for _ in range(_LONGEST):
            node = self.nodes.get(text.partition(":")[0])
            if node is None or node.op != "Identity" or not node.input or is_control(node.input[0]):
                break
            text = node.input[0]
        return text

    def argument(self, text: str) -> int | None:
        """The argument that a tensor is."""
        return self.slots.get(self.origin(text))

    def producer(self, text: str, *ops: str) -> Message | None:
        """The node that computes a tensor, where it is one of these operators."""
        node = self.nodes.get(self.origin(text).partition(":")[0])
        return node if node is not None and node.op in ops else None

    def is_unchanged(self, slot: int) -> bool:
        """Whether an argument is also the output in its place."""
        return self.argument(self.results[slot]) == slot

    def integer(self, text: str) -> int | None:
        """The integer that a constant holds."""
        node = self.producer(text, "Const")
        if node is None or "value" not in node.attr:
            return None
        tensor = node.attr["value"].tensor
        if tensor.tensor_shape.dim or tensor.dtype not in (3, 9):
            return None
        if tensor.tensor_content:
            return int.from_bytes(tensor.tensor_content, "little", signed=True)
        values = tensor.int_val if tensor.dtype == 3 else tensor.int64_val
        return int(values[0]) if len(values) else 0

    def is_counter(self, slot: int) -> bool:
        """Whether one is added to an argument, and that is the output in its place."""
        node = self.producer(self.results[slot], *_ADDS)
        if node is None or len(node.input) < 2:
            return False
        a, b = node.input[0], node.input[1]
        return (self.argument(a) == slot and self.integer(b) == 1) or (
            self.argument(b) == slot and self.integer(a) == 1
        )

    def readers(self, slot: int) -> list[Message]:
        """The nodes that read an argument, those aside that only hand it on."""
        return [
            node
            for node in self.nodes.values()
            if node.op != "Identity" and any(self.argument(text) == slot for text in node.input if not is_control(text))
        ]


@frozen
class Bound:
    """``counter < bound``: the argument that counts, and what bounds it, an argument or a number."""

    counter: int
    argument: int | None
    number: int | None


def bounds_of(condition: Message) -> list[Bound] | None:
    """The comparisons that all have to hold for a loop to go on; ``None`` where its condition is something else."""
    flow = Flow(condition)
    pending, found = [flow.results[0]] if len(flow.results) == 1 else [], list[Bound]()
    while pending and len(found) < _LONGEST:
        text = pending.pop()
        both = flow.producer(text, "LogicalAnd")
        if both is not None and len(both.input) >= 2:
            pending += both.input[:2]
            continue
        less = flow.producer(text, "Less")
        counter = flow.argument(less.input[0]) if less is not None and len(less.input) >= 2 else None
        if less is None or counter is None:
            return None
        argument, number = flow.argument(less.input[1]), flow.integer(less.input[1])
        if argument is None and number is None:
            return None
        found.append(Bound(counter, argument, number))
    return found or None
