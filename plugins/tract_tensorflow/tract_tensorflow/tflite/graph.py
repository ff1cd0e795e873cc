"""From a graph as the file holds it to the nodes of an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from tract_core.analysis import into_body
from tract_core.analysis.inference import InferenceModel, InferenceOp, Unknown
from tract_core.errors import CorruptModel, LimitExceeded, TractError, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import limits_now
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_tensorflow.tflite.file import TfliteFile, TfliteTensor, read_tensor
from tract_tensorflow.tflite.flatbuffer import FlatTable
from tract_tensorflow.tflite.flex import flex_row
from tract_tensorflow.tflite.kept import wire_turn
from tract_tensorflow.tflite.names import unique_names
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.op import TfliteOp
from tract_tensorflow.tflite.options import CUSTOM, MORE_OPTION_TABLES, OPTION_TABLES
from tract_tensorflow.tflite.registry import QUANTIZED
from tract_tensorflow.tflite.variables import Variables


class GraphReader:
    """Puts the innermost graph that a file has entered into a model.

    ``tensors``: what it says of each; ``inputs``, ``outputs``: which those are. ``variables``: those of the graph
    around it; ``prefix``: stands in front of the names of its tensors.
    """

    def __init__(
        self, file: TfliteFile, model: InferenceModel, variables: Variables | None = None, *, prefix: str = ""
    ) -> None:
        self._file = file
        self._graph = graph = file.graph(file.entered[-1])
        self._model = model
        self.tensors = [read_tensor(index, one, file.limits) for index, one in enumerate(graph.tables("tensors"))]
        self._outlets: dict[int, OutletId] = {}
        self._handles: dict[int, str] = {}
        self._variables = variables
        self._names = [prefix + name for name in unique_names([one.name for one in self.tensors])]
        self.inputs: list[int] = graph.numbers("inputs").tolist()
        self.outputs: list[int] = graph.numbers("outputs").tolist()
        self._check_counts(len(self.inputs), len(self.outputs))

    @property
    def keeps(self) -> bool:
        """Whether operators keep something from run to run, which a state of a model goes on with."""
        assigns = self._variables is not None and bool(self._variables.held)
        return assigns or any(tensor.is_variable for tensor in self.tensors)

    def add_model(self) -> None:
        """Add the graph as a model of its own; one that assigns variables as one node. Raises ModelError."""
        operators = list(self._graph.tables("operators"))
        self._variables = Variables()
        if any(self._op_type(table) == "ASSIGN_VARIABLE" for table in operators):
            self._add_keeping(operators)
        else:
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
        return [self._outlet(self._tensor(index), "an output of the graph") for index in self.outputs]

    def add_inputs(self, inputs: Sequence[InferenceFact] | None) -> list[OutletId]:
        """Add inputs, of these facts or of those that the file says. Raises ModelError."""
        for number, index in enumerate(self.inputs):
            tensor = self._tensor(index)
            if index in self._outlets:
                raise CorruptModel(f"tensor {index} is two inputs of the graph")
            fact = fact_of(tensor) if inputs is None else inputs[number]
            self._outlets[index] = self._model.add_source(self._names[index], fact)
        return [self._outlets[index] for index in self.inputs]

    def _add_keeping(self, operators: Sequence[FlatTable]) -> None:
        """The whole graph as one node: what its variables hold goes on from run to run."""
        inputs = self.add_inputs(None)
        for table in operators:
            node = self._view(table)
            if node.op_type == "CALL_ONCE":
                self._call_once(node)
        assert self._variables is not None  # add_model made them
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
            read = [tensor for tensor in node.inputs if tensor is not None and self._is_read(tensor)]
            inputs = [self._outlet(tensor, "it") for tensor in read]
            inputs += self._tables(node)
        except TractError as error:
            raise error.at(where) from None
        numbers = iter(range(len(inputs)))
        slots = *(None if one is None or not self._is_read(one) else next(numbers) for one in node.inputs), *numbers
        facts = [InferenceFact()] * len(names)
        added = self._model.add_node(names[0] if names else where, self._op(node, slots, names), facts, inputs)
        for outlet, tensor, name in zip(added.outlets(), node.outputs, names, strict=True):
            self._outlets[tensor.index] = outlet
            if name != added.name:
                self._model.set_label(outlet, name)

    def _is_read(self, tensor: TfliteTensor) -> bool:
        """Whether it has elements when the operator runs: states are the operator's own, handles are none."""
        return not tensor.is_variable and tensor.index not in self._handles

    def _check_outputs(self, node: TfliteNode) -> None:
        for tensor in node.outputs:
            if tensor.index in self._outlets:
                raise CorruptModel(f"it computes {self._names[tensor.index][:200]!r}, which is there already")

    def _op_type(self, table: FlatTable) -> str:
        code = table.integer("opcode_index")
        if code >= len(self._file.codes):
            raise CorruptModel(f"operator code {code} is asked for, the file has {len(self._file.codes)}")
        return self._file.codes[code]

    def _call_once(self, node: TfliteNode) -> None:
        """What another graph assigns to variables, before the first run."""
        index = node.integer("init_subgraph_index", 0)
        variables = self._known_variables()
        if index not in variables.called:
            variables.called.add(index)
            GraphReader(self._file.inside(index), self._model, variables, prefix=f"graph{index}.").add_nodes()

    def _var_handle(self, node: TfliteNode) -> None:
        self._handles[node.output().index] = f"variable {node.text_of('shared_name')}"

    def _hashtable(self, node: TfliteNode) -> None:
        self._handles[node.output().index] = f"table {node.integer('table_id', 0)}"

    def _hashtable_import(self, node: TfliteNode) -> None:
        variables, name = self._known_variables(), self._variable(node)
        if f"{name}.keys" not in variables.held:  # a table is filled once
            variables.held |= {f"{name}.keys": self._outlet(node.input(1), "it")}
            variables.held |= {f"{name}.values": self._outlet(node.input(2), "it")}

    def _tables(self, node: TfliteNode) -> list[OutletId]:
        """The keys and the values of the table that an operator asks; nothing for another operator."""
        if node.op_type not in _ASK_TABLES:
            return []
        variables, name = self._known_variables(), self._variable(node)
        return [variables.value(f"{name}.{part}") for part in ("keys", "values")]

    def _read_variable(self, node: TfliteNode) -> None:
        self._outlets[node.output().index] = self._known_variables().value(self._variable(node))

    def _assign_variable(self, node: TfliteNode) -> None:
        self._known_variables().assign(self._variable(node), self._outlet(node.input(1), "it"))

    def _variable(self, node: TfliteNode) -> str:
        found = self._handles.get(node.input(0).index)
        if found is None:
            raise Unsupported(f"which variable is meant is computed: {node.input(0).name[:200]!r} is no handle")
        return found

    def _known_variables(self) -> Variables:
        if self._variables is None:
            raise Unsupported("a variable is read or assigned inside a branch or a loop")
        return self._variables

    def _view(self, table: FlatTable) -> TfliteNode:
        options = table.union("builtin_options", OPTION_TABLES)
        if options is None:
            options = table.union("builtin_options2", MORE_OPTION_TABLES)
        inputs = table.numbers("inputs").tolist()
        return TfliteNode(
            op_type=self._op_type(table),
            inputs=tuple(None if index == -1 else self._tensor(index) for index in inputs),
            outputs=tuple(self._tensor(index) for index in table.numbers("outputs").tolist()),
            options=options,
            custom=table.numbers("custom_options"),
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
        variables.called = set(range(len(self.file.graphs)))
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
    "HASHTABLE": GraphReader._hashtable,  # pyright: ignore[reportPrivateUsage]: as below
    "HASHTABLE_IMPORT": GraphReader._hashtable_import,  # pyright: ignore[reportPrivateUsage]: as below
    "CALL_ONCE": GraphReader._call_once,  # pyright: ignore[reportPrivateUsage]: a table of methods
    "VAR_HANDLE": GraphReader._var_handle,  # pyright: ignore[reportPrivateUsage]: as above
    "READ_VARIABLE": GraphReader._read_variable,  # pyright: ignore[reportPrivateUsage]: as above
    "ASSIGN_VARIABLE": GraphReader._assign_variable,  # pyright: ignore[reportPrivateUsage]: as above
}
"""What becomes no node: a variable is whatever was assigned to it last, a table what it was filled with."""

_ASK_TABLES: Final = frozenset({"HASHTABLE_FIND", "HASHTABLE_SIZE"})
"""Operators that are given the keys and the values of their table behind their inputs."""
