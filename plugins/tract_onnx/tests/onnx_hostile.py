"""What every hostile file is held to: a typed error that says where and what to do, in bounded memory and time."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper
from tract_onnx.frontend import OnnxLoader

from tract_core.errors import ModelError
from tract_core.limits import DEFAULT_LIMITS
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.testing.hostile import MEMORY, bounded

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def taken(model, limits=DEFAULT_LIMITS):
    """The model of a file, or of its content, typed and in normal form."""
    content = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    loader = OnnxLoader(limits=limits)
    loaded = loader.load(content) if isinstance(content, Path) else loader.load_bytes(content)
    loaded.analyse()
    return loaded.into_typed().declutter()


def refused(model, kind=ModelError, match=None, *, limits=DEFAULT_LIMITS):
    """Loading, typing or simplifying the model gives that error, in bounded memory and time."""
    with bounded(), pytest.raises(kind, match=match) as caught:
        taken(model, limits)
    check_message(caught.value)
    return caught.value


def tried(model, limits=DEFAULT_LIMITS, memory=MEMORY):
    """The model, or ``None`` where it is refused, in bounded memory and time and with all that an error has to say."""
    with bounded(memory=memory):
        try:
            return taken(model, limits)
        except ModelError as refusal:
            error = refusal
    check_message(error)
    return None


def check_message(error):
    """It is of the family, says where and what to do, and wraps no mistake of ours."""
    assert isinstance(error, ModelError)
    assert error.where
    assert error.hint
    assert "it cannot be wired: " not in error.problem
    assert len(str(error)) < 20_000


def fails(model, arrays, kind, match=None):
    """The model is taken, and its run gives that error, in bounded memory and time, simplified or not."""
    for declutter in (False, True):
        with bounded():
            typed = OnnxLoader().load_bytes(model.SerializeToString()).into_typed()
            plan = TypedSimplePlan(typed.declutter() if declutter else typed)
            with pytest.raises(kind, match=match) as caught:
                plan.run(arrays)
        assert caught.value.where


def gives(model, arrays, declutter=True):
    """What the model gives, in bounded memory and time."""
    with bounded():
        typed = OnnxLoader().load_bytes(model.SerializeToString()).into_typed()
        return TypedSimplePlan(typed.declutter() if declutter else typed).run(arrays)


def tensor_info(name, shape=(3,), kind=FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def any_info(name):
    return helper.make_value_info(name, onnx.TypeProto())


def model_of(nodes, inputs=(), outputs=("y",), constants=(), *, opset=17, functions=(), more_opsets=(), **fields):
    """``inputs``: declarations, or names of float vectors; ``outputs``: declarations, or names."""
    graph = helper.make_graph(
        nodes,
        "g",
        [tensor_info(one) if isinstance(one, str) else one for one in inputs],
        [any_info(one) if isinstance(one, str) else one for one in outputs],
        list(constants),
    )
    opsets = [helper.make_opsetid("", opset), *(helper.make_opsetid(*one) for one in more_opsets)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=list(functions), **fields)


def node(op_type, inputs, outputs=("y",), **attributes):
    return helper.make_node(op_type, list(inputs), list(outputs), **attributes)
