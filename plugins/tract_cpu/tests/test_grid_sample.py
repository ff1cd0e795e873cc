"""Samples of images, on every instruction set of this machine, against the meaning."""

from __future__ import annotations

from itertools import cycle, product
from typing import Any

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import Isa

from tract_core.errors import TractError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis
from tract_core.ops.grid_sample import GridSample, PaddingMode, reference
from tract_core.ops.interpolate import Interpolator


def plan_of(op: GridSample, isa: Isa, *facts: str, turned: bool = False) -> CpuPlan:
    """``turned``: whether the channels come last in the image that is given."""
    model = TypedModel()
    image, grid = (model.add_source(f"x{i}", parse_typed_fact(one, model.symbols)) for i, one in enumerate(facts))
    if turned:
        (image,) = model.wire_node("turned", MoveAxis(model.outlet_fact(image).rank - 1, 1), [image])
    model.set_outputs(model.wire_node("y", op, [image, grid]))
    plan = CpuPlan(model, isa)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    return plan


def inputs(image: tuple[int, ...], places: tuple[int, ...]) -> tuple[Any, Any]:
    random = np.random.default_rng(0)
    grid = random.uniform(-2.6, 2.6, (image[0], *places, len(image) - 2)).astype("f4")
    return random.standard_normal(image).astype("f4"), grid


@pytest.mark.parametrize("mode", Interpolator, ids=lambda one: one.value)
def test_as_it_is_meant(isa: Isa, mode: Interpolator) -> None:
    """Along one axis to three, of 1 or 2 elements too; more places than a task has; coordinates of any kind."""
    images: list[tuple[int, ...]] = [(2, 3, 5), (2, 3, 5, 4), (1, 2, 4, 1, 2), (2, 3, 4, 2)]
    for image, (padding, align_corners) in zip(cycle(images), product(PaddingMode, (False, True)), strict=False):
        op, axes = GridSample(mode, padding, align_corners), len(image) - 2
        x, grid = inputs(image, {1: (13,), 2: (29, 11), 3: (13, 2, 3)}[axes])
        grid.reshape(-1)[[0, 3, 6]], grid.reshape(-1)[-4:] = [np.nan, np.inf, -np.inf], [3e38, -1e10, 1, -0.0]
        plan = plan_of(op, isa, f"{','.join('NCDHW'[: axes + 2])},f32", f"N,{','.join('PQR'[:axes])},{axes},f32")
        wanted = reference(op, x, grid)
        np.testing.assert_allclose(plan.spawn().run([x, grid])[0], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("types", ["f4 f8", "f8 f4", "f2 f2"])
def test_types_and_channels_that_come_last(isa: Isa, types: str) -> None:
    x, grid = inputs((2, 5, 6, 3), (9, 4))
    first, second = types.split()
    x, grid = x.astype(first), grid.astype(second)
    short = {"f2": "f16", "f4": "f32", "f8": "f64"}
    facts = f"2,5,6,3,{short[first]}", f"2,9,4,2,{short[second]}"
    found = plan_of(GridSample(), isa, *facts, turned=True).spawn().run([x, grid])[0]
    wanted = reference(GridSample(), np.moveaxis(x, -1, 1), grid)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-2 if first == "f2" else 1e-5, atol=1e-5)


def test_sizes_of_nothing_and_sizes_that_do_not_fit(isa: Isa) -> None:
    """Where there is nothing to read the answer is that of the meaning, an error if there are places."""
    state = plan_of(GridSample(), isa, "N,C,H,W,f32", "M,P,Q,2,f32").spawn()
    for image, places in [
        ((2, 0, 3, 3), (2, 2)),
        ((0, 2, 3, 3), (2, 2)),
        ((2, 2, 3, 3), (0, 2)),
        ((1, 2, 0, 3), (0, 1)),
    ]:
        x, grid = inputs(image, places)
        assert state.run([x, grid])[0].shape == (*image[:2], *places)
    for image, batch in [((1, 2, 0, 3), 1), ((2, 2, 3, 3), 3)]:
        with pytest.raises(TractError):
            state.run([inputs(image, (2, 2))[0], inputs((batch, 1, 1, 1), (2, 2))[1]])


@pytest.mark.parametrize("mode", Interpolator, ids=lambda one: one.value)
def test_outside_is_0_beside_any_element(isa: Isa, mode: Interpolator) -> None:
    x = np.array([[[[np.inf, np.nan, 2], [3, 4, 5]]]], "f4")
    grid = np.array([[-3, -0.5], [0.7, -2], [9, 9], [np.nan, 0], [0.5, 0.5]] * 5, "f4").reshape(1, 5, 5, 2)
    found = plan_of(GridSample(mode), isa, "1,1,2,3,f32", "1,5,5,2,f32").spawn().run([x, grid])[0]
    with np.errstate(invalid="ignore"):
        wanted = reference(GridSample(mode), x, grid)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)
