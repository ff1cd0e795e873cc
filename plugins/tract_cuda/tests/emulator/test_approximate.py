"""What a device approximates: as far off as its manual allows, by a seed, and never farther."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from ptx_texts import Array, elementwise
from tract_cuda.testing.emulator.instructions.approximate import BOUNDS

COUNT = 1024
Bound = Callable[[Array, Array], Array]
RNG = np.random.default_rng(0)
ANY = np.concatenate([RNG.standard_normal(COUNT - 4) * 8, [0.5, 1.0, 2.0, 1e-3]]).astype("f4")
POSITIVE = np.abs(ANY) + np.float32(1e-6)


def relative(bound: float) -> Bound:
    return lambda _, wanted: np.abs(wanted) * bound


def places(count: float) -> Bound:
    """Units in the last place of the result."""
    return lambda _, wanted: count * np.spacing(np.abs(wanted).astype("f4")).astype("f8")


FUNCTIONS: dict[str, tuple[Array, Callable[[Array], Array], Bound]] = {
    "ex2.approx.f32": (ANY, np.exp2, places(2)),
    "ex2.approx.ftz.f32": (ANY, np.exp2, places(2)),
    "lg2.approx.f32": (
        POSITIVE,
        np.log2,
        lambda x, wanted: np.where((x > 0.5) & (x < 2), 2.0**-22, np.abs(wanted) * 2.0**-22),
    ),
    "tanh.approx.f32": (ANY, np.tanh, relative(2.0**-11)),
    "rsqrt.approx.f32": (POSITIVE, lambda x: 1 / np.sqrt(x), relative(2.0**-22.9)),
    "sqrt.approx.f32": (POSITIVE, np.sqrt, relative(2.0**-23)),
    "rcp.approx.f32": (ANY, lambda x: 1 / x, places(1)),
    "sin.approx.f32": (ANY, np.sin, lambda x, _: np.where(np.abs(x) <= 2 * np.pi, 2.0**-20.5, 2.0**-14.7)),
    "cos.approx.f32": (ANY, np.cos, lambda x, _: np.where(np.abs(x) <= 2 * np.pi, 2.0**-20.5, 2.0**-14.7)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_off_within_their_bounds(name: str) -> None:
    x, function, bound = FUNCTIONS[name]
    found = elementwise(f"{name} $y, $a;", "f4", x)
    wanted = function(x.astype("f8"))
    off = np.abs(found.astype("f8") - wanted)
    assert (off <= bound(x, wanted)).all(), np.max(off / bound(x, wanted))
    assert np.mean(found == wanted.astype("f4")) < 0.9, "a test that passes may rest on results that are exact"
    other = elementwise(f"{name} $y, $a;", "f4", x, seed=1)
    assert (np.abs(other.astype("f8") - wanted) <= bound(x, wanted)).all()
    assert (other != found).any()
    np.testing.assert_array_equal(found, elementwise(f"{name} $y, $a;", "f4", x))


@pytest.mark.parametrize("how", ["approx", "full"])
def test_quotients(how: str) -> None:
    a, b = ANY, np.roll(ANY, 7)
    found = elementwise(f"div.{how}.f32 $y, $a, $b;", "f4", a, b)
    wanted = a.astype("f8") / b.astype("f8")
    assert (np.abs(found - wanted) <= places(2)(a, wanted)).all()
    assert (found != wanted.astype("f4")).any()


def test_quotients_by_large_numbers() -> None:
    a = np.ones(2, "f4")
    found = elementwise("div.approx.f32 $y, $a, $b;", "f4", a, np.array([1.5e38, 2.0**120], "f4"))
    assert found[0] == 0
    assert found[1] > 0


def test_quotients_by_large_numbers_have_signs_and_are_none_of_infinities() -> None:
    a, b = np.array([-1, np.inf, -np.inf, np.nan, np.inf], "f4"), np.array([1.5e38] * 4 + [2.0**120], "f4")
    found = elementwise("div.approx.f32 $y, $a, $b;", "f4", a, b)
    np.testing.assert_array_equal(found, np.array([-0.0, np.nan, np.nan, np.nan, np.inf], "f4"))
    assert np.signbit(found[0])
    np.testing.assert_array_equal(elementwise("div.full.f32 $y, $a, $b;", "f4", a[1:3], b[1:3]), a[1:3])


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_nothing_is_promised_of_large_angles(name: str) -> None:
    """Beyond 100 pi; up to there, the bound is that of far angles."""
    x = np.linspace(50, 1000, COUNT, dtype="f4")
    off = np.abs(elementwise(f"{name}.approx.f32 $y, $a;", "f4", x) - getattr(np, name)(x.astype("f8")))
    promised = x <= 100 * np.pi
    assert off[promised].max() <= 2.0**-14.7
    assert off[~promised].max() > 0.1


def test_every_bound_says_where_it_is_from() -> None:
    assert all(bound.section.startswith(("9.7.3.", "9.7.4.")) for bound in BOUNDS.values())
    named = {(name.split(".")[0], name.split(".")[-1]) for name in FUNCTIONS}
    assert {key for key in BOUNDS if key[1] == "f32"} == named | {("div", "f32")}


@pytest.mark.parametrize(
    ("kind", "relative", "absolute"), [("f16", 2.0**-9.9, 2.0**-10.987), ("bf16", 2.0**-7, 2.0**-8)]
)
def test_functions_of_halves(kind: str, relative: float, absolute: float) -> None:
    values = (RNG.standard_normal(COUNT) * 3).astype("f4")
    bits = values.astype("f2").view("u2") if kind == "f16" else (values.view("u4") >> 16).astype("u2")

    def decoded(one: Array) -> Array:
        return one.view("f2").astype("f8") if kind == "f16" else (one.astype("u4") << 16).view("f4").astype("f8")

    x = decoded(bits)
    found = decoded(elementwise(f"ex2.approx.{'ftz.bf16' if kind == 'bf16' else 'f16'} $y, $a;", "u2", bits))
    assert (np.abs(found - np.exp2(x)) <= relative * np.exp2(x)).all()
    found = decoded(elementwise(f"tanh.approx.{kind} $y, $a;", "u2", bits))
    assert (np.abs(found - np.tanh(x)) <= absolute).all()


def test_what_the_manual_says_exactly() -> None:
    a = np.array([0.0, -0.0, np.inf, -np.inf, np.nan], "f4")
    np.testing.assert_array_equal(
        elementwise("ex2.approx.f32 $y, $a;", "f4", a), np.array([1, 1, np.inf, 0, np.nan], "f4")
    )
    found = elementwise("rcp.approx.f32 $y, $a;", "f4", a)
    np.testing.assert_array_equal(found, np.array([np.inf, -np.inf, 0, -0.0, np.nan], "f4"))
    found = elementwise("rsqrt.approx.f32 $y, $a;", "f4", a)
    np.testing.assert_array_equal(found, np.array([np.inf, -np.inf, 0, np.nan, np.nan], "f4"))
    found = elementwise("lg2.approx.f32 $y, $a;", "f4", a)
    np.testing.assert_array_equal(found, np.array([-np.inf, -np.inf, np.inf, np.nan, np.nan], "f4"))
