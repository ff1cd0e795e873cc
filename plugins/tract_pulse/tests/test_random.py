"""Random networks give the same for a whole signal and for its pulses, ends included."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from stream_networks import Writer, network
from stream_runs import assert_agrees, assert_close, cut_outputs, pulsed, runnable, whole_outputs

from tract_core.errors import FactError, InputError
from tract_core.model.typed import TypedModel

SEEDS, LENGTHS, PULSES = st.integers(0, 2**32), st.integers(0, 30), st.integers(1, 3)

NATIVE = 30 if settings.default.max_examples <= 200 else settings.default.max_examples
"""Networks that are compiled, which takes longer: all of them in `make test-long`."""


def drawn(seed: int, length: int) -> tuple[Writer, TypedModel, list[Any], list[Any]]:
    """A network, its normal form, inputs and outputs; one that takes no signals of that length does not count."""
    try:
        net = network(seed)
        model = net.model.declutter()
        inputs = net.inputs(length)
        return net, model, inputs, whole_outputs(model, inputs)
    except (FactError, InputError):  # the signal is too short for a window
        reject()


@settings(deadline=None)
@given(seed=SEEDS, length=LENGTHS, pulses=PULSES)
def test_a_stream_gives_what_the_whole_signal_gives(seed: int, length: int, pulses: int):
    net, model, inputs, _ = drawn(seed, length)
    assert_agrees(model, pulsed(model, net.unit * pulses), inputs)


@settings(deadline=None, max_examples=NATIVE)
@given(seed=SEEDS, length=LENGTHS, pulses=PULSES)
def test_it_does_so_natively(seed: int, length: int, pulses: int):
    net, model, inputs, _ = drawn(seed, length)
    streaming = pulsed(model, net.unit * pulses)
    assert_agrees(model, streaming, inputs, runtime="cpu")
    assert hosted(streaming) <= hosted(model)


def hosted(model: TypedModel) -> set[str]:
    """The operators that the CPU runtime leaves to the host."""
    placements = runnable(model, "cpu").explain().placements
    return {op for one in placements if one.how in ("state", "numpy") for op in one.ops}


@settings(deadline=None)
@given(seed=SEEDS, length=st.integers(1, 30), pulses=PULSES)
def test_chunks_of_any_length_give_what_the_whole_signal_gives(seed: int, length: int, pulses: int):
    net, model, inputs, wanted = drawn(seed, length)
    pulse = net.unit * pulses if seed % 3 else f"{net.unit}*P"
    found = cut_outputs(pulsed(model, pulse), inputs, np.random.default_rng(seed))
    for one, other in zip(found, wanted, strict=True):
        assert_close(one, other)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@settings(deadline=None, max_examples=30)
@given(seed=SEEDS, turns=st.integers(0, 4))
def test_a_state_goes_on_from_a_snapshot_and_begins_anew(runtime: str, seed: int, turns: int):
    net, model, _, _ = drawn(seed, 30)
    streaming = runnable(pulsed(model, net.unit), runtime)
    state = streaming.spawn_state()
    shapes = [[int(size) for size in streaming.typed.outlet_fact(one).shape] for one in streaming.typed.inputs]
    pulses = [[net.numbers.normal(size=shape).astype(np.float32) for shape in shapes] for _ in range(turns + 3)]

    def run(one: Any, which: list[list[Any]]) -> list[bytes]:
        return [np.asarray(out).tobytes() for pulse in which for out in one.run(pulse)]

    first = run(state, pulses[:turns])
    snapshot = state.freeze()
    rest = run(state, pulses[turns:])
    assert run(snapshot.unfreeze(), pulses[turns:]) == rest
    assert run(pickle.loads(pickle.dumps(snapshot)).unfreeze(), pulses[turns:]) == rest
    state.reset()
    assert run(state, pulses) == first + rest
