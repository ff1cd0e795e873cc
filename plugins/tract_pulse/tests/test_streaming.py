"""Signals in chunks, states that are stopped and go on, and what is refused on the way."""

from __future__ import annotations

import pickle
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_networks import CHANNELS, Writer
from stream_runs import pulsed, runnable, whole_outputs

import tract_core as tract
from tract_core.api.model import Model
from tract_core.data import Constant
from tract_core.errors import InputError, Unsupported
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv
from tract_core.ops.pad import Pad, PadConstant, PadEdge, PadMode
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import Explicit
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import wire_slice
from tract_core.ops.wiring import wire_one

PULSE = 4
NUMBERS = np.random.default_rng(11)


ONE_AND_A_HALF = PadConstant(Constant(np.float32(1.5).reshape(())))


def network(mode: PadMode = ONE_AND_A_HALF) -> TypedModel:
    """Convolutions with paddings of zeros, and of another mode: the end of the signal shows in the output."""
    net = Writer(3)
    net.x = net.wire(Conv(net.spec(Explicit((1,), (1,)), 3)), net.weights(CHANNELS, CHANNELS, 3), net.weights(CHANNELS))
    net.x = net.wire(Pad(((0, 0), (0, 0), (2, 3)), mode))
    net.x = net.wire(
        Conv(net.spec(Explicit((2,), (2,)), 5, stride=2)), net.weights(CHANNELS, CHANNELS, 5), net.weights(CHANNELS)
    )
    net.model.set_outputs([net.x])
    return net.model.declutter()


def signal(length: int) -> Any:
    return NUMBERS.normal(size=(1, CHANNELS, length)).astype(np.float32)


def laid(pieces: Any) -> Any:
    return np.concatenate([np.asarray(piece) for piece in pieces], 2)


@pytest.fixture(scope="module", params=["reference", "cpu"])
def ready(request: pytest.FixtureRequest) -> tract.Runnable:
    return runnable(pulsed(network(), PULSE), request.param)


@pytest.mark.parametrize("length", [0, 1, 3, 4, 5, 8, 23])
@pytest.mark.parametrize("chunks", [[1], [3], [4], [0, 5, 0], [100], [2, 0, 7, 1]])
def test_chunks_of_any_length_give_what_the_whole_signal_gives(
    ready: tract.Runnable, length: int, chunks: list[int]
) -> None:
    x, cut = signal(length), list[Any]()
    while not cut or sum(one.shape[2] for one in cut) < length:
        size = chunks[len(cut) % len(chunks)]
        begin = sum(one.shape[2] for one in cut)
        cut.append(x[:, :, begin : begin + size])
    (want,) = whole_outputs(network(), [x])
    found = laid(ready.stream(cut))
    assert found.shape == want.shape
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [1, 2, 6])
def test_the_edge_of_a_signal_is_repeated_behind_it(length: int) -> None:
    x, model = signal(length), network(PadEdge())
    found = laid(runnable(pulsed(model, 8)).stream([x]))
    np.testing.assert_allclose(found, whole_outputs(model, [x])[0], rtol=1e-5, atol=1e-5)


def test_a_signal_that_the_model_does_not_take_whole_is_refused_in_pulses() -> None:
    model = network(PadEdge())
    for call in (
        lambda: whole_outputs(model, [signal(0)]),
        lambda: list(runnable(pulsed(model, 8)).stream([signal(0)])),
    ):
        with pytest.raises(InputError, match="S must not be 0"):
            call()


def test_what_comes_is_given_as_soon_as_it_is_known(ready: tract.Runnable) -> None:
    taken: list[int] = []

    def source() -> Iterator[Any]:
        for chunk in range(10):
            taken.append(chunk)
            yield signal(PULSE)

    stream = ready.stream(source())
    next(stream)
    assert len(taken) < 4


def test_a_source_without_chunks_gives_nothing(ready: tract.Runnable) -> None:
    assert list(ready.stream([])) == []


