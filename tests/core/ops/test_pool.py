"""Pools: against ONNX Runtime, and their facts, costs, axes and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, ExplicitOnnxPool, PoolSpec, SameLower, SameUpper
from tract_core.plugins import default_registry
from tract_core.plugins.keys import AXES, COST

NCHW = DataFormat.NCHW
SHAPES = [
    ((2, 3, 9), (3,), [2], [1], [1, 1]),
    ((1, 2, 7, 8), (3, 2), [2, 2], [1, 1], [1, 0, 1, 1]),
    ((1, 2, 7, 8), (2, 2), [3, 3], [1, 1], [0, 0, 0, 0]),
    ((1, 2, 10, 9), (3, 3), [2, 1], [2, 2], [1, 2, 2, 1]),
    ((1, 2, 5, 6, 7), (2, 3, 2), [2, 2, 2], [1, 1, 1], [1, 1, 1, 0, 1, 0]),
    ((1, 1, 6, 6), (3, 3), [4, 4], [1, 1], [2, 2, 2, 2]),
    ((1, 1, 6, 6), (3, 3), [2, 2], [1, 1], [0, 0, 2, 2]),
]


def data_of(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("ceil", [False, True])
@pytest.mark.parametrize("setting", SHAPES, ids=str)
def test_agrees_with_onnx_runtime(run_op: Any, run_onnx: Any, setting: Any, ceil: bool) -> None:
    shape, kernel, strides, dilations, pads = setting
    x, rank = data_of(shape), len(strides)
    padding = ExplicitOnnxPool(tuple(pads[:rank]), tuple(pads[rank:]), ceil)
    pool = PoolSpec(NCHW, kernel, padding, tuple(dilations), tuple(strides))
    how = {"kernel_shape": kernel, "strides": strides, "dilations": dilations, "pads": pads, "ceil_mode": int(ceil)}

    values, places = run_onnx("MaxPool", [x], outputs=2, **how)
    found = run_op(MaxPool(pool, DatumType.I64), [x])
    np.testing.assert_array_equal(found[0], values)
    np.testing.assert_array_equal(found[1], places)
    np.testing.assert_array_equal(run_op(MaxPool(pool), [x])[0], values)

    for include in (False, True):
        (wanted,) = run_onnx("AveragePool", [x], opset=22, count_include_pad=int(include), **how)
        (mean,) = run_op(SumPool(pool, count_include_pad=include), [x])
        np.testing.assert_allclose(mean, wanted, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("padding", "name"), [(SameUpper(), "SAME_UPPER"), (SameLower(), "SAME_LOWER")], ids=str)
@pytest.mark.parametrize("size", [6, 7])
def test_same_padding_agrees_with_onnx_runtime(run_op: Any, run_onnx: Any, padding: Any, name: str, size: int) -> None:
    x = data_of((1, 2, size, size))
    pool = PoolSpec(NCHW, (3, 2), padding, strides=(2, 2))
    how = {"kernel_shape": [3, 2], "strides": [2, 2], "auto_pad": name}
    np.testing.assert_array_equal(run_op(MaxPool(pool), [x])[0], run_onnx("MaxPool", [x], **how)[0])
    mean, wanted = run_op(SumPool(pool), [x])[0], run_onnx("AveragePool", [x], **how)[0]
    np.testing.assert_allclose(mean, wanted, rtol=1e-5, atol=1e-6)


def test_sizes_are_symbolic_and_indices_have_their_own_type() -> None:
    padding = ExplicitOnnxPool((0,), (0,), ceil_mode=True)
    op = MaxPool(PoolSpec(NCHW, (2,), padding, strides=(2,)), DatumType.I32)
    assert [str(fact) for fact in op.output_facts([parse_typed_fact("B,C,S,f16")])] == [
        "B,C,(S+1)/2,f16",
        "B,C,(S+1)/2,i32",
    ]


def test_cost() -> None:
    op = SumPool(PoolSpec(NCHW, (2, 3)))
    inputs = [parse_typed_fact("B,C,4,4,f32")]
    cost = default_registry()[COST][SumPool](op, inputs, op.output_facts(inputs))
    assert {kind: str(count) for kind, count in cost.items()} == {"FMA(F32)": "36*B*C", "DIV(F32)": "6*B*C"}


def test_only_the_pooled_axes_are_cut_off_and_all_axes_of_indices() -> None:
    op = MaxPool(PoolSpec(NCHW, (1, 3)), DatumType.I64)
    inputs = [parse_typed_fact("B,C,H,W,f32")]
    axes = default_registry()[AXES][MaxPool](op, inputs, op.output_facts(inputs))
    assert axes.outputs[0][:3] == axes.inputs[0][:3]
    assert axes.outputs[0][3] not in axes.inputs[0]
    assert not set(axes.outputs[1]) & set(axes.inputs[0] + axes.outputs[0])


@pytest.mark.parametrize(
    ("op", "x", "message"),
    [
        (MaxPool(PoolSpec(NCHW, (2,))), "1,2,9,bool", "MaxPool wants real numbers, found 1,2,9,bool"),
        (MaxPool(PoolSpec(NCHW, (2,)), DatumType.F32), "1,2,9,f32", "MaxPool: indices are integers, not f32"),
        (MaxPool(PoolSpec(NCHW, (2,), input_channels=3)), "1,2,9,f32", "has 2 channels, 3 are wanted"),
        (SumPool(PoolSpec(NCHW, (2,))), "1,2,9,i32", "SumPool wants floating-point numbers to divide, found 1,2,9,i32"),
        (SumPool(PoolSpec(NCHW, (4,))), "1,2,2,f32", "a window over 4 elements does not fit into 2 padded by 0 and 0"),
    ],
    ids=str,
)
def test_refusals(op: Any, x: str, message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(x)])
