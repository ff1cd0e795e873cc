"""What goes on from position to position: running sums, recurrent networks, means that forget."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases_layout import after_conv, op
from cases_windows import both, conv, spec
from stream_cases import StreamCase
from tract_nnef.nnef_only.exp_norm import ExpMeanNorm, ExpUnitNorm

from tract_core.data import DatumType
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import MoveAxis, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.cast import Cast
from tract_core.ops.cumsum import CumProd, CumSum
from tract_core.ops.recurrent_wiring import RecurrentInputs, RecurrentOptions, wire_gru, wire_lstm, wire_rnn
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullInput, FullOutput, OutputMapping, Scan, ScannedInput, StateInput
from tract_core.ops.slice import wire_slice
from tract_core.ops.wiring import wire_one

STEPS = "S,1,3,f32"
LAYERS: dict[str, tuple[Any, int]] = {"lstm": (wire_lstm, 4), "gru": (wire_gru, 3), "rnn": (wire_rnn, 1)}


def recurrent(kind: str, *, batch_first: bool = False, last: bool = False, bias: bool = True) -> Any:
    """A recurrent layer of 4 hidden units on [S, B, 3]; ``last``: its last state instead of all of them."""
    wire, gates = LAYERS[kind]

    def build(net: Any, x: Any) -> Any:
        size = net.model.outlet_fact(x).shape[-1]
        w, r = net.weights(1, gates * 4, int(size)), net.weights(1, gates * 4, 4)
        inputs = RecurrentInputs(x, w, r, net.weights(1, 2 * gates * 4) if bias else None)
        found = net.wire(wire, RecurrentOptions(batch_first=batch_first), inputs)
        return found[1 if last else 0]

    return build


def convolved(kind: str) -> Any:
    """A convolution, and a recurrent layer on its positions."""

    def build(net: Any, x: Any) -> Any:
        features = conv(spec(3, (1, 1)), (2, 3))(net, x)
        return recurrent(kind)(net, net(MoveAxis(2, 0), features))

    return build


def skipped(net: Any, x: Any) -> Any:
    """A recurrent layer beside the signal itself, which waits for it."""
    features = conv(spec(3, (1, 1)), (2, 4))(net, x)
    steps = recurrent("gru")(net, net(MoveAxis(2, 0), features))
    return net(Add(), net(MoveAxis(0, 2), net(RmAxis(1), steps)), features)


def stacked(net: Any, x: Any) -> Any:
    for kind in ("gru", "lstm"):
        x = net(RmAxis(1), recurrent(kind)(net, x))
    return x


def total_body(chunk: int, width: str = "1") -> TypedModel:
    """A chunk, times a factor, plus what came before; the sum over the chunk goes on."""
    from tract_core.model.fact_text import parse_typed_fact

    body = TypedModel()
    chunks = body.add_source("x", parse_typed_fact(f"{width},{chunk},f32", body.symbols))
    factor = body.add_source("factor", parse_typed_fact(f"{width},1,f32", body.symbols))
    state = body.add_source("state", parse_typed_fact(f"{width},1,f32", body.symbols))
    scaled = wire_one(body, "scaled", Mul(), chunks, factor)
    added = wire_one(body, "added", Add(), scaled, state)
    body.set_outputs([added, wire_one(body, "sum", Reduce((1,), Reducer.SUM), added)])
    return body


def loop(chunk: int, axis: int = 1, width: str = "2", backwards: bool = False, scale: float = 0.1) -> Any:
    """A loop over chunks of [2, S]."""

    def build(net: Any, x: Any) -> Any:
        sign = -1 if backwards else 1
        scan = Scan(
            total_body(chunk, width),
            (ScannedInput(axis, sign * chunk), FullInput(), StateInput()),
            (OutputMapping(full=FullOutput(0, axis, sign * chunk)), OutputMapping(state=True)),
        )
        rows = int(width)
        return net(scan, x, net.const(np.full((rows, 1), scale), np.float32), net.weights(rows, 1))

    return build


def two_scanned(net: Any, x: Any) -> Any:
    """A loop over two streams of different delays."""
    from tract_core.model.fact_text import parse_typed_fact

    body = TypedModel()
    one, other, state = (body.add_source(name, parse_typed_fact("1,2,1,f32")) for name in ("one", "other", "state"))
    added = wire_one(body, "added", Add(), wire_one(body, "product", Mul(), one, other), state)
    body.set_outputs([added])
    mapping = OutputMapping(state=True, full=FullOutput(0, 2, 1))
    scan = Scan(body, (ScannedInput(2), ScannedInput(2), StateInput()), (mapping,))
    return net(scan, x, conv(spec(3, (1, 1)), (2, 2))(net, x), net.weights(1, 2, 1))


def forgetting(kind: Any, axis: int, **options: Any) -> Any:
    """A norm by a mean that forgets; the mean before the first step is a constant."""

    def build(net: Any, x: Any) -> Any:
        found = kind(axis, 0.9, **options)
        shape = found.mean_shape(net.model.outlet_fact(x))
        symbols = [size for size in shape if not isinstance(size, int)]
        if symbols:
            from tract_core.ops.broadcast import MultiBroadcastTo

            return net(
                found, x, net(MultiBroadcastTo(tuple(shape)), net.const(np.full((1,) * len(shape), 0.5), np.float32))
            )
        return net(found, x, net.const(np.full(shape, 0.5), np.float32))

    return build


def running(*stages: Any) -> Any:
    def build(net: Any, x: Any) -> Any:
        for stage in stages:
            x = stage(net, x)
        return x

    return build


CASES = [
    StreamCase("running sum", op(CumSum(2)), 0),
    StreamCase("running sum, exclusive", op(CumSum(2, exclusive=True)), 0),
    StreamCase("running sum of f16", op(CumSum(2)), 0, ("1,2,S,f16",), tolerance=5e-3),
    StreamCase("running sum of i32", op(CumSum(2)), 0, ("1,2,S,i32",)),
    StreamCase("running sum after a delay", after_conv(op(CumSum(2))), 1, least=1),
    StreamCase("running sum, exclusive, after a delay", after_conv(op(CumSum(2, exclusive=True))), 1, least=1),
    StreamCase(
        "running sum after a slice", lambda net, x: net(CumSum(2), net.wire(wire_slice, x, 2, start=3, end=-2)), 3
    ),
    StreamCase("running sum twice", running(op(CumSum(2)), op(CumSum(2, exclusive=True))), 0),
    StreamCase("running sum on another axis", op(CumSum(1, reverse=True)), 0),
    StreamCase("running product", op(CumProd(2)), 0),
    StreamCase("running product after a delay", after_conv(op(CumProd(2))), 1, least=1),
    StreamCase(
        "mean so far",
        lambda net, x: net(Cast(DatumType.F32), net(CumSum(1), net(Cast(DatumType.I64), x))),
        0,
        ("1,S,f32",),
    ),
    *(StreamCase(kind, recurrent(kind), 0, (STEPS,), tolerance=1e-5) for kind in LAYERS),
    *(StreamCase(f"{kind} of 2 items", recurrent(kind), 0, ("S,2,3,f32",)) for kind in LAYERS),
    *(StreamCase(f"conv, {kind}", convolved(kind), 1, least=1) for kind in LAYERS),
    StreamCase("lstm, batch first", recurrent("lstm", batch_first=True), 0, ("2,S,3,f32",)),
    StreamCase("gru across the stream", recurrent("gru"), 0, ("5,S,3,f32",), sizes={}),
    StreamCase("gru across the stream, its last state", recurrent("gru", last=True), 0, ("5,S,3,f32",)),
    StreamCase("gru without bias", recurrent("gru", bias=False), 0, (STEPS,)),
    StreamCase("a skip over a gru", skipped, 1, least=1),
    StreamCase("gru, lstm", stacked, 0, (STEPS,)),
    StreamCase("loop", loop(1), 0, ("2,S,f32",)),
    StreamCase("loop over chunks of 2", loop(2), 0, ("2,2*S,f32",)),
    StreamCase("loop over two streams", two_scanned, 1, least=1),
    StreamCase("unit norm", forgetting(ExpUnitNorm, 1), 0, ("2,S,f32",)),
    StreamCase("unit norm of pairs", forgetting(ExpUnitNorm, 1, complex=True), 0, ("3,S,2,f32",)),
    StreamCase("unit norm after a delay", after_conv(forgetting(ExpUnitNorm, 2)), 1, least=1),
    StreamCase("unit norm with steps to skip", forgetting(ExpUnitNorm, 1, skip=2), 0, ("2,S,f32",)),
    StreamCase("unit norm across", forgetting(ExpUnitNorm, 1), 0, ("S,6,f32",)),
    StreamCase("mean norm", forgetting(ExpMeanNorm, 1), 0, ("2,S,f32",)),
    StreamCase("mean norm across", forgetting(ExpMeanNorm, 0), 0, ("6,S,f32",)),
    StreamCase(
        "conv twice, running sum, conv",
        running(both(conv(spec(3, (1, 1))), conv(spec(3, (2, 0)), (3, 2))), op(CumSum(2)), conv(spec(3, (1, 1)))),
        2,
        least=1,
        tolerance=1e-4,
    ),
]