def two_of_each() -> TypedModel:
    """x and y, of S and 2*S positions, with a gain that is whole: two outputs that stream, one that is whole."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,2,S,f32", model.symbols))
    y = model.add_source("y", parse_typed_fact("1,2,2*S,f32", model.symbols))
    gain = model.add_source("gain", parse_typed_fact("1,2,1,f32", model.symbols))
    net = Writer(5)
    louder = wire_one(model, "louder", Add(), x, gain)
    padded = wire_one(model, "padded", Pad(((0, 0), (0, 0), (1, 1)), ONE_AND_A_HALF), y)
    pool = MaxPool(net.spec(Explicit((0,), (0,)), 3))
    pooled = wire_one(model, "pooled", pool, padded)
    total = wire_one(model, "total", Reduce((1,), Reducer.SUM), gain)
    model.set_outputs([louder, pooled, total])
    return model.declutter()


@pytest.mark.parametrize("by_name", [False, True])
@pytest.mark.parametrize("length", [0, 1, 4, 9])
def test_several_inputs_and_outputs(length: int, by_name: bool) -> None:
    x, y, gain = signal(length), signal(2 * length), signal(1)
    want = whole_outputs(two_of_each(), [x, y, gain])
    chunks: list[Any] = [(x[:, :, :3], y[:, :, :2]), (x[:, :, 3:], y[:, :, 2:])]
    source = [{"y": two, "x": one} for one, two in chunks] if by_name else chunks
    pieces = list(runnable(pulsed(two_of_each(), 4)).stream(source, {"gain": gain}))
    for slot in (0, 1):
        np.testing.assert_allclose(laid(piece[slot] for piece in pieces), want[slot], rtol=1e-6)
    np.testing.assert_array_equal(pieces[-1][2], want[2])


def test_lengths_that_no_signal_has_are_refused() -> None:
    ready = runnable(pulsed(two_of_each(), 4))
    with pytest.raises(InputError, match=r"the signal has 3, 7 positions, and the model takes streams of S, 2\*S"):
        list(ready.stream([(signal(3), signal(7))], {"gain": signal(1)}))


def test_what_is_wrong_with_a_chunk_is_said(ready: tract.Runnable) -> None:
    with pytest.raises(
        InputError, match=r"a chunk of 'x' has shape \(1, 3, 4\), wanted 1,2,4,f32, of any size on axis 2"
    ):
        list(ready.stream([np.zeros((1, 3, 4), np.float32)]))
    with pytest.raises(InputError, match=r"a chunk of 'x' has shape \(2, 4\)"):
        list(ready.stream([np.zeros((2, 4), np.float32)]))
    with pytest.raises(InputError, match="input 'x'"):
        list(ready.stream([np.zeros((1, 2, 4))]))


def test_whole_inputs_have_to_be_given() -> None:
    with pytest.raises(InputError, match="the input 'gain' is whole, and was not given"):
        list(runnable(pulsed(two_of_each(), 4)).stream([(signal(3), signal(7))]))


def test_a_model_that_takes_no_stream_says_how_it_would() -> None:
    plain = runnable(network())
    for call in (lambda: list(plain.stream([signal(3)])), lambda: plain.spawn_state().end_of_stream(3)):
        with pytest.raises(InputError, match="the model takes no stream") as caught:
            call()
        assert "tract.Pulse" in (caught.value.hint or "")


def turns(state: tract.State, x: Any, first: int = 0) -> list[Any]:
    """From turn ``first`` on, with garbage behind the end, until all of the output has come."""
    length, found = x.shape[2], list[Any]()
    for turn in range(first, length // PULSE + 6):
        piece = x[:, :, turn * PULSE : (turn + 1) * PULSE]
        if piece.shape[2] < PULSE:
            state.end_of_stream(length)  # as often as one likes
            piece = np.pad(piece, ((0, 0), (0, 0), (0, PULSE - piece.shape[2])), constant_values=np.nan)
        found.append(np.array(state.run([piece])[0]))
    return found


@pytest.mark.parametrize("stop", range(9))
def test_states_go_on_bit_for_bit_where_they_were_frozen(ready: tract.Runnable, stop: int) -> None:
    x = signal(22)
    straight = turns(ready.spawn_state(), x)
    state = ready.spawn_state()
    for turn in range(min(stop, 5)):
        state.run([x[:, :, turn * PULSE : (turn + 1) * PULSE]])
    if stop >= 5:
        state.end_of_stream(22)
    gone_on = turns(pickle.loads(pickle.dumps(state.freeze())).unfreeze(), x, min(stop, 5))
    np.testing.assert_array_equal(np.stack(gone_on), np.stack(straight[min(stop, 5) :]))


ELSEWHERE = """
import pickle, sys
import numpy as np
frozen, pieces = pickle.load(sys.stdin.buffer)
state = frozen.unfreeze()
found = [np.array(state.run([piece])[0]) for piece in pieces[:2]]
state.end_of_stream(22)
found += [np.array(state.run([piece])[0]) for piece in pieces[2:]]
sys.stdout.buffer.write(pickle.dumps(found))
"""


def test_states_go_on_in_another_process(ready: tract.Runnable) -> None:
    x = signal(22)
    straight, state = turns(ready.spawn_state(), x), ready.spawn_state()
    padded = np.pad(x, ((0, 0), (0, 0), (0, 10)), constant_values=np.nan)
    pieces = np.split(padded, 8, 2)
    for piece in pieces[:3]:
        state.run([np.ascontiguousarray(piece)])
    sent = pickle.dumps((state.freeze(), [np.ascontiguousarray(piece) for piece in pieces[3:]]))
    done = subprocess.run([sys.executable, "-c", ELSEWHERE], input=sent, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode()
    np.testing.assert_array_equal(np.stack(pickle.loads(done.stdout)), np.stack(straight[3:8]))


def test_many_streams_run_side_by_side(ready: tract.Runnable) -> None:
    signals = [signal(length) for length in range(16)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda x: laid(ready.stream([x[:, :, :3], x[:, :, 3:]])), signals))
    for x, one in zip(signals, found, strict=True):
        np.testing.assert_allclose(one, whole_outputs(network(), [x])[0], rtol=1e-5, atol=1e-5)


def test_a_state_that_is_reset_begins_anew(ready: tract.Runnable) -> None:
    state, x = ready.spawn_state(), signal(13)
    first = laid(state.stream([x]))
    with pytest.raises(InputError, match="a signal has gone through the state"):
        state.stream([x])
    state.reset()
    state.run([signal(PULSE)])
    with pytest.raises(InputError, match="the state is in the middle of a signal, of which 4 positions have come"):
        state.stream([x])
    state.reset()
    np.testing.assert_array_equal(laid(state.stream([x])), first)


def test_an_end_that_has_gone_by_is_refused(ready: tract.Runnable) -> None:
    state = ready.spawn_state()
    state.run([signal(PULSE)])
    state.run([signal(PULSE)])
    with pytest.raises(InputError, match="a signal of 7 positions has ended already, as 8 have come"):
        state.end_of_stream(7)
    state.end_of_stream(8)
    state.end_of_stream(8)
    with pytest.raises(InputError, match="the length of the signal was told already, as S=8, and now as S=9"):
        state.end_of_stream(9)
    with pytest.raises(InputError, match="told already"):
        state.freeze().unfreeze().end_of_stream(9)
    state.reset()
    state.end_of_stream(9)


def test_a_frozen_state_knows_how_much_has_come(ready: tract.Runnable) -> None:
    state = ready.spawn_state()
    state.run([signal(PULSE)])
    with pytest.raises(InputError, match="ended already"):
        pickle.loads(pickle.dumps(state.freeze())).unfreeze().end_of_stream(3)


def test_a_signal_of_a_length_that_cannot_be_is_refused() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,2,2*S+1,f32", model.symbols))
    model.set_outputs([wire_slice(model, "rest", x, 2, start=1, end=None)])
    state = runnable(pulsed(model.declutter(), 4)).spawn_state()
    with pytest.raises(InputError, match=r"the signal has 8 positions, and the model takes streams of 2\*S\+1"):
        state.end_of_stream(8)
    with pytest.raises(InputError):
        state.end_of_stream(-1)
    state.end_of_stream(9)


def test_pulses_that_may_be_of_any_length_are_counted() -> None:
    state = runnable(pulsed(network(), "2*P")).spawn_state()
    state.run({"x": signal(6)})
    state.run([signal(4)])
    with pytest.raises(InputError, match="a signal of 9 positions has ended already, as 10 have come"):
        state.end_of_stream(9)


def test_models_of_an_archive_stream_too(tmp_path: Path) -> None:
    nnef = tract.nnef().with_pulse()
    nnef.write_model_to_tar(Model(pulsed(network(), PULSE)), tmp_path / "stream.nnef.tar")
    loaded = nnef.load(tmp_path / "stream.nnef.tar").into_runnable()
    x = signal(15)
    np.testing.assert_allclose(laid(loaded.stream([x])), whole_outputs(network(), [x])[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [16, 18])
def test_models_that_do_not_say_how_long_they_are_give_all_that_is_known(length: int) -> None:
    """As those of the established engine: nothing is missing, and what is behind the end of the output is garbage."""
    model = pulsed(network(), PULSE)
    for name in ("pulse.input_lengths", "pulse.output_lengths"):
        del model.properties[name]
    x = signal(length)
    (want,), found = whole_outputs(network(), [x]), laid(runnable(model).stream([x[:, :, :5], x[:, :, 5:]]))
    count = min(found.shape[2], want.shape[2])
    assert count >= length // 2
    np.testing.assert_allclose(found[:, :, :count], want[:, :, :count], rtol=1e-5, atol=1e-5)


def test_a_runtime_that_cannot_be_told_the_end_says_so(ready: tract.Runnable, monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def run(self, inputs: Any, out: Any = None) -> Any:
            return self.inner.run(inputs, out)

    state = ready.spawn_state()
    monkeypatch.setattr(state, "_inner", Deaf(state._inner))  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(
        Unsupported, match=r"cannot be told where a signal ends: run\(\) of its states takes no 'symbols'"
    ):
        state.end_of_stream(8)
