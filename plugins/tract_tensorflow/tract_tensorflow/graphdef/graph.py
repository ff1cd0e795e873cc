"""From a graph, or a function, as the file holds it to the nodes of an `InferenceModel`.

Functions that are called take the place of the call. What variables hold are constants; their handles are followed
from where they are made, through calls, to where they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from tract_core.analysis.inference import InferenceModel, InferenceOp, Source, Unknown
from tract_core.errors import CorruptModel, TractError, Unsupported
from tract_core.frontend.order import ordered
from tract_core.frozen import frozen
from tract_core.limits import check_time, count_nodes
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_tensorflow.graphdef.file import TensorflowFile
from tract_tensorflow.graphdef.node import GraphNode, node_place
from tract_tensorflow.graphdef.old_graph import OLD
from tract_tensorflow.graphdef.op import GraphOp
from tract_tensorflow.graphdef.protos import Message
from tract_tensorflow.graphdef.references import (
    Reference,
    check_name,
    in_function,
    in_graph,
    is_control,
)
from tract_tensorflow.graphdef.tables import TABLES, table_name
from tract_tensorflow.graphdef.tensors import fact_of
from tract_tensorflow.graphdef.wiring import Mark, Reserved, Variable, describe


@frozen
class ReservedList:
    """A list of tensors none of which is set. ``length``: how many they are; ``mark``: of what elements."""

    length: OutletId
    mark: Reserved


Value = OutletId | Variable | ReservedList
"""What nodes hand on to each other."""

CALLS: Final = frozenset({"PartitionedCall", "StatefulPartitionedCall"})
PLACEHOLDERS: Final = frozenset({"Placeholder", "PlaceholderV2"})
_OLD_VARIABLES: Final = frozenset({"Variable", "VariableV2"})
_HANDS_ON: Final = frozenset({"Identity", "IdentityN", "StopGradient", "PreventGradient", "EnsureShape"})
_READS: Final = frozenset({"ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VariableShape"})
_LOOKS: Final = frozenset({"LookupTableFind", "LookupTableFindV2", "LookupTableSize", "LookupTableSizeV2"})
_HELD: Final = ("keys", "values")
_LOOPS: Final = frozenset({"While", "StatelessWhile"})


class NodesReader:
    """Puts one graph, or one call of a function, into a model.

    ``nodes``: those of the graph. ``scope``: the function that they are in, empty for a graph. ``prefix``: stands in
    front of the names of nodes. ``given``: the arguments of the function, by name; or what is in the place of nodes, of
    the placeholders of a graph.
    """

    def __init__(
        self,
        file: TensorflowFile,
        model: InferenceModel,
        nodes: Sequence[Message],
        given: Mapping[str, Value],
        *,
        scope: str = "",
        prefix: str = "",
    ) -> None:
        self._file = file
        self._model = model
        self._nodes = nodes
        self._scope = scope
        self._prefix = prefix
        self._index: dict[str, int] = {}
        count_nodes(len(nodes))
        for index, node in enumerate(nodes):
            if check_name(node.name) in self._index:
                raise CorruptModel(f"two nodes are named {node.name[:200]!r}", where=scope or "graph")
            self._index[node.name] = index
        for name in given:
            self._index.pop(name, None)
        self._ops: dict[str, str] = {node.name: node.op for node in nodes}
        self._inputs = [self._data_inputs(node) for node in nodes]
        self._values: dict[str, list[Value]] = {name: [value] for name, value in given.items()}
        self._read: dict[str, set[int]] = {}
        for references in self._inputs:
            self._note_read(references)

    def reference(self, text: str) -> Reference:
        """The tensor that a text names in this graph. Raises CorruptModel."""
        return in_function(text, self._ops, self._file.outputs) if self._scope else in_graph(text)

    def read(self, wanted: Sequence[Reference]) -> list[Value]:
        """Add what these tensors need; returns where they are. Raises ModelError."""
        self._note_read(wanted)
        needs = [self._needs(index) for index in range(len(self._nodes))]
        roots = [index for name, _ in wanted if (index := self._producer(name, "what is wanted")) is not None]
        for index in ordered(needs, lambda index: node_place(self._nodes[index], self._prefix), roots):
            self._add(self._nodes[index], [self._value(reference) for reference in self._inputs[index]])
        return [self._value(reference) for reference in wanted]

    def _data_inputs(self, node: Message) -> list[Reference]:
        return [self.reference(text) for text in node.input if not is_control(text)]

    def _note_read(self, references: Sequence[Reference]) -> None:
        for name, slot in references:
            self._read.setdefault(name, set()).add(slot)

    def _needs(self, index: int) -> list[int]:
        node = self._nodes[index]
        if node.name not in self._index:
            return []
        place = node_place(node, self._prefix)
        found = {self._producer(name, place) for name, _ in self._inputs[index]}
        return sorted((one for one in found if one is not None), reverse=True)

    def _producer(self, name: str, place: str) -> int | None:
        """The node of that name; ``None`` for an argument. Raises CorruptModel when there is neither."""
        index = self._index.get(name)
        if index is None and name not in self._values:
            raise CorruptModel(f"it reads {name[:200]!r}, which nothing computes", where=place)
        return index

    def _value(self, reference: Reference) -> Value:
        name, slot = reference
        values = self._values.get(name, ())
        if slot >= len(values):
            raise CorruptModel(f"output {slot} of {name[:200]!r} is read, it has {len(values)}", where="graph")
        return values[slot]

    def _add(self, proto: Message, inputs: list[Value]) -> None:
        check_time()
        refused = self._file.refused.get((self._scope, proto.name))
        if refused is not None:
            raise refused
        try:
            special = self._SPECIAL.get(proto.op)
            if special is not None:
                found = special(self, proto, inputs)
            elif proto.op in self._file.functions and self._file.ops.find(proto.op) is None:
                found = self._call(proto, self._file.functions[proto.op], inputs)
            else:
                found = self._add_node(proto, inputs)
        except TractError as error:
            raise error if error.where else error.at(node_place(proto, self._prefix)) from None
        self._values[proto.name] = found

    # --- one node each ---

    def _placeholder(self, proto: Message, inputs: list[Value]) -> list[Value]:
        return [self._model.add_source(self._prefix + proto.name, placeholder_fact(proto))]

    def _const(self, proto: Message, inputs: list[Value]) -> list[Value]:
        node = self._view(proto)
        try:
            return [self._model.add_const(node.name, node.array("value"))]
        except TractError as error:
            if self._file.problems is None:
                raise
            self._file.problems.append(error.at(node.place))
            return [OutletId(self._model.add_node(node.name, Source(), [InferenceFact()]).id)]

    def _call_node(self, proto: Message, inputs: list[Value]) -> list[Value]:
        return self._call(proto, self._view(proto).function("f"), inputs)

    def _call(self, proto: Message, function: Message, inputs: list[Value]) -> list[Value]:
        file = self._file.inside(function.signature.name, node_place(proto, self._prefix))
        return read_function(file, self._model, function, inputs, f"{self._prefix}{proto.name}/")

    def _handle(self, proto: Message, inputs: list[Value]) -> list[Value]:
        node = self._view(proto)
        return [Variable(node.text("shared_name", "") or proto.name)]

    def _old_variable(self, proto: Message, inputs: list[Value]) -> list[Value]:
        return [self._value_of(Variable(proto.name))]

    def _reading(self, proto: Message, inputs: list[Value]) -> list[Value]:
        handle = inputs[0] if inputs else None
        if not isinstance(handle, Variable):
            raise CorruptModel("it reads a variable, and is given none")
        value = self._value_of(handle)
        return [value] if proto.op == "ReadVariableOp" else self._add_node(proto, [value, *inputs[1:]])

    def _value_of(self, variable: Variable) -> OutletId:
        read = self._file.variables.get(variable.name)
        if read is None:
            raise Unsupported(
                f"nothing is known of what the variable {variable.name[:200]!r} holds",
                hint="load the SavedModel's folder, in which the variables are; or freeze the graph",
            )
        if self._model.has_node(variable.name):
            return OutletId(self._model.node_by_name(variable.name).id)
        return self._model.add_const(variable.name, read())

    def _table(self, proto: Message, inputs: list[Value]) -> list[Value]:
        return [Variable(table_name(proto), "the table")]

    def _look_up(self, proto: Message, inputs: list[Value]) -> list[Value]:
        """Its row gets the keys and the values of the table behind the other inputs."""
        table = inputs[0] if inputs else None
        if not isinstance(table, Variable):
            return self._add_node(proto, inputs)  # of a table that is not known
        read = self._file.tables.get(table.name)
        if read is None:
            raise Unsupported(
                f"nothing is known of what {describe(table)} holds",
                hint="load the SavedModel's folder; a frozen graph has to have the nodes that fill it",
            )
        held = [self._of_table(f"{table.name}.{what}", array) for what, array in zip(_HELD, read(), strict=True)]
        return self._add_node(proto, [*inputs[1:], *held])

    def _of_table(self, name: str, array: Array) -> OutletId:
        if self._model.has_node(name):
            return OutletId(self._model.node_by_name(name).id)
        return self._model.add_const(name, array)

    def _reserve(self, proto: Message, inputs: list[Value]) -> list[Value]:
        length = inputs[1] if len(inputs) == 2 else None
        if not isinstance(length, OutletId):
            raise CorruptModel(f"it has {len(inputs)} inputs, a shape and a number are wanted")
        return [ReservedList(length, Reserved(self._view(proto).element_type("element_dtype")))]

    def _empty(self, proto: Message, inputs: list[Value]) -> list[Value]:
        length = self._model.add_const(f"{self._prefix}{proto.name}.length", np.zeros((), np.int32))
        return [ReservedList(length, Reserved(self._view(proto).element_type("element_dtype")))]

    def _array(self, proto: Message, inputs: list[Value]) -> list[Value]:
        length = inputs[0] if len(inputs) == 1 else None
        if not isinstance(length, OutletId):
            raise CorruptModel(f"it has {len(inputs)} inputs, a number is wanted")
        kept = ReservedList(length, Reserved(self._view(proto).element_type("dtype")))
        return [Variable(proto.name, "the array of tensors"), kept]

    def _hand_on(self, proto: Message, inputs: list[Value]) -> list[Value]:
        if not inputs:
            raise CorruptModel("it has no inputs")
        if proto.op == "IdentityN" and not all(isinstance(value, OutletId) for value in inputs):
            return inputs
        return self._add_node(proto, inputs) if isinstance(inputs[0], OutletId) else inputs[:1]

    def _loop(self, proto: Message, inputs: list[Value]) -> list[Value]:
        handles = {slot for slot, value in enumerate(inputs) if isinstance(value, Variable)}
        self._read[proto.name] = self._read.get(proto.name, set()) - handles
        found = self._add_node(proto, inputs, len(inputs))
        return [one if slot in handles else found[slot] for slot, one in enumerate(inputs)]

    def _old_control_flow(self, proto: Message, inputs: list[Value]) -> list[Value]:
        raise Unsupported("it is not of a branch or a loop as TensorFlow 1 writes them")

    def _nothing(self, proto: Message, inputs: list[Value]) -> list[Value]:
        return []

    def _add_node(self, proto: Message, inputs: list[Value], count: int = 0) -> list[Value]:
        node = self._view(proto, count)
        outlets: list[OutletId] = []
        slots: list[int | None] = []
        marks: dict[int, Mark] = {}
        for slot, value in enumerate(inputs):
            if isinstance(value, Variable):
                marks[slot] = value
                slots.append(None)
                continue
            if isinstance(value, ReservedList):
                marks[slot] = value.mark
            slots.append(len(outlets))
            outlets.append(value.length if isinstance(value, ReservedList) else value)
        op = self._op(node, tuple(slots), marks)
        added = self._model.add_node(node.name, op, [InferenceFact()] * len(node.output_names), outlets)
        return list(added.outlets())

    def _view(self, proto: Message, count: int = 0) -> GraphNode:
        check_name(proto.op)
        read = self._read.get(proto.name) or {0}
        name = self._prefix + proto.name
        names = ["" if slot not in read else f"{name}:{slot}" if slot else name for slot in range(max(read) + 1)]
        names += [""] * (count - len(names))
        return GraphNode(proto.op, name, proto.attr, tuple(names), self._file, self._scope, proto.name)

    def _op(self, node: GraphNode, slots: tuple[int | None, ...], marks: Mapping[int, Mark]) -> InferenceOp:
        function = self._file.ops.find(node.op_type)
        if function is not None:
            return GraphOp(node, function, slots, marks)
        reason = f"operator {node.op_type[:200]!r} of TensorFlow is not known"
        return Unknown(node.op_type, reason, self._file.ops.advice(node.op_type), node.name)

    _SPECIAL: ClassVar[Mapping[str, Callable[[Any, Message, list[Value]], list[Value]]]] = {
        **dict.fromkeys(PLACEHOLDERS, _placeholder),
        **dict.fromkeys(CALLS, _call_node),
        **dict.fromkeys(_OLD_VARIABLES, _old_variable),
        **dict.fromkeys(_HANDS_ON, _hand_on),
        **dict.fromkeys(_READS, _reading),
        **dict.fromkeys(_LOOPS, _loop),
        **dict.fromkeys(TABLES, _table),
        **dict.fromkeys(_LOOKS, _look_up),
        **dict.fromkeys(OLD, _old_control_flow),
        **dict.fromkeys(("NoOp", "Assert", "ControlTrigger", "TensorArrayCloseV3"), _nothing),
        "Const": _const,
        "EmptyTensorList": _empty,
        "TensorArrayV3": _array,
        "TensorListReserve": _reserve,
        "VarHandleOp": _handle,
    }
    """What is no operator on tensors, or may be none."""


def placeholder_fact(proto: Message) -> InferenceFact:
    """What a placeholder says of itself. Raises ModelError."""
    kind = proto.attr["dtype"].type if "dtype" in proto.attr else 0
    shape = proto.attr["shape"].shape if "shape" in proto.attr else None
    return fact_of(kind, shape)


def read_function(
    file: TensorflowFile, model: InferenceModel, function: Message, inputs: Sequence[Value], prefix: str = ""
) -> list[Value]:
    """Put a call of a function into a model; returns its outputs.

    ``file``: as the function sees it. ``prefix``: stands in front of the names of its nodes. Raises ModelError.
    """
    reader = NodesReader(
        file, model, function.node_def, arguments(function, inputs), scope=function.signature.name, prefix=prefix
    )
    return reader.read([reader.reference(result_of(function, one.name)) for one in function.signature.output_arg])


def arguments(function: Message, inputs: Sequence[Value]) -> dict[str, Value]:
    """The arguments of a call, by name. Raises CorruptModel where they are too many or too few."""
    signature = function.signature
    if len(inputs) != len(signature.input_arg):
        raise wrong_count(function, len(inputs))
    return {check_name(one.name): value for one, value in zip(signature.input_arg, inputs, strict=True)}


def wrong_count(function: Message, count: int) -> CorruptModel:
    """The error of a function that is given another number of values than it takes."""
    name, wanted = function.signature.name[:200], len(function.signature.input_arg)
    return CorruptModel(f"{count} values are given to the function {name!r}, which takes {wanted}")


def result_of(function: Message, output: str) -> str:
    """The tensor that is an output of a function. Raises CorruptModel."""
    if output not in function.ret:
        raise CorruptModel(
            f"nothing says what the output {output[:200]!r} of the function {function.signature.name[:200]!r} is"
        )
    return function.ret[output]


def as_outlet(value: Value) -> OutletId:
    """A tensor. Raises Unsupported for what is none."""
    if isinstance(value, OutletId):
        return value
    raise Unsupported(f"{describe(value.mark if isinstance(value, ReservedList) else value)} is no tensor")
