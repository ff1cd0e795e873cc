"""A graph with branches and loops in the form of TensorFlow 1: its nodes, what they read, and which loops there are.

There, a `Switch` hands a tensor to one of two branches (`_SwitchN`, of several), the others stay dead; a `Merge` takes
what is not dead.
A loop is a `Merge` of what it begins with (`Enter`) and of what an iteration gave (`NextIteration`), and a `Switch`
behind it, by the loop's condition (`LoopCond`), into the body or out of the loop (`Exit`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from tract_core.errors import CorruptModel, TractError, Unsupported
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.references import Reference, is_control

SWITCHES: Final = frozenset({"Switch", "RefSwitch", "_SwitchN"})
MERGES: Final = frozenset({"Merge", "RefMerge"})
ENTERS: Final = frozenset({"Enter", "RefEnter"})
EXITS: Final = frozenset({"Exit", "RefExit"})
NEXTS: Final = frozenset({"NextIteration", "RefNextIteration"})
OLD: Final = SWITCHES | MERGES | ENTERS | EXITS | NEXTS | {"LoopCond", "ControlTrigger"}
"""The operators that branches and loops of TensorFlow 1 are made of."""

_PASSES: Final = frozenset({"Identity"})
_BOOL: Final = 10
_I32: Final = 3


class OldNode:
    """A node. ``reads``: the tensors that it reads, ``None`` for what is no reference; ``waits``: what comes first."""

    __slots__ = ("attr", "name", "op", "proto", "reads", "waits")

    def __init__(self, proto: Message, reference: Callable[[str], Reference]) -> None:
        self.proto = proto
        self.name: str = proto.name
        self.op: str = proto.op
        self.attr: Any = proto.attr
        self.reads = [_read(text, reference) for text in proto.input if not is_control(text)]
        self.waits = [text[1:] for text in proto.input if is_control(text)]


def _read(text: str, reference: Callable[[str], Reference]) -> Reference | None:
    try:
        return reference(text)
    except TractError:  # whoever reads the node says so
        return None


class OldLoop:
    """A loop.

    ``name``: its LoopCond; ``variables``: for each Merge, what it begins with, and its NextIteration. ``merges``: all
    that are to be its; ``switches``: the Merge that each Switch reads. ``frames``: how the file calls it. ``problem``:
    why it cannot be read.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.variables: dict[str, tuple[Reference, str]] = {}
        self.switches: dict[str, str] = {}
        self.merges: list[str] = []
        self.frames: set[bytes] = set()
        self.problem: TractError | None = None


