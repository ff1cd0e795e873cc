"""Random networks of files, as people build them, all stream, and give what they give for the whole signal."""

from __future__ import annotations

from random import Random
from typing import Any

import numpy as np
import pytest
from architectures import Architecture
from hypothesis import settings
from random_architectures import network
from stream_runs import assert_agrees, pulsed, whole_outputs

import tract_core as tract
from tract_core.model.typed import TypedModel

NETWORKS = 40 if settings.default.max_examples <= 200 else 1000
"""All thousand in `make test-long`."""


def loaded(net: Architecture) -> TypedModel:
    """The normal form of the file."""
    inference = tract.onnx().load_bytes(net.model().SerializeToString())
    for slot, fact in enumerate(net.facts()):
        inference.set_input_fact(slot, fact)
    return inference.into_model().typed


def some_lengths(net: Architecture, random: Random) -> list[int]:
    """The shortest signals that a network takes, and others."""
    lengths = net.fits(*net.outputs)
    return sorted({*lengths[:2], random.choice(lengths[:40]), random.choice(lengths)})


@pytest.mark.parametrize("seed", range(NETWORKS))
def test_a_network_streams(seed: int):
    net, random = network(seed), Random(seed)
    model = loaded(net)
    streaming = pulsed(model, net.unit * random.choice([1, 1, 2, 3]))
    for length in some_lengths(net, random):
        inputs = net.arrays(length)
        assert_lengths(net, model, inputs, length)
        assert_agrees(model, streaming, inputs, tolerance=1e-4)


def assert_lengths(net: Architecture, model: TypedModel, inputs: list[Any], length: int) -> None:
    """Raises AssertionError unless outputs are as long as whoever made the network says."""
    found = [np.asarray(one).shape[2] for one in whole_outputs(model, inputs)]
    assert found == [one.lengths[length] for one in net.outputs]
