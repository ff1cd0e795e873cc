"""Operators that the file itself defines, as functions of others: the nodes of the definition take a node's place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import field

import onnx

from tract_core.errors import CorruptModel, LimitExceeded
from tract_core.frozen import frozen
from tract_core.limits import limits_now
from tract_onnx.operators import DEFAULT_DOMAIN, Wires

Key = tuple[str, str, str]
"""Domain, name and overload of a function."""


def function_key(proto: onnx.FunctionProto) -> Key:
    """What a function is called by."""
    return proto.domain or DEFAULT_DOMAIN, proto.name, proto.overload


def key_of(node: onnx.NodeProto) -> Key:
    """The function that a node calls, if there is one of that name."""
    return node.domain or DEFAULT_DOMAIN, node.op_type, node.overload


@frozen
class LocalFunctions:
    """The functions of one file. ``calls``: what wires a call of each."""

    calls: Mapping[Key, Wires] = field(default_factory=dict[Key, Wires])

    @staticmethod
    def of(protos: Iterable[onnx.FunctionProto], wired: Callable[[onnx.FunctionProto], Wires]) -> LocalFunctions:
        """``wired``: gives what wires a call of a function.

        Raises CorruptModel for a function that is defined twice or calls itself, LimitExceeded for one that stands for
        too many nodes.
        """
        found: dict[Key, onnx.FunctionProto] = {}
        for proto in protos:
            key = function_key(proto)
            if key in found:
                raise CorruptModel("it is defined twice", where=function_name(key))
            found[key] = proto
        _Sizes(found).check()
        return LocalFunctions({key: wired(proto) for key, proto in found.items()})

    def find(self, node: onnx.NodeProto) -> Wires | None:
        """What wires a call of the function of that name; ``None`` when the file defines none."""
        return self.calls.get(key_of(node))


class _Sizes:
    """How many nodes each function stands for, with all that it calls."""

    def __init__(self, functions: Mapping[Key, onnx.FunctionProto]) -> None:
        self._functions = functions
        self._nodes: dict[Key, int] = {}

    def check(self) -> None:
        """Raise CorruptModel for functions that call themselves, LimitExceeded for too many nodes or calls."""
        for key in self._functions:
            self._count(key, ())

    def _count(self, key: Key, callers: tuple[Key, ...]) -> int:
        if key in callers:
            circle = " -> ".join(function_name(one) for one in (*callers[callers.index(key) :], key))
            raise CorruptModel(f"functions call each other in a circle: {circle}", where=function_name(key))
        limits = limits_now()
        if len(callers) > limits.max_depth:
            raise LimitExceeded(
                f"functions call each other more than {limits.max_depth} deep", where=function_name(key)
            )
        if key not in self._nodes:
            inner = [key_of(node) for node in all_nodes(self._functions[key].node)]
            called = sum(self._count(one, (*callers, key)) for one in inner if one in self._functions)
            self._nodes[key] = len(inner) + called
            if self._nodes[key] > limits.max_nodes:
                raise LimitExceeded(
                    f"a call of it stands for more than {limits.max_nodes} nodes", where=function_name(key)
                )
        return self._nodes[key]


def all_nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """The nodes, and those of the graphs inside them."""
    pending = [nodes]
    while pending:
        for node in pending.pop():
            yield node
            for attribute in node.attribute:
                pending += [graph.node for graph in (attribute.g, *attribute.graphs)]


def function_name(key: Key) -> str:
    """A function, as messages name it."""
    domain, name, overload = (part[:200] for part in key)
    return f"function {domain}.{name}" + (f":{overload}" if overload else "")
