"""Products of integers whose weights are part of the model: exact, and no larger in memory than in the file."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import load
from onnx_single import node_model, outputs_of

from tract_core.model.const import Const
from tract_core.model.declutter import declutter

RANDOM = np.random.default_rng(0)
DATA = np.array([[0, 255, 1, 128], [7, 0, 255, 255]], np.uint8)


def ends(kind, *shape):
    """Bytes among which are both ends of their type."""
    found = RANDOM.integers(np.iinfo(kind).min, np.iinfo(kind).max, shape, kind, endpoint=True)
    found.flat[:2] = np.iinfo(kind).min, np.iinfo(kind).max
    return found


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    ("weights", "zero", "taken"),
    [
        (ends(np.int8, 4, 3), None, 1),
        (ends(np.int8, 4, 3), np.zeros((), np.int8), 1),
        (ends(np.int8, 4, 3), np.zeros(3, np.int8), 1),
        (ends(np.uint8, 4, 3), np.array(128, np.uint8), 1),
        (ends(np.int8, 4, 3), np.array(127, np.int8), 2),  # -255 is no byte
        (ends(np.int8, 4, 3), np.array([-128, 0, 3], np.int8), 2),
        (ends(np.uint8, 4, 3), np.array([[0, 255, 128]], np.uint8), 2),
        (np.zeros((4, 0), np.int8), np.array(5, np.int8), 1),
    ],
)
@pytest.mark.parametrize("data_zero", [None, np.array(0, np.uint8), np.array(200, np.uint8)])
def test_weights_less_their_zero_points(weights, zero, taken, data_zero, known):
    inputs, fixed = [DATA, weights, data_zero, zero], (1, 3) if known else ()
    fixed = tuple(slot for slot in fixed if inputs[slot] is not None)
    far = [0 if one is None else one.astype(np.int64) for one in (data_zero, zero)]
    wanted = (DATA.astype(np.int64) - far[0]) @ (weights.astype(np.int64) - far[1])
    for decluttered in (True, False):
        (found,) = outputs_of("MatMulInteger", inputs, "", fixed=fixed, declutter=decluttered)
        assert found.dtype == np.int32
        np.testing.assert_array_equal(found, wanted)
    if known:
        model = declutter(load(node_model("MatMulInteger", inputs, "", fixed=fixed)).into_typed())
        held = [node.op.value.array for node in model.nodes if isinstance(node.op, Const)]
        assert [one.itemsize for one in held if one.shape == weights.shape] == [taken]


@pytest.mark.parametrize("zero", [None, np.array([0, 0], np.uint8), np.array([1, 255], np.uint8)])
def test_a_convolution_of_bytes(zero):
    x, weights = ends(np.uint8, 1, 3, 5), ends(np.uint8, 2, 3, 3)
    inputs = [x, weights, np.array(9, np.uint8), zero]
    fixed = (1,) if zero is None else (1, 3)
    far = weights.astype(np.int64) - (0 if zero is None else zero.astype(np.int64)[:, None, None])
    windows = np.lib.stride_tricks.sliding_window_view(x.astype(np.int64) - 9, 3, axis=2)
    wanted = np.einsum("nciw,ocw->noi", windows, far)
    (found,) = outputs_of("ConvInteger", inputs, "", fixed=fixed)
    np.testing.assert_array_equal(found, wanted)
