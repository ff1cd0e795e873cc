"""Pools, deconvolutions, resized and sampled images: in both orders of axes, at odd sizes, against the meaning."""

from __future__ import annotations

import numpy as np
import pytest
from on_virtual import model_of, run, same_bits, turned_first, wanted

from tract_core.data import DatumType
from tract_core.model.op import TypedOp
from tract_core.ops.deconv import Deconv
from tract_core.ops.grid_sample import GridSample, PaddingMode
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.lrn import Lrn
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.resize import Coordinates, Resize, Sampling, Scales, Sizes

RNG = np.random.default_rng(3)
PADDED = Explicit((1, 2), (2, 0))
LAYOUTS = [DataFormat.NCHW, DataFormat.NHWC, DataFormat.CHW, DataFormat.HWC]


def image(layout: DataFormat, channels: int = 5) -> np.ndarray:
    shape = (*((2,) if layout.has_n else ()), *((channels, 9, 11) if layout.channels_first else (9, 11, channels)))
    return RNG.integers(-4, 5, shape).astype("f4")


def close(op: TypedOp, fact: str, *inputs: np.ndarray, atol: float = 1e-5) -> None:
    facts = [fact, *(",".join([*map(str, one.shape), DatumType.from_numpy(one.dtype).short]) for one in inputs[1:])]
    (found,) = run(model_of(op, *facts), *inputs)
    np.testing.assert_allclose(found.astype("f8"), wanted(op, *inputs).astype("f8"), atol=atol, rtol=1e-5)


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.value)
@pytest.mark.parametrize("index", ["i64", "i32"])
def test_the_largest_and_where_it_is(layout: DataFormat, index: str) -> None:
    x = image(layout)
    x[RNG.random(x.shape) < 0.05] = np.nan
    op = MaxPool(PoolSpec(layout, (3, 2), PADDED, (2, 1), (2, 1)), DatumType[index.upper()])
    found, places = run(model_of(op, ",".join([*map(str, x.shape), "f32"])), x)
    right = wanted(op, x)
    assert same_bits(places, right[1])
    np.testing.assert_array_equal(found, right[0])


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.value)
@pytest.mark.parametrize("counts", [True, False])
def test_means_count_what_they_are_told_to(layout: DataFormat, counts: bool) -> None:
    x = image(layout)
    close(SumPool(PoolSpec(layout, (3, 4), PADDED, (2, 3)), count_include_pad=counts), _any(x), x)


def _any(x: np.ndarray) -> str:
    return ",".join([*(f"S{axis}" for axis in range(x.ndim)), "f32"])


@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda one: one.value)
@pytest.mark.parametrize("group", [1, 2])
def test_deconvolutions_with_gaps_and_groups(layout: DataFormat, group: int) -> None:
    x, weights = image(layout, 4), RNG.integers(-3, 4, (6, 4 // group, 3, 2)).astype("f4")
    op = Deconv(PoolSpec(layout, (3, 2), PADDED, (2, 3), (1, 2)), adjustments=(1, 0), group=group)
    close(op, ",".join([*map(str, x.shape), "f32"]), x, weights, RNG.integers(-3, 4, 6).astype("f4"))


@pytest.mark.parametrize("interpolator", Interpolator, ids=lambda one: one.value)
@pytest.mark.parametrize("coordinates", [Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS, Coordinates.ASYMMETRIC])
def test_known_and_unknown_sizes_are_resized_alike(interpolator: Interpolator, coordinates: Coordinates) -> None:
    x, sampling = image(DataFormat.NCHW), Sampling(interpolator, coordinates)
    for op in (Resize((2, 3), Sizes((4, 23)), sampling), Resize((3, 2), Scales((0.6, 2.5)), sampling)):
        known, unknown = (run(model_of(op, fact), x)[0] for fact in ("2,5,9,11,f32", "2,5,H,W,f32"))
        np.testing.assert_allclose(known, wanted(op, x), atol=1e-4)
        np.testing.assert_allclose(unknown, known, atol=1e-5)


def test_channels_that_lie_side_by_side_are_resized_so() -> None:
    x, op = RNG.standard_normal((8, 9, 10)).astype("f4"), Resize((0, 1), Sizes((5, 19)), Sampling(Interpolator.LINEAR))
    (found,) = run(turned_first(op, "8,9,10,f32"), x)
    np.testing.assert_allclose(found, wanted(op, np.moveaxis(x, 0, 2)), atol=1e-5)


@pytest.mark.parametrize("mode", Interpolator, ids=lambda one: one.value)
@pytest.mark.parametrize("padding", PaddingMode, ids=lambda one: one.value)
def test_samples_far_outside_and_of_no_place(mode: Interpolator, padding: PaddingMode) -> None:
    x, grid = image(DataFormat.NCHW), RNG.uniform(-2, 2, (2, 6, 7, 2)).astype("f4")
    grid[0, 0, :3, 0], grid[1, 2, 3] = (np.nan, np.inf, 1e30), (-1, 1)
    close(GridSample(mode, padding), "2,5,9,11,f32", x, grid, atol=1e-4)


@pytest.mark.parametrize("axis", [0, 1, 3])
@pytest.mark.parametrize("size", [1, 4, 5, 40])
def test_energy_of_the_channels_around(axis: int, size: int) -> None:
    x = RNG.standard_normal((3, 5, 9, 11)).astype("f4")
    close(Lrn(size, 0.1, 0.75, 2.0, axis), "A,B,C,D,f32", x)
