"""Regions of images, read and written; what they compute is in the cases of the operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cycles import cycle_of_cases
from documents import compute, read

import tract_core as tract

RNG = np.random.default_rng(11)
WHOLE = "[[0.0, 0.0, 4.0, 3.0]], [0]"


def floats(*shape: int) -> np.ndarray[Any, Any]:
    return RNG.normal(size=shape).astype(np.float32)


test_cases = cycle_of_cases("roi")


@pytest.mark.parametrize("method", ["symmetric", "asymmetric", "aligned"])
def test_all_of_an_image_is_resampled_as_an_upsampling_does(method) -> None:
    x = floats(1, 2, 3, 4)
    expected = compute(f"y = multilinear_upsample(x, factor = [3, 2], method = '{method}');", x=x)
    found = compute(f"y = roi_resample(x, {WHOLE}, output_size = [9, 8], method = '{method}');", x=x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["avg", "max"])
def test_all_of_an_image_is_pooled_as_a_pool_does(kind) -> None:
    x = floats(1, 2, 6, 4)
    expected = compute(f"y = {kind}_pool(x, size = [1,1,3,2], stride = [1,1,3,2]);", x=x)
    found = compute(f"y = {kind}_roi_pool(x, [[0.0, 0.0, 4.0, 6.0]], [0], output_size = [2, 2]);", x=x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["avg", "max"])
def test_alignment_pools_the_points_of_each_cell(kind) -> None:
    x = floats(1, 2, 3, 4)
    rois = "[[0.5, 0.25, 3.0, 2.75], [1.0, 1.0, 4.0, 3.0]], [0, 0]"
    points = compute(f"y = roi_resample(x, {rois}, output_size = [4, 6]);", x=x)
    cells = points.reshape(2, 2, 2, 2, 2, 3)
    expected = cells.mean(axis=(3, 5)) if kind == "avg" else cells.max(axis=(3, 5))
    found = compute(f"y = {kind}_roi_align(x, {rois}, output_size = [2, 2], sampling_rate = [2, 3]);", x=x)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_what_is_no_number_and_what_is_far_away_stays_in_the_image() -> None:
    x = floats(1, 1, 2, 2)
    rois = np.array([[np.nan, -np.inf, np.inf, 1e30]], np.float32)
    found = compute(
        "y = roi_resample(x, r, [0], output_size = [2, 2]); z = max_roi_pool(x, r, [0], output_size = [1, 1]);",
        x=x,
        r=rois,
        outputs="y, z",
    )
    assert np.isfinite(found[0]).all()
    assert found[1] in (x.max(), 0)


def test_an_image_that_is_not_there_is_refused() -> None:
    with pytest.raises(tract.errors.RunError, match="a region is in image 1, there are 1"):
        compute(
            "y = avg_roi_pool(x, [[0.0, 0.0, 1.0, 1.0]], i, output_size = [1, 1]);",
            x=floats(1, 1, 2, 2),
            i=np.array([1]),
        )


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (
            f"max_roi_pool(x, {WHOLE}, output_size = [2])",
            r"argument 'output_size' of max_roi_pool is \[2\], wanted a height and a width",
        ),
        ("max_roi_pool(x, [[0.0, 1.0]], [0], output_size = [2, 2])", r"regions of shape \[R, 4\], found 1,2,f32"),
        ("roi_resample(x, [[0.0, 0.0, 4.0, 3.0]], [0, 0], output_size = [2, 2])", "wants one image per region"),
        (
            f"roi_resample(x, {WHOLE}, output_size = [2, 2], method = 'cubic')",
            "argument 'method' of roi_resample is 'cubic', wanted one of",
        ),
    ],
)
def test_what_does_not_fit_is_refused(body, problem) -> None:
    with pytest.raises(tract.errors.TractError, match=problem):
        read(f"y = {body};", {"x": "1,1,3,4"})
