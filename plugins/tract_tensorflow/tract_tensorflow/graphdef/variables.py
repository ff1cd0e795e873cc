"""Which variable of a graph is which tensor of a checkpoint: told by the nodes that would restore them.

The graph of a SavedModel has nodes that read tensors of a checkpoint by their keys and assign them to variables; they
are in the graph itself, or in a function that is called with the handles.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tract_core.limits import count_node
from tract_tensorflow.graphdef.graph import CALLS
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.references import in_graph, is_control

_HANDLES: Final = frozenset({"VarHandleOp", "VariableV2", "Variable"})
_ASSIGNS: Final = frozenset({"Assign", "AssignVariableOp"})
_PASSES: Final = frozenset({"Identity", "Cast", "IdentityN"})
_LONGEST: Final = 100
"""Nodes between what is read and what is assigned."""


Kept = tuple[str, str]
"""The key of a tensor, and which part of it is meant; all of it where that is empty."""


def keys_of_variables(graph: Message) -> dict[str, Kept]:
    """For each variable that is restored, by the name of its handle, the key of its tensor, and the part that it is."""
    functions = {one.signature.name: one for one in graph.library.function}
    restoring = {name for name, one in functions.items() if any(node.op == "RestoreV2" for node in one.node_def)}
    found = _Walk(graph.node, {}).keys()
    for node in graph.node:
        name = node.attr["f"].func.name if node.op in CALLS and "f" in node.attr else node.op
        if name in restoring:
            outer, function = _Walk(graph.node, {}), functions[name]
            given = [outer.handle(text) for text in node.input if not is_control(text)]
            names = [one.name for one in function.signature.input_arg]
            handles = {arg: handle for arg, handle in zip(names, given, strict=False) if handle is not None}
            found |= _Walk(function.node_def, handles).keys()
    return found


class _Walk:
    """The nodes of a graph or a function. ``handles``: the variables that its arguments are."""

    def __init__(self, nodes: Sequence[Message], handles: Mapping[str, str]) -> None:
        self._nodes = {node.name: node for node in nodes}
        self._handles = handles

    def keys(self) -> dict[str, Kept]:
        """For each variable that is assigned a tensor of a checkpoint, its key and its part."""
        found: dict[str, Kept] = {}
        for node in self._nodes.values():
            count_node()
            if node.op in _ASSIGNS and len(node.input) >= 2:
                handle, key = self.handle(node.input[0]), self._key(node.input[1])
                if handle is not None and key is not None:
                    found[handle] = key
        return found

    def handle(self, text: str) -> str | None:
        """The variable whose handle a reference leads to."""
        name = self._origin(text)[0]
        node = self._nodes.get(name)
        if node is None:
            return self._handles.get(name)
        if node.op not in _HANDLES:
            return None
        shared = node.attr["shared_name"].s if node.op == "VarHandleOp" and "shared_name" in node.attr else b""
        return shared.decode(errors="replace") or name

    def _key(self, text: str) -> Kept | None:
        name, slot = self._origin(text)
        node = self._nodes.get(name)
        if node is None or node.op != "RestoreV2" or len(node.input) < 2:
            return None
        keys, parts = self._texts(node.input[1]), self._texts(node.input[2]) if len(node.input) > 2 else []
        if slot >= len(keys):
            return None
        return keys[slot], parts[min(slot, len(parts) - 1)] if parts else ""

    def _texts(self, text: str) -> list[str]:
        """What a constant holds; the last one is repeated."""
        node = self._nodes.get(self._origin(text)[0])
        if node is None or "value" not in node.attr:
            return []
        return [one.decode(errors="replace") for one in node.attr["value"].tensor.string_val]

    def _origin(self, text: str) -> tuple[str, int]:
        """The node that a tensor comes from, and which output of it."""
        name, slot = _reference(text)
        for _ in range(_LONGEST):
            node = self._nodes.get(name)
            if node is None or node.op not in _PASSES or not node.input or is_control(node.input[0]):
                break
            name, slot = _reference(node.input[slot if node.op == "IdentityN" and slot < len(node.input) else 0])
        return name, slot


def _reference(text: str) -> tuple[str, int]:
    """A node and a number of an output, in a graph or a function; of those that are asked for, no name is needed."""
    name, _, rest = text.partition(":")
    return in_graph(f"{name}:{rest.rpartition(':')[2]}") if rest else (name, 0)
