"""Load models of TensorFlow: frozen graphs, and the folders of SavedModels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from mmap import mmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from google.protobuf.message import DecodeError

from tract_core.analysis.inference import InferenceModel, KnownTensor, Source
from tract_core.errors import CorruptModel, LimitExceeded, TractError
from tract_core.garbage import uncollected
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, limits_now, spending
from tract_core.lookalikes import HEAD, recognise
from tract_core.model.fact import InferenceFact
from tract_core.model.graph import OutletId
from tract_core.plugins import Registry, default_registry
from tract_core.safe_files import check_size, map_path
from tract_tensorflow.graphdef.file import TensorflowFile
from tract_tensorflow.graphdef.graph import PLACEHOLDERS, NodesReader, as_outlet
from tract_tensorflow.graphdef.new_form import functions_in_new_form, in_new_form
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.old_graph import EXITS, SWITCHES
from tract_tensorflow.graphdef.op import GraphOp
from tract_tensorflow.graphdef.operators import Operators
from tract_tensorflow.graphdef.parsed_size import check_parsed
from tract_tensorflow.graphdef.protos import CLASSES, Message
from tract_tensorflow.graphdef.raising import is_old
from tract_tensorflow.graphdef.references import Reference, check_name, in_graph, outputs_of_functions
from tract_tensorflow.graphdef.registry import TENSORFLOW
from tract_tensorflow.graphdef.saved_model import (
    ENTRY,
    assets_beside,
    assets_of,
    fact_of_info,
    graph_to_serve,
    signature_of,
    tensors_of,
    variables_of,
)
from tract_tensorflow.graphdef.tables import FILLS, Tables
from tract_tensorflow.graphdef.tensors import TensorReader

if TYPE_CHECKING:
    from tract_core.analysis.findings import Examination

_NO_OUTPUTS: Final = frozenset({"NoOp", "Assert", "Const", *PLACEHOLDERS, *FILLS})
"""Nodes that nobody reads and that are no outputs of a graph all the same."""


SAVED_MODEL: Final = b"\x08\x01"
"""How the file of a SavedModel begins: with the version of its form."""


class TensorflowLoader:
    """The formats of TensorFlow.

    ``registry``: the tables to ask about operators, those of the installed plugins by default. ``outputs``: the names
    of the tensors of a frozen graph that are wanted, with commas between them; those that no node reads by default.
    ``signature``: which way to use a SavedModel; the one called ``serving_default``, or the only one, by default.
    ``limits``: what a file may ask for.
    """

    def __init__(
        self,
        registry: Registry | None = None,
        *,
        outputs: str = "",
        signature: str = "",
        limits: LoadLimits = DEFAULT_LIMITS,
    ) -> None:
        self._registry = registry
        self._outputs = outputs
        self._signature = signature
        self._limits = limits
        self._problems: list[TractError] | None = None

    def load(self, path: str | os.PathLike[str]) -> InferenceModel:
        """The model in a file, or in the folder of a SavedModel, whose variables are read in place.

        Raises ModelError, and InputError for a signature that is not there.
        """
        path = Path(path)
        file = path / ENTRY if path.is_dir() else path
        try:
            return self._read(map_path(file, self._limits), file)
        except TractError as error:
            raise error.at(str(path)) from error.__cause__

    def load_bytes(self, content: bytes) -> InferenceModel:
        """The model in a file's content. A SavedModel with variables, which are in other files, is refused.

        Raises as `load`.
        """
        try:
            check_size(len(content), self._limits)
            return self._read(content, None)
        except TractError as error:
            raise error.at("model") from error.__cause__

    def examine(self, path: str | os.PathLike[str]) -> Examination:
        """Everything that is wrong with a file, and the model in it as far as it can be read."""
        from tract_core.analysis.findings import Examination

        loader = copy(self)
        loader._problems = problems = list[TractError]()
        try:
            model = loader.load(path)
        except TractError as error:
            return Examination(None, (*problems, error))
        return Examination(model, tuple(problems))

    def _read(self, content: mmap | bytes, path: Path | None) -> InferenceModel:
        name = "" if path is None else path.name
        with spending(self._limits), uncollected():
            if content[:2] == SAVED_MODEL:
                return self._saved(parse("SavedModel", content, "SavedModel", name), len(content), path)
            return self._frozen(parse("GraphDef", content, "frozen graph of TensorFlow", name), len(content))

    def _frozen(self, graph: Message, size: int) -> InferenceModel:
        model = self._new_model()
        inputs = [(node.name, 0) for node in graph.node if node.op in PLACEHOLDERS and not _is_left_over(node)]
        wanted = outputs_of_graph(graph, self._outputs)
        file = self._file(graph, size)
        file = replace(file, tables=Tables(file.tensors, {}, None).of(graph))
        file, nodes = in_new_form(file, graph.node, [*inputs, *wanted])
        found = NodesReader(file, model, nodes, {}).read([*inputs, *wanted])[len(inputs) :]
        model.set_outputs([as_outlet(value) for value in found])
        return model

    def _saved(self, saved: Message, size: int, path: Path | None) -> InferenceModel:
        meta = graph_to_serve(saved)
        signature, graph = signature_of(meta, self._signature), meta.graph_def
        places = {node.name: place for place, node in enumerate(graph.node)}
        inputs, outputs = (tensors_of(side, places) for side in (signature.inputs, signature.outputs))
        _check_count(len(inputs) + len(outputs))
        file = self._file(graph, size)
        tables = Tables(file.tensors, assets_of(meta), assets_beside(path, self._limits)).of(graph)
        file = replace(file, variables=variables_of(meta, path, self._limits), tables=tables)
        wanted = [*inputs.values(), *outputs.values()]
        file, nodes = in_new_form(file, graph.node, wanted)
        model = self._new_model()
        given = {
            node: model.add_source(check_name(name), fact_of_info(signature.inputs[name]))
            for name, (node, _) in inputs.items()
        }
        found = NodesReader(file, model, nodes, given).read(list(outputs.values()))
        model.set_outputs(
            [_under_name(file, model, as_outlet(one), name) for name, one in zip(outputs, found, strict=True)]
        )
        return model

    def _new_model(self) -> InferenceModel:
        model = InferenceModel(registry=self._registry)
        model.limits = self._limits
        return model

    def _file(self, graph: Message, size: int) -> TensorflowFile:
        functions = {function.signature.name: function for function in graph.library.function}
        if len(functions) < len(graph.library.function):
            raise CorruptModel("two functions have one name", where="graph")
        ops = Operators((self._registry or default_registry())[TENSORFLOW])
        outputs = outputs_of_functions(functions)
        file = TensorflowFile(
            ops, TensorReader(size, self._limits), functions, outputs, problems=self._problems, limits=self._limits
        )
        return functions_in_new_form(file)


def parse(kind: str, content: Any, what: str, name: str = "") -> Message:
    """A message of a file. Raises CorruptModel, which says what else the file is where it can."""
    message = CLASSES[kind]()
    check_parsed(content, kind, limits_now())
    try:
        message.ParseFromString(bytes(content))
    except (DecodeError, ValueError) as error:
        found = recognise(bytes(content[:HEAD]), name)
        if found is None or "TensorFlow" in found.what:
            raise CorruptModel(f"it is no {what}: {error}") from None
        raise CorruptModel(f"wanted a {what}, found {found.what}", hint=found.advice) from None
    except MemoryError:
        raise LimitExceeded("there is not enough memory to parse it") from None
    return message


def outputs_of_graph(graph: Message, names: str) -> list[Reference]:
    """The outputs of a frozen graph: those of ``names``, with commas between them, or what nothing reads.

    Raises CorruptModel where there are none, LimitExceeded for too many.
    """
    found = [in_graph(name.strip()) for name in names.split(",") if name.strip()] or _unread(graph.node)
    if not found:
        raise CorruptModel("the graph has no outputs", where="graph")
    return found


def _unread(nodes: Sequence[Message]) -> list[Reference]:
    """The nodes that no other one reads or waits for, in the order of the file. Raises LimitExceeded for too many."""
    read = {in_graph(text.removeprefix("^"))[0] for node in nodes for text in node.input}
    found = [(node.name, 0) for node in nodes if node.name not in read and node.op not in _NO_OUTPUTS]
    if is_old(nodes):
        found = _without_ends(nodes, found)
    _check_count(len(found))
    return found


def _is_left_over(node: Message) -> bool:
    """Whether a placeholder is one that TensorFlow leaves behind where it lowers a loop, and reads nowhere."""
    return node.name.rpartition("/")[2].startswith("unused_control_flow_input")


def _without_ends(nodes: Sequence[Message], found: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Without what branches and loops of TensorFlow 1 leave unread: what only says which branch it is, and counters."""
    by_name = {node.name: node for node in nodes}

    def is_switched(name: str) -> bool:
        node = by_name.get(name)
        if node is not None and node.op == "Identity" and node.input:
            node = by_name.get(in_graph(node.input[0].removeprefix("^"))[0])
        return node is not None and node.op in SWITCHES

    passing = [one for one in found if not is_switched(one[0])]
    return [one for one in passing if by_name[one[0]].op not in EXITS] or passing or found


def _check_count(count: int) -> None:
    allowed = limits_now().max_outputs
    if count > allowed:
        raise LimitExceeded(
            f"the graph has {count} inputs or outputs, {allowed} are allowed",
            where="graph",
            hint="a model that needs so many can be loaded with LoadLimits(max_outputs=...)",
        )


def _under_name(file: TensorflowFile, model: InferenceModel, outlet: OutletId, name: str) -> OutletId:
    """An output of the model, called as the signature has it; a node of its own where it is an input or has a name."""
    if isinstance(model.nodes[outlet.node].op, (Source, KnownTensor)) or outlet in model.outlet_labels:
        node = GraphNode("Identity", name, {}, (name,), file)
        function = file.ops.find("Identity")
        assert function is not None  # it is a row of this distribution
        return OutletId(model.add_node(name, GraphOp(node, function, (0,), {}), [InferenceFact()], [outlet]).id)
    model.set_label(outlet, check_name(name))
    return outlet
