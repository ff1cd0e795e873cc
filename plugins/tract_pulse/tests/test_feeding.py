"""Signals that are pushed chunk by chunk: the same as `stream`, stopped and gone on with, refused in the middle."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from stream_runs import pulsed, runnable, whole_outputs
from test_streaming import CHANNELS, PULSE, laid, network, signal, two_of_each

import tract_core as tract
from tract_core.errors import InputError, RunError


@pytest.fixture(scope="module", params=["reference", "cpu"])
def ready(request: pytest.FixtureRequest) -> tract.Runnable:
    return runnable(pulsed(network(), PULSE), request.param)


def pushed(feeding: tract.Feeding, chunks: list[Any]) -> list[Any]:
    return [piece for chunk in chunks for piece in feeding.push(chunk)] + feeding.finish()


@pytest.mark.parametrize("length", [0, 1, 4, 5, 23])
@pytest.mark.parametrize("size", [1, 3, 4, 50])
def test_what_is_pushed_gives_what_streams_give(ready: tract.Runnable, length: int, size: int) -> None:
    x = signal(length)
    chunks = np.split(x, range(size, length, size), 2)
    found = pushed(ready.spawn_state().feed(), chunks)
    np.testing.assert_array_equal(laid(found), laid(ready.stream(chunks)))
    np.testing.assert_allclose(laid(found), whole_outputs(network(), [x])[0], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("stop", range(8))
def test_a_frozen_feeding_goes_on_bit_for_bit(ready: tract.Runnable, stop: int) -> None:
    x = signal(19)
    chunks = np.split(x, [1, 2, 8, 9, 13, 13], 2)
    straight, feeding = laid(ready.stream(chunks)), ready.spawn_state().feed()
    found = [piece for chunk in chunks[:stop] for piece in feeding.push(chunk)]
    frozen = pickle.loads(pickle.dumps(feeding.freeze()))
    for _ in range(2):  # as often as one likes
        rest = pushed(frozen.unfreeze(), chunks[stop:])
        np.testing.assert_array_equal(laid([*found, *rest]), straight)
    np.testing.assert_array_equal(laid([*found, *pushed(feeding, chunks[stop:])]), straight)


@pytest.mark.parametrize("length", [0, 1, 7])
def test_several_inputs_and_outputs_are_frozen(length: int) -> None:
    x, y, gain = signal(length), signal(2 * length), signal(1)
    ready = runnable(pulsed(two_of_each(), 4))
    chunks: list[Any] = [{"x": x[:, :, :3], "y": y[:, :, :2]}, (x[:, :, 3:], y[:, :, 2:])]
    straight = list(ready.stream(chunks, {"gain": gain}))
    feeding = ready.spawn_state().feed({"gain": gain})
    found = feeding.push(chunks[0])
    feeding = pickle.loads(pickle.dumps(feeding.freeze())).unfreeze()
    found += feeding.push(chunks[1]) + feeding.finish()
    for slot in (0, 1):
        np.testing.assert_array_equal(laid(one[slot] for one in found), laid(one[slot] for one in straight))
    np.testing.assert_array_equal(found[-1][2], straight[-1][2])


def test_the_array_of_a_chunk_may_be_used_again(ready: tract.Runnable) -> None:
    x, buffer = signal(22), np.empty((1, CHANNELS, 11), np.float32)
    feeding, found = ready.spawn_state().feed(), list[Any]()
    for begin in (0, 11):
        buffer[...] = x[:, :, begin : begin + 11]
        found += [np.array(piece) for piece in feeding.push(buffer)]
        buffer.fill(np.nan)
    np.testing.assert_array_equal(laid([*found, *feeding.finish()]), laid(ready.stream([x])))


def test_streams_may_use_the_array_of_a_chunk_again(ready: tract.Runnable) -> None:
    x, buffer = signal(22), np.empty((1, CHANNELS, 11), np.float32)

    def source() -> Any:
        for begin in (0, 11):
            buffer[...] = x[:, :, begin : begin + 11]
            yield buffer

    np.testing.assert_array_equal(laid(np.array(piece) for piece in ready.stream(source())), laid(ready.stream([x])))


def test_what_waits_is_less_than_a_pulse(ready: tract.Runnable) -> None:
    feeding = ready.spawn_state().feed()
    (one,) = feeding._inputs.values()  # pyright: ignore[reportPrivateUsage]: nobody else needs to know
    for count, wanted in ((3, 3), (0, 3), (6, 1)):
        feeding.push(signal(count))
        assert sum(piece.nbytes for piece in one.waiting.pieces) == wanted * CHANNELS * 4
    assert len(one.waiting.pieces) == 1


def test_of_a_chunk_that_does_not_fit_nothing_is_taken() -> None:
    x, y, gain = signal(6), signal(12), signal(1)
    ready = runnable(pulsed(two_of_each(), 4))
    feeding = ready.spawn_state().feed({"gain": gain})
    found = feeding.push([x[:, :, :5], y[:, :, :5]])
    for bad, problem in (
        ([x, y[:, :1]], "a chunk of 'y' has shape"),
        ([x, y.astype(np.float64)], "a chunk holds float64, wanted f32"),
        ([x], "1 inputs were given, the model takes 2"),
        ({"x": x, "z": y}, "no input is named z"),
    ):
        with pytest.raises(InputError, match=problem):
            feeding.push(bad)
    found += feeding.push([x[:, :, 5:], y[:, :, 5:]]) + feeding.finish()
    straight = list(ready.stream([(x, y)], {"gain": gain}))
    np.testing.assert_array_equal(laid(one[1] for one in found), laid(one[1] for one in straight))


def test_a_batch_does_not_change_in_the_middle() -> None:
    from tract_core.model.fact_text import parse_typed_fact
    from tract_core.model.typed import TypedModel
    from tract_core.ops.binary import Add
    from tract_core.ops.wiring import wire_one

    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,S,f32", model.symbols))
    model.set_outputs([wire_one(model, "twice", Add(), x, x)])
    feeding = runnable(pulsed(model.declutter(), 4)).spawn_state().feed()
    feeding.push(np.zeros((2, 1), np.float32))
    with pytest.raises(InputError, match=r"has shape \(3, 1\), on axis 1 alone it may differ from \(2, 0\)"):
        feeding.push(np.zeros((3, 1), np.float32))
    assert np.asarray(feeding.push(np.ones((2, 4), np.float32))[0]).shape == (2, 4)


def test_a_signal_that_has_ended_takes_no_more(ready: tract.Runnable) -> None:
    state = ready.spawn_state()
    feeding = state.feed()
    feeding.push(signal(5))
    feeding.finish()
    for call in (lambda: feeding.push(signal(1)), feeding.finish, feeding.freeze):
        with pytest.raises(InputError, match="nothing more can be fed: the signal has ended"):
            call()
    with pytest.raises(InputError, match="a signal has gone through the state"):
        state.feed()


def test_nothing_that_was_pushed_gives_nothing(ready: tract.Runnable) -> None:
    feeding = ready.spawn_state().feed()
    assert feeding.finish() == []
    with pytest.raises(InputError, match="the signal has ended"):
        feeding.push(signal(1))


def test_a_turn_that_fails_is_the_last_one(ready: tract.Runnable, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> Any:
        raise RunError("out of order")

    feeding = ready.spawn_state().feed()
    with monkeypatch.context() as patch:
        patch.setattr(tract.State, "run", fail)
        with pytest.raises(RunError, match="out of order"):
            feeding.push(signal(9))
    with pytest.raises(InputError, match="nothing more can be fed: a turn has failed"):
        feeding.push(signal(9))


def test_a_state_in_the_middle_of_a_signal_is_refused(ready: tract.Runnable) -> None:
    state = ready.spawn_state()
    state.run([signal(PULSE)])
    with pytest.raises(InputError, match="in the middle of a signal"):
        state.feed()
    with pytest.raises(InputError, match="the model takes no stream"):
        runnable(network()).spawn_state().feed()
    with pytest.raises(InputError, match="the input 'gain' is whole, and was not given"):
        runnable(pulsed(two_of_each(), 4)).spawn_state().feed()
