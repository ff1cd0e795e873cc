"""Deconvolutions: against ONNX Runtime, and their facts, costs, axes and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec, SameLower, SameUpper, Valid
from tract_core.plugins import default_registry
from tract_core.plugins.keys import AXES, COST

NCHW = DataFormat.NCHW
SHAPES = [
    ((2, 4, 5), (4, 3, 3), 1, [2], [1], [1, 1], [1]),
    ((1, 4, 5, 6), (4, 3, 3, 2), 2, [2, 3], [1, 2], [1, 0, 2, 1], [0, 2]),
    ((1, 6, 5, 6), (6, 1, 3, 3), 6, [2, 2], [1, 1], [1, 1, 1, 1], [1, 1]),
    ((1, 2, 3, 4, 3), (2, 3, 2, 2, 3), 1, [1, 2, 1], [2, 1, 1], [0] * 6, [0] * 3),
    ((1, 2, 4, 4), (2, 3, 2, 2), 1, [3, 3], [1, 1], [0] * 4, [2, 2]),
]


def from_onnx(kernel: np.ndarray[Any, Any], group: int) -> np.ndarray[Any, Any]:
    """ONNX's (C, O / group, spatial) as (O, C / group, spatial)."""
    grouped = kernel.reshape(group, kernel.shape[0] // group, *kernel.shape[1:]).swapaxes(1, 2)
    return grouped.reshape(-1, *grouped.shape[2:])


@pytest.mark.parametrize("auto_pad", ["NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("setting", SHAPES, ids=str)
def test_agrees_with_onnx_runtime(run_op: Any, run_onnx: Any, auto_pad: str, setting: Any) -> None:
    x, kernel, group, strides, dilations, pads, extra = setting
    random, rank = np.random.default_rng(3), len(strides)
    shapes = [x, kernel, (kernel[1] * group,)]
    data, weights, bias = (random.standard_normal(shape).astype(np.float32) for shape in shapes)
    padding = {
        "NOTSET": Explicit(tuple(pads[:rank]), tuple(pads[rank:])),
        "VALID": Valid(),
        "SAME_UPPER": SameUpper(),
        "SAME_LOWER": SameLower(),
    }[auto_pad]
    pool = PoolSpec(NCHW, kernel[2:], padding, tuple(dilations), tuple(strides))
    op = Deconv(pool, adjustments=tuple(extra), group=group)
    (found,) = run_op(op, [data, from_onnx(weights, group), bias])
    how = {"group": group, "strides": strides, "dilations": dilations, "output_padding": extra}
    how |= {"pads": pads} if auto_pad == "NOTSET" else {"auto_pad": auto_pad}
    (wanted,) = run_onnx("ConvTranspose", [data, weights, bias], **how)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        (Deconv(PoolSpec(NCHW, (2,), strides=(2,))), "B,7,2*S,f32"),
        (Deconv(PoolSpec(NCHW, (3,), Explicit((1,), (1,)), strides=(2,)), adjustments=(1,)), "B,7,2*S,f32"),
        (Deconv(PoolSpec(NCHW, (3,), dilations=(2,))), "B,7,S+4,f32"),
        (Deconv(PoolSpec(NCHW, (5,), SameLower(), strides=(3,))), "B,7,3*S,f32"),
    ],
    ids=str,
)
def test_sizes_are_symbolic(op: Deconv, expected: str) -> None:
    inputs = [parse_typed_fact(text) for text in ("B,C,S,f32", f"7,C,{op.pool.kernel_shape[0]},f32", "7,f32")]
    assert [str(fact) for fact in op.output_facts(inputs)] == [expected]


def test_cost_and_axes() -> None:
    op = Deconv(PoolSpec(NCHW, (1, 2), strides=(1, 2)))
    inputs = [parse_typed_fact(text) for text in ("B,3,H,W,f32", "5,3,1,2,f32", "5,f32")]
    outputs = op.output_facts(inputs)
    cost = default_registry()[COST][Deconv](op, inputs, outputs)
    assert {kind: str(count) for kind, count in cost.items()} == {"FMA(F32)": "30*B*H*W"}
    axes = default_registry()[AXES][Deconv](op, inputs, outputs)
    data, kernel, bias = axes.inputs
    (result,) = axes.outputs
    assert (result[0], result[2], kernel[1]) == (data[0], data[2], data[1])
    assert kernel[0] == bias[0] == result[1]
    assert result[3] not in data + kernel


def test_refusals() -> None:
    pool = PoolSpec(NCHW, (3,), Explicit((4,), (4,)))
    inputs = [parse_typed_fact(text) for text in ("1,2,3,f32", "5,2,3,f32", "5,f32")]
    with pytest.raises(FactError, match="would have -3 elements: input 3, padding 4 and 4"):
        Deconv(pool).output_facts(inputs)
    with pytest.raises(FactError, match=r"adjustments \[1, 1\]; one that is not negative is wanted for each of the 1"):
        Deconv(pool, adjustments=(1, 1))
    with pytest.raises(FactError, match="on spatial axis 0 the padding before is -1"):
        Deconv(PoolSpec(NCHW, (3,), Explicit((-1,), (0,)))).output_facts(inputs)
