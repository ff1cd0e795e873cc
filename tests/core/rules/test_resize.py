from __future__ import annotations

import pytest

from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import Coordinates, NearestMode, Resize, Sampling, Scales, Sizes
from tract_core.ops.wiring import wire_one
from tract_core.testing.declutter import checked_declutter, operators, sources

SPELLED = [
    (Coordinates.ASYMMETRIC, NearestMode.FLOOR),
    (Coordinates.HALF_PIXEL, NearestMode.ROUND_PREFER_FLOOR),
    (Coordinates.HALF_PIXEL, NearestMode.ROUND_PREFER_CEIL),
    (Coordinates.HALF_PIXEL_SYMMETRIC, NearestMode.ROUND_PREFER_FLOOR),
]


@pytest.mark.parametrize(("coordinates", "mode"), SPELLED)
@pytest.mark.parametrize("factors", [(2.0, 3.0), (1.0, 2.0), (4.0, 5.0)])
def test_whole_factors_repeat_elements(coordinates: Coordinates, mode: NearestMode, factors: tuple[float, ...]) -> None:
    model, (x,) = sources("B,2,H,W,f32")
    op = Resize((2, 3), Scales(factors), Sampling(Interpolator.NEAREST, coordinates, mode))
    model.set_outputs([wire_one(model, "out", op, x)])
    simple = checked_declutter(model, {"B": 1, "H": 3, "W": 4})
    assert "Resize" not in operators(simple)
    assert simple.outlet_name(simple.outputs[0]) == "out"


def test_sizes_that_are_multiples() -> None:
    model, (x,) = sources("B,2,3,4,f32")
    sampling = Sampling(Interpolator.NEAREST, Coordinates.ASYMMETRIC, NearestMode.FLOOR)
    model.set_outputs([wire_one(model, "out", Resize((2, 3), Sizes((6, 12)), sampling), x)])
    assert "Resize" not in operators(checked_declutter(model, {"B": 1}))


@pytest.mark.parametrize(
    ("factor", "sampling"),
    [
        (1.5, Sampling(Interpolator.NEAREST, Coordinates.ASYMMETRIC, NearestMode.FLOOR)),
        (2.0, Sampling(Interpolator.NEAREST, Coordinates.ASYMMETRIC, NearestMode.CEIL)),
        (2.0, Sampling(Interpolator.NEAREST, Coordinates.ALIGN_CORNERS, NearestMode.FLOOR)),
        (2.0, Sampling(Interpolator.LINEAR)),
    ],
    ids=str,
)
def test_what_does_not_repeat_stays(factor: float, sampling: Sampling) -> None:
    model, (x,) = sources("B,2,5,f32")
    model.set_outputs([wire_one(model, "out", Resize((2,), Scales((factor,)), sampling), x)])
    assert operators(checked_declutter(model, {"B": 1})) == ["Resize"]
