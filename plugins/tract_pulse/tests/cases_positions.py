"""Which positions of the signal are used: slices, every n-th one, those that a constant names; and their numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases_layout import after_conv, op
from cases_windows import conv, spec
from stream_cases import StreamCase

from tract_core.data import DatumType
from tract_core.dims import symbol
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Add, Div, Mul
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.cumsum import CumSum
from tract_core.ops.downsample import Downsample
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.ops.range import Range
from tract_core.ops.slice import wire_slice
from tract_core.ops.wiring_dyn import wire_range

S = symbol("S")


def part(start: Any = None, end: Any = None, step: int = 1, axis: int = 2) -> Any:
    return lambda net, x: net.wire(wire_slice, x, axis, start=start, end=end, step=step)


def pick(*positions: int, axis: int = 2) -> Any:
    return lambda net, x: net(Gather(axis), x, net.const(positions, np.int64))


def counted(kind: str, first: Any, step: Any) -> Any:
    """As ONNX writes positions: a range up to the length of the signal, cast to what it is used as."""

    def build(net: Any, x: Any) -> Any:
        zero, one = net.const(0, np.int64), net.const(1, np.int64)
        length = net(Cast(DatumType.I64), net.model.add_const(net.name(), S))
        numbers = net(Cast(DatumType.from_numpy(np.dtype(kind))), net(Range(S), zero, length, one))
        scaled = net(Add(), net(Mul(), numbers, net.const([step], kind)), net.const([first], kind))
        found = net(AddAxis(0), net(AddAxis(0), scaled))
        return net(Mul(), net(Cast(DatumType.F32), found), x)

    return build


def numbered(net: Any, x: Any) -> Any:
    """The mean of what came so far, with floats counted from 1 on, as exporters write ``arange(1, S + 1.0)``."""
    one = net.const(1, np.float32)
    end = net(Cast(DatumType.F32), net.model.add_const(net.name(), S + 1))
    numbers = net(AddAxis(0), net(AddAxis(0), net.wire(wire_range, one, end, one)))
    return net(Div(), net(CumSum(2), x), numbers)


def shifted(by: int, tail: int = 0) -> Any:
    """The first positions twice: the signal, moved behind, with what is whole behind it."""

    def build(net: Any, x: Any) -> Any:
        first, rest = (net.wire(wire_slice, x, 2, start=0, end=end) for end in (by, -by))
        return net(TypedConcat(2), first, rest, *([net.weights(1, 2, tail)] if tail else []))

    return build


def shifted_within(net: Any, x: Any) -> Any:
    """A signal moved behind, between whole tensors, which is one concatenation in normal form."""
    parts = [net.wire(wire_slice, x, 2, start=0, end=end) for end in (3, -3)]
    inner = net(TypedConcat(2), net.weights(1, 2, 2), net(TypedConcat(2), *parts))
    return net(TypedConcat(2), inner, net.weights(1, 2, 3))


def three_streams(net: Any, x: Any) -> Any:
    """Parts of streams of different delays, one after the other."""
    late = conv(spec(3, (1, 1)), (2, 2))(net, x)
    parts = [net.wire(wire_slice, one, 2, start=0, end=2) for one in (x, late)]
    return net(TypedConcat(2), *parts, net.wire(wire_slice, x, 2, start=3, end=None))


def embedding(net: Any, x: Any) -> Any:
    return net(Gather(0), net.weights(5, 3), x)


def late_embedding(net: Any, x: Any) -> Any:
    """Words of which the first three come later are looked up after a delay."""
    return net(Gather(0), net.weights(5, 3), net.wire(wire_slice, x, 1, start=3, end=None))


CASES = [
    StreamCase("shifted", shifted(1), 0),
    StreamCase("shifted by 3", shifted(3), 0),
    StreamCase("shifted by more than a pulse", shifted(9), 0),
    StreamCase("shifted after a delay", after_conv(shifted(2)), 1, least=1),
    StreamCase("shifted, between whole tensors", shifted_within, 0),
    StreamCase("shifted, and a short suffix", shifted(2, tail=1), 0),
    StreamCase("shifted, and a suffix", shifted(2, tail=3), 0, ("1,2,S+3,f32",)),
    StreamCase("parts of three streams", three_streams, 0, ("1,2,S+3,f32",)),
    StreamCase("mean so far of floats", numbered, 0),
    StreamCase("slice from 3", part(3), 3),
    StreamCase("slice without the last 3", part(None, -3), 0),
    StreamCase("slice within", part(2, -1), 2),
    StreamCase("slice of the first 5", part(None, 5), 0),
    StreamCase("slice after a delay", after_conv(part(3)), 4, least=1),
    StreamCase("slice of slices", lambda net, x: part(1, -1)(net, part(2)(net, x)), 3),
    StreamCase("slice on another axis", part(1, 2, axis=1), 0),
    StreamCase("every second", part(step=2), 0),
    StreamCase("every third from 1", part(1, step=3), 0, pulse=6),
    StreamCase("every second after a delay", after_conv(part(1, step=2)), 1, least=1),
    StreamCase("every fourth", op(Downsample(2, 4, 3)), 0, least=3),
    StreamCase("downsample another axis", op(Downsample(1, -1)), 0),
    StreamCase("pick one", pick(3), 3, least=7),
    StreamCase("pick several in a row", pick(1, 2, 3), 1, least=7),
    StreamCase("pick every second", pick(1, 3, 5), 0, least=7),
    StreamCase("pick on another axis", pick(1, 0, 1, axis=1), 0),
    StreamCase("embedding", embedding, 0, ("1,S,i64",)),
    StreamCase("embedding after a delay", late_embedding, 3, ("1,S,i64",)),
    StreamCase("gather elements", lambda net, x, i: net(GatherElements(1), x, i), 0, ("S,5,f32", "S,3,i64")),
    StreamCase("gather nd, batches", lambda net, x, i: net(GatherNd(1), x, i), 0, ("S,5,f32", "S,1,i64")),
    StreamCase("positions", counted("int64", 0, 1), 0),
    StreamCase("positions of floats", counted("float32", 0.5, 0.25), 0),
    StreamCase(
        "positions and a delay",
        lambda net, x: counted("float32", 1, 2)(net, conv(spec(3, (1, 1)), (2, 2))(net, x)),
        1,
        least=1,
    ),
]
