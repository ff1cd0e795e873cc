"""Attention that cannot be streamed is refused, by name; random bands and chunks stream, also in pulses of any size."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from cases_attention import (
    SIZE,
    Mask,
    S,
    added,
    attention,
    band,
    block_diagonal,
    both,
    by_hand,
    by_relative_position,
    causal,
    chunked_band,
    einsum,
    either,
    out,
    places,
    scalar,
    softmax,
)
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from random_masks import Masks
from stream_cases import Net
from stream_runs import assert_agrees, assert_close, assert_streams, cut_outputs, pulsed, runnable, whole_outputs
from tract_pulse.transform import Pulse

import tract_core as tract
from tract_core.api.model import Model
from tract_core.cli.frame import app
from tract_core.data import DatumType
from tract_core.errors import TransformError
from tract_core.model.same import same_model
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Add, And, Ge, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.cumsum import CumSum
from tract_core.ops.iff import Iff
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.softmax import Softmax
from tract_core.ops.trilu import Trilu
from tract_core.transforms.apply import apply_transform


def model_of(build: Callable[..., Any], fact: str = f"S,{SIZE},f32") -> TypedModel:
    net = Net("attention")
    net.model.set_outputs([build(net, net.source(fact))])
    return net.model.declutter()


def signal(length: int) -> Any:
    return np.random.default_rng(length).normal(size=(length, SIZE)).astype(np.float32)


def everything(net: Net, rows: Any, columns: Any) -> Any:
    return net(Ge(), net(Add(), rows, columns), rows)


def ahead_only(net: Net, rows: Any, columns: Any) -> Any:
    return net(Ge(), columns, rows)


def unmasked(net: Net, x: Any) -> Any:
    return einsum(net, "qk,kd->qd", net(Softmax((1,)), einsum(net, "qd,kd->qk", x, x)), x)


def without_end(net: Net, x: Any) -> Any:
    return einsum(net, "qd,kd->qk", x, x)


def both_joined(net: Net, x: Any) -> Any:
    return net(Reduce((0, 1), Reducer.SUM), einsum(net, "qd,kd->qk", x, x))


def rows_normalised(net: Net, x: Any) -> Any:
    scores = out(net, einsum(net, "qd,kd->qk", x, x), band(1, 1)(net, *places(net)))
    return einsum(net, "qk,kd->qd", net(Softmax((0,)), scores), x)


def mask_of_zeros(net: Net, x: Any) -> Any:
    """A mask of scores that is meant for the weights: behind a softmax, a score of 0 counts."""
    return attention(net, x, band(1, 1), masked=added(-10.0))


def best_of_all(net: Net, x: Any) -> Any:
    return net(Reduce((1,), Reducer.ARG_MAX_FIRST), einsum(net, "qd,kd->qk", x, x))


def added_up(net: Net, x: Any) -> Any:
    scores = net(CumSum(1), einsum(net, "qd,kd->qk", x, x))
    return einsum(net, "qk,kd->qd", scores, x)


def masked_by(mask: Mask) -> Callable[[Net, Any], Any]:
    return lambda net, x: attention(net, x, mask)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (unmasked, r"\(Softmax\) cannot be streamed: .* no mask limits which of them count"),
        (masked_by(everything), r"\(Softmax\) cannot be streamed: .* no mask limits which of them count"),
        (mask_of_zeros, r"\(Softmax\) cannot be streamed: .* no mask limits which of them count"),
        (masked_by(causal), r"\(Softmax\) cannot be streamed: its mask looks back without limit"),
        (masked_by(either(causal, band(3, 3))), r"\(Softmax\) cannot be streamed: its mask looks back without limit"),
        (masked_by(ahead_only), r"\(Softmax\) cannot be streamed: its mask looks ahead without limit"),
        (without_end, r"\(EinSum\) cannot be streamed: its output, S,S,f32, grows with the signal along axes \[0, 1\]"),
        (both_joined, r"\(Reduce\) cannot be streamed: it joins axes \[0, 1\] of input 0"),
        (rows_normalised, r"\(Softmax\) cannot be streamed: it joins the rows"),
        (best_of_all, r"\(Reduce\) cannot be streamed: it takes arg_max_first over all of axis 1"),
        (added_up, r"\(CumSum\) cannot be streamed: it adds up along axis 1"),
    ],
)
def test_what_no_window_holds_is_refused(build: Callable[..., Any], said: str):
    with pytest.raises(TransformError, match=said):
        pulsed(model_of(build), 4)


def test_a_mask_without_limit_says_what_would_limit_it():
    with pytest.raises(TransformError) as raised:
        pulsed(model_of(masked_by(causal)), 4)
    assert raised.value.hint == (
        "limit how far it looks back, as with i - j < 128, or let the transform do so, as in --pulse 8,past=128, "
        "or Pulse(8, past=128); 'all' in the place of 128 keeps all of the past"
    )


def test_all_that_is_wrong_is_said_at_once():
    def build(net: Net, x: Any) -> Any:
        return net(Add(), attention(net, x, causal), unmasked(net, x))

    with pytest.raises(TransformError, match=r"2 nodes cannot be streamed: .*looks back.*no mask"):
        pulsed(model_of(build), 4)


@pytest.mark.parametrize("mask", [band(2, 1), block_diagonal(4), chunked_band(2, 1)])
def test_a_pulse_can_be_a_symbol(mask: Mask):
    """Then nothing is known of how chunks lie in pulses, so that they come as late as they may have to."""
    model = model_of(masked_by(mask))
    streaming = pulsed(model, "P")
    for pulse in (1, 3, 4):
        of_size = streaming.substitute({"P": pulse}).declutter()
        for length in (0, 1, 5, 13):
            assert_agrees(model, of_size, [signal(length)])


@st.composite
def masks(draw: st.DrawFn) -> Mask:
    """A band, or blocks, or both of these, or either of them."""
    limits, size = (draw(st.integers(-1, 6)), draw(st.integers(-1, 6))), draw(st.integers(1, 6))
    narrow, blocks = band(*limits), block_diagonal(size)
    return draw(st.sampled_from([narrow, chunked_band(size, *limits), both(narrow, blocks), either(narrow, blocks)]))


@settings(deadline=None)
@given(mask=masks(), pulse=st.integers(1, 9), length=st.integers(0, 23), weigh=st.sampled_from([softmax, by_hand]))
def test_random_bands_and_chunks_stream(mask: Mask, pulse: int, length: int, weigh: Callable[..., Any]):
    model = model_of(lambda net, x: attention(net, x, mask, weights=weigh))
    with np.errstate(invalid="ignore"):  # a row in which nothing counts has no weights
        assert_streams(model, pulse, [signal(length)])


def weighed(net: Net, x: Any, mask: Mask) -> Any:
    """Weights of zeros and ones times scores, without a softmax."""
    scores = net(Mul(), einsum(net, "qd,kd->qk", x, x), net(Cast(DatumType.F32), mask(net, *places(net))))
    return einsum(net, "qk,kd->qd", scores, x)


WAYS: list[Callable[[Net, Any, Mask], Any]] = [
    attention,
    weighed,
    partial(attention, weights=by_hand),
    partial(attention, masked=added(-1e9)),
]


@settings(deadline=None)
@given(
    seed=st.integers(0, 2**32),
    way=st.sampled_from(WAYS),
    depth=st.integers(0, 3),
    pulse=st.integers(1, 8),
    length=st.integers(0, 19),
)
def test_a_mask_is_refused_or_streams(seed: int, way: Callable[..., Any], depth: int, pulse: int, length: int):
    mask: Mask = lambda net, rows, columns: Masks(seed).mask(net, rows, columns, depth)  # noqa: E731 - a mask
    model = model_of(lambda net, x: way(net, x, mask))
    try:
        streaming = pulsed(model, pulse)
    except TransformError:
        return
    with np.errstate(invalid="ignore"):
        assert_agrees(model, streaming, [signal(length)])


def test_rows_in_which_a_number_masks_everything_are_refused():
    """They would average the whole signal; minus infinity makes them no numbers, in the stream as well."""
    said = r"\(Softmax\) cannot be streamed: its mask leaves nothing in some rows"
    with pytest.raises(TransformError, match=said):
        pulsed(model_of(lambda net, x: attention(net, x, band(3, -1), masked=added(-1e9))), 4)
    model = model_of(lambda net, x: attention(net, x, band(3, -1)))
    with np.errstate(invalid="ignore"):
        assert_streams(model, 4, [signal(13)])


@pytest.mark.parametrize(("fill", "granted"), [(-1e9, 1), (-np.inf, 0)])
def test_what_is_taken_for_granted_of_data_is_said(fill: float, granted: int):
    """A mask of padding that fills with a number: rows in which nothing is left would average the whole signal."""
    net = Net("padding")
    x, kept = net.source(f"S,{SIZE},f32"), net.source("S,bool")
    mask = net(And(), band(2, 0)(net, *places(net)), net(AddAxis(0), kept))
    scores = net(Iff(), mask, einsum(net, "qd,kd->qk", x, x), scalar(net, fill))
    net.model.set_outputs([einsum(net, "qk,kd->qd", softmax(net, scores), x)])
    model = net.model.declutter()
    sheets = [sheet for sheet in Pulse(4, "S").examine(model) if sheet.title == "taken for granted"]
    assert len(sheets) == granted
    assert [row[1:] for sheet in sheets for row in sheet.rows] == [
        ("Softmax", "data never masks all of a row with a number")
    ] * granted
    assert_streams(model, 4, [signal(13), np.arange(13) % 5 < 4])


def over_all_of_the_past(net: Net, x: Any) -> Any:
    """Heads, and a residual sum, twice; by hand the second time."""
    for weights in (softmax, by_hand):
        x = net(Add(), x, attention(net, x, causal, weights=weights))
    return x


def with_past(model: TypedModel, pulse: int | str, past: int | str) -> TypedModel:
    return apply_transform(model, Pulse(pulse, past=past))


@pytest.mark.parametrize("pulse", [1, 4, "P"])
@pytest.mark.parametrize("past", [0, 3, 6])
@pytest.mark.parametrize("weights", [softmax, by_hand])
def test_causal_attention_can_be_limited(past: int, pulse: int | str, weights: Any):
    """Each position sees as many before its own as was asked for, wherever it is in its pulse."""
    build = partial(attention, mask=causal, weights=weights)
    limited = model_of(partial(attention, mask=band(past, 0), weights=weights))
    streaming = with_past(model_of(build), pulse, past)
    streaming = streaming.substitute({"P": 3}).declutter() if pulse == "P" else streaming
    for length in (0, 1, 2, 7, 13):
        assert_agrees(limited, streaming, [signal(length)])


def test_limited_attention_is_exact_for_signals_that_fit():
    model = model_of(over_all_of_the_past)
    streaming = with_past(model, 4, 12)
    for length in (1, 5, 13):
        assert_agrees(model, streaming, [signal(length)])
    with pytest.raises(AssertionError):
        assert_agrees(model, streaming, [signal(30)])


def test_a_limit_of_the_model_stays_what_it_is():
    model = model_of(masked_by(band(2, 1)))
    for past in (0, 5):
        assert_agrees(model, with_past(model, 4, past), [signal(13)])


def test_what_is_limited_is_told():
    model = model_of(over_all_of_the_past)
    told = {sheet.title: sheet for sheet in Pulse(4, past=12).examine(model)}
    rows = told["attention that has no limit of its own"].rows
    assert [row[1:] for row in rows] == [
        ("Softmax", 12, 13),
        ("Reduce", 12, 13),
        ("Reduce", 12, 13),
        ("EinSum", 12, 13),
    ]


@pytest.mark.parametrize("past", [7, "all"])
def test_python_and_the_command_ask_for_the_same(past: Any, tmp_path: Path):
    model = Model(model_of(masked_by(causal)))
    model.save(tmp_path / "m.nnef.tar")
    streaming = tract.load(tmp_path / "m.nnef.tar")
    streaming.transform(tract.Pulse(4, past=past))
    for line in (f"--pulse 4,past={past}", f"-t pulse(pulse=4,past={past})"):
        command(tmp_path / "m.nnef.tar", *line.split(), "dump", "--nnef-tar", tmp_path / "pulsed.nnef.tar")
        found = tract.nnef().load(tmp_path / "pulsed.nnef.tar").typed
        assert same_model(streaming.typed, found.declutter())


def command(*words: object) -> str:
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert isinstance(result.exception, (SystemExit, type(None))), result.exception
    return result.output


def test_a_hint_is_what_who_asked_can_type(tmp_path: Path):
    Model(model_of(masked_by(causal))).save(tmp_path / "m.nnef.tar")
    said = command(tmp_path / "m.nnef.tar", "--pulse", "8", "dump")
    assert "as in --pulse 8,past=128; 'all' in the place of 128 keeps all of the past" in said
    assert "Pulse(" not in said


@pytest.mark.parametrize(("pulse", "past"), [("4,past=7", None), ("S=4,past=7", None), (4, 7)])
def test_a_limit_is_given_with_the_pulse(pulse: Any, past: Any):
    model = model_of(masked_by(causal))
    found = apply_transform(model, Pulse(pulse, past=past))
    assert_agrees(model_of(masked_by(band(7, 0))), found, [signal(13)])


@pytest.mark.parametrize(("pulse", "past"), [("4,past=x", None), ("4,past=", None), (4, -1), (4, True), (4, 2**70)])
def test_a_limit_that_is_no_number_of_positions_is_refused(pulse: Any, past: Any):
    wanted = r"wanted (a number of positions, 0 or more, or 'all'|an integer or a text)"
    with pytest.raises(TransformError, match=wanted):
        apply_transform(model_of(masked_by(causal)), Pulse(pulse, past=past))


def test_no_limit_makes_up_for_a_mask_that_looks_ahead():
    for mask in (ahead_only, everything):
        with pytest.raises(TransformError, match=r"looks ahead|no mask limits"):
            with_past(model_of(masked_by(mask)), 4, 3)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("pulse", [1, 4])
@pytest.mark.parametrize(
    "build",
    [
        masked_by(causal),
        over_all_of_the_past,
        masked_by(either(causal, band(3, 3))),
        partial(attention, mask=causal, masked=added(-1e9)),
        lambda net, x: attention(net, x, lambda *_: net(Trilu(upper=False), *triangle(net))),
        lambda net, x: net(Add(), attention(net, x, causal), attention(net, x, band(2, 2))),
    ],
)
def test_attention_may_look_at_all_of_the_past(build: Callable[..., Any], pulse: int, runtime: str):
    model = model_of(build)
    streaming = with_past(model, pulse, "all")
    for length in (0, 1, 2, 9, 17):
        assert_agrees(model, streaming, [signal(length)], runtime=runtime)


def triangle(net: Net) -> tuple[Any, Any]:
    """What `torch.tril` makes a causal mask of."""
    return net(MultiBroadcastTo((S, S)), net.const(np.full((1, 1), True))), net.const(0, np.int64)


def test_all_of_the_past_comes_in_chunks_of_any_length():
    model = model_of(over_all_of_the_past)
    found = cut_outputs(with_past(model, "P", "all"), [signal(40)], np.random.default_rng(0))
    assert_close(found[0], whole_outputs(model, [signal(40)])[0])


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
def test_a_state_that_keeps_all_of_the_past_goes_on_from_a_snapshot(runtime: str):
    streaming = runnable(with_past(model_of(masked_by(causal)), 4, "all"), runtime)
    state, pulses = streaming.spawn_state(), np.split(signal(32), 8)

    def run(one: Any, which: Any) -> list[bytes]:
        return [np.asarray(one.run([pulse])[0]).tobytes() for pulse in which]

    first = run(state, pulses[:3])
    snapshot = pickle.loads(pickle.dumps(state.freeze()))
    rest = run(state, pulses[3:])
    assert run(snapshot.unfreeze(), pulses[3:]) == rest
    state.reset()
    assert run(state, pulses) == first + rest


def test_a_model_that_keeps_all_of_the_past_is_saved(tmp_path: Path):
    model = model_of(masked_by(causal))
    Model(with_past(model, 4, "all").clone()).save(tmp_path / "past.nnef.tar")
    assert_agrees(model, tract.nnef().load(tmp_path / "past.nnef.tar").typed, [signal(13)])


def test_scores_by_relative_position_want_a_limit():
    model = model_of(lambda net, x: by_relative_position(net, x, causal))
    with pytest.raises(TransformError, match="want a limit to how far they look back") as raised:
        with_past(model, 4, "all")
    assert raised.value.hint == "give a number of positions, as in --pulse 8,past=128, or Pulse(8, past=128)"
    limited = model_of(lambda net, x: by_relative_position(net, x, band(5, 0)))
    assert_agrees(limited, with_past(model, 4, 5), [signal(13)])
