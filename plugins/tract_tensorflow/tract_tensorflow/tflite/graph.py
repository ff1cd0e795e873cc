"""From a graph as the file holds it to the nodes of an `InferenceModel`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.analysis.inference import InferenceModel, InferenceOp, Unknown
from tract_core.errors import CorruptModel, LimitExceeded, TractError
from tract_core.limits import limits_now
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_tensorflow.tflite.file import TfliteFile, TfliteTensor, read_tensor
from tract_tensorflow.tflite.flatbuffer import Table
from tract_tensorflow.tflite.names import unique_names
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.op import TfliteOp
from tract_tensorflow.tflite.options import MORE_OPTION_TABLES, OPTION_TABLES
from tract_tensorflow.tflite.registry import CUSTOM, QUANTIZED


class GraphReader:
    """Puts one graph into a model. ``tensors``: what it says of each; ``inputs``, ``outputs``: which those are."""

    def __init__(self, file: TfliteFile, graph: Table, model: InferenceModel) -> None:
        self._file = file
        self._graph = graph
        self._model = model
        self.tensors = [read_tensor(index, one, file.limits) for index, one in enumerate(graph.tables("tensors"))]
        self._outlets: dict[int, OutletId] = {}
        self._names = unique_names([one.name for one in self.tensors])
        self.inputs: list[int] = graph.numbers("inputs").tolist()
        self.outputs: list[int] = graph.numbers("outputs").tolist()
        self._check_counts(len(self.inputs), len(self.outputs))

    def add_all(self, inputs: Sequence[InferenceFact] | None = None) -> None:
        """Add inputs, constants, operators and outputs.

        ``inputs``: facts for the inputs, when they are known better than the file knows them. Raises ModelError.
        """
        for number, index in enumerate(self.inputs):
            tensor = self._tensor(index)
            if index in self._outlets:
                raise CorruptModel(f"tensor {index} is two inputs of the graph")
            fact = fact_of(tensor) if inputs is None else inputs[number]
            self._outlets[index] = self._model.add_source(self._names[index], fact)
        for position, table in enumerate(self._graph.tables("operators")):
            self._add_node(position, table)
        self._model.set_outputs([self._outlet(self._tensor(index), "an output of the graph") for index in self.outputs])

    def _check_counts(self, inputs: int, outputs: int) -> None:
        """Raises LimitExceeded for too many, CorruptModel for a graph without outputs."""
        allowed = limits_now().max_outputs
        if max(inputs, outputs) > allowed:
            raise LimitExceeded(
                f"the graph has {inputs} inputs and {outputs} outputs, {allowed} are allowed",
                hint="a model that needs so many can be loaded with LoadLimits(max_outputs=...)",
            )
        if not outputs:
            raise CorruptModel("the graph has no outputs")

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

    def _add_node(self, position: int, table: Table) -> None:
        node = self._view(table)
        names = tuple(self._names[tensor.index] for tensor in node.outputs)
        where = f"node {(names[0] if names else f'operator {position}')[:200]!r} ({node.op_type[:200]})"
        try:
            self._check_outputs(node)
            read = [tensor for tensor in node.inputs if tensor is not None and not tensor.is_variable]
            inputs = [self._outlet(tensor, "it") for tensor in read]
        except TractError as error:
            raise error.at(where) from None
        numbers = iter(range(len(inputs)))
        slots = tuple(None if tensor is None or tensor.is_variable else next(numbers) for tensor in node.inputs)
        facts = [InferenceFact()] * len(names)
        added = self._model.add_node(names[0] if names else where, self._op(node, slots, names), facts, inputs)
        for outlet, tensor, name in zip(added.outlets(), node.outputs, names, strict=True):
            self._outlets[tensor.index] = outlet
            if name != added.name:
                self._model.set_label(outlet, name)

    def _check_outputs(self, node: TfliteNode) -> None:
        for tensor in node.outputs:
            if tensor.index in self._outlets:
                raise CorruptModel(f"it computes {self._names[tensor.index][:200]!r}, which is there already")

    def _view(self, table: Table) -> TfliteNode:
        code = table.integer("opcode_index")
        if code >= len(self._file.codes):
            raise CorruptModel(f"operator code {code} is asked for, the file has {len(self._file.codes)}")
        options = table.union("builtin_options", OPTION_TABLES)
        if options is None:
            options = table.union("builtin_options2", MORE_OPTION_TABLES)
        inputs = table.numbers("inputs").tolist()
        return TfliteNode(
            op_type=self._file.codes[code],
            inputs=tuple(None if index == -1 else self._tensor(index) for index in inputs),
            outputs=tuple(self._tensor(index) for index in table.numbers("outputs").tolist()),
            options=options,
            custom=table.numbers("custom_options"),
            file=self._file,
        )

    def _op(self, node: TfliteNode, slots: tuple[int | None, ...], names: tuple[str, ...]) -> InferenceOp:
        function = self._file.operators.find(f"{QUANTIZED}{node.op_type}" if node.is_quantized else node.op_type)
        if function is not None:
            return TfliteOp(node, function, slots, names)
        kind = node.op_type.removeprefix(CUSTOM)
        what = "custom operator" if node.op_type.startswith(CUSTOM) else "operator"
        reason = f"{what} {kind[:200]!r}{' of quantised tensors' if node.is_quantized else ''} is not known"
        return Unknown(kind, reason, _CUSTOM_HINT if kind != node.op_type else None)


_CUSTOM_HINT: Final = "a plugin can bring it, as a row 'custom/NAME' of the table 'tflite'"


def fact_of(tensor: TfliteTensor) -> InferenceFact:
    """What the file says of an input. Raises Unsupported for one that is no tensor of elements."""
    return InferenceFact(tensor.kind, tensor.shape)