class OldGraph:
    """The nodes of a graph, or of a function. ``reference``: the tensor that a text names in it."""

    def __init__(self, nodes: Sequence[Message], reference: Callable[[str], Reference]) -> None:
        self.nodes = {proto.name: OldNode(proto, reference) for proto in nodes}
        self.problems: dict[str, TractError] = {}
        self._origins: dict[str, Reference] = {}
        self.loops: dict[str, OldLoop] = {}
        self.loop_of: dict[str, OldLoop] = {}  # by the name of a Merge or of a Switch of a loop
        self._find_loops()

    def op(self, reference: Reference | None) -> str:
        """The operator that computes a tensor; nothing where no node does."""
        node = None if reference is None else self.nodes.get(reference[0])
        return "" if node is None else node.op

    def origin(self, reference: Reference) -> Reference:
        """Where a tensor comes from, through nodes that hand it on."""
        passed: list[str] = []
        while reference[0] not in self._origins:
            node = self.nodes.get(reference[0])
            if node is None or node.op not in _PASSES or not node.reads or node.reads[0] is None:
                break
            passed.append(reference[0])
            self._origins[reference[0]] = reference  # a circle ends here
            reference = node.reads[0]
        found = self._origins.get(reference[0], reference)
        self._origins.update(dict.fromkeys(passed, found))
        return found

    def known(self, reference: Reference) -> int | None:
        """The number that a predicate is, where it is a constant: 1 where it holds."""
        node = self.nodes.get(self.origin(reference)[0])
        if node is None or node.op != "Const" or "value" not in node.attr:
            return None
        tensor = node.attr["value"].tensor
        if tensor.dtype not in (_BOOL, _I32) or tensor.tensor_shape.dim:
            return None
        values = tensor.bool_val if tensor.dtype == _BOOL else tensor.int_val
        return int(values[0]) if len(values) else int.from_bytes(tensor.tensor_content, "little", signed=True)

    def is_loop_merge(self, node: OldNode) -> bool:
        """Whether a Merge takes what an iteration gave."""
        return node.op in MERGES and any(self.op(one) in NEXTS for one in node.reads)

    def _find_loops(self) -> None:
        merges = {name: node for name, node in self.nodes.items() if self.is_loop_merge(node)}
        for node in self.nodes.values():
            if node.op in SWITCHES and len(node.reads) == 2 and None not in node.reads:
                data, condition = (self.origin(one) for one in node.reads if one is not None)
                if self.op(condition) == "LoopCond":
                    self._add_switch(node, data[0], condition[0], merges)
        by_frame: dict[bytes, set[str]] = {}
        for loop in self.loops.values():
            for frame in loop.frames:
                by_frame.setdefault(frame, set()).add(loop.name)
        for name, node in merges.items():
            if name not in self.loop_of:
                there = by_frame.get(self._frame(node) or b"", set())
                if len(there) == 1:
                    self._add_variable(self.loops[next(iter(there))], node)
                else:
                    self._refuse(node, Unsupported("no Switch says whether it goes on with what an iteration gave"))

        for loop in self.loops.values():
            loop.problem = self._problem(loop)

    def _problem(self, loop: OldLoop) -> TractError | None:
        """What is wrong with one of a loop's nodes."""
        for name in (loop.name, *(after for _, after in loop.variables.values())):
            if len(self.nodes[name].reads) != 1:
                self._refuse(
                    self.nodes[name], CorruptModel(f"it has {len(self.nodes[name].reads)} inputs, one is wanted")
                )
        names = (loop.name, *loop.merges, *(after for _, after in loop.variables.values()))
        return next((self.problems[name] for name in names if name in self.problems), None)

    def _add_switch(self, node: OldNode, data: str, condition: str, merges: dict[str, OldNode]) -> None:
        if data not in merges:
            self._refuse(node, Unsupported("it ends a loop, and what it reads is no Merge with a NextIteration"))
            return
        loop = self.loops.setdefault(condition, OldLoop(condition))
        loop.switches[node.name] = data
        self.loop_of[node.name] = loop
        self._add_variable(loop, merges[data])

    def _add_variable(self, loop: OldLoop, node: OldNode) -> None:
        loop.merges.append(node.name)
        if self.loop_of.setdefault(node.name, loop) is not loop:
            self._refuse(node, CorruptModel("two loops go on with it"))
        if len(node.reads) != 2 or None in node.reads or sum(self.op(one) in NEXTS for one in node.reads) != 1:
            self._refuse(node, CorruptModel("a loop's Merge is of one value to begin with, and one NextIteration"))
            return
        first, second = (one for one in node.reads if one is not None)
        start, after = (second, first) if self.op(first) in NEXTS else (first, second)
        loop.variables[node.name] = (start, after[0])
        frame = self._frame(node)
        if frame is not None:
            loop.frames.add(frame)

    def _frame(self, node: OldNode) -> bytes | None:
        """The name of the loop that a Merge begins, as the file has it."""
        for one in node.reads:
            enter = self.nodes.get(one[0]) if one is not None and self.op(one) in ENTERS else None
            if enter is not None and "frame_name" in enter.attr:
                return bytes(enter.attr["frame_name"].s)
        return None

    def _refuse(self, node: OldNode, error: TractError) -> None:
        self.problems.setdefault(node.name, error.at(f"node {node.name[:200]!r} ({node.op[:200]})"))
