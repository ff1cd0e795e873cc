"""Steps of recurrent language models compute what float64 does, however their signal is cut."""

from __future__ import annotations

import numpy as np
import pytest
from cache_models import RUNTIMES, Array, around, state_of, turn
from tract_transformers.ops.causal_conv import CausalConv1dUpdate
from tract_transformers.ops.gated_delta_rule import GatedDeltaRule

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp

KINDS = [("f32", "f4", 3e-6), ("f16", "f2", 2e-3)]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(9)


def convolved(x: Array, weight: Array, state: Array) -> tuple[Array, Array]:
    """One output after the other, in float64."""
    x, weight, state = (one.astype(np.float64) for one in (x, weight, state))
    output = np.zeros(x.shape)
    for at in range(x.shape[2]):
        state = np.concatenate([state[:, :, 1:], x[:, :, at : at + 1]], 2)
        total = (state * weight).sum(2)
        output[:, :, at] = total / (1 + np.exp(-total))
    return output, state


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("kind", "numpy", "tolerance"), KINDS)
@pytest.mark.parametrize("taps", [1, 4])
def test_a_convolution_goes_on(runtime, kind, numpy, tolerance, taps) -> None:
    rng = np.random.default_rng(9)
    model = around(CausalConv1dUpdate(), f"B,3,S,{kind}", f"3,{taps},{kind}", f"B,3,{taps},{kind}")
    runnable = state_of(model, runtime)
    weight = rng.normal(size=(3, taps)).astype(numpy)
    for batch, size in [(2, 0), (2, 1), (1, 2), (2, 7), (0, 3)]:
        x, state = (rng.normal(size=(batch, 3, count)).astype(numpy) for count in (size, taps))
        found = turn(runnable, x, weight, state)
        wanted = convolved(x, weight, state)
        assert [one.dtype for one in found] == [np.dtype(numpy)] * 2
        np.testing.assert_allclose(found[0], wanted[0], rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(found[1], wanted[1])


def corrected(*inputs: Array) -> tuple[Array, Array]:
    """One position of one head after the other, in float64."""
    query, key, value, decay, beta, state = (one.astype(np.float64) for one in inputs)
    batch, length, heads, width = value.shape
    output, shared = np.zeros(value.shape), heads // query.shape[2]
    for b, t, h in np.ndindex(batch, length, heads):
        q, k = query[b, t, h // shared], key[b, t, h // shared]
        q, k = q / np.sqrt(q @ q + 1e-6), k / np.sqrt(k @ k + 1e-6)
        memory = state[b, h] * np.exp(decay[b, t, h])
        memory = memory + np.outer(k, (value[b, t, h] - k @ memory) * beta[b, t, h])
        state[b, h], output[b, t, h] = memory, q @ memory / np.sqrt(width)
    return output, state


def given(rng: np.random.Generator, numpy: str, batch: int, length: int, width: int = 6) -> list[Array]:
    """Inputs with two heads of keys, and four of values."""
    shapes = [(batch, length, 2, width)] * 2 + [(batch, length, 4, width)] + [(batch, length, 4)] * 2
    query, key, value, decay, beta = (rng.normal(size=shape) for shape in shapes)
    state = rng.normal(size=(batch, 4, width, width)).astype("f4")
    numbers = (query, key, value, 1 / (1 + np.exp(-beta)))
    query, key, value, beta = (one.astype(numpy) for one in numbers)
    return [query, key, value, -np.abs(decay).astype("f4"), beta, state]


def facts(kind: str) -> list[str]:
    keys, values, state = f"B,S,2,6,{kind}", f"B,S,4,6,{kind}", "B,4,6,6,f32"
    return [keys, keys, values, "B,S,4,f32", f"B,S,4,{kind}", state]


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize(("kind", "numpy", "tolerance"), KINDS)
def test_a_memory_is_corrected_and_read(runtime, kind, numpy, tolerance, rng) -> None:
    runnable = state_of(around(GatedDeltaRule(), *facts(kind)), runtime)
    for batch, length in [(1, 0), (1, 1), (2, 2), (1, 7), (0, 2)]:
        inputs = given(rng, numpy, batch, length)
        output, state = turn(runnable, *inputs)
        wanted = corrected(*inputs)
        assert (output.dtype, state.dtype) == (np.dtype(numpy), np.dtype(np.float32))
        np.testing.assert_allclose(output, wanted[0], rtol=tolerance, atol=tolerance)
        np.testing.assert_allclose(state, wanted[1], rtol=3e-6, atol=3e-6)


def test_how_a_signal_is_cut_changes_nothing(rng) -> None:
    rule = state_of(around(GatedDeltaRule(), *facts("f32")), "reference")
    inputs = given(rng, "f4", 2, 5)
    whole, last = turn(rule, *inputs)
    state, found = inputs[5], []
    for begin, end in ((0, 1), (1, 1), (1, 4), (4, 5)):
        output, state = turn(rule, *(one[:, begin:end] for one in inputs[:5]), state)
        found.append(output)
    np.testing.assert_allclose(np.concatenate(found, 1), whole, rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(state, last, rtol=1e-6, atol=1e-7)


KEYS, VALUES, GATES, STATE = "1,S,2,6,f32", "1,S,4,6,f32", "1,S,4,f32", "1,4,6,6,f32"


@pytest.mark.parametrize(
    ("op", "shapes", "problem"),
    [
        (CausalConv1dUpdate(), ["1,3,S,f32", "3,4,f32", "1,3,5,f32"], "do not fit"),
        (CausalConv1dUpdate(), ["1,3,S,f32", "3,1,4,f32", "1,3,4,f32"], "wanted"),
        (CausalConv1dUpdate(), ["1,3,S,i32", "3,4,f32", "1,3,4,f32"], "floating-point"),
        (CausalConv1dUpdate(), ["1,3,S,f32", "3,4,f32"], "takes 3 inputs"),
        (GatedDeltaRule(), [KEYS, KEYS, "1,S,3,6,f32", "1,S,3,f32", "1,S,3,f32", "1,3,6,6,f32"], "3 heads of values"),
        (GatedDeltaRule(), [KEYS, KEYS, VALUES, GATES, GATES, "1,4,6,5,f32"], "do not fit"),
        (GatedDeltaRule(), [KEYS, KEYS, VALUES, GATES, "1,S,f32", STATE], "ranks"),
        (GatedDeltaRule(), [KEYS, KEYS, VALUES, GATES, "1,S,4,i32", STATE], "floating-point"),
    ],
)
def test_other_inputs_are_refused(op: TypedOp, shapes: list[str], problem: str) -> None:
    with pytest.raises(FactError, match=problem):
        op.output_facts([parse_typed_fact(shape) for shape in shapes])
