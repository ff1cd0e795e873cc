"""Random networks give the same for a whole signal and for its pulses, ends included."""

from __future__ import annotations

import numpy as np
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from stream_networks import CHANNELS, network
from stream_runs import assert_streams, runnable, whole_outputs

from tract_core.errors import FactError, InputError
from tract_core.model.typed import TypedModel


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), length=st.integers(0, 30), pulses=st.integers(1, 3))
def test_a_stream_gives_what_the_whole_signal_gives(seed: int, length: int, pulses: int):
    assert_network_streams(seed, length, pulses)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 2**32), length=st.integers(0, 30), pulses=st.integers(1, 3))
def test_it_does_so_natively(seed: int, length: int, pulses: int):
    model = assert_network_streams(seed, length, pulses, runtime="cpu")
    assert {one.how for one in runnable(model, "cpu").explain().placements}.isdisjoint({"state", "numpy"})


def assert_network_streams(seed: int, length: int, pulses: int, **options: str) -> TypedModel:
    """Returns the model over pulses."""
    try:
        net = network(seed)
    except FactError:
        reject()
    model = net.model.declutter()
    x = np.random.default_rng(seed).normal(size=(1, CHANNELS, length)).astype(np.float32)
    try:
        whole_outputs(model, [x])
    except InputError:  # the signal is too short for a window
        reject()
    return assert_streams(model, net.unit * pulses, [x], **options)
