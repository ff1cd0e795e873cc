"""Operators that were withdrawn before they became part of the standard, as files of the first years have them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import assert_close, run
from onnx_single import node_model, refused, same_as_onnxruntime

from tract_core.errors import CorruptModel, FactError

F32 = np.float32
X = np.random.default_rng(0).standard_normal((2, 3, 5, 6)).astype(F32)

CASES = [
    ("Affine", {"alpha": 2.0, "beta": 0.5}, 2 * X + F32(0.5)),
    ("Scale", {"scale": 2.0}, 2 * X),
    ("ImageScaler", {"scale": 2.0, "bias": [1.0, 2.0, 3.0]}, 2 * X + np.arange(1, 4, dtype=F32)[:, None, None]),
    ("Crop", {"border": [1, 0, 2, 1]}, X[:, :, :4, 1:4]),
    ("Crop", {"border": [1, 2, 0, 0], "scale": [2, 3]}, X[:, :, 2:4, 1:4]),
]


@pytest.mark.parametrize(("op_type", "attributes", "wanted"), CASES)
def test_on_images(op_type, attributes, wanted):
    for batch in (None, "N"):
        model = node_model(op_type, [X], "", opset=7, batch=batch, **attributes)
        for declutter in (False, True):
            assert_close(run(model, {"x0": X}, declutter=declutter), [wanted], 1e-6)


@pytest.mark.parametrize("across_channels", [0, 1])
@pytest.mark.parametrize("normalize_variance", [0, 1])
def test_mean_and_variance(across_channels, normalize_variance):
    """Over the channels or not; those of all images together, as in version 9."""
    axes = (0, 1, 2, 3) if across_channels else (0, 2, 3)
    centred = X - X.astype(np.float64).mean(axes, keepdims=True)
    wanted = centred / centred.std(axes, keepdims=True) if normalize_variance else centred
    attributes = {"across_channels": across_channels, "normalize_variance": normalize_variance}
    for batch in (None, "N"):
        model = node_model("MeanVarianceNormalization", [X], "", opset=7, batch=batch, **attributes)
        assert_close(run(model, {"x0": X}), [wanted.astype(F32)], 1e-5)


def test_dynamic_slice():
    inputs = [X, np.array([0, 1]), np.array([1, 3]), np.array([0, 2])]
    for fixed in ((), (1, 2, 3)):
        model = node_model("DynamicSlice", inputs, "", opset=7, fixed=fixed)
        given = {f"x{slot}": array for slot, array in enumerate(inputs) if slot not in fixed}
        assert_close(run(model, given), [X[:1, :, 1:3]])


@pytest.mark.parametrize(("op_type", "attributes", "wanted"), CASES)
def test_same_as_onnxruntime(op_type, attributes, wanted):
    same_as_onnxruntime(op_type, [X], "", opset=7, symbolic=False, **attributes)


@pytest.mark.parametrize("attributes", [{"border": [1, 0, 2]}, {"border": [0, 0, 0, -1]}])
def test_borders_that_are_none(attributes):
    refused(CorruptModel, "attribute 'border' of Crop is .*, wanted 4 sizes", "Crop", [X], "", opset=7, **attributes)


def test_sizes_that_are_none():
    options = {"border": [0, 0, 0, 0], "scale": [2]}
    refused(CorruptModel, r"attribute 'scale' of Crop is \[2\], wanted 2 sizes", "Crop", [X], "", opset=7, **options)


def test_what_is_no_image():
    refused(FactError, "an image of 4 axes is wanted", "ImageScaler", [X[0]], "", opset=7, bias=[1.0])
