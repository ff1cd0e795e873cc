"""What tables of keys and values hold: told by the nodes that fill them before the first run.

These are in the graph itself, or in a function that is called with the table and with what it is filled with:
constants, or the name of a text file among the assets of a SavedModel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import cache, partial
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import count_node
from tract_core.plugins.keys import Array
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.references import is_control
from tract_tensorflow.graphdef.tensors import TensorReader, element_type
from tract_tensorflow.graphdef.text_tables import TextTable

Contents = tuple[Array, Array]
"""Keys that differ, and the value of each."""

TABLES: Final = frozenset({"HashTable", "HashTableV2", "AnonymousHashTable"})
IMPORTS: Final = frozenset({"InitializeTable", "InitializeTableV2", "LookupTableImport", "LookupTableImportV2"})
FROM_TEXT: Final = frozenset({"InitializeTableFromTextFile", "InitializeTableFromTextFileV2"})
FILLS: Final = IMPORTS | FROM_TEXT
_CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
_MOST: Final = 100
"""Nodes that hand a tensor on, one after the other."""


def table_name(node: Message) -> str:
    """What a table is found by."""
    shared = node.attr["shared_name"].s if "shared_name" in node.attr else b""
    return shared.decode(errors="replace") or node.name


@frozen
class Tables:
    """How the tables of a file are read.

    ``reader``: of constants. ``assets``: the file that each node stands for; ``open_asset``: gives its content.
    """

    reader: TensorReader
    assets: Mapping[str, str]
    open_asset: Callable[[str], bytes] | None

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def of(self, graph: Message) -> dict[str, Callable[[], Contents]]:
        """What gives the contents of each table of a graph, by name: it raises ModelError where it cannot."""
        functions = {one.signature.name: one for one in graph.library.function}
        filling = _filling(functions)
        found: dict[str, list[Callable[[], Contents]]] = {}
        pending = [_Scope(graph.node, None, {})]
        while pending:
            scope = pending.pop()
            for node in scope.nodes.values():
                count_node()
                name = node.attr["f"].func.name if node.op in _CALLS and "f" in node.attr else node.op
                if node.op in FILLS and node.input:
                    table = scope.origin(node.input[0])
                    if table is not None and table.op in TABLES:
                        found.setdefault(table_name(table), []).append(cache(partial(self._contents, scope, node)))
                elif name in filling and name not in scope.callers:
                    inner = _Scope(functions[name].node_def, scope, _given(functions[name], node))
                    inner.callers = scope.callers | {name}
                    pending.append(inner)
        return {name: fills[0] if len(fills) == 1 else _in_several_ways for name, fills in found.items()}

    def _contents(self, scope: _Scope, node: Message) -> Contents:
        try:
            keys, values = self._from_text(scope, node) if node.op in FROM_TEXT else self._imported(scope, node)
            return _distinct(keys, values)
        except TractError as error:
            raise error.at(f"node {node.name[:200]!r} ({node.op[:200]})") from None

    def _imported(self, scope: _Scope, node: Message) -> Contents:
        if len(node.input) < 3:
            raise CorruptModel(f"it has {len(node.input)} inputs, a table, keys and values are wanted")
        keys = self._constant(scope, node.input[1], 0)
        values = self._constant(scope, node.input[2], keys.size)
        if keys.shape != values.shape:
            raise CorruptModel(f"keys of shape {list(keys.shape)} do not go with values of shape {list(values.shape)}")
        return keys.reshape(-1), values.reshape(-1)

    def _constant(self, scope: _Scope, text: str, count: int) -> Array:
        """A constant, or ``count`` numbers in sequence; or these as integers of another type."""
        kinds: list[DatumType] = []
        for _ in range(_MOST):
            found = scope.source(text)
            if found is None:
                break
            node, scope = found
            if node.op == "Const" and "value" in node.attr:
                array = self.reader.array(node.attr["value"].tensor, object(), f"node {node.name[:200]!r}")
                return _as_types(array, kinds)
            if node.op == "Range" and len(node.input) >= 3:
                return _as_types(self._sequence(scope, node, count), kinds)
            if node.op != "Cast" or not node.input or "DstT" not in node.attr:
                break
            kinds.insert(0, element_type(node.attr["DstT"].type))
            text = node.input[0]
        raise Unsupported("a table is filled with what is no constant")

    def _sequence(self, scope: _Scope, node: Message, count: int) -> Array:
        ends: list[Array] = []
        for text in node.input[:3]:
            found = scope.origin(text)
            if found is None or found.op != "Const" or "value" not in found.attr:
                raise Unsupported("a table is filled with what is no constant")
            ends.append(self.reader.array(found.attr["value"].tensor, object(), f"node {found.name[:200]!r}"))
        if any(end.size != 1 or end.dtype.kind not in "iu" for end in ends):
            raise Unsupported("a table is filled with a sequence of other than integers")
        start, limit, step = (int(end.item()) for end in ends)
        numbers = range(start, limit, step) if step else range(0)
        if len(numbers) != count:
            raise CorruptModel(f"{len(numbers)} values do not go with {count} keys")
        return np.array(numbers, ends[0].dtype)

    def _from_text(self, scope: _Scope, node: Message) -> Contents:
        table = scope.origin(node.input[0])
        source = scope.origin(node.input[1]) if len(node.input) > 1 else None
        if table is None or source is None:
            raise CorruptModel("it has no file to read")
        name = self.assets.get(source.name)
        if name is None or self.open_asset is None:
            raise Unsupported(
                "the file that fills it is none that is kept with the model",
                hint="load the folder of a SavedModel, in whose assets the file is",
            )
        kinds = (element_type(table.attr[one].type) for one in ("key_dtype", "value_dtype"))
        return TextTable.of(node).columns(self.open_asset(name), *kinds)


class _Scope:
    """The nodes of a graph, or of a call of a function. ``given``: what its arguments are outside."""

    def __init__(self, nodes: Iterable[Message], outer: _Scope | None, given: Mapping[str, str]) -> None:
        self.nodes: dict[str, Message] = {node.name: node for node in nodes}
        self.callers: frozenset[str] = frozenset()
        self._outer = outer
        self._given = given
        self._assigned: dict[str, str] | None = None

    def origin(self, text: str) -> Message | None:
        """The node that a tensor comes from, through calls, nodes that hand it on, and variables that hold names."""
        found = self.source(text)
        return None if found is None else found[0]

    def source(self, text: str) -> tuple[Message, _Scope] | None:
        """The same, with the scope that it is in."""
        scope: _Scope | None = self
        for _ in range(_MOST):
            name = text.partition(":")[0]
            if scope is None or is_control(text):
                return None
            node = scope.nodes.get(name)
            if node is None:
                text, scope = scope._given.get(name, "^"), scope._outer
            elif node.op == "Identity" and node.input:
                text = node.input[0]
            elif node.op == "ReadVariableOp" and node.input:
                text = scope._assigned_to(node.input[0])
            else:
                return node, scope
        return None

    def _assigned_to(self, handle: str) -> str:
        if self._assigned is None:
            nodes = [node for node in self.nodes.values() if node.op == "AssignVariableOp" and len(node.input) > 1]
            self._assigned = {node.input[0]: node.input[1] for node in nodes}
        return self._assigned.get(handle, "^")


def _given(function: Message, call: Message) -> dict[str, str]:
    names = [one.name for one in function.signature.input_arg]
    return dict(zip(names, [text for text in call.input if not is_control(text)], strict=False))


def _filling(functions: Mapping[str, Message]) -> set[str]:
    """The functions that fill tables, or call others that do."""
    callers: dict[str, list[str]] = {}
    for name, function in functions.items():
        for node in function.node_def:
            if node.op in _CALLS and "f" in node.attr:
                callers.setdefault(node.attr["f"].func.name, []).append(name)
    pending = [name for name, one in functions.items() if any(node.op in FILLS for node in one.node_def)]
    found = set[str]()
    while pending:
        name = pending.pop()
        if name not in found:
            found.add(name)
            pending += callers.get(name, ())
    return found


def _as_types(array: Array, kinds: Iterable[DatumType]) -> Array:
    """Integers in one type after the other. Raises Unsupported for other types."""
    for kind in kinds:
        if not kind.is_integer() or array.dtype.kind not in "iu":
            raise Unsupported(f"a table is filled with {array.dtype} that is cast to {kind.short}")
        array = array.astype(kind.numpy)
    return array


def _in_several_ways() -> Contents:
    raise Unsupported("several nodes fill the table")


def _distinct(keys: Array, values: Array) -> Contents:
    """Each key once. Raises CorruptModel for one that has two values."""
    found: dict[Any, int] = {}
    for place, key in enumerate(keys.tolist()):
        first = found.setdefault(key, place)
        if values[first] != values[place]:
            raise CorruptModel(f"the key {str(key)[:80]!r} has two values")
    places = list(found.values())
    return (keys, values) if len(places) == len(keys) else (keys[places], values[places])
