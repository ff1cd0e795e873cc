"""Grid sampling: against ONNX Runtime, and its facts, axes and refusals."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.grid_sample import GridSample, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_core.plugins import default_registry
from tract_core.plugins.keys import AXES, COST


@pytest.mark.parametrize("shape", [(2, 3, 5, 4), (2, 2, 4, 5, 3), (1, 1, 1, 1)], ids=str)
@pytest.mark.parametrize(("mode", "padding"), list(product(Interpolator, PaddingMode)), ids=str)
def test_agrees_with_onnx_runtime(run_op: Any, run_onnx: Any, shape: Any, mode: Any, padding: Any) -> None:
    if mode is Interpolator.CUBIC and len(shape) == 5:
        pytest.skip("ONNX Runtime's cubic takes two spatial axes")
    random = np.random.default_rng(3)
    x = random.standard_normal(shape).astype(np.float32)
    grid = random.uniform(-2.6, 2.6, (shape[0], 4, *shape[3:], len(shape) - 2)).astype(np.float32)
    for corners in (False, True):
        (found,) = run_op(GridSample(mode, padding, corners), [x, grid])
        how = {"mode": mode.value, "padding_mode": padding.value, "align_corners": int(corners)}
        (wanted,) = run_onnx("GridSample", [x, grid], opset=20, **how)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("mode", Interpolator, ids=lambda one: one.value)
def test_places_beyond_all_numbers(run_op: Any, mode: Interpolator) -> None:
    """Far away is the nearest edge, or nothing; what is not a number stands for -1, as PyTorch's documentation has it.

    That is half an element before the first one, which cubic taps weigh by -3/32, 19/32, 19/32 and -3/32.
    """
    x = np.array([[[1, 2, 3]]], np.float32)
    grid = np.array([-np.inf, np.inf, np.nan, 1e300, -1e300]).reshape(1, 5, 1)
    at_border = {Interpolator.CUBIC: 1 - 3 / 32}.get(mode, 1)
    at_zeros = {Interpolator.LINEAR: 1 / 2, Interpolator.CUBIC: (19 - 2 * 3) / 32}.get(mode, 1)
    wanted = {PaddingMode.BORDER: [1, 3, at_border, 3, 1], PaddingMode.ZEROS: [0, 0, at_zeros, 0, 0]}
    for padding, values in wanted.items():
        (found,) = run_op(GridSample(mode, padding), [x, grid])
        np.testing.assert_array_equal(found, [[values]])


def test_facts_cost_and_axes() -> None:
    op = GridSample()
    inputs = [parse_typed_fact(text) for text in ("B,C,H,W,f16", "B,P,Q,2,f32")]
    outputs = op.output_facts(inputs)
    assert [str(fact) for fact in outputs] == ["B,C,P,Q,f16"]
    cost = default_registry()[COST][GridSample](op, inputs, outputs)
    assert {kind: str(count) for kind, count in cost.items()} == {"FMA(F16)": "4*B*C*P*Q"}
    axes = default_registry()[AXES][GridSample](op, inputs, outputs)
    (image, grid), (result,) = axes.inputs, axes.outputs
    assert image[0] == grid[0]
    assert result == image[:2] + grid[1:3]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (
            ("1,2,5,5,f32", "1,3,3,3,f32"),
            "wants a grid of rank 4 with 2 coordinates in its last axis, found 1,3,3,3,f32",
        ),
        (("1,2,5,5,f32", "1,3,2,f32"), "wants a grid of rank 4 with 2 coordinates in its last axis, found 1,3,2,f32"),
        (("2,2,5,5,f32", "1,3,3,2,f32"), "have batches of different sizes"),
        (("1,2,5,5,i32", "1,3,3,2,f32"), "wants an image and a grid of floating-point numbers"),
    ],
)
def test_refusals(inputs: tuple[str, str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        GridSample().output_facts([parse_typed_fact(text) for text in inputs])


@pytest.mark.parametrize("mode", Interpolator)
def test_outside_is_0_beside_any_element(run_op: Any, mode: Interpolator) -> None:
    x = np.array([[[np.inf, 1, 2, 3, 4, 5, 6, np.nan]]], "f4")
    grid = np.array([[[-3], [3], [-np.inf]]], "f4")
    np.testing.assert_array_equal(run_op(GridSample(mode), [x, grid])[0], np.zeros((1, 1, 3)))
