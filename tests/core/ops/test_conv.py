"""Convolutions: against ONNX Runtime, and their facts, costs, axes and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec, SameLower, SameUpper
from tract_core.plugins import default_registry
from tract_core.plugins.keys import AXES, COST

NCHW = DataFormat.NCHW
SHAPES = [
    ((2, 3, 9), (4, 3, 3), 1, [2], [1], [1, 1]),
    ((2, 4, 11), (6, 2, 3), 2, [1], [3], [2, 3]),
    ((1, 3, 10, 9), (5, 3, 3, 2), 1, [2, 1], [1, 2], [1, 0, 2, 1]),
    ((2, 6, 8, 8), (6, 1, 3, 3), 6, [1, 1], [1, 1], [1, 1, 1, 1]),
    ((1, 6, 8, 8), (12, 1, 3, 3), 6, [2, 2], [2, 2], [2, 2, 2, 2]),
    ((1, 4, 5, 6, 7), (6, 2, 2, 3, 1), 2, [1, 2, 2], [2, 1, 1], [1, 1, 0, 0, 1, 0]),
]


def facts(*texts: str) -> list[TypedFact]:
    return [parse_typed_fact(text) for text in texts]


def floats(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    random = np.random.default_rng(3)
    return [random.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.parametrize("setting", SHAPES, ids=str)
def test_agrees_with_onnx_runtime(run_op: Any, run_onnx: Any, setting: Any) -> None:
    x, kernel, group, strides, dilations, pads = setting
    arrays = floats(x, kernel, kernel[:1])
    rank = len(strides)
    pool = PoolSpec(
        NCHW, kernel[2:], Explicit(tuple(pads[:rank]), tuple(pads[rank:])), tuple(dilations), tuple(strides)
    )
    (found,) = run_op(Conv(pool, group=group), arrays)
    (wanted,) = run_onnx("Conv", arrays, group=group, strides=strides, dilations=dilations, pads=pads)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("padding", "name"), [(SameUpper(), "SAME_UPPER"), (SameLower(), "SAME_LOWER")], ids=str)
@pytest.mark.parametrize("stride", [1, 2, 4])
def test_same_padding_agrees_with_onnx_runtime(
    run_op: Any, run_onnx: Any, padding: Any, name: str, stride: int
) -> None:
    for size in (5, 6, 7, 8):
        arrays = floats((1, 2, size), (3, 2, 3), (3,))
        (found,) = run_op(Conv(PoolSpec(NCHW, (3,), padding, strides=(stride,))), arrays)
        (wanted,) = run_onnx("Conv", arrays, auto_pad=name, strides=[stride])
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("per_channel", [False, True])
@pytest.mark.parametrize(("data", "weights"), [("uint8", "int8"), ("uint8", "uint8"), ("int8", "int8")])
def test_quantised_agrees_with_onnx_runtime(
    run_op: Any, run_onnx: Any, data: str, weights: str, per_channel: bool
) -> None:
    random = np.random.default_rng(5)
    x = random.integers(0, 100, (1, 4, 6, 6)).astype(data)
    kernel = random.integers(0, 100, (6, 2, 3, 3)).astype(weights)
    bias = random.integers(-500, 500, 6).astype(np.int32)
    zero = 0 if weights == "int8" else 7
    kernel_zero = np.array([zero] * 6 if per_channel else zero, weights)
    kernel_scale = np.array(random.uniform(0.01, 0.03, 6) if per_channel else 0.02, np.float32)
    x_zero, y_zero = np.array(11, data), np.array(20, data)
    x_scale, y_scale = np.array(0.05, np.float32), np.array(0.4, np.float32)

    pool = PoolSpec(NCHW, (3, 3), Explicit((1, 1), (1, 1)), strides=(2, 1))
    op = Conv(pool, group=2, q_output=DatumType.from_numpy(data))
    (found,) = run_op(op, [x, kernel, bias, x_zero, x_scale, kernel_zero, kernel_scale, y_zero, y_scale])
    arrays = [x, x_scale, x_zero, kernel, kernel_scale, kernel_zero, y_scale, y_zero, bias]
    (wanted,) = run_onnx("QLinearConv", arrays, group=2, pads=[1, 1, 1, 1], strides=[2, 1])
    assert found.dtype == wanted.dtype
    np.testing.assert_array_equal(found, wanted)


def test_what_is_no_number_becomes_the_zero_point_in_steps_of_the_output(run_op: Any) -> None:
    op = Conv(PoolSpec(NCHW, (1,)), q_output=DatumType.I32)
    x, kernel, zero = np.array([[[3, -3, 0]]], np.int8), np.ones((1, 1, 1), np.int8), np.array(0, np.int8)
    scales = [np.array(one, np.float32) for one in (np.inf, 1, 1)]
    parameters = [zero, scales[0], zero, scales[1], np.array(7, np.int32), scales[2]]
    with np.errstate(invalid="ignore"):
        (found,) = run_op(op, [x, kernel, np.array(0, np.int32), *parameters])
    np.testing.assert_array_equal(found, [[[2**31 - 1, -(2**31), 7]]])


@pytest.mark.parametrize(
    ("pool", "x", "kernel", "expected"),
    [
        (PoolSpec(NCHW, (7,), Explicit((3,), (3,)), strides=(2,)), "B,C,S,f32", "64,C,7,f32", "B,64,(S+1)/2,f32"),
        (PoolSpec(NCHW, (5,), SameUpper(), strides=(4,)), "B,3,S,f32", "64,3,5,f32", "B,64,(S+3)/4,f32"),
        (PoolSpec(NCHW, (3,)), "B,3,S,f16", "O,3,3,f16", "B,O,S-2,f16"),
        (PoolSpec(NCHW, (3, 1), dilations=(2, 1)), "1,3,H,W,f32", "8,3,3,1,f32", "1,8,H-4,W,f32"),
    ],
    ids=str,
)
def test_sizes_are_symbolic(pool: PoolSpec, x: str, kernel: str, expected: str) -> None:
    kind = x.rpartition(",")[2]
    assert [str(fact) for fact in Conv(pool).output_facts(facts(x, kernel, kind))] == [expected]


def test_integers_come_out_as_i32() -> None:
    (fact,) = Conv(PoolSpec(NCHW, (3,))).output_facts(facts("1,2,9,i8", "4,2,3,u8", "4,i32"))
    assert str(fact) == "1,4,7,i32"


def test_cost_counts_every_product() -> None:
    op = Conv(PoolSpec(NCHW, (3, 3), Explicit((1, 1), (1, 1))), group=2)
    inputs = facts("B,8,H,W,f32", "6,4,3,3,f32", "6,f32")
    cost = default_registry()[COST][Conv](op, inputs, op.output_facts(inputs))
    assert {kind: str(count) for kind, count in cost.items()} == {"FMA(F32)": "216*B*H*W"}


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        # no group: batch, contraction and output channels; the strided and the wide axis are cut off
        (Conv(PoolSpec(NCHW, (1, 3))), ["B,2,H,W,f32", "5,2,1,3,f32", "5,f32"], "abcd,jbgh,j->ajcl"),
        (Conv(PoolSpec(NCHW, (1,), strides=(2,))), ["B,2,H,f32", "5,2,1,f32", "f32"], "abc,hbf,->ahi"),
        (Conv(PoolSpec(NCHW, (1,)), group=2), ["B,2,H,f32", "4,1,1,f32", "4,f32"], "abc,def,g->aic"),
        (
            Conv(PoolSpec(DataFormat.HWC, (1,)), KernelFormat.HWIO),
            ["H,2,f32", "1,2,5,f32", "f32"],
            "ab,cbg,->ag",
        ),
    ],
    ids=str,
)
def test_axes(op: Conv, inputs: list[str], expected: str) -> None:
    given = facts(*inputs)
    mapping = default_registry()[AXES][Conv](op, given, op.output_facts(given))
    assert _shape_of(str(mapping)) == _shape_of(expected)


def _shape_of(expression: str) -> list[Any]:
    """The same expression for mappings that only differ in the choice of letters."""
    seen: dict[str, int] = {}
    return [seen.setdefault(c, len(seen)) if c.isalpha() else c for c in expression]


GOOD = ("1,4,9,f32", "6,2,3,f32", "6,f32")


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (GOOD[:2], "Conv takes 3 inputs, 2 were given"),
        (("1,4,9,9,f32", *GOOD[1:]), "the input 1,4,9,9,f32 has rank 4; a kernel of 1 axes on NCHW data wants rank 3"),
        ((GOOD[0], "6,2,f32", "6,f32"), "the kernel 6,2,f32 has rank 2, not 3"),
        ((GOOD[0], "6,2,5,f32", "6,f32"), r"the kernel 6,2,5,f32 is not \[3\] on its spatial axes"),
        (("1,5,9,f32", *GOOD[1:]), "the data 1,5,9,f32 has 5 channels, the kernel 6,2,3,f32 wants 2 groups of 2"),
        ((GOOD[0], "5,2,3,f32", "5,f32"), "5 output channels cannot be cut into 2 groups"),
        ((*GOOD[:2], "5,f32"), "the bias is 5,f32, a scalar or 6 elements was wanted"),
        ((*GOOD[:2], "6,f64"), "the bias 6,f64 is not of the output's type, f32"),
        ((GOOD[0], "6,2,3,f16", "6,f32"), "data and kernel are of different types: 1,4,9,f32 and 6,2,3,f16"),
        (("1,4,1,f32", *GOOD[1:]), "on spatial axis 0 a window over 3 elements does not fit into 1 padded by 0 and 0"),
        (("1,4,9,bool", "6,2,3,bool", "6,bool"), "Conv wants plain numbers, found 1,4,9,bool"),
    ],
)
def test_refusals(inputs: tuple[str, ...], message: str) -> None:
    with pytest.raises(FactError, match=message):
        Conv(PoolSpec(NCHW, (3,)), group=2).output_facts(facts(*inputs))


@pytest.mark.parametrize(
    ("changed", "to", "message"),
    [
        (0, "1,4,9,f32", "a quantised convolution wants integers, found 1,4,9,f32 and 6,2,3,i8"),
        (2, "6,f32", "the bias of a quantised convolution is in i32, found 6,f32"),
        (3, "6,u8", "the data zero point is 6,u8, a scalar was wanted"),
        (4, "i32", "the data scale is a floating-point number, found i32"),
        (6, "4,f32", "the kernel scale is 4,f32, a scalar or 6 elements was wanted"),
        (7, "f32", "the output zero point is an integer, found f32"),
    ],
)
def test_quantised_refusals(changed: int, to: str, message: str) -> None:
    inputs = ["1,4,9,u8", "6,2,3,i8", "6,i32", "u8", "f32", "6,i8", "6,f32", "u8", "f32"]
    op = Conv(PoolSpec(NCHW, (3,)), group=2, q_output=DatumType.U8)
    assert str(op.output_facts(facts(*inputs))[0]) == "1,6,7,u8"
    inputs[changed] = to
    with pytest.raises(FactError, match=message):
        op.output_facts(facts(*inputs))
