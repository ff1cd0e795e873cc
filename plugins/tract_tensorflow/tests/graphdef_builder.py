"""Graphs of TensorFlow made here, field by field: right ones, and such as no tool writes."""

from __future__ import annotations

import numpy as np
import pytest
from tract_tensorflow.graphdef.loader import TensorflowLoader
from tract_tensorflow.graphdef.protos import CLASSES
from tract_tensorflow.graphdef.tensors import ELEMENT_TYPES

import tract_core as tract
from tract_core.api.reading import handle_of
from tract_core.data import DatumType

CODES = {kind: code for code, kind in reversed(ELEMENT_TYPES.items())}


def tensor(array):
    array = np.asarray(array)
    found = CLASSES["TensorProto"](dtype=CODES[DatumType.from_numpy(array.dtype)], tensor_content=array.tobytes())
    for size in array.shape:
        found.tensor_shape.dim.add().size = size
    return found


def shape(*sizes):
    found = CLASSES["TensorShapeProto"]()
    for size in sizes:
        found.dim.add().size = size
    return found


def node(op, name, *inputs, **attributes):
    """``attributes``: integers, floats, flags, bytes, shapes, arrays; ``("type", code)``, ``("func", name)``."""
    found = CLASSES["NodeDef"](op=op, name=name, input=inputs)
    for key, value in attributes.items():
        attribute = found.attr[key]
        if isinstance(value, tuple):
            kind, what = value
            if kind == "func":
                attribute.func.name = what
            else:
                setattr(attribute, kind, what)
        elif isinstance(value, np.ndarray):
            attribute.tensor.CopyFrom(tensor(value))
        elif isinstance(value, CLASSES["TensorProto"]):
            attribute.tensor.CopyFrom(value)
        elif isinstance(value, CLASSES["TensorShapeProto"]):
            attribute.shape.CopyFrom(value)
        elif isinstance(value, list):
            attribute.list.i.extend(value)
        else:
            kind = {bool: "b", int: "i", float: "f", bytes: "s"}[type(value)]
            setattr(attribute, kind, value)
    return found


def placeholder(name="x", *sizes, code=1):
    return node("Placeholder", name, dtype=("type", code), shape=shape(*sizes))


def const(name, array):
    array = np.asarray(array)
    return node("Const", name, dtype=("type", CODES[DatumType.from_numpy(array.dtype)]), value=array)


def function(name, inputs, outputs, nodes):
    """``inputs``: names; ``outputs``: what each is, by name."""
    found = CLASSES["FunctionDef"](node_def=nodes)
    found.signature.name = name
    for one in inputs:
        found.signature.input_arg.add(name=one, type=1)
    for one, reference in outputs.items():
        found.signature.output_arg.add(name=one, type=1)
        found.ret[one] = reference
    return found


def graph(*nodes, functions=()):
    found = CLASSES["GraphDef"](node=nodes)
    found.library.function.extend(functions)
    return found


def content(*nodes, functions=()):
    return graph(*nodes, functions=functions).SerializeToString()


def saved_model(found, outputs, inputs=(), *, tags=("serve",), signature="serving_default"):
    """``inputs``, ``outputs``: the tensors of the signature, by name."""
    model = CLASSES["SavedModel"](saved_model_schema_version=1)
    meta = model.meta_graphs.add(graph_def=found)
    meta.meta_info_def.tags.extend(tags)
    for side, names in (("inputs", dict(inputs)), ("outputs", outputs)):
        for key, name in names.items():
            info = getattr(meta.signature_def[signature], side)[key]
            info.name, info.dtype = name, 1
            info.tensor_shape.dim.add().size = -1
    return model


def load(*nodes, functions=(), **options):
    """The model of a graph of these nodes."""
    return TensorflowLoader(**options).load_bytes(content(*nodes, functions=functions))


def refused(kind, *nodes, functions=(), **options):
    """What is said of a graph that cannot be loaded and typed."""
    with pytest.raises(kind) as caught:
        load(*nodes, functions=functions, **options).into_typed()
    return str(caught.value)


def run(model, *given):
    """The results of a model."""
    runnable = tract.runtime_for_name("reference").prepare(handle_of(model, "case").into_model())
    return [result.numpy() for result in runnable.run(list(given))]
