"""From a graph as the file holds it to the nodes of an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tract_core.analysis import into_body
from tract_core.analysis.inference import InferenceModel, InferenceOp, Unknown
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import limits_now
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_tensorflow.tflite.calls import (
    ASK_TABLES,
    CALLING,
    LOOPS,
    Touched,
    called_graphs,
    handle_of,
    parts_of_table,
    touched,
    touched_by,
)
from tract_tensorflow.tflite.file import TfliteFile, TfliteTensor, options_of, read_tensor
from tract_tensorflow.tflite.flatbuffer import FlatTable
from tract_tensorflow.tflite.flex import flex_row
from tract_tensorflow.tflite.kept import wire_turn
from tract_tensorflow.tflite.names import unique_names
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.op import TfliteOp
from tract_tensorflow.tflite.options import CUSTOM
from tract_tensorflow.tflite.registry import QUANTIZED
from tract_tensorflow.tflite.variables import Variables


class GraphReader:
    """Puts the innermost graph that a file has entered into a model.

    ``tensors``: what it says of each; ``inputs``, ``outputs``: which those are. ``variables``: what they hold where it
    begins; ``handles``: which of its inputs are variables, or tables, by name; ``prefix``: stands in front of the names
    of its tensors.
    """

    def __init__(
        self,
        file: TfliteFile,
        model: InferenceModel,
        variables: Variables | None = None,
        *,
        handles: Sequence[str | None] = (),
        prefix: str = "",
    ) -> None:
        self._file = file
        self._graph = graph = file.graph(file.entered[-1])
        self._model = model
        self.tensors = [read_tensor(index, one, file.limits) for index, one in enumerate(graph.tables("tensors"))]
        self._outlets: dict[int, OutletId] = {}
        self._variables = Variables() if variables is None else variables
        self._names = [prefix + name for name in unique_names([one.name for one in self.tensors])]
        inputs: list[int] = graph.numbers("inputs").tolist()
        self._given = [*handles]
        pairs = zip(inputs, handles, strict=False)
        self._handles = {index: name for index, name in pairs if name is not None}
        self.inputs = [index for index in inputs if index not in self._handles]
        self.outputs: list[int] = graph.numbers("outputs").tolist()
        self._check_counts(len(self.inputs), len(self.outputs))

    @property
    def keeps(self) -> bool:
        """Whether operators keep something from run to run, which a state of a model goes on with."""
        return bool(self._variables.held) or any(tensor.is_variable for tensor in self.tensors)

    def add_model(self) -> None:
        """Add the graph as a model of its own; one that assigns variables as one node. Raises ModelError."""
        found = touched_by(self._file)
        if found.assigned:
            self._add_keeping(found)
        else:
            self._call_once(found)
            self.add_all()

    def add_all(self, inputs: Sequence[InferenceFact] | None = None) -> None:
        """Add inputs, constants, operators and outputs.

        ``inputs``: facts for the inputs, when they are known better than the file knows them. Raises ModelError.
        """
        self.add_inputs(inputs)
        self.add_nodes()
        self._model.set_outputs(self.results())

    def add_nodes(self) -> None:
        """Add constants and operators. Raises ModelError."""
        for position, table in enumerate(self._graph.tables("operators")):
            self._add_node(position, table)

    def results(self) -> list[OutletId]:
        """What the graph gives. Raises CorruptModel."""
        if not self.outputs:
            raise CorruptModel("the graph has no outputs")
        found: list[OutletId] = []
        for place, index in enumerate(self.outputs):
            if index not in self._handles:
                found.append(self._outlet(self._tensor(index), "an output of the graph"))
            elif self._given[place : place + 1] != [self._handles[index]]:
                raise Unsupported("a graph hands on another variable, or another table, than it was given")
        return found

    def add_inputs(self, inputs: Sequence[InferenceFact] | None) -> list[OutletId]:
        """Add inputs, of these facts or of those that the file says. Raises ModelError."""
        for number, index in enumerate(self.inputs):
            tensor = self._tensor(index)
            if index in self._outlets:
                raise CorruptModel(f"tensor {index} is two inputs of the graph")
            fact = fact_of(tensor) if inputs is None else inputs[number]
            self._outlets[index] = self._model.add_source(self._names[index], fact)
        return [self._outlets[index] for index in self.inputs]

    def _call_once(self, found: Touched) -> None:
        """What other graphs assign to variables, before the first run."""
        for index in found.once:
            GraphReader(self._file.inside(index), self._model, self._variables, prefix=f"graph{index}.").add_nodes()

    def _add_keeping(self, found: Touched) -> None:
        """The whole graph as one node: what its variables hold goes on from run to run."""
        inputs = self.add_inputs(None)
        self._call_once(found)
        held = self._variables.held
        op = KeepingGraph(self._file, tuple(held))
        names = [self._names[self._tensor(index).index] for index in self.outputs]
        facts = [InferenceFact()] * len(names)
        added = self._model.add_node(f"{names[0] if names else ''}.run", op, facts, [*inputs, *held.values()])
        self._model.set_outputs(list(added.outlets()))
        for outlet, name in zip(added.outlets(), names, strict=True):
            self._model.set_label(outlet, name)

    def _check_counts(self, inputs: int, outputs: int) -> None:
        """Raises LimitExceeded for too many."""
        allowed = limits_now().max_outputs
        if max(inputs, outputs) > allowed:
            raise LimitExceeded(
                f"the graph has {inputs} inputs and {outputs} outputs, {allowed} are allowed",
                hint="a model that needs so many can be loaded with LoadLimits(max_outputs=...)",
            )

    def _tensor(self, index: int) -> TfliteTensor:
        if not 0 <= index < len(self.tensors):
            raise CorruptModel(f"tensor {index} is asked for, the graph has {len(self.tensors)}")
        return self.tensors[index]

    def _outlet(self, tensor: TfliteTensor, reader: str) -> OutletId:
        """Where a tensor is in the model; a constant is added when somebody reads it."""
        found = self._outlets.get(tensor.index)
        if found is None:
            if not self._file.has_content(tensor):
                raise CorruptModel(f"nothing computes {self._names[tensor.index][:200]!r}, which {reader} reads")
            found = self._model.add_const(self._names[tensor.index], self._file.array(tensor))
            self._outlets[tensor.index] = found
        return found

    def _add_node(self, position: int, table: FlatTable) -> None:
        node = self._view(table)
        names = tuple(self._names[tensor.index] for tensor in node.outputs)
        where = f"node {(names[0] if names else f'operator {position}')[:200]!r} ({node.op_type[:200]})"
        try:
            self._check_outputs(node)
            if node.op_type in _ABOUT_VARIABLES:
                _ABOUT_VARIABLES[node.op_type](self, node)
                return
            if node.op_type in CALLING:
                node = self._calling(node)
            read = [tensor for tensor in node.inputs if tensor is not None and self._is_read(tensor)]
            inputs = [self._outlet(tensor, "it") for tensor in read]
            inputs += [self._variables.value(name) for name in (*self._tables(node), *node.calls.held)]
        except TractError as error:
            raise error.at(where) from None
        numbers = iter(range(len(inputs)))
        slots = *(None if one is None or not self._is_read(one) else next(numbers) for one in node.inputs), *numbers
        assigned = node.calls.held[: node.calls.assigned]
        names = tuple(self._names[tensor.index] for tensor in node.outputs)
        names += tuple(f"{names[0] if names else where}.{name}" for name in assigned)
        facts = [InferenceFact()] * len(names)
        added = self._model.add_node(names[0] if names else where, self._op(node, slots, names), facts, inputs)
        for outlet, name in zip(added.outlets(), names, strict=True):
            if name != added.name:
                self._model.set_label(outlet, name)
        for outlet, tensor in zip(added.outlets(), node.outputs, strict=False):
            self._outlets[tensor.index] = outlet
        for outlet, name in zip(added.outlets()[len(node.outputs) :], assigned, strict=True):
            self._variables.assign(name, outlet)

    def _calling(self, node: TfliteNode) -> TfliteNode:
        """The same with what its graphs do with variables and tables, and without these as inputs and outputs."""
        first = CALLING[node.op_type][0]
        handed = [None if one is None else self._handles.get(one.index) for one in node.inputs[first:]]
        found = Touched({}, {}, {})
        for index in called_graphs(node.op_type, node.options):
            found.add(touched(self._file, index, handed))
        if node.op_type in LOOPS:
            pairs = zip(node.outputs, handed, strict=False)
            self._handles.update({tensor.index: name for tensor, name in pairs if name is not None})
        return replace(
            node,
            inputs=tuple(one for one in node.inputs if one is None or one.index not in self._handles),
            outputs=tuple(one for one in node.outputs if one.index not in self._handles),
            calls=found.calls(handed),
        )

    def _is_read(self, tensor: TfliteTensor) -> bool:
        """Whether it has elements when the operator runs: states are the operator's own, handles are none."""
        return not tensor.is_variable and tensor.index not in self._handles

    def _check_outputs(self, node: TfliteNode) -> None:
        for tensor in node.outputs:
            if tensor.index in self._outlets:
                raise CorruptModel(f"it computes {self._names[tensor.index][:200]!r}, which is there already")

    def _name_handle(self, node: TfliteNode) -> None:
        name = handle_of(node.op_type, node.options)
        assert name is not None  # these operators name one
        self._handles[node.output().index] = name

    def _nothing(self, node: TfliteNode) -> None:
        """It was done before."""

    def _hashtable_import(self, node: TfliteNode) -> None:
        keys, values = parts_of_table(self._variable(node))
        if keys not in self._variables.held:  # a table is filled once
            self._variables.held |= {keys: self._outlet(node.input(1), "it"), values: self._outlet(node.input(2), "it")}

    def _tables(self, node: TfliteNode) -> tuple[str, ...]:
        """The names of the keys and the values of the table that an operator asks; nothing for another operator."""
        return parts_of_table(self._variable(node)) if node.op_type in ASK_TABLES else ()

    def _read_variable(self, node: TfliteNode) -> None:
        self._outlets[node.output().index] = self._variables.value(self._variable(node))

    def _assign_variable(self, node: TfliteNode) -> None:
        self._variables.assign(self._variable(node), self._outlet(node.input(1), "it"))

    def _variable(self, node: TfliteNode) -> str:
        found = self._handles.get(node.input(0).index)
        if found is None:
            raise Unsupported(f"which variable is meant is computed: {node.input(0).name[:200]!r} is no handle")
        return found

    def _view(self, table: FlatTable) -> TfliteNode:
        inputs = table.numbers("inputs").tolist()
        return TfliteNode(
            op_type=self._file.op_type(table),
            inputs=tuple(None if index == -1 else self._tensor(index) for index in inputs),
            outputs=tuple(self._tensor(index) for index in table.numbers("outputs").tolist()),
            options=options_of(table),
            custom=self._file.custom_options(table),
            file=self._file,
            intermediates=tuple(self._tensor(index) for index in table.numbers("intermediates").tolist()),
        )

    def _op(self, node: TfliteNode, slots: tuple[int | None, ...], names: tuple[str, ...]) -> InferenceOp:
        function = self._file.operators.find(f"{QUANTIZED}{node.op_type}" if node.is_quantized else node.op_type)
        function = function or flex_row(node, self._model.registry)
        if function is not None:
            return TfliteOp(node, function, slots, names)
        kind = node.op_type.removeprefix(CUSTOM)
        what = "custom operator" if node.op_type.startswith(CUSTOM) else "operator"
        reason = f"{what} {kind[:200]!r}{' of quantised tensors' if node.is_quantized else ''} is not known"
        return Unknown(kind, reason, _CUSTOM_HINT if kind != node.op_type else None)


