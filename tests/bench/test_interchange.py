"""The networks of the bench go to the established engine as archives, and come back from it."""

from __future__ import annotations

import sys
from math import pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from workloads import WORKLOADS, Workload

import tract_core as tract
from networks import transformers
from networks.builder import Builder

sys.path.insert(0, str(Path(__file__).parents[2] / "plugins" / "tract_nnef" / "tests"))

import established
from established import Refused, interchange

RELATIVE = 1e-4

NOT_WRITTEN_THERE = {"BERT-base", "ViT", "speech encoder"}
"""The engine finds GELU in its exact form, and has no spelling for what it finds."""

IN_F32 = [one for one in WORKLOADS if one.exact and one.precision == "f32"]
"""The engine has no operators for what quantised ones hold."""

each = pytest.mark.parametrize("workload", IN_F32, ids=lambda workload: workload.name)


def arrays(data: Path, model: tract.Model) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """The inputs and the outputs of a workload, in the order of the model."""
    with np.load(data) as held:
        inputs = [held[f"input {model.input_name(slot)}"] for slot in range(model.input_count())]
        outputs = [held[f"output {model.output_name(slot)}"] for slot in range(model.output_count())]
    return inputs, outputs


def check(found: list[np.ndarray], wanted: list[np.ndarray]) -> None:
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= RELATIVE * np.abs(other).max()


@interchange
@each
def test_an_archive_of_ours_means_the_same_there(workload: Workload, tmp_path: Path) -> None:
    source, data = workload.files(tmp_path, small=True)
    model = tract.load(source)
    inputs, wanted = arrays(data, model)
    model.save(tmp_path / "m.nnef.tar")
    check(established.run(tmp_path / "m.nnef.tar", inputs), wanted)


@interchange
@each
def test_an_archive_of_theirs_means_the_same_here(
    workload: Workload, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if workload.name in NOT_WRITTEN_THERE:
        with pytest.raises(Refused, match="GeluExact"):
            established.write(workload.files(tmp_path, small=True)[0], tmp_path / "refused")
        monkeypatch.setattr(transformers, "_gelu", gelu_by_tanh)
    source, data = workload.files(tmp_path / "of it", small=True)
    established.write(source, tmp_path / "theirs")
    inputs, wanted = arrays(data, tract.load(source))
    runnable = tract.load(tmp_path / "theirs").into_runnable()
    check([one.to_numpy() for one in runnable.run(inputs)], wanted)


STREAMS = {"keyword spotter": ("1,40,S,f32", 2), "causal 1-D": ("1,40,S,f32", 2), "LSTM": ("S,1,40,f32", 0)}
"""Networks that take a signal: the fact of the input, and the axis along which it comes."""


@interchange
@pytest.mark.parametrize("name", STREAMS)
def test_a_pulsed_network_streams_the_same_on_both_sides(name: str, tmp_path: Path) -> None:
    (workload,) = (one for one in WORKLOADS if one.name == name)
    fact, axis = STREAMS[name]
    source, data = workload.files(tmp_path, small=True)
    model = tract.onnx().load(source)
    model.set_input_fact(0, fact)
    model = model.into_model()
    ((signal,), (wanted,)) = arrays(data, model)
    pulse = 4
    turns = signal.shape[axis] // pulse
    pulses = np.split(signal, range(pulse, signal.shape[axis], pulse), axis)[:turns]
    model.save(tmp_path / "whole.nnef.tar")
    established.pulse(tmp_path / "whole.nnef.tar", tmp_path / "theirs", pulse)
    model.transform(tract.Pulse(pulse))
    tract.nnef().with_pulse().write_model_to_dir(model, tmp_path / "ours")
    streamed = [established.stream(tmp_path / "ours", pulses)]
    state = tract.load(tmp_path / "theirs").into_runnable().spawn_state()
    streamed.append([np.asarray(state.run([one])[0]) for one in pulses])
    for pieces in streamed:
        found = np.concatenate(pieces, axis)  # causal networks, whose outputs are not late
        check([found], [wanted[(slice(None),) * axis + (slice(0, found.shape[axis]),)]])


def gelu_by_tanh(b: Builder, x: str) -> str:
    cube = b.add("Mul", b.add("Mul", x, x), x)
    inside = b.add("Add", x, b.add("Mul", cube, b.float(0.044715)))
    gate = b.add("Add", b.add("Tanh", b.add("Mul", inside, b.float(sqrt(2 / pi)))), b.float(1))
    return b.add("Mul", b.add("Mul", x, b.float(0.5)), gate)
