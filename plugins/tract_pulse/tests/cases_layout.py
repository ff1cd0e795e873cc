"""Axes that move, are cut and are laid together, while a signal comes along one of them."""

from __future__ import annotations

from typing import Any

import numpy as np
from cases_windows import conv, spec
from stream_cases import StreamCase

from tract_core.data import Constant
from tract_core.dims import symbol
from tract_core.ops.axis import AddAxis, MoveAxis, RmAxis
from tract_core.ops.binary import Add, Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.concat import TypedConcat
from tract_core.ops.pad import Pad, PadConstant, PadEdge, PadReflect, PadWrap
from tract_core.ops.resize import Coordinates, Interpolator, NearestMode, Resize, Sampling, Scales
from tract_core.ops.tile import Tile
from tract_core.ops.trilu import Trilu
from tract_core.ops.wiring import wire_reshape, wire_transpose

S = symbol("S")


def op(operator: Any) -> Any:
    """One operator of one input."""
    return lambda net, x: net(operator, x)


def pad(*pads: tuple[int, int], mode: Any = None) -> Any:
    return op(Pad(pads, mode or PadConstant(Constant(np.float32(1.5).reshape(())))))


def after_conv(function: Any, into: int = 2) -> Any:
    """Something behind a convolution, whose output is one position late."""
    return lambda net, x: function(net, conv(spec(3, (1, 1)), (into, into))(net, x))


def reshape(*shape: Any) -> Any:
    return lambda net, x: net.wire(wire_reshape, x, shape)


def along(before: int = 0, behind: int = 0, pieces: int = 1) -> Any:
    """Whole tensors before and behind the signal."""

    def build(net: Any, x: Any) -> Any:
        front = [net.weights(1, 2, before) for _ in range(pieces if before else 0)]
        back = [net.weights(1, 2, behind) for _ in range(pieces if behind else 0)]
        return net(TypedConcat(2), *front, x, *back)

    return build


def across(net: Any, x: Any) -> Any:
    """Two branches of different delays and something that is whole, across channels."""
    late = conv(spec(5, (2, 2)))(net, x)
    whole = net(MultiBroadcastTo((1, 1, S)), net.weights(1, 1, 1))
    return net(TypedConcat(1), x, late, whole)


def whole_concat(net: Any, x: Any) -> Any:
    """What is put together before the signal comes is put together once."""
    pieces = net(TypedConcat(2), net.weights(1, 2, 2), net.weights(1, 2, 1))
    return net(TypedConcat(2), pieces, x)


def residual(net: Any, x: Any) -> Any:
    return net(Add(), x, conv(spec(5, (2, 2)), (2, 2))(net, x))


def stretched(net: Any, x: Any) -> Any:
    """What is whole, stretched to the length of the signal."""
    return net(Mul(), x, net(MultiBroadcastTo((1, 2, S)), net.weights(1, 2, 1)))


def resize(factor: float, **options: Any) -> Any:
    return op(Resize((2,), Scales((factor,)), Sampling(**options)))


