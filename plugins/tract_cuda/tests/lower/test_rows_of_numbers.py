"""Running sums, the best elements of rows, and Fourier transforms, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from on_virtual import model_of, run, same_bits, wanted

from tract_core.data import Constant, DatumType
from tract_core.errors import RunError
from tract_core.ops.cumsum import CumMax, CumMin, CumProd, CumSum
from tract_core.ops.fft import Fft, Stft
from tract_core.ops.topk import Topk

RNG = np.random.default_rng(2)


@pytest.mark.parametrize("shape", [(2, 0), (3, 1), (1, 128), (2, 129), (1, 5000)], ids=str)
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_sums_of_long_rows_go_piece_by_piece(shape: tuple[int, int], exclusive: bool, reverse: bool) -> None:
    x = RNG.integers(-5, 6, shape)
    for kind, fact in (("i4", "A,B,i32"), ("i1", f"{shape[0]},{shape[1]},i8"), ("f4", "A,B,f32")):
        op, given = CumSum(1, exclusive, reverse), x.astype(kind)
        assert same_bits(run(model_of(op, fact), given)[0], wanted(op, given))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("kind", [CumProd, CumMax, CumMin])
def test_products_and_extremes_so_far(kind: type, axis: int) -> None:
    x = np.where(RNG.random((3, 200, 4)) < 0.3, RNG.choice([0.0, -0.0, np.nan], (3, 200, 4)), 1.0).astype("f4")
    op = kind(axis)
    found, right = run(model_of(op, "3,200,4,f32"), x)[0], wanted(op, x)
    np.testing.assert_array_equal(found, right)
    assert (np.signbit(found) == np.signbit(right))[~np.isnan(right)].all()


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("kind", ["f32", "f16", "bf16", "f64", "i8", "u8", "i64", "bool"])
def test_of_equals_the_first_one_comes_first(kind: str, largest: bool) -> None:
    x = RNG.integers(-3, 4, (3, 300, 2)).astype(DatumType[kind.upper()].numpy)
    if kind[0] == "f":
        x[:, ::7], x[:, ::11], x[:, ::13], x[:, ::17] = np.nan, -0.0, np.inf, -np.inf
    count = np.array(260)
    model = model_of(Topk(1, largest, 260), f"3,300,2,{kind}", "i64", constants={1: count})
    values, places = run(model, x)
    right = wanted(Topk(1, largest, 260), x, count)
    assert same_bits(places, right[1])
    assert same_bits(values, right[0])


def test_another_count_than_was_announced_is_refused() -> None:
    x = np.zeros((2, 9), "f4")
    with pytest.raises(RunError, match="4"):
        run(model_of(Topk(1, True, 3), "2,9,f32", "i64"), x, np.array(4))


@pytest.mark.parametrize("points", [1, 2, 12, 30, 49, 97, 256, 1000])
@pytest.mark.parametrize("inverse", [False, True])
def test_transforms_of_any_length(points: int, inverse: bool) -> None:
    x = RNG.standard_normal((3, points, 2, 2)).astype("f4")
    (found,) = run(model_of(Fft(1, inverse), f"3,{points},2,2,f32"), x)
    pairs = x[..., 0] + 1j * x[..., 1].astype("f8")
    right = np.fft.ifft(pairs, axis=1) * points if inverse else np.fft.fft(pairs, axis=1)
    scale = np.abs(right).max()
    np.testing.assert_allclose(found[..., 0] + 1j * found[..., 1], right, atol=1e-6 * scale)


@pytest.mark.parametrize("window", [None, 5, 24])
def test_frames_that_overlap_are_transformed(window: int | None) -> None:
    x = RNG.standard_normal((2, 200, 2)).astype("f4")
    op = Stft(1, 24, 7, None if window is None else Constant(np.hanning(window + 2)[1:-1].astype("f4")))
    (found,) = run(model_of(op, "2,N,2,f32"), x)
    np.testing.assert_allclose(found, wanted(op, x), atol=1e-5)
