"""TensorFlow as a partner of ``tract MODEL compare --with tensorflow``: it runs SavedModels and frozen graphs.

Functions are put in the place of their calls, by TensorFlow itself and under the names that its optimiser gives them,
which are those of this project's models; branches and loops stay nodes. Everything else that optimises is off.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import numpy as np
from google.protobuf.message import DecodeError

from tract_core.data import widened
from tract_core.errors import InputError, PluginError, RunError, TractError
from tract_core.plugins import Rows
from tract_core.plugins.keys import PARTNERS, Array
from tract_tensorflow.graphdef.graph import PLACEHOLDERS
from tract_tensorflow.graphdef.loader import SAVED_MODEL, outputs_of_graph
from tract_tensorflow.graphdef.old_graph import OLD
from tract_tensorflow.graphdef.references import in_graph
from tract_tensorflow.graphdef.saved_model import (
    ASSETS,
    ENTRY,
    INIT,
    VARIABLES,
    assets_of,
    graph_to_serve,
    signature_of,
)

ROWS = Rows()

_OLD_INITS: Final = ("saved_model_main_op", "legacy_init_op")
"""The collections that have what fills tables, in SavedModels of TensorFlow 1."""

_STAYS_A_NODE: Final = "_lower_using_switch_merge"
"""The attribute of branches and loops that has them taken apart."""


@ROWS.row(PARTNERS, "tensorflow")
def run_in_tensorflow(path: Path, inputs: Mapping[str, Array], options: Mapping[str, Any]) -> Mapping[str, Array]:
    """Every tensor that TensorFlow computes on the way to the outputs, by the names that models of this project have.

    ``options``: the ``signature`` of a SavedModel, the ``outputs`` of a frozen graph, as loaders of this project take
    them. Raises PluginError when TensorFlow is not installed, InputError for a missing input or a file of another kind,
    ModelError, RunError.
    """
    with _quiet():
        tensorflow = _imported()
        try:
            found = _run(tensorflow, path, inputs, options)
        except TractError as error:
            raise error.at(str(path)) from error.__cause__
        except OSError as error:
            raise RunError(f"cannot be read: {error.strerror or error}", where=str(path)) from error
        except Exception as error:  # its exceptions have no class in common but this one
            raise RunError(f"TensorFlow fails: {_in_short(error)}", where=str(path)) from error
    return {name: _array(value) for name, value in found.items()}


def _run(tensorflow: Any, path: Path, inputs: Mapping[str, Array], options: Mapping[str, Any]) -> dict[str, Any]:
    """What a run gives, by name."""
    content = (path / ENTRY if path.is_dir() else path).read_bytes()
    read = _saved if content.startswith(SAVED_MODEL) else _frozen
    with tensorflow.Graph().as_default(), tensorflow.compat.v1.Session(config=_plain(tensorflow)) as session:
        given, wanted = read(tensorflow, session, content, path, options)
        missing = [name for name in given if name not in inputs]
        if missing:
            raise InputError(f"TensorFlow wants the inputs {', '.join(missing)}, which have no value")
        fed = {one: _fed(inputs[name], one.dtype) for name, one in given.items()}
        return session.run(_computed(wanted.values()) | wanted, fed)


def _imported() -> Any:
    try:
        return import_module("tensorflow")
    except ImportError as error:
        hint = 'pip install "tract-tensorflow[check]"'
        raise PluginError(f"TensorFlow cannot be imported: {error}", hint=hint) from None


def _part(name: str) -> Any:
    """A module of TensorFlow that it does not show."""
    return import_module(f"tensorflow.{name}")


@contextmanager
def _quiet() -> Generator[None]:
    """Inside, what is written to the error stream of the process is dropped: TensorFlow talks there, from C++ too.

    What goes wrong is raised as well.
    """
    try:
        kept = os.dup(2)
    except OSError:  # there is no such stream
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _plain(tensorflow: Any) -> Any:
    """How a session computes what the graph says, node by node, on the processor."""
    config = tensorflow.compat.v1.ConfigProto(device_count={"GPU": 0})
    config.graph_options.rewrite_options.disable_meta_optimizer = True
    config.graph_options.optimizer_options.opt_level = -1
    return config


Tensors = dict[str, Any]
"""Tensors of a graph of TensorFlow, by the names that they have here."""


def _frozen(
    tensorflow: Any, session: Any, content: bytes, path: Path, options: Mapping[str, Any]
) -> tuple[Tensors, Tensors]:
    """Brings a frozen graph into the session's graph; returns its inputs and outputs."""
    message = _message(tensorflow.compat.v1.GraphDef, content)
    wanted = outputs_of_graph(message, options.get("outputs") or "")
    meta = tensorflow.compat.v1.MetaGraphDef(graph_def=message)
    _bring(tensorflow, meta, [name for name, _ in wanted])
    given = {
        node.name: session.graph.get_tensor_by_name(f"{node.name}:0")
        for node in message.node
        if node.op in PLACEHOLDERS
    }
    return given, {_name(one): one for one in _tensors(session, (f"{name}:{slot}" for name, slot in wanted))}


