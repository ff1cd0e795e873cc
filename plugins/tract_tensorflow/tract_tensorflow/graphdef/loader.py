"""Load models of TensorFlow: frozen graphs, and the folders of SavedModels."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from google.protobuf.message import DecodeError

from tract_core.analysis.inference import InferenceModel
from tract_core.errors import CorruptModel, LimitExceeded, TractError
from tract_core.garbage import uncollected
from tract_core.limits import DEFAULT_LIMITS, LoadLimits, limits_now, spending
from tract_core.lookalikes import HEAD, recognise
from tract_core.plugins import Registry, default_registry
from tract_core.safe_files import check_size, map_path
from tract_tensorflow.graphdef.file import TensorflowFile
from tract_tensorflow.graphdef.graph import PLACEHOLDERS, GraphReader, as_outlet
from tract_tensorflow.graphdef.operators import Operators
from tract_tensorflow.graphdef.protos import CLASSES, Message
from tract_tensorflow.graphdef.references import in_graph
from tract_tensorflow.graphdef.registry import TENSORFLOW
from tract_tensorflow.graphdef.tensors import TensorReader

_NO_OUTPUTS: Final = frozenset({"NoOp", "Assert", "Const", *PLACEHOLDERS})
"""Nodes that nobody reads and that are no outputs of a graph all the same."""


class TensorflowLoader:
    """The formats of TensorFlow.

    ``registry``: the tables to ask about operators, those of the installed plugins by default. ``outputs``: the names
    of the tensors of a frozen graph that are wanted, with commas between them; those that no node reads by default.
    ``limits``: what a file may ask for.
    """

    def __init__(
        self,
        registry: Registry | None = None,
        *,
        outputs: str = "",
        limits: LoadLimits = DEFAULT_LIMITS,
    ) -> None:
        self._registry = registry
        self._outputs = [name.strip() for name in outputs.split(",") if name.strip()]
        self._limits = limits

    def load(self, path: str | os.PathLike[str]) -> InferenceModel:
        """The model in a file. Raises ModelError."""
        path = Path(path)
        try:
            return self._read(map_path(path, self._limits), path.name)
        except TractError as error:
            raise error.at(str(path)) from error.__cause__

    def load_bytes(self, content: bytes) -> InferenceModel:
        """The model in a file's content. Raises ModelError."""
        try:
            check_size(len(content), self._limits)
            return self._read(content)
        except TractError as error:
            raise error.at("model") from error.__cause__

    def _read(self, content: Any, name: str = "") -> InferenceModel:
        with spending(self._limits), uncollected():
            graph = parse("GraphDef", content, "frozen graph of TensorFlow", name)
            return self._frozen(graph, len(content))

    def _frozen(self, graph: Message, size: int) -> InferenceModel:
        model = InferenceModel(registry=self._registry)
        model.limits = self._limits
        reader = GraphReader(self._file(graph, size), model, graph.node, {})
        inputs = [(node.name, 0) for node in graph.node if node.op in PLACEHOLDERS]
        wanted = [in_graph(name) for name in self._outputs] or _unread(graph.node)
        if not wanted:
            raise CorruptModel("the graph has no outputs", where="graph")
        found = reader.read([*inputs, *wanted])[len(inputs) :]
        model.set_outputs([as_outlet(value) for value in found])
        return model

    def _file(self, graph: Message, size: int) -> TensorflowFile:
        functions = {function.signature.name: function for function in graph.library.function}
        if len(functions) < len(graph.library.function):
            raise CorruptModel("two functions have one name", where="graph")
        ops = Operators((self._registry or default_registry())[TENSORFLOW])
        return TensorflowFile(ops, TensorReader(size, self._limits), functions, limits=self._limits)


def parse(kind: str, content: Any, what: str, name: str = "") -> Message:
    """A message of a file. Raises CorruptModel, which says what else the file is where it can."""
    message = CLASSES[kind]()
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


def _unread(nodes: Sequence[Message]) -> list[tuple[str, int]]:
    """The nodes that no other one reads, in the order of the file. Raises LimitExceeded for too many."""
    read = {in_graph(text.removeprefix("^"))[0] for node in nodes for text in node.input}
    found = [(node.name, 0) for node in nodes if node.name not in read and node.op not in _NO_OUTPUTS]
    allowed = limits_now().max_outputs
    if len(found) > allowed:
        raise LimitExceeded(f"the graph has {len(found)} outputs, {allowed} are allowed", where="graph")
    return found
