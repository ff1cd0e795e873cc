"""Nodes that are one operator of ONNX together become that operator, once a graph is written."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any, Final, Protocol

import numpy as np
import onnx
from onnx import helper

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.frontend.order import ordered
from tract_core.model.fact import TypedFact

_FAMILIES: Final = ("activation", "axis", "fft", "norm", "product", "quantize", "recurrent", "reduce", "resize")
"""Modules `*_joins` of `tract_onnx.writing.ops`, one per family, each with its `JOINS`."""

_MADE_ONCE: Final = ("Cast", "Concat", "Reshape", "Shape", "Squeeze", "Transpose", "Unsqueeze")
"""Operators that rows add for themselves, of which the same is made once."""

JoinFn = Callable[["Site"], "Sequence[onnx.NodeProto] | None"]
"""Looks at a node and at what is in front of it. Returns the nodes that are written instead, which make its results.

None at all where another node makes them now.
"""


@cache
def joins() -> Mapping[str, Sequence[JoinFn]]:
    """All joins, by the operator of the last of the nodes that become one."""
    found: dict[str, list[JoinFn]] = defaultdict(list)
    for family in _FAMILIES:
        for op_type, join in import_module(f"tract_onnx.writing.ops.{family}_joins").JOINS:
            found[op_type].append(join)
    return found


class GraphWritten(Protocol):
    """The graph that was written, as far as what joins may ask: see `writing.graph`."""

    @property
    def opset(self) -> int:
        """The version of the operators that may be used."""
        ...

    @property
    def held(self) -> dict[str, Constant]:
        """The tensors that are there, by name."""
        ...

    def known(self, name: str) -> TypedFact | None:
        """What is known of a tensor."""
        ...

    def size(self, name: str) -> Dim | None:
        """The size that a tensor is."""
        ...

    def equal(self, a: Dim, b: Dim) -> bool:
        """Whether two sizes are certainly the same."""
        ...

    def free(self, wanted: str) -> str:
        """A name that nothing has yet."""
        ...

    def hold(self, value: Constant, where: str) -> str:
        """A tensor that is there, for a node of that name. Returns its own name."""
        ...


class Joining:
    """The nodes of one graph, while they are joined."""

    def __init__(self, graph: GraphWritten, nodes: Sequence[onnx.NodeProto], outputs: Sequence[str]) -> None:
        self.graph, self.outputs = graph, frozenset(outputs)
        self._nodes = needed(nodes, self.outputs)
        self._made: dict[tuple[str | bytes, ...], str] = {}
        self.makers: dict[str, onnx.NodeProto] = {}
        self.readers: dict[str, dict[int, onnx.NodeProto]] = defaultdict(dict)
        for node in self._nodes:
            self._add(node)

    def joined(self) -> list[onnx.NodeProto]:
        """The nodes that are left, in order."""
        done: list[onnx.NodeProto] = []
        for node in self._nodes:
            done += self._settled(node)
        return needed(in_order([node for node in done if self._is_there(node)]), self.outputs)

    def _settled(self, node: onnx.NodeProto) -> list[onnx.NodeProto]:
        """What becomes of a node: itself, or what it is joined to, again and again."""
        if not self._is_there(node):
            return []  # it has become part of another
        for join in joins().get(node.op_type, ()):
            instead = join(Site(self, node))
            if instead is not None and not instead:
                return []
            if instead is not None:
                before = [self.makers[name] for one in instead for name in one.output if name in self.makers]
                for one in instead:
                    self._add(one)
                for one in before:
                    self._remove(one)
                return [settled for one in instead for settled in self._settled(one)]
        return [] if self._is_there_already(node) else [node]

    def _is_there_already(self, node: onnx.NodeProto) -> bool:
        """Whether another node makes the same: it is read from now on."""
        if node.op_type not in _MADE_ONCE:
            return False
        key = (node.op_type, *node.input, *(one.SerializeToString() for one in node.attribute))
        other = self._made.setdefault(key, node.output[0])
        if other == node.output[0] or self.makers.get(other) is None:
            self._made[key] = node.output[0]
            return False
        return self.alias(node, other)

    def _is_there(self, node: onnx.NodeProto) -> bool:
        return any(self.makers.get(name) is node for name in node.output)

    def _add(self, node: onnx.NodeProto) -> None:
        self.makers.update((name, node) for name in node.output if name)
        for name in read_by(node):
            self.readers[name][id(node)] = node

    def _remove(self, node: onnx.NodeProto) -> None:
        """A node goes, and with it those that were there for it alone."""
        pending = [node]
        while pending:
            gone = pending.pop()
            for name in gone.output:
                if self.makers.get(name) is gone:
                    del self.makers[name]
            for name in read_by(gone):
                self.readers[name].pop(id(gone), None)
                maker = self.makers.get(name)
                if maker is not None and not any(self.is_read(one) for one in maker.output):
                    pending.append(maker)

    def rename(self, before: str, after: str) -> None:
        """What makes a tensor that one node alone reads, gives it another name, which that node gave it."""
        maker = self.makers.pop(before)
        maker.output[list(maker.output).index(before)] = after
        self.makers[after] = maker
        del self.readers[before]

    def is_read(self, name: str) -> bool:
        """Whether anything reads a tensor."""
        return name in self.outputs or bool(self.readers[name])

    def alias(self, node: onnx.NodeProto, name: str) -> bool:
        """Those that read what a node makes read another tensor. Not where it is an output, or read in a body."""
        result = node.output[0]
        readers = self.readers[result]
        if result in self.outputs or any(result not in one.input for one in readers.values()):
            return False
        for one in readers.values():
            one.input[:] = [name if each == result else each for each in one.input]
        self.readers[name].update(readers)
        self.readers[result] = {}
        self._remove(node)
        return True


class Site:
    """One node, and what joins ask about the graph in front of it."""

    def __init__(self, joining: Joining, node: onnx.NodeProto) -> None:
        self._joining, self.node = joining, node

    @property
    def opset(self) -> int:
        """The version of the operators that may be used."""
        return self._joining.graph.opset

    @property
    def inputs(self) -> list[str]:
        """The names of what the node reads."""
        return [*self.node.input]

    @property
    def result(self) -> str:
        """The name of what it makes."""
        return self.node.output[0]

    def maker(self, name: str) -> onnx.NodeProto | None:
        """The node that makes a tensor; ``None`` for what is there, or comes."""
        return self._joining.makers.get(name)

    def made_by(self, op_type: str, name: str) -> onnx.NodeProto | None:
        """The node that makes a tensor for this one alone, where it is of that operator."""
        maker = self.maker(name)
        return maker if maker is not None and maker.op_type == op_type and self.is_alone(name) else None

    def is_alone(self, name: str) -> bool:
        """Whether one node alone reads a tensor."""
        return name not in self._joining.outputs and len(self._joining.readers[name]) == 1

    def readers(self, name: str) -> list[onnx.NodeProto]:
        """The nodes that read a tensor."""
        return list(self._joining.readers[name].values())

    def value(self, name: str) -> np.ndarray[Any, Any] | None:
        """A constant."""
        held = self._joining.graph.held.get(name)
        return None if held is None else held.array

    def number(self, name: str) -> float | None:
        """The one number that a constant is; ``None`` for anything else."""
        value = self.value(name)
        is_one = value is not None and value.size == 1 and value.dtype.kind in "fiu"
        return float(value.reshape(-1)[0]) if value is not None and is_one else None

    def ints(self, name: str) -> list[int] | None:
        """The integers that a constant is."""
        value = self.value(name)
        return None if value is None or value.dtype.kind != "i" else value.reshape(-1).tolist()

    def fact(self, name: str) -> TypedFact | None:
        """What is known of a tensor, of parts of what one node was written as too where it is a matter of axes."""
        known = self._joining.graph.known(name)
        maker = self.maker(name)
        if known is None and maker is not None and maker.op_type == "Concat":
            return self._laid(maker)
        before = (
            self.fact(maker.input[0]) if known is None and maker is not None and maker.op_type == "Squeeze" else None
        )
        axes = self.ints(maker.input[1]) if maker is not None and before is not None and len(maker.input) == 2 else None
        if before is None or axes is None:
            return known
        return before.with_shape([size for axis, size in enumerate(before.shape) if axis not in axes])

    def _laid(self, node: onnx.NodeProto) -> TypedFact | None:
        """What is known of tensors that are laid one after the other."""
        facts = [fact for name in node.input if (fact := self.fact(name)) is not None]
        if len(facts) < len(node.input):
            return None
        axis, first = int(told(node)["axis"]), facts[0]
        size = first.shape[axis]
        for fact in facts[1:]:
            size = size + fact.shape[axis]
        return first.with_shape([size if place == axis % first.rank else one for place, one in enumerate(first.shape)])

    def size(self, name: str) -> Dim | None:
        """The size that a tensor is."""
        return self._joining.graph.size(name)

    def equal(self, a: Dim, b: Dim) -> bool:
        """Whether two sizes are certainly the same."""
        return self._joining.graph.equal(a, b)

    def constant(self, array: np.ndarray[Any, Any]) -> str:
        """A tensor that is there. Returns its name."""
        return self._joining.graph.hold(Constant(array), self.node.name)

    def is_read(self, name: str) -> bool:
        """Whether anything reads a tensor."""
        return self._joining.is_read(name)

    def same(self, name: str) -> list[onnx.NodeProto] | None:
        """The result of this node is that tensor, which others read from now on; ``None`` where they cannot."""
        return [] if self._joining.alias(self.node, name) else None

    def renamed(self, name: str) -> list[onnx.NodeProto]:
        """What makes a tensor makes the result of this node."""
        self._joining.rename(name, self.result)
        return []

    def instead(self, op_type: str, *inputs: str, **attributes: Any) -> list[onnx.NodeProto]:
        """One node in the place of this one, with its name and its results."""
        return [helper.make_node(op_type, [*inputs], [*self.node.output], name=self.node.name, **attributes)]

    def before(self, op_type: str, *inputs: str, **attributes: Any) -> onnx.NodeProto:
        """A further node, with one result."""
        name = self._joining.graph.free(f"{self.node.name}.{op_type}")
        return helper.make_node(op_type, [*inputs], [name], name=name, **attributes)


def told(node: onnx.NodeProto) -> dict[str, Any]:
    """The attributes of a node, by name."""
    return {one.name: helper.get_attribute_value(one) for one in node.attribute}


def read_by(node: onnx.NodeProto) -> Iterator[str]:
    """The names of what a node reads, its bodies included, each once."""
    names = dict.fromkeys(name for name in node.input if name)
    for attribute in node.attribute:
        if attribute.HasField("g"):
            names |= dict.fromkeys(name for inner in attribute.g.node for name in read_by(inner))
            names |= dict.fromkeys(one.name for one in attribute.g.output)
    return iter(names)


def in_order(nodes: Sequence[onnx.NodeProto]) -> list[onnx.NodeProto]:
    """The same nodes, each after those whose results it reads."""
    makers = {name: index for index, node in enumerate(nodes) for name in node.output}
    needs = [[makers[name] for name in read_by(node) if name in makers] for node in nodes]
    return [nodes[index] for index in ordered(needs, lambda index: nodes[index].name)]


def needed(nodes: Sequence[onnx.NodeProto], wanted: Iterable[str]) -> list[onnx.NodeProto]:
    """Those that the tensors of these names need."""
    read, found = set(wanted), list[onnx.NodeProto]()
    for node in reversed(nodes):
        if read.intersection(node.output):
            found.append(node)
            read.update(read_by(node))
    return found[::-1]
