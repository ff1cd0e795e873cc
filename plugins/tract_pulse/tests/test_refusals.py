"""What wants of the signal what a stream does not have is refused: the node, the reason, and what would help."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from cases_layout import op, pad, reshape, resize
from cases_loops import loop, recurrent
from cases_positions import part, pick
from cases_values import layer_norm
from cases_windows import conv, deconv, spec
from stream_cases import StreamCase
from stream_runs import pulsed

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.errors import TransformError
from tract_core.model.axes import AxesMapping
from tract_core.ops.axis import MoveAxis, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import CumSum
from tract_core.ops.downsample import Downsample
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.fft import Fft
from tract_core.ops.gather import Gather
from tract_core.ops.lrn import Lrn
from tract_core.ops.norm import RmsNorm
from tract_core.ops.pad import PadWrap
from tract_core.ops.pool import MaxPool
from tract_core.ops.recurrent_wiring import Direction, RecurrentInputs, RecurrentOptions, wire_gru
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.resize import Coordinates, Interpolator
from tract_core.ops.slice import wire_slice
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.tile import Tile
from tract_core.ops.topk import Topk
from tract_core.ops.trilu import Trilu
from tract_core.ops.wiring import wire_reshape
from tract_core.ops.wiring_dyn import wire_non_zero

S = symbol("S")


@dataclass(frozen=True)
class Refusal:
    """A model, the operator that is named, and parts of the reason and of the hint."""

    name: str
    build: Any
    operator: str
    reason: str
    hint: str
    inputs: tuple[str, ...] = ("1,2,S,f32",)

    def __str__(self) -> str:
        return self.name

    def problem(self) -> TransformError:
        model = StreamCase(self.name, self.build, 0, self.inputs).model()
        with pytest.raises(TransformError) as found:
            pulsed(model, 4)
        return found.value


def directed(direction: Direction, count: int) -> Any:
    def build(net: Any, x: Any) -> Any:
        weights = [net.weights(count, 12, 3), net.weights(count, 12, 4)]
        return net.wire(wire_gru, RecurrentOptions(direction=direction), RecurrentInputs(x, *weights))[0]

    return build


def einsum(axes: str) -> Any:
    return lambda net, x, y=None: net(EinSum(AxesMapping.parse(axes), DatumType.F32), x, x if y is None else y)


def attention(net: Any, x: Any) -> Any:
    scores = net(Softmax((1,)), einsum("sk,tk->st")(net, x))
    return net(EinSum(AxesMapping.parse("st,tk->sk"), DatumType.F32), scores, x)


def computed(net: Any, x: Any) -> Any:
    places = net(RmAxis(0), net(RmAxis(0), net(Reduce((0, 1), Reducer.SUM), x)))
    return net(Gather(2), x, net(Cast(DatumType.I64), places))


def times_length(net: Any, x: Any) -> Any:
    length = net.wire(wire_reshape, net.model.add_const("length", S), (1, 1, 1))
    return net(Mul(), x, net(Cast(DatumType.F32), length))


def topk(net: Any, x: Any) -> Any:
    return list(net(Topk(2, True, 2), x, net.const(2, np.int64)))


def trilu(net: Any, x: Any) -> Any:
    return net(Trilu(True), x, net.const(0, np.int64))


def single(net: Any, x: Any) -> Any:
    return net(RmAxis(2), pick(3)(net, x))


def behind_a_beginning(net: Any, x: Any) -> Any:
    """What follows the first 5 positions, of which there may be fewer."""
    return pad((0, 0), (0, 0), (0, 3))(net, part(None, 5)(net, x))


def shorter(net: Any, x: Any) -> Any:
    return net(Add(), x, pad((0, 0), (0, 0), (0, 2))(net, net.wire(wire_slice, x, 2, start=2, end=None)))


STEPS = ("S,1,3,f32",)
LAST = "the output {} of the model needs its last value, which is only known"
REFUSALS = [
    Refusal("softmax", op(Softmax((2,))), "Softmax", "a sum over the whole signal", "over another axis"),
    Refusal("log-softmax", op(LogSoftmax((1, 2))), "LogSoftmax", "a sum over the whole signal", "over another axis"),
    Refusal("rms norm", op(RmsNorm(2, 1e-5)), "RmsNorm", "a mean over the whole signal", "the channels"),
    Refusal("layer norm", layer_norm, "Reduce", "the sum over the whole signal", "a running sum", ("1,3,S,f32",)),
    Refusal("mean", op(Reduce((1, 2), Reducer.SUM)), "Reduce", "the sum over the whole signal", "a pool"),
    Refusal("maximum", op(Reduce((2,), Reducer.MAX)), "Reduce", "the max over the whole signal", "a max pool"),
    Refusal("argmax", op(Reduce((2,), Reducer.ARG_MAX_LAST)), "Reduce", "the arg_max_last", "on another axis"),
    Refusal("top-k", topk, "Topk", "whose last position may come first", "along another axis"),
    Refusal("tile", op(Tile((1, 1, 2))), "Tile", "it repeats the signal behind its end", "along another axis"),
    Refusal("fft", op(Fft(1)), "Fft", "each frequency is a sum over the whole signal", "STFT", ("1,S,2,f32",)),
    Refusal("lrn", op(Lrn(3, axis=2)), "Lrn", "over neighbours along the signal", "along another axis"),
    Refusal("trilu", trilu, "Trilu", "depends on all of axis 2 of input 0", "a window of fixed length"),
    Refusal("reversed", op(Downsample(2, -1)), "Downsample", "it turns the signal around", "leave the order as it is"),
    Refusal("sum backwards", op(CumSum(2, reverse=True)), "CumSum", "from the end of the signal", "the beginning"),
    Refusal("bidirectional", directed(Direction.BIDIRECTIONAL, 2), "Scan", "from the end", "only goes forward", STEPS),
    Refusal("backward", directed(Direction.REVERSE, 1), "Scan", "from the end", "only goes forward", STEPS),
    Refusal("loop backwards", loop(1, backwards=True), "Scan", "from the end", "only goes forward", ("2,S,f32",)),
    Refusal(
        "last state", recurrent("lstm", last=True), "Scan", LAST.format("'node5.h'"), "leave that output out", STEPS
    ),
    Refusal(
        "from the last state",
        lambda net, x: net(Tanh(), recurrent("gru", last=True)(net, x)),
        "Scan",
        LAST.format("'node6'"),
        "select_outputs",
        STEPS,
    ),
    Refusal("wrap", pad((0, 0), (0, 0), (1, 1), mode=PadWrap()), "Pad", "the end of the signal in front", "the edge"),
    Refusal("computed positions", computed, "Gather", "only known in the run", "constant positions"),
    Refusal("positions backwards", pick(3, 2, 1), "Gather", "the positions [3, 2, 1]", "at equal distances"),
    Refusal("one position", single, "RmAxis", "a single position", "keep the axis"),
    Refusal("slice from the end", part(-5, None), "Slice", "max(0,S-5), which depends", "from the beginning"),
    Refusal("second half", part(S // 2, None), "Slice", "S/2, which depends on", "from the beginning"),
    Refusal("behind a beginning", behind_a_beginning, "Pad", "after min(5,S) positions, is not known", "evenly with S"),
    Refusal("attention", attention, "Softmax", "no mask limits which", "all but a band around", ("S,4,f32",)),
    Refusal(
        "covariance", einsum("sk,sj->kj"), "EinSum", "products over the whole signal", "another axis", ("S,4,f32",)
    ),
    Refusal("times the length", times_length, "Mul", "only known when the signal has ended", "what came so far"),
    Refusal("non-zero", lambda net, x: net.wire(wire_non_zero, x), "NonZero", "depends on what is in it", "keep all"),
    Refusal(
        "corners",
        resize(2.0, interpolator=Interpolator.LINEAR, coordinates=Coordinates.ALIGN_CORNERS),
        "Resize",
        "(align_corners) depends on the length",
        "half_pixel",
    ),
    Refusal(
        "two streams in a row",
        lambda net, x: net(TypedConcat(2), x, x),
        "TypedConcat",
        "another input begins where input 0 ends, after S",
        "one stream",
    ),
    Refusal("flattened", reshape(1, 2 * S), "Reshape", "do not lie together", "in front of the signal"),
    Refusal("stride", conv(spec(3, stride=3)), "Conv", "requires pulse (4) to be a stride (3) multiple", "multiple of"),
    Refusal("channels", conv(spec(3), (4, 3)), "Conv", "the axis of the channels", "transpose", ("1,S,9,f32",)),
    Refusal("channels of a deconvolution", deconv(spec(3)), "Deconv", "of the channels", "transpose", ("1,S,9,f32",)),
    Refusal("indices", op(MaxPool(spec(2), indices=DatumType.I64)), "MaxPool", "counts elements", "indices away"),
    Refusal(
        "fixed length", lambda net, x: net(Add(), x, net.weights(1, 2, 24)), "Add", "input 1 has a size", "of size 1"
    ),
]


@pytest.mark.parametrize("refusal", REFUSALS, ids=str)
def test_what_a_stream_does_not_have_is_refused(refusal: Refusal):
    error = refusal.problem()
    assert re.match(r"pulse: (\d+ nodes cannot be streamed: )?node ", error.problem)
    place, _, reason = error.problem.removeprefix("pulse: ").replace(" cannot be streamed: ", ": ").partition(": ")
    assert place.endswith(f"({refusal.operator})") or f"({refusal.operator}): " in reason
    assert refusal.reason in error.problem
    assert error.hint is not None
    assert refusal.hint in error.hint


def test_all_nodes_that_block_are_told_at_once_with_what_to_do_about_each():
    def build(net: Any, x: Any) -> Any:
        states = recurrent("gru", last=True)(net, net(MoveAxis(2, 0), x))
        return [net(Add(), net(Softmax((2,)), x), net(Reduce((2,), Reducer.MAX), x)), states, net(Tanh(), x)]

    error = Refusal("several", build, "", "", "", ("1,3,S,f32",)).problem()
    first, *others = error.problem.split("; ")
    assert first == (
        "pulse: 3 nodes cannot be streamed: node 'node7' (Softmax): it divides by a sum over the whole signal, "
        "which only its end tells"
    )
    assert [text.split(":")[0] for text in others] == ["node 'node8' (Reduce)", "node 'node6.forward' (Scan)"]
    assert "over another axis" in (error.hint or "")
    assert "a max pool" in (error.hint or "")
    assert "select_outputs" in (error.hint or "")


def test_all_nodes_on_one_path_that_block_are_told():
    def build(net: Any, x: Any) -> Any:
        x = net(Tanh(), net(Softmax((2,)), x))
        x = net(Tanh(), net(Downsample(2, -1), conv(spec(3))(net, x)))
        scores = einsum("bcs,bct->st")(net, x)
        x = net(EinSum(AxesMapping.parse("st,bct->bcs"), DatumType.F32), net(Softmax((1,)), scores), x)
        return net(Add(), x, net(Reduce((2,), Reducer.MAX), x))

    error = Refusal("one path", build, "", "", "").problem()
    assert re.findall(r"node '\w+' \((\w+)\)", error.problem) == ["Softmax", "Downsample", "Softmax", "Reduce"]


def test_what_is_wrong_with_one_mask_is_told_once():
    def build(net: Any, x: Any) -> Any:
        for _ in range(2):
            scores = net(Softmax((1,)), einsum("sk,tk->st")(net, x))
            x = net(EinSum(AxesMapping.parse("st,tk->sk"), DatumType.F32), scores, x)
        return x

    problem = Refusal("twice", build, "", "", "", ("S,4,f32",)).problem().problem
    assert "pulse: 2 nodes cannot be streamed" in problem


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (("1,2,8,f32",), "Can not pulse a tensor with no streaming dim (S)"),
        (("1,S,S,f32",), "the input 'node1' (1,S,S,f32) grows with S along axes [1, 2]"),
        (("1,2,S*S,f32",), "does not grow evenly with S"),
    ],
)
def test_inputs_that_cannot_come_as_a_stream_are_refused(inputs: tuple[str, ...], problem: str):
    assert problem in Refusal("input", op(Tanh()), "", "", "", inputs).problem().problem


def test_inputs_at_different_rates_are_refused():
    error = Refusal("rates", lambda _, *inputs: inputs, "", "", "", ("S,f32", "S+1,f32")).problem()
    assert "different rates: 4, 5 positions of S a pulse" in error.problem
    assert "as S and 2*S" in (error.hint or "")


def test_a_model_that_takes_pulses_is_not_pulsed_again():
    model = pulsed(StreamCase("once", conv(spec(3, (1, 1))), 1).model(), 4)
    with pytest.raises(TransformError, match="takes pulses already") as found:
        pulsed(model, 4)
    assert "before it is pulsed" in (found.value.hint or "")
