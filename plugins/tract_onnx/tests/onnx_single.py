"""Models of one node, of any domain and version, and what they give here and in ONNX Runtime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_check import assert_close, expected, load, run

from tract_core.errors import TractError

ML = "ai.onnx.ml"
MICROSOFT = "com.microsoft"


def kind_of(array):
    return TensorProto.STRING if array.dtype.kind in "OU" else helper.np_dtype_to_tensor_dtype(array.dtype)


def texts(*values):
    return np.array(values, dtype=object)


def node_model(op_type, inputs, domain=ML, *, version=1, opset=20, outputs=1, fixed=(), batch=None, **attributes):
    """``inputs``: arrays, ``None`` for one left out; ``fixed``: which of them are constants.

    ``batch``: a name for the first axis of the first input, and of those that have the same size there.
    """
    names = ["" if array is None else f"x{slot}" for slot, array in enumerate(inputs)]
    node = helper.make_node(op_type, names, [f"y{slot}" for slot in range(outputs)], domain=domain, **attributes)
    infos, constants = [], []
    for slot, array in enumerate(inputs):
        if slot in fixed:
            constants.append(numpy_helper.from_array(array, f"x{slot}"))
        elif array is not None:
            shares_batch = batch and array.shape[:1] == inputs[0].shape[:1] != ()
            shape = [batch, *array.shape[1:]] if shares_batch else array.shape
            infos.append(helper.make_tensor_value_info(f"x{slot}", kind_of(array), shape))
    results = [helper.make_value_info(f"y{slot}", onnx.TypeProto()) for slot in range(outputs)]
    graph = helper.make_graph([node], "single", infos, results, constants)
    opsets = [helper.make_opsetid("", opset)]
    if domain:
        opsets.append(helper.make_opsetid(domain, version))
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def feeds(inputs, fixed=()):
    return {f"x{slot}": array for slot, array in enumerate(inputs) if array is not None and slot not in fixed}


def outputs_of(op_type, inputs, domain=ML, *, declutter=True, fixed=(), **options):
    """What a model of one node gives here."""
    model = node_model(op_type, inputs, domain, fixed=fixed, **options)
    return run(model, feeds(inputs, fixed), declutter=declutter)


def same_as_onnxruntime(op_type, inputs, domain=ML, *, relative=1e-5, fixed=(), symbolic=True, **options):
    """As wired and decluttered, with fixed sizes and with a symbol for the batch."""
    given = feeds(inputs, fixed)
    wanted = expected(node_model(op_type, inputs, domain, fixed=fixed, **options), given)
    for batch in (None, "N") if symbolic else (None,):
        model = node_model(op_type, inputs, domain, fixed=fixed, batch=batch, **options)
        for declutter in (False, True):
            assert_close(run(model, given, declutter=declutter), wanted, relative)


def refused(error, match, op_type, inputs, domain=ML, **options):
    """Loading the model gives that error, which names the node."""
    with pytest.raises(error, match=match) as caught:
        load(node_model(op_type, inputs, domain, **options)).into_typed()
    assert isinstance(caught.value, TractError)
    assert op_type in str(caught.value.where)