@frozen
class KeepingGraph(InferenceOp):
    """A graph that assigns variables. Inputs: its own, and what its variables hold at first, by their names."""

    file: TfliteFile
    variables: tuple[str, ...]

    __eq__ = object.__eq__  # a file is itself alone
    __hash__ = object.__hash__

    def wire(self, model: TypedModel, name: str, inputs: Sequence[OutletId]) -> Sequence[OutletId]:
        """A loop of one iteration, which keeps what was assigned. Raises TractError."""
        untyped = InferenceModel(model.symbols, model.registry)
        untyped.limits = model.limits
        variables = Variables()
        reader = GraphReader(self.file, untyped, variables)
        facts = [InferenceFact.from_typed(model.outlet_fact(outlet).without_value()) for outlet in inputs]
        count = len(reader.inputs)
        reader.add_inputs(facts[:count])
        for variable, fact in zip(self.variables, facts[count:], strict=True):
            variables.held[variable] = untyped.add_source(variable, fact)
        reader.add_nodes()
        results = reader.results()
        kept = [variable for variable in self.variables if variable in variables.assigned]
        untyped.set_outputs([*results, *(variables.held[variable] for variable in kept)])
        body = into_body(untyped, model, f"node {name[:200]!r}")
        states = [count + self.variables.index(variable) for variable in kept]
        return wire_turn(model, name, body, inputs, states)


_CUSTOM_HINT: Final = "a plugin can bring it, as a row 'custom/NAME' of the table 'tflite'"


def fact_of(tensor: TfliteTensor) -> InferenceFact:
    """What the file says of an input. Raises Unsupported for one that is no tensor of elements."""
    return InferenceFact(tensor.kind, tensor.shape)


_ABOUT_VARIABLES: Final[Mapping[str, Callable[[GraphReader, TfliteNode], None]]] = {
    "HASHTABLE": GraphReader._name_handle,  # pyright: ignore[reportPrivateUsage]: a table of methods
    "VAR_HANDLE": GraphReader._name_handle,  # pyright: ignore[reportPrivateUsage]: as above
    "HASHTABLE_IMPORT": GraphReader._hashtable_import,  # pyright: ignore[reportPrivateUsage]: as above
    "CALL_ONCE": GraphReader._nothing,  # pyright: ignore[reportPrivateUsage]: as above
    "READ_VARIABLE": GraphReader._read_variable,  # pyright: ignore[reportPrivateUsage]: as above
    "ASSIGN_VARIABLE": GraphReader._assign_variable,  # pyright: ignore[reportPrivateUsage]: as above
}
"""What becomes no node: a variable is whatever was assigned to it last, a table what it was filled with."""
