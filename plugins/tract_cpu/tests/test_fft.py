"""Fourier transforms against numpy.fft in float64, and against their definition."""

from __future__ import annotations

import numpy as np
import pytest
from tract_cpu.lower.waves import radices_of, splits
from tract_cpu.plan import CpuPlan
from tract_cpu.state import CpuState
from tract_llvm.isa import Isa, of_this_machine

from tract_core.data import Constant
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.fft import Fft, Stft

BEST = of_this_machine()[-1]

LENGTHS = [1, 2, 3, 4, 5, 6, 7, 8, 9, 13, 60, 77, 127, 131, 254, 400, 512, 1009, 2187, 4099]
"""Every kind of pass, the largest prime that is summed up, and the first ones that become convolutions."""


def prepared(isa: Isa, op: TypedOp, fact: str, threads: int = 1) -> CpuState:
    """The state of a plan that leaves nothing to the host."""
    model = TypedModel()
    model.set_outputs(model.wire_node("op", op, [model.add_source("x", parse_typed_fact(fact, model.symbols))]))
    plan = CpuPlan(model, isa, threads)
    assert all(one.how != "numpy" for one in plan.explain().placements)
    return plan.spawn()


def numbers(*shape: int, dtype: str = "f4") -> np.ndarray:
    return np.random.default_rng(0).standard_normal((*shape, 2)).astype(dtype)


def as_complex(x: np.ndarray) -> np.ndarray:
    return x[..., 0].astype("f8") + 1j * x[..., 1].astype("f8")


def wanted_of(x: np.ndarray, axis: int, *, inverse: bool = False) -> np.ndarray:
    return np.fft.ifft(as_complex(x), axis=axis, norm="forward") if inverse else np.fft.fft(as_complex(x), axis=axis)


def assert_near(found: np.ndarray, wanted: np.ndarray, length: int) -> None:
    """The relative error is at most the unit of the last place for each level of halves."""
    error = np.linalg.norm(as_complex(found) - wanted) / np.linalg.norm(wanted)
    assert error <= np.finfo(found.dtype).eps * max(1, np.log2(length)), length


def test_one_plan_transforms_any_length(isa) -> None:
    state = prepared(isa, Fft(1), "B,S,2,f32")
    for length in LENGTHS:
        x = numbers(19, length)
        assert_near(state.run([x])[0], wanted_of(x, 1), length)


@pytest.mark.parametrize("fact", ["S,2,f64", "B,S,C,2,f64"])
def test_doubles_lose_no_digits_on_the_way_back(fact) -> None:
    axis = fact.count(",") // 3
    state = prepared(BEST, Fft(axis, inverse=True), fact)
    for length in LENGTHS:
        x = numbers(*((length,) if axis == 0 else (2, length, 9)), dtype="f8")
        assert_near(state.run([x])[0], wanted_of(x, axis, inverse=True), length)


@pytest.mark.parametrize("length", [1, 60, 77, 131, 1024, 8192])
def test_a_known_length_has_tables_of_its_own(length) -> None:
    for batch in (1, 18):
        x = numbers(batch, length)
        assert_near(prepared(BEST, Fft(1), f"{batch},{length},2,f32").run([x])[0], wanted_of(x, 1), length)


def test_long_transforms_are_cut_in_two_along_any_axis() -> None:
    x = numbers(512, 3)
    assert_near(prepared(BEST, Fft(0, inverse=True), "512,3,2,f32").run([x])[0], wanted_of(x, 0, inverse=True), 512)


def test_transforms_beside_each_other(isa) -> None:
    state = prepared(isa, Fft(1), "B,12,C,2,f32")
    for columns in (0, 1, 2, 3, 16, 37, 64):
        x = numbers(2, 12, columns)
        found = state.run([x])[0]
        assert found.shape == x.shape
        for column in range(columns):
            assert_near(found[:, :, column], wanted_of(x[:, :, column], 1), 12)


def test_the_definition(isa) -> None:
    state = prepared(isa, Fft(0), "S,2,f32")
    for length in range(1, 18):
        x, places = numbers(length), np.arange(length)
        waves = np.exp(-2j * np.pi * np.outer(places, places) / length)
        assert_near(state.run([x])[0], waves @ as_complex(x), length)


@pytest.mark.parametrize("op", [Stft(1, 16, 5, Constant(np.hanning(9))), Stft(1, 131, 1)], ids=["window", "chirp"])
def test_frames_overlap(isa, op) -> None:
    state = prepared(isa, op, "B,T,2,f32")
    for size in (op.frame, op.frame + 1, 200):
        x = numbers(3, size)
        window = np.ones(op.frame) if op.window is None else np.pad(op.window.array, (3, 4))
        frames = np.lib.stride_tricks.sliding_window_view(as_complex(x), op.frame, axis=1)[:, :: op.stride]
        assert_near(state.run([x])[0], np.fft.fft(frames * window), op.frame)


def test_narrow_floats_are_rounded_once() -> None:
    x = numbers(5, 24, dtype="f2")
    wanted = wanted_of(x, 1)
    found = as_complex(prepared(BEST, Fft(1), "B,24,2,f16").run([x])[0])
    assert np.abs(found - wanted).max() <= np.finfo("f2").eps * np.abs(wanted).max()


def test_what_is_not_finite_stays_in_its_own_transform(isa) -> None:
    x = numbers(33, 40)
    x[20, 3], x[32, 7] = np.nan, np.inf
    found = prepared(isa, Fft(1), "B,40,2,f32").run([x])[0]
    spoilt = ~np.isfinite(found).all(axis=(1, 2))
    assert np.flatnonzero(spoilt).tolist() == [20, 32]
    np.testing.assert_array_equal(np.isfinite(found[spoilt]), False)


def test_any_number_of_threads_gives_the_same_bits() -> None:
    x = numbers(200, 360)
    one, three = (prepared(BEST, Fft(1), "B,S,2,f32", threads).run([x])[0] for threads in (1, 3))
    assert one.tobytes() == three.tobytes()


def test_factors_are_small_ones_first() -> None:
    assert radices_of(2 * 4 * 9 * 5 * 49 * 131) == [4, 2, 3, 3, 5, 7, 7, 131]
    assert radices_of(1) == []


def test_parts_of_long_transforms_have_whole_vectors() -> None:
    assert splits(1024, 16, 4096) == (32, 32)
    assert splits(8192, 16, 4096) in {(64, 128), (128, 64)}
    assert splits(1000, 16, 4096) == ()
    assert splits(1 << 26, 16, 4096) == ()
