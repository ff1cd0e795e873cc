from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tract_core.data import Constant
from tract_core.errors import FactError, InputError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops import fft
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex, Stft
from tract_core.runtime.plan import TypedSimplePlan


def data(*shape: int) -> Any:
    return np.random.default_rng(4).normal(size=shape).astype(np.float32)


@pytest.mark.parametrize(
    ("op", "fact", "message"),
    [
        (Fft(0), "8,3,f32", "Fft wants a last axis of size 2, for real and imaginary parts, found 8,3,f32"),
        (Fft(1), "8,2,f32", "Fft: axis 1 is outside a tensor of rank 1"),
        (Fft(0), "8,2,i32", "Fft wants floating-point numbers"),
        (Stft(0, 9, 2), "8,2,f32", "frames of 9 every 2 do not fit axis 0 of 8,2,f32"),
        (Stft(0, 4, 0), "8,2,f32", "frames of 4 every 0 do not fit"),
        (Stft(0, 2, 1, Constant(np.ones(3))), "8,2,f32", r"the window has shape \(3,\), wanted at most \[2\]"),
        (InnerDimToComplex(), "8,2,f16", "wants f32 or f64 with a last axis of size 2, found 8,2,f16"),
        (ComplexToInnerDim(), "8,2,f32", "wants complex numbers, found 8,2,f32"),
    ],
)
def test_refusals_say_what_was_found(op: TypedOp, fact: str, message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact)])


def test_stft_facts_are_symbolic() -> None:
    (found,) = Stft(1, 4, 3).output_facts([parse_typed_fact("B,S,2,f32")])
    assert str(found) == "B,(S+2)/3-1,4,2,f32"


def test_a_signal_that_is_too_short_is_refused_when_it_runs() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,2,f32", model.symbols))
    model.set_outputs(model.wire_node("frames", Stft(0, 4, 1), [x]))
    with pytest.raises(InputError, match=r"node 'frames' \(Stft\): size S must be 4 or more; S is 3"):
        TypedSimplePlan(model).run([data(3, 2)])


def test_axes() -> None:
    subject, x = Stft(1, 4, 3), parse_typed_fact("B,S,3,2,f32")
    mapping = fft.stft_axes(subject, [x], subject.output_facts([x]))
    assert [mapping.track(("in", 0, axis), ("out", 0)) for axis in range(4)] == [0, None, 3, None]


def test_cost() -> None:
    subject, x = Fft(0), parse_typed_fact("8,B,2,f32")
    assert str(fft.fft_cost(subject, [x], [x])["FMA(F32)"]) == f"{8 * 3 * 3}*B"


def test_there_and_back_multiplies_by_the_size(run_op: Callable[..., Any]) -> None:
    x = data(3, 6, 2)
    (there,) = run_op(Fft(1), [x])
    (back,) = run_op(Fft(1, inverse=True), [there])
    np.testing.assert_allclose(back, 6 * x, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("inverse", [0, 1])
def test_dft_agrees_with_onnx(run_op: Callable[..., Any], run_onnx: Callable[..., Any], inverse: int) -> None:
    x = data(2, 9, 2)
    wanted = run_onnx("DFT", [x], opset=17, axis=1, inverse=inverse)[0]
    (found,) = run_op(Fft(1, bool(inverse)), [x])
    np.testing.assert_allclose(found / (9 if inverse else 1), wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("window", [False, True])
def test_stft_agrees_with_onnx(run_op: Callable[..., Any], run_onnx: Callable[..., Any], window: bool) -> None:
    signal, weights = data(2, 20, 1), np.hanning(8).astype(np.float32)
    given = [signal, np.array(3, np.int64), weights if window else None, np.array(8, np.int64)]
    wanted = run_onnx("STFT", given, opset=17, onesided=0)[0]
    pairs = np.concatenate([signal, np.zeros_like(signal)], axis=-1)
    (found,) = run_op(Stft(1, 8, 3, Constant(weights) if window else None), [pairs])
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_complex_numbers_have_the_bits_of_their_parts(dtype: str) -> None:
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.5]
    pairs = np.array([[a, b] for a in ends for b in ends], dtype)
    found = fft.inner_dim_to_complex(InnerDimToComplex(), pairs)
    assert found.tobytes() == pairs.tobytes()
    assert fft.complex_to_inner_dim(ComplexToInnerDim(), found).tobytes() == pairs.tobytes()
