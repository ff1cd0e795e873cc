"""Pulsed models go to the established engine as archives, and come back from it: both stream the same.

There, nobody can say that a signal has ended, so that only what does not need its end is compared.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from stream_networks import CHANNELS, Writer
from stream_runs import pulsed, runnable, whole_outputs

import tract_core as tract
from tract_core.api.model import Model
from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv
from tract_core.ops.downsample import Downsample
from tract_core.ops.elementwise import Sigmoid, Tanh
from tract_core.ops.pad import Pad, PadConstant, PadEdge
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import Explicit
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.slice import Slice
from tract_core.ops.wiring import wire_one
from tract_core.runtime.streams import Streams

sys.path.insert(0, str(Path(__file__).parents[2] / "tract_nnef" / "tests"))

import established
from established import interchange

PULSE, TURNS = 4, 6
RELATIVE = 1e-4


def convolved(net: Writer, kernel: int, before: int, after: int, *, dilation: int = 1, stride: int = 1) -> None:
    op = Conv(net.spec(Explicit((before,), (after,)), kernel, dilation, stride))
    net.x = net.wire(op, net.weights(CHANNELS, CHANNELS, kernel), net.weights(CHANNELS))


def convolutions(net: Writer) -> None:
    convolved(net, 3, 1, 1)
    net.x = net.wire(Tanh())
    convolved(net, 5, 2, 2)


def causal(net: Writer) -> None:
    for dilation in (1, 2, 4):
        before = net.x
        convolved(net, 3, 2 * dilation, 0, dilation=dilation)
        net.x = net.wire(Sigmoid())
        net.x = net.wire(Add(), before)


def strided(net: Writer) -> None:
    convolved(net, 3, 1, 1, stride=2)
    convolved(net, 3, 0, 0, dilation=2)


def padded(net: Writer) -> None:
    net.x = net.wire(Pad(((0, 0), (0, 0), (5, 3)), PadConstant(Constant(np.array(0.5, np.float32)))))
    convolved(net, 3, 0, 0)


def padded_by_the_edge(net: Writer) -> None:
    net.x = net.wire(Pad(((0, 0), (0, 0), (3, 0)), PadEdge()))
    convolved(net, 2, 0, 0)


def pooled(net: Writer) -> None:
    convolved(net, 3, 1, 1)
    net.x = net.wire(MaxPool(net.spec(Explicit((1,), (1,)), 3, 1, 2)))


def shortcut(net: Writer) -> None:
    before = net.x
    convolved(net, 3, 1, 1)
    convolved(net, 5, 2, 2)
    net.x = net.wire(Add(), before)


def sliced(net: Writer) -> None:
    net.x = net.wire(Slice(2, 3, symbol("S")))
    convolved(net, 3, 0, 0)


def thinned(net: Writer) -> None:
    convolved(net, 3, 1, 1)
    net.x = net.wire(Downsample(2, 2))


def recurrent(net: Writer) -> None:
    """y[t] = tanh(x[t] + y[t-1]), behind a convolution that delays."""
    convolved(net, 3, 1, 1)
    body = TypedModel()
    fact = TypedFact.of(net.model.outlet_fact(net.x).datum_type, (1, CHANNELS, 1))
    x, state = body.add_source("x", fact), body.add_source("state", fact)
    y = wire_one(body, "y", Tanh(), wire_one(body, "sum", Add(), x, state))
    body.set_outputs([y])
    loop = Scan(body, (ScannedInput(2), StateInput()), (OutputMapping(state=True, full=FullOutput(0, 2)),))
    net.x = net.wire(loop, net.model.add_const("zero", np.zeros((1, CHANNELS, 1), np.float32)))


CASES = (
    convolutions,
    causal,
    strided,
    padded,
    padded_by_the_edge,
    pooled,
    shortcut,
    sliced,
    thinned,
    recurrent,
)

each = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


def model_of(case: Callable[[Writer], None]) -> TypedModel:
    net = Writer(1)
    case(net)
    net.model.set_outputs([net.x])
    return net.model.declutter()


def signal() -> np.ndarray:
    return np.random.default_rng(2).normal(size=(1, CHANNELS, PULSE * TURNS)).astype(np.float32)


def check(pieces: list[np.ndarray], model: TypedModel, case: Callable[[Writer], None]) -> None:
    """``model``: the pulsed one, whose properties say how late the output is."""
    streams = Streams.of(model)
    assert streams is not None
    (end,) = streams.outputs
    assert end is not None
    found = np.concatenate(pieces, 2)[..., end.delay :]
    (wanted,) = whole_outputs(model_of(case), [signal()])
    count = min(found.shape[2], wanted.shape[2])
    assert count > TURNS
    assert np.abs(found[..., :count] - wanted[..., :count]).max() <= RELATIVE * np.abs(wanted).max()


@interchange
@each
def test_a_pulsed_model_of_ours_streams_there(case: Callable[[Writer], None], tmp_path: Path) -> None:
    model = pulsed(model_of(case), PULSE)
    tract.nnef().with_pulse().write_model_to_dir(Model(model.clone()), tmp_path / "ours")
    check(established.stream(tmp_path / "ours", np.split(signal(), TURNS, 2)), model, case)


@interchange
@each
def test_a_pulsed_model_of_theirs_streams_here(case: Callable[[Writer], None], tmp_path: Path) -> None:
    Model(model_of(case)).save(tmp_path / "whole.nnef.tar")
    established.pulse(tmp_path / "whole.nnef.tar", tmp_path / "theirs", PULSE)
    model = tract.load(tmp_path / "theirs").typed
    state = runnable(model).spawn_state()
    check([np.asarray(state.run([piece])[0]) for piece in np.split(signal(), TURNS, 2)], model, case)