def _saved(
    tensorflow: Any, session: Any, content: bytes, path: Path, options: Mapping[str, Any]
) -> tuple[Tensors, Tensors]:
    """Brings the graph of a SavedModel into the session's graph, with its variables; returns one signature's sides."""
    meta = graph_to_serve(_message(_part("core.protobuf.saved_model_pb2").SavedModel, content))
    signature = signature_of(meta, options.get("signature") or "")
    saver = meta.saver_def
    first = _first(meta)
    outputs = {name: info.name for name, info in signature.outputs.items()}
    _bring(tensorflow, meta, [in_graph(name)[0] for name in (*outputs.values(), *first, *_restoring(saver))])
    folder = path if path.is_dir() else path.parent
    if (folder / f"{VARIABLES}.index").exists() and saver.restore_op_name:
        session.run(saver.restore_op_name, {saver.filename_tensor_name: str(folder / VARIABLES)})
    assets = {f"{name}:0": str(folder / ASSETS / file) for name, file in assets_of(meta).items()}
    for name in first:
        session.run(session.graph.as_graph_element(name), assets)
    given = {name: session.graph.get_tensor_by_name(info.name) for name, info in signature.inputs.items()}
    return given, dict(zip(outputs, _tensors(session, outputs.values()), strict=True))


def _first(meta: Any) -> list[str]:
    """What is run before all else, as it fills tables."""
    if INIT in meta.signature_def:
        return [one.name for one in meta.signature_def[INIT].outputs.values()]
    found = [meta.collection_def[key].node_list.value for key in _OLD_INITS if key in meta.collection_def]
    return [name for names in found for name in names]


def _restoring(saver: Any) -> list[str]:
    """What the nodes are called that read the variables, if any do."""
    return [name for name in (saver.restore_op_name, saver.filename_tensor_name) if name]


def _message(kind: Callable[[], Any], content: bytes) -> Any:
    message = kind()
    try:
        message.ParseFromString(content)
    except DecodeError:
        problem = "TensorFlow runs SavedModels and frozen graphs"
        raise InputError(problem, hint="name the one that MODEL was made from with --original") from None
    return message


def _bring(tensorflow: Any, meta: Any, kept: Iterable[str]) -> None:
    """Brings a graph into the one that is made now, with functions in the place of their calls.

    ``kept``: the nodes that are looked at from outside.
    """
    for nodes in (meta.graph_def.node, *(one.node_def for one in meta.graph_def.library.function)):
        for node in nodes:
            node.attr.pop(_STAYS_A_NODE, None)
    wanted = tensorflow.compat.v1.MetaGraphDef()
    wanted.CopyFrom(meta)
    wanted.collection_def["train_op"].node_list.value.extend(dict.fromkeys(kept))
    config = tensorflow.compat.v1.ConfigProto()
    rewriting = config.graph_options.rewrite_options
    rewriting.min_graph_nodes = -1
    rewriting.meta_optimizer_iterations = rewriting.ONE
    rewriting.optimizers.append("function")
    graph = _part("python.grappler.tf_optimizer").OptimizeGraph(config, wanted)
    tensorflow.graph_util.import_graph_def(graph, name="")


def _tensors(session: Any, names: Iterable[str]) -> list[Any]:
    return [session.graph.get_tensor_by_name(name if ":" in name else f"{name}:0") for name in names]


def _computed(outputs: Iterable[Any]) -> Tensors:
    """The tensors that the outputs need and that can be shown, by name."""
    needed = {one.op for one in outputs}
    pending, read, found = list(needed), set[str](), Tensors()
    while pending:
        inputs = pending.pop().inputs
        read |= {one.name for one in inputs}
        fresh = {one.op for one in inputs} - needed
        needed |= fresh
        pending += fresh
    unsure = set[Any]()  # in the branches and loops of TensorFlow 1, where a tensor may not be there, or several times
    for operation in sorted(needed, key=lambda one: one._id):
        if operation.type in OLD or any(one.op in unsure for one in operation.inputs):
            unsure.add(operation)
        elif operation.type != "Const":
            found |= {_name(one): one for one in operation.outputs if one.name in read and _is_shown(one.dtype)}
    return found


def _is_shown(kind: Any) -> bool:
    return kind.name not in ("resource", "variant") and not kind.is_quantized


def _name(tensor: Any) -> str:
    """What a tensor is called in models of this project."""
    return tensor.name.removesuffix(":0")


def _fed(array: Array, kind: Any) -> Array:
    """An input as TensorFlow takes it, in the type that it wants where that is a wider float."""
    return widened(np.asarray(array), np.dtype(kind.as_numpy_dtype))


def _array(value: Any) -> Array:
    """A tensor as it is here: with texts in place of bytes."""
    array = np.asarray(value)
    if array.dtype.kind not in "OS":
        return array
    texts = np.empty(array.shape, object)
    texts.reshape(-1)[:] = [one.decode(errors="replace") if isinstance(one, bytes) else one for one in array.ravel()]
    return texts


def _in_short(error: Exception) -> str:
    """What it says first: places in its sources come behind."""
    return " ".join(str(error).split())[:300] or type(error).__name__
