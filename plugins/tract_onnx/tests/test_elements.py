"""Operators on elements and their places: bits, running products, determinants, different elements, caches."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto
from onnx_agree import agrees, gives, is_refused
from onnx_check import run, single

from tract_core.errors import FactError, RunError, Unsupported

RANDOM = np.random.default_rng(0)


def f32(*shape, low=-1.0, high=1.0):
    return RANDOM.uniform(low, high, shape).astype(np.float32)


def i64(*values):
    return np.array(values, np.int64)


def test_bits_as_another_type():
    x = np.array([[1.0, -0.0]], np.float32)
    gives([np.array([[0x3F800000, -(1 << 31)]], np.int32)], "BitCast", [x], opset=26, to=TensorProto.INT32)
    narrow = np.array([-1, 3, -8], ml_dtypes.int4)
    (found,) = run(*single("BitCast", [narrow], opset=26, to=TensorProto.UINT4))
    assert found.astype(int).tolist() == [15, 3, 8]
    (found,) = run(*single("BitCast", [np.array([0, 1, 2], np.uint8)], opset=26, to=TensorProto.BOOL))
    assert found.tolist() == [False, True, True]


def test_bits_of_another_width():
    is_refused(
        FactError,
        r"BitCast to i64, of 64 bits, wants elements as wide; found 2,f32, of 32 bits",
        "BitCast",
        [f32(2)],
        opset=26,
        to=TensorProto.INT64,
    )


@pytest.mark.parametrize("exclusive", [0, 1])
@pytest.mark.parametrize("reverse", [0, 1])
def test_running_products(exclusive, reverse):
    x = RANDOM.integers(-3, 4, (2, 5)).astype(np.float32)
    wanted = np.ones_like(x)
    for place in range(5):
        passed = range(place + 1, 5) if reverse else range(place)
        for other in [*passed, *([] if exclusive else [place])]:
            wanted[:, place] *= x[:, other]
    attributes = {"exclusive": exclusive, "reverse": reverse}
    for fixed in ((1,), ()):
        gives([wanted], "CumProd", [x, np.array(-1, np.int32)], opset=26, fixed=fixed, **attributes)


def test_running_products_along_an_axis_that_is_not_there():
    inputs = [f32(2, 3), np.array(2)]
    is_refused(FactError, "axis 2 is outside a tensor of 2 axes", "CumProd", inputs, opset=26, fixed=(1,))
    with pytest.raises(RunError, match="axis 2 is outside a tensor of rank 2"):
        run(*single("CumProd", inputs, opset=26))


def test_determinants():
    agrees("Det", [f32(2, 3, 4, 4)])
    gives([np.array(-2, np.float32)], "Det", [np.array([[1, 2], [3, 4]], np.float32)])


def test_determinants_of_what_is_not_square():
    is_refused(FactError, "square matrices on the last two axes, found 3,4,f32", "Det", [f32(3, 4)])


@pytest.mark.parametrize("axis", [{}, {"axis": 0}, {"axis": -1}], ids=str)
@pytest.mark.parametrize("ordered", [0, 1])
def test_different_elements(axis, ordered):
    x = RANDOM.integers(0, 2, (6, 3)).astype(np.float32)
    agrees("Unique", [x], outputs=4, sorted=ordered, **axis)


def test_different_texts_and_narrow_floats():
    texts = np.array(["b", "a", "b"], dtype=object)
    found = run(*single_texts(texts))
    assert [part.tolist() for part in found] == [["a", "b"], [1, 0], [1, 0, 1], [1, 2]]
    narrow = np.array([[2, 1], [0, 3], [2, 1]], ml_dtypes.bfloat16)
    found = run(*single("Unique", [narrow], opset=28, outputs=3, axis=0))
    assert found[0].astype(float).tolist() == [[0, 3], [2, 1]]
    assert found[2].tolist() == [1, 0, 1]


def single_texts(texts):
    model, _ = single("Unique", [np.zeros(3, np.float32)], outputs=4)
    model.graph.input[0].type.tensor_type.elem_type = TensorProto.STRING
    return model, {"x0": texts}


@pytest.mark.parametrize("axes", [(0, 1), (1, 0)])
def test_reversed_sequences(axes):
    time, batch = axes
    lengths = i64(3, 1, 4) if batch == 0 else i64(3, 1, 3, 2)
    agrees("ReverseSequence", [f32(3, 4, 2), lengths], time_axis=time, batch_axis=batch)


def test_lengths_of_rank_two():
    is_refused(FactError, "one length per item is wanted", "ReverseSequence", [f32(3, 4), i64(1, 2).reshape(1, 2)])


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_a_cache_brought_up_to_date(mode):
    cache, update, starts = f32(2, 3, 5, 4), f32(2, 3, 2, 4), i64(1, 3 if mode == "linear" else 4)
    wanted = cache.copy()
    for item, start in enumerate(starts):
        for step in range(2):
            wanted[item, :, (start + step) % 5] = update[item, :, step]
    gives([wanted], "TensorScatter", [cache, update, starts], opset=24, mode=mode)
    wanted = cache.copy()
    wanted[:, :, :2] = update
    gives([wanted], "TensorScatter", [cache, update], opset=24)


def test_an_update_beyond_the_cache():
    is_refused(FactError, "is longer than axis 1", "TensorScatter", [f32(2, 3, 4), f32(2, 4, 4)], opset=24)
    model, given = single("TensorScatter", [f32(1, 3, 4), f32(1, 2, 4), i64(2)], opset=24)
    with pytest.raises(RunError, match="3"):
        run(model, given)


@pytest.mark.parametrize(
    ("mode", "saturate", "wanted"),
    [
        ("up", 1, [2**-127, 1, 2, 2, 2**127, 2**127, np.nan]),
        ("down", 1, [2**-127, 1, 1, 1, 2**127, 2**127, np.nan]),
        ("nearest", 0, [np.nan, 1, 1, 2, np.nan, np.nan, np.nan]),
    ],
)
def test_powers_of_two(mode, saturate, wanted):
    x = np.array([0, 1, 1.25, 1.5, 1.8e38, np.inf, np.nan], np.float64)
    x[4] = 2.0**127 * 1.75 if mode == "nearest" else 2.0**130
    options = {"to": TensorProto.FLOAT8E8M0, "round_mode": mode, "saturate": saturate}
    (found,) = run(*single("Cast", [x], opset=25, **options))
    assert found.dtype == ml_dtypes.float8_e8m0fnu
    np.testing.assert_array_equal(found.astype(np.float64), np.array(wanted, np.float64))


def test_powers_of_two_of_complex_numbers():
    is_refused(
        FactError,
        "wants real numbers, found 2,complex_f32",
        "Cast",
        [np.zeros(2, np.complex64)],
        opset=25,
        to=TensorProto.FLOAT8E8M0,
    )


def test_what_is_refused_says_why():
    match = "Gradient is not supported: it differentiates a part"
    is_refused(Unsupported, match, "Gradient", [np.zeros(3, np.uint8)], opset=20, domain="ai.onnx.preview.training")
