"""Sizes that must be equal are equal: what ONNX Runtime refuses in a run is refused here, by the name of the node.

Every axis of every input of an operator is a symbol of its own, and is given other sizes, 0 and 1 among them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_check import assert_close, expected, load, single, with_output_types

from tract_core.errors import TractError
from tract_core.runtime.plan import TypedSimplePlan

RANDOM = np.random.default_rng(7)
SIZES = (0, 1, 2, 3)


def f32(*shape):
    return RANDOM.uniform(0.5, 2.0, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def u8(*shape):
    return RANDOM.integers(0, 9, shape).astype(np.uint8)


@dataclass
class Case:
    """One node. ``fixed``: inputs that are constants; ``empty``: whether sizes of 0 are compared too.

    ``ours``: the inputs for which ONNX Runtime lets more sizes pass than the standard does: it stretches what is no
    broadcast (a label of Einsum, the slope of PRelu, the batch of GatherND) and cuts a condition of Compress.
    """

    op_type: str
    inputs: list[Any]
    attributes: dict[str, Any] = field(default_factory=dict)
    fixed: tuple[int, ...] = ()
    outputs: int = 1
    opset: int = 17
    domain: str = ""
    empty: bool = True
    ours: tuple[int, ...] = ()

    def __str__(self):
        return "-".join(map(str, [self.op_type, *self.attributes.values()]))


X = f32(2, 3, 4)
IMAGE = f32(2, 4, 5, 5)
RECURRENT = [f32(3, 2, 4), None, None, None, i64(1, 1).astype(np.int32), f32(1, 2, 5)]


def recurrent(op_type, gates, **attributes):
    inputs = list(RECURRENT)
    inputs[1:4] = [f32(1, gates * 5, 4), f32(1, gates * 5, 5), f32(1, gates * 10)]
    if op_type == "LSTM":
        inputs += [f32(1, 2, 5), f32(1, 15)]
    return Case(op_type, inputs, {"hidden_size": 5, **attributes}, outputs=2, empty=False)


MICROSOFT = "com.microsoft"

CASES = [
    # products
    Case("MatMul", [f32(2, 3), f32(3, 2)]),
    Case("MatMul", [f32(2, 2, 3), f32(3, 2)]),
    Case("MatMul", [f32(2, 2, 3), f32(1, 3, 2)]),
    Case("MatMul", [f32(3), f32(3, 2)]),
    Case("Gemm", [f32(2, 3), f32(3, 2), f32(2, 2)]),
    Case("Gemm", [f32(3, 2), f32(2, 3), f32(2)], {"transA": 1, "transB": 1}),
    Case("Gemm", [f32(2, 3), f32(3, 2), f32(2, 1)]),
    Case("Einsum", [f32(2, 3), f32(3, 2)], {"equation": "ij,jk->ik"}, ours=(0, 1)),
    Case("Einsum", [f32(2, 3), f32(2, 3)], {"equation": "ij,ij->i"}, ours=(0, 1)),
    Case("Einsum", [f32(3, 3)], {"equation": "ii->i"}),
    Case("MatMulInteger", [u8(2, 3), u8(3, 2)]),
    Case("FusedMatMul", [f32(2, 3), f32(3, 2)], {"transA": 0}, domain=MICROSOFT),
    # normalisations
    Case("LayerNormalization", [f32(2, 4), f32(4), f32(4)], empty=False),
    Case("BatchNormalization", [f32(2, 3, 2), f32(3), f32(3), f32(3), f32(3)], empty=False),
    Case("InstanceNormalization", [f32(2, 3, 2), f32(3), f32(3)], empty=False),
    Case(
        "SkipLayerNormalization",
        [f32(2, 3, 4), f32(2, 3, 4), f32(4), f32(4)],
        domain=MICROSOFT,
        empty=False,
        ours=(0, 1),
    ),
    # recurrent networks
    recurrent("LSTM", 4),
    recurrent("GRU", 3),
    recurrent("RNN", 1),
    # elements
    Case("Add", [X, f32(3, 1)]),
    Case("Where", [f32(2, 3) > 1, f32(3), f32(2, 1)]),
    Case("PRelu", [X, f32(3, 1)], ours=(0, 1)),
    Case("Clip", [X, np.float32(0), np.float32(1)]),
    # parts
    Case("Concat", [f32(2, 3), f32(2, 2)], {"axis": 1}, empty=False),
    Case("Gather", [f32(3, 2), i64(2, 0)], {"axis": 0}, fixed=(1,), opset=13),
    Case("GatherElements", [f32(3, 2), i64(2, 0).reshape(1, 2)], {"axis": 0}, fixed=(1,)),
    Case("GatherND", [f32(2, 3, 2), i64(0, 1).reshape(2, 1)], {"batch_dims": 1}, fixed=(1,), ours=(0,)),
    Case("ScatterElements", [f32(3, 2), i64(2, 0).reshape(1, 2), f32(1, 2)], {"axis": 0}, fixed=(1,)),
    Case("ScatterND", [f32(3, 2), i64(2, 0).reshape(2, 1), f32(2, 2)], fixed=(1,)),
    Case("Split", [f32(3, 2), i64(1, 2)], {"axis": 0}, fixed=(1,), outputs=2),
    Case("Split", [f32(2, 2)], {"axis": 0}, outputs=2),
    Case("Slice", [X, i64(1, -1), i64(9, 9), i64(1, 2)], fixed=(1, 2, 3)),
    Case("Squeeze", [f32(1, 3), i64(0)], fixed=(1,)),
    Case("Reshape", [f32(2, 3), i64(3, 2)], fixed=(1,)),
    Case("Reshape", [f32(2, 4), i64(0, 2, -1)], fixed=(1,), empty=False),
    Case("Expand", [f32(1, 3), i64(2, 1)], fixed=(1,)),
    Case("ReverseSequence", [f32(3, 2), i64(1, 1)], {"time_axis": 0, "batch_axis": 1}, empty=False),
    Case("Compress", [f32(3, 2), np.array([True, False, True])], {"axis": 0}, empty=False, ours=(0, 1)),
    # windows
    Case("Conv", [IMAGE, f32(3, 4, 3, 3), f32(3)], {"kernel_shape": [3, 3], "pads": [1] * 4}, fixed=(1,), empty=False),
    Case("Conv", [IMAGE, f32(4, 2, 1, 1)], {"kernel_shape": [1, 1], "group": 2}, fixed=(1,), empty=False),
    Case("ConvTranspose", [IMAGE, f32(4, 3, 2, 2), f32(3)], {"kernel_shape": [2, 2]}, fixed=(1,), empty=False),
    Case("DepthToSpace", [IMAGE], {"blocksize": 2}, empty=False),
    Case("SpaceToDepth", [f32(1, 2, 4, 4)], {"blocksize": 2}, empty=False),
    Case("GridSample", [f32(2, 2, 3, 3), f32(2, 2, 2, 2)], empty=False),
    # quantisation
    Case("QuantizeLinear", [f32(2, 3), f32(3), u8(3)], {"axis": 1}),
    Case("DequantizeLinear", [u8(2, 3), f32(3), u8(3)], {"axis": 1}),
    # the rest
    Case("Det", [f32(2, 3, 3)]),
    Case("OneHot", [i64(0, 1), i64(3), f32(2)], fixed=(1,), empty=False),
    Case("TopK", [f32(3, 2), i64(2)], {"axis": 0}, fixed=(1,), outputs=2),
    Case("RoiAlign", [f32(2, 2, 4, 4), f32(2, 4), i64(0, 0)], {"output_height": 2, "output_width": 2}, empty=False),
]


def symbolic(case, shapes_only=False):
    """The model of one node, every axis a symbol, and its inputs; its outputs or, for a second one, their shapes."""
    model, inputs = single(
        case.op_type,
        case.inputs,
        opset=case.opset,
        fixed=case.fixed,
        outputs=case.outputs,
        domain=case.domain,
        **case.attributes,
    )
    for info in model.graph.input:
        for axis, dim in enumerate(info.type.tensor_type.shape.dim):
            dim.dim_param = f"{info.name}_{axis}"
    if shapes_only:
        names = [info.name for info in model.graph.output]
        model.graph.node.extend(helper.make_node("Shape", [name], [f"shape_{name}"]) for name in names)
        del model.graph.output[:]
        for name in names:
            model.graph.output.append(helper.make_tensor_value_info(f"shape_{name}", TensorProto.INT64, None))
    return model, inputs


def resized(case, inputs) -> Iterator[tuple[str, dict[str, Any]]]:
    """The inputs, and the inputs with one axis of another size."""
    yield "as they should be", inputs
    for name, array in inputs.items():
        for axis in range(array.ndim):
            for size in SIZES if case.empty else SIZES[1:]:
                shape = (*array.shape[:axis], size, *array.shape[axis + 1 :])
                if shape != array.shape:
                    yield f"{name} of shape {list(shape)}", {**inputs, name: np.resize(array, shape)}


def plans(model):
    typed = load(model).into_typed()
    return [TypedSimplePlan(typed), TypedSimplePlan(typed.clone().declutter())]


def tried(plan, inputs):
    """What a plan gives, or the error that refuses the inputs."""
    try:
        return plan.run([inputs[name] for name in plan.input_names])
    except TractError as error:
        return error


@pytest.mark.parametrize("case", CASES, ids=str)
def test_runs_are_refused_that_onnx_runtime_refuses(case):
    model, given = symbolic(case)
    shapes = symbolic(case, shapes_only=True)[0]
    named = with_output_types(model) if not case.domain else model
    complete, only_shapes = plans(model), plans(shapes)
    for what, inputs in resized(case, given):
        try:
            wanted = expected(named, inputs)
        except Exception:  # whatever it raises, it refuses
            wanted = None
        found = [tried(plan, inputs) for plan in complete]
        sizes = [tried(plan, inputs) for plan in only_shapes]
        if any(what.startswith(f"x{slot}") for slot in case.ours):
            wanted = None if isinstance(found[0], TractError) else found[0]
        for one in found + sizes:
            assert isinstance(one, TractError) == (wanted is None), (what, one)
            told = re.match("node ('the_node'|'y0)", str(getattr(one, "where", "")))
            assert wanted is not None or told, (what, one)
        if wanted is not None:
            for one in found:
                assert_close(one, wanted)
            for one in sizes:
                assert [shape.tolist() for shape in one] == [list(array.shape) for array in wanted], what
