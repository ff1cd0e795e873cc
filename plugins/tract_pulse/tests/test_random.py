"""Random networks give the same for a whole signal and for its pulses, ends included."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from stream_networks import CHANNELS, network
from stream_runs import assert_streams, whole_outputs

from tract_core.errors import FactError, InputError


@settings(deadline=None)
@given(seed=st.integers(0, 2**32), length=st.integers(0, 30), pulses=st.integers(1, 3))
def test_a_stream_gives_what_the_whole_signal_gives(seed: int, length: int, pulses: int):
    try:
        net = network(seed)
    except FactError:
        assume(False)
        return
    model = net.model.declutter()
    x = np.random.default_rng(seed).normal(size=(1, CHANNELS, length)).astype(np.float32)
    try:
        whole_outputs(model, [x])
    except InputError:  # the signal is too short for a window
        assume(False)
    assert_streams(model, net.unit * pulses, [x])
