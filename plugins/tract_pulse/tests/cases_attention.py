"""Attention over time, and sums over bands: each position looks at a limited number of others."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from stream_cases import Net, StreamCase

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim, symbol
from tract_core.model.axes import AxesMapping
from tract_core.ops.axis import AddAxis, MoveAxis, Reshape, RmAxis
from tract_core.ops.binary import Add, And, Div, Eq, Ge, Le, Max, Min, Mul, Ne, Or, Sub
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.cast import Cast
from tract_core.ops.conv import Conv
from tract_core.ops.cumsum import CumSum
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Abs, Exp, Floor, Not
from tract_core.ops.gather import Gather
from tract_core.ops.iff import Iff
from tract_core.ops.pad import Pad, PadConstant
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.range import Range
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import LogSoftmax, Softmax
from tract_core.ops.trilu import Trilu

S = symbol("S")
SIZE = 4

Mask = Callable[[Net, Any, Any], Any]
"""``(net, rows, columns) -> mask``, from the positions as [S,1] and [1,S]; true where a column counts."""


def einsum(net: Net, expression: str, *inputs: Any) -> Any:
    return net(EinSum(AxesMapping.parse(expression), DatumType.F32), *inputs)


def number(net: Net, value: int, rank: int = 2) -> Any:
    return net.const(np.full((1,) * rank, value), np.int64)


def scalar(net: Net, value: float, rank: int = 2) -> Any:
    return net.const(np.full((1,) * rank, value), np.float32)


def places(net: Net, length: Dim = S) -> tuple[Any, Any]:
    """Of a signal of that length: the positions of the rows, as [S,1], and of the columns, as [1,S]."""
    start, end, step = net.const(0, np.int64), net.model.add_const(net.name(), length), net.const(1, np.int64)
    every = net(Range(length), start, end, step)
    return net(AddAxis(1), every), net(AddAxis(0), every)


def chunks(net: Net, rows: Any, columns: Any, size: int) -> tuple[Any, Any]:
    return net(Div(), rows, number(net, size)), net(Div(), columns, number(net, size))


def block_diagonal(size: int) -> Mask:
    return lambda net, rows, columns: net(Eq(), *chunks(net, rows, columns, size))


def band(back: int, ahead: int) -> Mask:
    def mask(net: Net, rows: Any, columns: Any) -> Any:
        distance = net(Sub(), columns, rows)
        return net(And(), net(Ge(), distance, number(net, -back)), net(Le(), distance, number(net, ahead)))

    return mask


def chunked_band(size: int, back: int, ahead: int = 0) -> Mask:
    return lambda net, rows, columns: band(back, ahead)(net, *chunks(net, rows, columns, size))


def causal(net: Net, rows: Any, columns: Any) -> Any:
    return net(Le(), columns, rows)


def both(one: Mask, other: Mask) -> Mask:
    return lambda net, rows, columns: net(And(), one(net, rows, columns), other(net, rows, columns))


def either(one: Mask, other: Mask) -> Mask:
    return lambda net, rows, columns: net(Or(), one(net, rows, columns), other(net, rows, columns))


def near(distance: int) -> Mask:
    def mask(net: Net, rows: Any, columns: Any) -> Any:
        return net(Le(), net(Abs(), net(Sub(), rows, columns)), number(net, distance))

    return mask


def float_chunks(size: int) -> Mask:
    """Chunks as PyTorch divides for them: in floats, rounded down."""

    def mask(net: Net, rows: Any, columns: Any) -> Any:
        found = [net(Floor(), net(Div(), net(Cast(DatumType.F32), one), scalar(net, size))) for one in (rows, columns)]
        return net(Eq(), *found)

    return mask


def triangles(back: int, ahead: int) -> Mask:
    def mask(net: Net, rows: Any, columns: Any) -> Any:
        ones = net(MultiBroadcastTo((S, S)), net.const(np.full((1, 1), True)))
        lower = net(Trilu(upper=False), ones, net.const(ahead, np.int64))
        return net(Trilu(upper=True), lower, net.const(-back, np.int64))

    return mask


def out(net: Net, scores: Any, mask: Any) -> Any:
    """Minus infinity in the place of what the mask does not hold."""
    return net(Iff(), mask, scores, scalar(net, -np.inf))


def added(fill: float) -> Callable[[Net, Any, Any], Any]:
    def masked(net: Net, scores: Any, mask: Any) -> Any:
        bias = net(Mul(), net(Cast(DatumType.F32), net(Not(), mask)), scalar(net, fill))
        return net(Add(), scores, bias)

    return masked


def of_pytorch(net: Net, x: Any, mask: Mask, *, boolean: bool) -> Any:
    """As `scaled_dot_product_attention` is taken apart: 0 for queries whose keys the mask leaves out, all of them."""
    seen = mask(net, *places(net))
    if not boolean:
        seen = net(Iff(), seen, scalar(net, 0), scalar(net, -np.inf))
    scores = einsum(net, "qd,kd->qk", x, x)
    scores = out(net, scores, seen) if boolean else net(Add(), scores, seen)
    found = einsum(net, "qk,kd->qd", softmax(net, scores), x)
    some = net(Reduce((1,), Reducer.ANY), seen if boolean else net(Ne(), seen, scalar(net, -np.inf)))
    return net(Iff(), some, found, scalar(net, 0))


def softmax(net: Net, scores: Any) -> Any:
    return net(Softmax((1,)), scores)


def by_hand(net: Net, scores: Any) -> Any:
    """As an exporter takes it apart: less the maximum, exponentials, divided by their sum."""
    shifted = net(Sub(), scores, net(Reduce((1,), Reducer.MAX), scores))
    powers = net(Exp(), shifted)
    return net(Div(), powers, net(Reduce((1,), Reducer.SUM), powers))


def attention(
    net: Net, x: Any, mask: Mask, *, masked: Callable[..., Any] = out, weights: Callable[..., Any] = softmax
) -> Any:
    """Of a signal [S,4], with projections of its own."""
    q, k, v = (einsum(net, "sd,de->se", x, net.weights(SIZE, SIZE)) for _ in range(3))
    scores = net(Div(), einsum(net, "qd,kd->qk", q, k), scalar(net, SIZE**0.5))
    seen = mask(net, *places(net, net.model.outlet_fact(x).shape[0]))
    return einsum(net, "qk,kd->qd", weights(net, masked(net, scores, seen)), v)


def case(name: str, mask: Mask, delay: int, pulse: int | str = 4, **options: Any) -> StreamCase:
    least = options.pop("least", 0)
    return StreamCase(
        f"attention: {name}",
        lambda net, x: attention(net, x, mask, **options),
        delay,
        (f"S,{SIZE},f32",),
        pulse,
        least,
    )


def conv(net: Net, x: Any, kernel: int, pads: tuple[int, int], stride: int = 1) -> Any:
    """Of [S,4] along S."""
    laid = net(AddAxis(0), net(MoveAxis(0, 1), x))
    spec = PoolSpec(DataFormat.NCHW, (kernel,), Explicit((pads[0],), (pads[1],)), (), (stride,))
    found = net(Conv(spec), laid, net.weights(SIZE, SIZE, kernel), net.weights(SIZE))
    return net(MoveAxis(1, 0), net(RmAxis(0), found))


def conv_then_attention(net: Net, x: Any) -> Any:
    return attention(net, conv(net, x, 3, (1, 1)), block_diagonal(4))


def strided_conv_then_attention(net: Net, x: Any) -> Any:
    return attention(net, conv(net, x, 2, (0, 0), 2), block_diagonal(2))


def pool_then_attention(net: Net, x: Any) -> Any:
    laid = net(AddAxis(0), net(MoveAxis(0, 1), x))
    pooled = net(MaxPool(PoolSpec(DataFormat.NCHW, (5,), Explicit((2,), (2,)), (), (1,))), laid)
    return attention(net, net(MoveAxis(1, 0), net(RmAxis(0), pooled)), band(2, 0))


def two_attentions(net: Net, x: Any, masks: tuple[Mask, Mask]) -> Any:
    first = net(Add(), x, attention(net, x, masks[0]))
    return net(Add(), first, attention(net, first, masks[1]))


def cut(net: Net, x: Any, mask: Mask) -> Any:
    """Declutter cuts the rows before they meet the columns, and the positions of the rows too."""
    return net(Slice(0, 2, S - 1), attention(net, x, mask))


def one_mask_for_two(net: Net, x: Any) -> Any:
    mask = near(2)(net, *places(net))
    for _ in range(2):
        x = net(Add(), x, attention(net, x, lambda *_: mask))
    return x


def with_padding(net: Net, x: Any, kept: Any) -> Any:
    """A mask of positions that are no padding comes as a stream."""
    mask = net(And(), band(3, 0)(net, *places(net)), net(AddAxis(0), kept))
    diagonal = net(Eq(), *places(net))
    return attention(net, x, lambda *_: net(Or(), mask, diagonal))


def transposed(net: Net, x: Any) -> Any:
    """Columns first."""
    rows, columns = places(net)
    mask = band(1, 2)(net, rows, columns)
    scores = out(net, einsum(net, "kd,qd->kq", x, x), mask)
    return einsum(net, "kq,kd->qd", net(Softmax((0,)), scores), x)


def heads(net: Net, x: Any) -> Any:
    """[B,S,H*D] with queries of four heads, and keys and values of two, each for two of them."""
    q = einsum(net, "bsd,dhe->bhse", x, net.weights(SIZE, 4, 3))
    k, v = (einsum(net, "bsd,dhe->bhse", x, net.weights(SIZE, 2, 3)) for _ in range(2))
    q = net(Reshape(1, (4,), (2, 2)), q)
    scores = einsum(net, "bhgqe,bhke->bhgqk", q, k)
    mask = chunked_band(2, 1)(net, *places(net))
    for _ in range(3):
        mask = net(AddAxis(0), mask)
    scores = net(Iff(), mask, scores, scalar(net, -np.inf, 5))
    scores = net(Reshape(1, (2, 2), (4,)), scores)
    scores = net(Reshape(1, (4,), (2, 2)), net(Softmax((3,)), scores))
    found = einsum(net, "bhgqk,bhke->bqhge", scores, v)
    return net(Reshape(2, (2, 2, 3), (12,)), found)


def with_distances(net: Net, x: Any) -> Any:
    """A bias that depends on how far apart two positions are, up to three."""
    rows, columns = places(net)
    distance = net(Max(), net(Min(), net(Sub(), columns, rows), number(net, 3)), number(net, -3))
    bias = net(Gather(0), net.weights(7), net(Add(), distance, number(net, 3)))
    scores = net(Add(), einsum(net, "qd,kd->qk", x, x), bias)
    return einsum(net, "qk,kd->qd", net(Softmax((1,)), out(net, scores, band(4, 1)(net, rows, columns))), x)


def by_relative_position(
    net: Net, x: Any, mask: Mask, *, table: int = 50, first: Dim | None = None, rows: Any = None
) -> Any:
    """As Transformer-XL scores it: rows times a table by distance, skewed so that columns stand under their positions.

    ``table``: how many distances it has on either side. ``first``: the row of the table for the first of them.
    ``rows``: the table, if it is not to be one of random weights.
    """
    start = table - S if first is None else first
    rows = net.weights(2 * table - 1, SIZE) if rows is None else rows
    distances = net(Slice(0, start, start + 2 * S - 1), rows)
    distances = einsum(net, "rd,de->re", distances, net.weights(SIZE, SIZE))
    product = einsum(net, "qd,rd->qr", x, distances)
    padded = net(Pad(((0, 0), (1, 0)), PadConstant(Constant(np.zeros((), np.float32)))), product)
    shifted = net(Slice(0, 1, 2 * S), net(Reshape(0, (S, 2 * S), (2 * S, S)), padded))
    skewed = net(Slice(1, 0, S), net(Reshape(0, (2 * S - 1, S), (S, 2 * S - 1)), shifted))
    scores = net(Add(), einsum(net, "qd,kd->qk", x, x), skewed)
    return einsum(net, "qk,kd->qd", softmax(net, out(net, scores, mask(net, *places(net)))), x)


def banded(reducer: Reducer, fill: float, mask: Mask, net: Net, x: Any) -> Any:
    """Of one column for each position: [S], as [S,S], and one axis reduced."""
    column = net(AddAxis(0), net(RmAxis(1), einsum(net, "sd,de->se", x, net.weights(SIZE, 1))))
    square = net(MultiBroadcastTo((S, S)), column)
    kept = net(Iff(), mask(net, *places(net)), square, scalar(net, fill))
    return net(Reduce((1,), reducer), kept)


def greatest_integer(net: Net, x: Any) -> Any:
    """Of integers, of which the least one stands in the place of minus infinity; a position does not see itself."""
    square = net(MultiBroadcastTo((S, S)), net(AddAxis(0), x))
    least = net.const(np.full((1, 1), np.iinfo(np.int32).min), np.int32)
    return net(Reduce((1,), Reducer.MAX), net(Iff(), band(3, -1)(net, *places(net)), square, least))


def counted(net: Net, x: Any) -> Any:
    """How many positions each one sees: nothing but positions, and as a weight of the signal."""
    count = net(Reduce((1,), Reducer.SUM), net(Cast(DatumType.F32), near(2)(net, *places(net))))
    return net(Mul(), x, count)


def linear(net: Net, x: Any) -> Any:
    """Without a softmax: products of scores and a mask of zeros and ones."""
    scores = einsum(net, "qd,kd->qk", x, x)
    kept = net(Mul(), scores, net(Cast(DatumType.F32), band(3, 0)(net, *places(net))))
    return einsum(net, "qk,kd->qd", kept, x)


def by_blocks(net: Net, x: Any) -> Any:
    """Attention inside of blocks of four, which are an axis of their own: [2*S,4] as [S/2,4,4]."""
    blocks = net(Reshape(0, (4 * S,), (S, 4)), x)
    scores = net(Softmax((2,)), einsum(net, "bqd,bkd->bqk", blocks, blocks))
    return net(Reshape(0, (S, 4), (4 * S,)), einsum(net, "bqk,bkd->bqd", scores, blocks))


def logarithms(net: Net, x: Any) -> Any:
    """Entropies: sums over log-softmax times softmax, of which the first is minus infinity outside."""
    mask = near(1)(net, *places(net))
    scores = out(net, einsum(net, "qd,kd->qk", x, x), mask)
    logs = net(Iff(), mask, net(LogSoftmax((1,)), scores), scalar(net, 0))
    return net(Reduce((1,), Reducer.SUM), net(Mul(), logs, net(Softmax((1,)), scores)))


def windows(
    net: Net, x: Any, first: Mask = lambda net, rows, offsets: net(Add(), rows, offsets), stride: int = 1
) -> Any:
    """As `unfold` writes them: a row of positions for each position, with a query of its own."""
    padded = net(Pad(((3, 0), (0, 0)), PadConstant(Constant(np.float32(0).reshape(())))), x)
    rows, _ = places(net, (S - 1) // stride + 1 if stride > 1 else S)
    if stride > 1:
        rows = net(Mul(), rows, number(net, stride))
    picked = net(Gather(0), padded, first(net, rows, net.const([[0, 1, 2, 3]], np.int64)))
    scores = einsum(net, "d,swd->sw", net.weights(SIZE), picked)
    return einsum(net, "sw,swd->sd", softmax(net, scores), picked)


def chunk_of(size: int) -> Mask:
    """All positions of the chunk that a position is in; what is before the signal counts as its beginning."""

    def picked(net: Net, rows: Any, offsets: Any) -> Any:
        return net(Add(), net(Mul(), net(Div(), rows, number(net, size)), number(net, size)), offsets)

    return picked


def counted_positions(net: Net, rows: Any, columns: Any) -> Any:
    """Positions as sums of ones, as of masks of what is no padding."""
    ones = net(MultiBroadcastTo((S,)), net.const([1], np.int64))
    every = net(CumSum(0), ones)
    return near(2)(net, net(AddAxis(1), every), net(AddAxis(0), every))


def dilated(net: Net, rows: Any, columns: Any) -> Any:
    """Every other position of those near by, in the same place of its pair."""
    halves = [net(Sub(), one, net(Mul(), net(Div(), one, number(net, 2)), number(net, 2))) for one in (rows, columns)]
    return net(And(), near(4)(net, rows, columns), net(Eq(), *halves))


def of(name: str, build: Callable[..., Any], delay: int, pulse: int | str = 4, **options: Any) -> StreamCase:
    return StreamCase(f"attention: {name}", build, delay, options.pop("inputs", (f"S,{SIZE},f32",)), pulse, **options)


BLOCKS = [(4, 4, 0), (4, 8, 0), (4, 2, 2), (4, 1, 3), (4, 3, 3), (3, 2, 2), (2, 6, 0), (5, 3, 4)]

CASES = [
    *(
        case(f"blocks of {size}, pulses of {pulse}", block_diagonal(size), delay, pulse)
        for size, pulse, delay in BLOCKS
    ),
    case("band", band(3, 0), 0),
    case("band ahead", band(0, 3), 3),
    case("band on both sides", near(2), 2, 3),
    case("strictly causal band", band(4, -1), 0, least=1),
    case("pulses of one", band(2, 1), 1, 1),
    case("causal within chunks", both(block_diagonal(4), causal), 0, 3),
    case("chunks back", chunked_band(2, 3), 0, 2),
    case("chunks back and ahead", chunked_band(2, 1, 1), 2, 2),
    case("chunks back, odd pulses", chunked_band(4, 1), 3, 3),
    case("either of two bands", either(band(1, 0), band(0, 2)), 2),
    case("chunks and a band", both(chunked_band(4, 2), band(5, 9)), 0),
    case("chunks in floats", float_chunks(3), 0, 3),
    case("triangles", triangles(3, 1), 1),
    case("positions that are counted", counted_positions, 2),
    case("every other position", dilated, 4, 2),
    case("added mask", band(2, 0), 0, masked=added(-1e9)),
    case("added mask as of BERT", block_diagonal(2), 0, masked=added(-1e4)),
    *(
        of(f"of PyTorch, a mask of {kind}, {delay} ahead", partial(of_pytorch, mask=mask, boolean=boolean), delay)
        for kind, boolean in (("booleans", True), ("floats", False))
        for mask, delay in ((band(3, 2), 2), (band(4, -1), 0))
    ),
    case("softmax by hand", near(2), 2, weights=by_hand),
    of("convolution before", conv_then_attention, 4),
    of("strided convolution before", strided_conv_then_attention, 0, least=2),
    of("max pool before", pool_then_attention, 2),
    of("two in a row", partial(two_attentions, masks=(block_diagonal(4), chunked_band(2, 1))), 0),
    of("two that look ahead", partial(two_attentions, masks=(near(1), band(1, 2))), 3),
    of("rows that are cut", partial(cut, mask=band(3, 0)), 2, least=3),
    of("rows that are cut, looking ahead", partial(cut, mask=band(1, 3)), 5, least=3),
    of("one mask for two", one_mask_for_two, 4),
    of("padding", with_padding, 0, inputs=(f"S,{SIZE},f32", "S,bool")),
    of("columns first", transposed, 1),
    of("heads in groups", heads, 0, inputs=(f"B,S,{SIZE},f32",), sizes={"B": 2}),
    of("bias by distance", with_distances, 1),
    *(
        of(
            f"by relative position, pulses of {pulse}, {mask}",
            partial(by_relative_position, mask=band(*mask)), mask[1], pulse, least=1,
        )
        for pulse in (1, 4, 5) for mask in ((4, 0), (0, 3), (6, 2))
    ),
    of("by relative position, a wide window", partial(by_relative_position, mask=band(60, 0), table=43), 0, least=1),
    of("sum over a band", partial(banded, Reducer.SUM, 0.0, band(2, 2)), 2),
    of("sum over a band ahead", partial(banded, Reducer.SUM, 0.0, band(0, 2)), 2, 2),
    of("maximum over a band", partial(banded, Reducer.MAX, -np.inf, band(2, 2)), 2),
    of("minimum over chunks", partial(banded, Reducer.MIN, np.inf, block_diagonal(4)), 0),
    of("sum over chunks", partial(banded, Reducer.SUM, 0.0, chunked_band(2, 2)), 0, 2),
    of("greatest integer before", greatest_integer, 0, inputs=("S,i32",)),
    of("counts of positions", counted, 2),
    of("without softmax", linear, 0),
    of("by blocks", by_blocks, 0, inputs=(f"4*S,{SIZE},f32",), pulse=1),
    of("logarithms", logarithms, 1),
    of("picked windows", windows, 3),
    of("picked windows with a stride", partial(windows, stride=2), 1, least=1),
    of("picked chunks", partial(windows, first=chunk_of(4)), 3),
    of("picked chunks of three", partial(windows, first=chunk_of(3)), 3, 5),
]  # fmt: skip