EVEN = "1,2,2*S,f32"
ASYMMETRIC, ALIGNED = Coordinates.ASYMMETRIC, Coordinates.HALF_PIXEL
CASES = [
    StreamCase("pad (5, 3)", pad((0, 0), (0, 0), (5, 3)), 0),
    StreamCase("pad in front", pad((0, 0), (0, 0), (3, 0)), 0),
    StreamCase("pad behind", pad((0, 0), (0, 0), (0, 3)), 0),
    StreamCase("pad after a delay", after_conv(pad((0, 0), (0, 0), (3, 2))), 0, least=1),
    StreamCase("pad several axes", pad((1, 0), (0, 2), (2, 1)), 0),
    StreamCase("pad other axes", pad((1, 0), (0, 2), (0, 0)), 0),
    StreamCase("pad edge", pad((0, 0), (0, 0), (2, 3), mode=PadEdge()), 0, least=1),
    StreamCase("pad edge in front", pad((0, 0), (0, 0), (2, 0), mode=PadEdge()), 0, least=1),
    StreamCase("pad edge, longer than a pulse", pad((0, 0), (0, 0), (9, 3), mode=PadEdge()), 0, least=1),
    StreamCase("pad edge after a delay", after_conv(pad((0, 0), (0, 0), (2, 3), mode=PadEdge())), 1, least=1),
    StreamCase("pad edge on several axes", pad((0, 1), (1, 0), (1, 1), mode=PadEdge()), 0, least=1),
    StreamCase("pad reflect", pad((0, 0), (0, 0), (2, 1), mode=PadReflect()), 2, least=3),
    StreamCase("pad reflect on several axes", pad((0, 0), (0, 1), (2, 1), mode=PadReflect()), 2, least=3),
    StreamCase("pad wrap on another axis", pad((0, 0), (1, 1), (0, 0), mode=PadWrap()), 0),
    StreamCase("concat prefix", along(before=3), 0),
    StreamCase("concat suffix", along(behind=3), 0),
    StreamCase("concat both, several pieces", along(2, 3, 2), 0),
    StreamCase("concat prefix after a delay", after_conv(along(before=3)), 0, least=1),
    StreamCase("concat suffix after a delay", after_conv(along(behind=5)), 1, least=1),
    StreamCase("concat long pieces", along(11, 9), 0),
    StreamCase("concat of what was put together", whole_concat, 0),
    StreamCase("concat across", across, 2, least=1),
    StreamCase("residual", residual, 2, least=1),
    StreamCase("transpose", lambda net, x: net.wire(wire_transpose, x, (2, 0, 1)), 0),
    StreamCase("move axis after a delay", after_conv(op(MoveAxis(2, 0))), 1, least=1),
    StreamCase("add axis", op(AddAxis(2)), 0),
    StreamCase("add axis behind", op(AddAxis(3)), 0),
    StreamCase("remove an axis", op(RmAxis(0)), 0),
    StreamCase("reshape [2*S,4] to [S,2,4]", reshape(S, 2, 4), 0, ("2*S,4,f32",), pulse=2),
    StreamCase("reshape [1,2*S,4] to [1,S,8]", reshape(1, S, 8), 0, ("1,2*S,4,f32",), pulse=2),
    StreamCase("reshape [S,6] to [2*S,3]", reshape(2 * S, 3), 0, ("S,6,f32",)),
    StreamCase("reshape blocks after a delay", after_conv(reshape(1, 2, S, 2)), 1, (EVEN,), pulse=1, least=1),
    StreamCase("reshape other axes", reshape(1, 2, 3, S), 0, ("1,6,S,f32",)),
    StreamCase("reshape: flatten behind", reshape(S, 6), 0, ("S,2,3,f32",)),
    StreamCase("broadcast", stretched, 0),
    StreamCase("broadcast a stream", op(MultiBroadcastTo((3, 2, S))), 0),
    StreamCase("broadcast a stream to more axes", op(MultiBroadcastTo((2, 3, 2, S))), 0),
    StreamCase("tile other axes", op(Tile((2, 3, 1))), 0),
    StreamCase("trilu of other axes", lambda net, x: net(Trilu(True), x, net.const(0, np.int64)), 0, ("S,3,4,f32",)),
    StreamCase("resize another axis", op(Resize((1,), Scales((2.0,)))), 0, ("1,4,S,f32",)),
    StreamCase("resize nearest x2", resize(2.0, coordinates=ASYMMETRIC, nearest_mode=NearestMode.FLOOR), 0, least=1),
    StreamCase("resize nearest x3", resize(3.0), 0, least=1),
    StreamCase("resize linear x2", resize(2.0, interpolator=Interpolator.LINEAR), 2, least=1),
    StreamCase(
        "resize linear x2, asymmetric",
        resize(2.0, interpolator=Interpolator.LINEAR, coordinates=ASYMMETRIC),
        2,
        least=1,
    ),
    StreamCase("resize nearest x2 after a delay", after_conv(resize(2.0)), 2, least=1),
]
