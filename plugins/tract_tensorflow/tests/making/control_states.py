"""Recurrent networks, variables and tables inside of loops, branches and calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from control import (
    RESOURCE,
    I,
    assign,
    below,
    binary,
    handle,
    looping,
    of_two,
    once,
    read,
    start,
    while_,
)
from hashtable import of
from model import Graph, Op, Tensor, const, file
from recurrent import Builder

Case = tuple[str, bytes, list[Any], int]

N = 3
SHAPE = (2, N)
ONE = Tensor((1,), "INT32")


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """All of them are run twice, at least."""
    x = draw.standard_normal(SHAPE, np.float32)
    for kind in ("rnn", "rnn bytes", "lstm", "svdf"):
        for most in (0, 1, 4):
            yield (f"{kind} in a loop {most} times", looping(SHAPE, in_loop(draw, kind)), [np.array([most], I), x], 2)
    for holds in (True, False):
        then, other = Net(draw, "lstm").graph(), Net(draw, "rnn").graph()
        given = [np.array([holds]), x]
        yield (f"lstm or rnn {holds}", branches(then, other), given, 2)
        yield (f"rnn in a branch in a loop {holds}", branch_in_loop(draw), [np.array([3], I), *given], 2)
        yield (f"variable in a branch {holds}", variable_in_branch(by_input=False), given, 3)
        yield (f"variable that a branch is given {holds}", variable_in_branch(by_input=True), given, 3)
        yield (f"variable in a branch in a branch {holds}", variable_two_deep(), given, 3)
        yield (f"table in a branch {holds}", table_in_branch(), [np.array([holds]), np.array([5, 9, 1])], 2)
    yield ("rnn that is called", called(draw), [x], 2)
    for most in (0, 1, 3):
        given = [np.array([most], I), x]
        yield (f"rnn in a loop that grows {most} times", growing(draw), given, 2)
        yield (f"rnns in a loop in a loop {most} times", loop_in_loop(draw), given, 2)
        yield (f"variable in a loop {most} times", variable_in_loop(by_input=False), given, 3)
        yield (f"variable that a loop is given {most} times", variable_in_loop(by_input=True), given, 3)
        yield (f"variable in a condition {most} times", variable_in_condition(), given, 2)
        yield (f"variable in a loop in a loop {most} times", variable_loop_in_loop(), given, 2)
    yield ("integers of svdf in a loop", integers_in_loop(draw), [np.array([3], I), bytes_like(draw, (2, 3))], 2)


def bytes_like(draw: np.random.Generator, shape: tuple[int, ...]) -> Any:
    return draw.integers(-128, 128, shape).astype(np.int8)


class Net(Builder):
    """One recurrent network of as many outputs as inputs."""

    def __init__(self, draw: np.random.Generator, what: str) -> None:
        self.what, _, kind = what.partition(" ")
        super().__init__(draw, kind or "floats")

    def op(self, x: int, out: int) -> Op:
        if self.what == "rnn":
            inputs = [x, self.weights(N, N), self.weights(N, N), self.vector(N), self.state(2, N)]
            return Op("RNN", inputs, [out], "RNNOptions", {"fusedActivationFunction": 4})
        if self.what == "svdf":
            inputs = [x, self.weights(N, N), self.weights(N, 2), self.vector(N), self.state(2, 2 * N)]
            return Op("SVDF", inputs, [out], "SVDFOptions", {"rank": 1})
        inputs = [x, *(self.weights(N, N) for _ in range(8)), -1, -1, -1, *(self.vector(N) for _ in range(4)), -1, -1]
        inputs += [self.state(2, N), self.state(2, N), *[-1] * 4]
        return Op("LSTM", inputs, [out], "LSTMOptions", {"fusedActivationFunction": 4})

    def graph(self) -> Graph:
        x, out = self.add(Tensor(SHAPE)), self.add(Tensor(SHAPE))
        return Graph(self.tensors, [self.op(x, out)], [x], [out])


def in_loop(draw: np.random.Generator, kind: str) -> Graph:
    """A body: one more step of a network on what it gave."""
    net = Net(draw, kind)
    i, most, x, more, after, out = map(net.add, [ONE, ONE, Tensor(SHAPE), const(np.array([1], I)), ONE, Tensor(SHAPE)])
    return Graph(net.tensors, [binary("ADD", i, more, after), net.op(x, out)], [i, most, x], [after, most, out])


def branches(then: Graph, other: Graph) -> bytes:
    options = {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}
    op = Op("IF", [0, 1], [2], "IfOptions", options)
    return file(Graph([Tensor((1,), "BOOL"), Tensor(SHAPE), Tensor(SHAPE)], [op], [0, 1], [2]), then, other)


def branch_in_loop(draw: np.random.Generator) -> bytes:
    """Inputs: how often, whether, and a value."""
    truth, shape = Tensor((1,), "BOOL"), Tensor(SHAPE)
    main = Graph(
        [ONE, truth, shape, const(np.array([0], I)), ONE, ONE, truth, shape],
        [while_([3, 0, 1, 2], [4, 5, 6, 7], 1, 2)],
        [0, 1, 2], [7],
    )  # fmt: skip
    test = Graph([ONE, ONE, truth, shape, truth], [Op("LESS", [0, 1], [4])], [0, 1, 2, 3], [4])
    body = Graph(
        [ONE, ONE, truth, shape, const(np.array([1], I)), ONE, shape],
        [
            binary("ADD", 0, 4, 5),
            Op("IF", [2, 3], [6], "IfOptions", {"thenSubgraphIndex": 3, "elseSubgraphIndex": 4}),
        ],
        [0, 1, 2, 3], [5, 1, 2, 6],
    )  # fmt: skip
    return file(main, test, body, Net(draw, "rnn").graph(), of_two("MUL"))


def called(draw: np.random.Generator) -> bytes:
    """The graph of a composite, run twice by two operators."""
    options = {
        "name": b"some.composite", "decompositionSubgraphIndex": 1, "version": 1,
        "compositeAttributes": np.zeros(0, np.uint8),
    }  # fmt: skip
    ops = [Op("STABLEHLO_COMPOSITE", [slot], [slot + 1], "StableHLOCompositeOptions", options) for slot in range(2)]
    return file(Graph([Tensor(SHAPE)] * 3, ops, [0], [2]), Net(draw, "rnn").graph())


def growing(draw: np.random.Generator) -> bytes:
    net, row = Net(draw, "rnn"), Tensor((1, 2))
    i, most, x, rows = map(net.add, [ONE, ONE, Tensor(SHAPE), row])
    more, after, out, longer = map(net.add, [const(np.array([1], I)), ONE, Tensor(SHAPE), Tensor((2, 2))])
    again = net.add(const(np.ones((1, 2), np.float32)))
    ops = [
        binary("ADD", i, more, after), net.op(x, out),
        Op("CONCATENATION", [rows, again], [longer], "ConcatenationOptions", {"axis": 0}),
    ]  # fmt: skip
    body = Graph(net.tensors, ops, [i, most, x, rows], [after, most, out, longer])
    zero = const(np.zeros((1, 2), np.float32))
    main = Graph(
        [ONE, Tensor(SHAPE), const(np.array([0], I)), zero, ONE, ONE, Tensor(SHAPE), Tensor((1, 2), signature=(-1, 2))],
        [while_([2, 0, 1, 3], [4, 5, 6, 7], 1, 2)],
        [0, 1], [6, 7],
    )  # fmt: skip
    return file(main, below(SHAPE, (1, 2)), body)


def loop_in_loop(draw: np.random.Generator) -> bytes:
    """A network in the outer loop, another one in the inner one, which runs as often as the outer has run."""
    net = Net(draw, "rnn")
    i, most, x = map(net.add, [ONE, ONE, Tensor(SHAPE)])
    more, after, zero = map(net.add, [const(np.array([1], I)), ONE, const(np.array([0], I))])
    between, a, b, out = map(net.add, [Tensor(SHAPE), ONE, ONE, Tensor(SHAPE)])
    ops = [binary("ADD", i, more, after), net.op(x, between), while_([zero, after, between], [a, b, out], 3, 4)]
    outer = Graph(net.tensors, ops, [i, most, x], [after, most, out])
    return looping(SHAPE, outer, below(SHAPE), in_loop(draw, "rnn"))


def kept(slot: int, value: int, result: int, hand: int | None = None) -> tuple[list[Tensor], list[Op]]:
    """A variable, plus a value, kept and given. Tensors from ``slot`` on: a handle, if none is given; what it held."""
    tensors = [RESOURCE, Tensor(SHAPE)]
    ops = [] if hand is not None else [handle(b"sum", slot)]
    at = slot if hand is None else hand
    return tensors, [*ops, read(at, slot + 1), binary("ADD", value, slot + 1, result), assign(at, result)]


def variable_in_branch(*, by_input: bool) -> bytes:
    """A sum that grows in one branch; the other one gives it, and does not touch it."""
    shape = Tensor(SHAPE)
    first = [RESOURCE] if by_input else []
    place = len(first)  # of the value
    tensors, ops = kept(place + 2, place, place + 1, 0 if by_input else None)
    adds = Graph([*first, shape, shape, *tensors], ops, [*range(place + 1)], [place + 1])
    looks = Graph([shape, RESOURCE, shape], [handle(b"sum", 1), read(1, 2)], [0], [2])
    if by_input:
        looks = Graph([RESOURCE, shape, shape], [read(0, 2)], [0, 1], [2])
    given = [0, 2, 1] if by_input else [0, 1]
    op = Op("IF", given, [3], "IfOptions", {"thenSubgraphIndex": 2, "elseSubgraphIndex": 3})
    main = Graph(
        [Tensor((1,), "BOOL"), shape, RESOURCE, shape, shape],
        [once(), handle(b"sum", 2), op, read(2, 4)],
        [0, 1], [3, 4],
    )  # fmt: skip
    return file(main, start(b"sum"), adds, looks)


def variable_two_deep() -> bytes:
    """A branch of a branch adds to a sum, the other one sets it."""
    shape, truth = Tensor(SHAPE), Tensor((1,), "BOOL")
    tensors, ops = kept(2, 0, 1)
    adds = Graph([shape, shape, *tensors], ops, [0], [1])
    sets = Graph([shape, RESOURCE], [handle(b"sum", 1), assign(1, 0)], [0], [0])
    inner = Graph(
        [shape, truth, shape],
        [Op("IF", [1, 0], [2], "IfOptions", {"thenSubgraphIndex": 3, "elseSubgraphIndex": 4})],
        [0, 1], [2],
    )  # fmt: skip
    main = Graph(
        [truth, shape, shape, RESOURCE, shape],
        [
            once(), Op("IF", [0, 1, 0], [2], "IfOptions", {"thenSubgraphIndex": 2, "elseSubgraphIndex": 2}),
            handle(b"sum", 3), read(3, 4),
        ],
        [0, 1], [2, 4],
    )  # fmt: skip
    return file(main, start(b"sum"), inner, adds, sets)


def table_in_branch() -> bytes:
    """A table of texts by numbers, asked with one default or another."""
    options = {"tableId": 1, "keyDtype": 4, "valueDtype": 5}
    make = Op("HASHTABLE", [], [0], "HashtableOptions", options)
    fill = Graph(
        [RESOURCE, of(np.array([5, 7, 9])), of(["a", "b", "c"])],
        [make, Op("HASHTABLE_IMPORT", [0, 1, 2], [], "HashtableImportOptions")], [], [],
    )  # fmt: skip
    asks = [
        Graph(
            [RESOURCE, Tensor((3,), "INT64"), of([default], ()), Tensor((3,), "STRING")],
            [make, Op("HASHTABLE_FIND", [0, 1, 2], [3], "HashtableFindOptions")], [1], [3],
        )
        for default in ("none", "?")
    ]  # fmt: skip
    op = Op("IF", [0, 1], [2], "IfOptions", {"thenSubgraphIndex": 2, "elseSubgraphIndex": 3})
    main = Graph(
        [Tensor((1,), "BOOL"), Tensor((3,), "INT64"), Tensor((3,), "STRING")], [once(), op], [0, 1], [2]
    )  # fmt: skip
    return file(main, fill, *asks)


def variable_in_loop(*, by_input: bool) -> bytes:
    """Each iteration adds to a sum, which the loop's value becomes."""
    shape = Tensor(SHAPE)
    first = [RESOURCE] if by_input else []
    n = len(first)
    tensors, ops = kept(n + 6, n + 2, n + 5, 0 if by_input else None)
    body = Graph(
        [*first, ONE, ONE, shape, const(np.array([1], I)), ONE, shape, *tensors],
        [binary("ADD", n, n + 3, n + 4), *ops],
        [*range(n + 3)], [*range(n), n + 4, n + 1, n + 5],
    )  # fmt: skip
    test = below(SHAPE)
    if by_input:
        tensors = [RESOURCE, *test.tensors]
        test = Graph(tensors, [Op("LESS", [1, 2], [4])], [0, 1, 2, 3], [4])
    handles, after = ([3], [4]) if by_input else ([], [])
    main = Graph(
        [ONE, shape, const(np.array([0], I)), RESOURCE, RESOURCE, ONE, ONE, shape, shape],
        [once(), handle(b"sum", 3), while_([*handles, 2, 0, 1], [*after, 5, 6, 7], 2, 3), read(3, 8)],
        [0, 1], [7, 8],
    )  # fmt: skip
    return file(main, start(b"sum"), test, body)


def variable_in_condition() -> bytes:
    """A loop that goes on while a count, which is a variable, is below a number; each iteration counts."""
    shape = Tensor(SHAPE)
    begin = Graph(
        [RESOURCE, const(np.array([0], I))],
        [handle(b"count", 0), assign(0, 1)], [], [],
    )  # fmt: skip
    test = Graph(
        [ONE, shape, RESOURCE, ONE, Tensor((1,), "BOOL")],
        [handle(b"count", 2), read(2, 3), Op("LESS", [3, 0], [4])],
        [0, 1], [4],
    )  # fmt: skip
    body = Graph(
        [ONE, shape, RESOURCE, ONE, const(np.array([1], I)), ONE, const(np.float32(1.5)), shape],
        [handle(b"count", 2), read(2, 3), binary("ADD", 3, 4, 5), assign(2, 5), binary("MUL", 1, 6, 7)],
        [0, 1], [0, 7],
    )  # fmt: skip
    main = Graph(
        [ONE, shape, ONE, shape, RESOURCE, ONE],
        [once(), while_([0, 1], [2, 3], 2, 3), handle(b"count", 4), read(4, 5)],
        [0, 1], [3, 5],
    )  # fmt: skip
    return file(main, begin, test, body)


def variable_loop_in_loop() -> bytes:
    """The inner loop adds to a sum, the outer one looks at it; a second variable is only read."""
    shape, zero, one = Tensor(SHAPE), const(np.array([0], I)), const(np.array([1], I))
    tensors, ops = kept(6, 2, 5)
    inner = Graph(
        [ONE, ONE, shape, one, ONE, shape, *tensors], [binary("ADD", 0, 3, 4), *ops], [0, 1, 2], [4, 1, 5]
    )  # fmt: skip
    outer = Graph(
        [ONE, ONE, shape, one, ONE, zero, ONE, ONE, shape, RESOURCE, shape, shape],
        [
            binary("ADD", 0, 3, 4), while_([5, 4, 2], [6, 7, 8], 5, 4), handle(b"more", 9), read(9, 10),
            binary("ADD", 8, 10, 11),
        ],
        [0, 1, 2], [4, 1, 11],
    )  # fmt: skip
    main = Graph(
        [ONE, shape, zero, ONE, ONE, shape, RESOURCE, shape],
        [once(), while_([2, 0, 1], [3, 4, 5], 2, 3), handle(b"sum", 6), read(6, 7)],
        [0, 1], [5, 7],
    )  # fmt: skip
    return file(main, start(b"sum", b"more"), below(SHAPE), outer, inner, below(SHAPE))


def integers_in_loop(draw: np.random.Generator) -> bytes:
    """A filter over time of integers, of as many outputs as inputs."""
    tensors = [
        ONE, ONE, Tensor((2, N), "INT8", scale=0.03, zero=7), const(np.array([1], I)), ONE,
        const(draw.integers(-127, 128, (N, N)), "INT8", scale=0.01, zero=0),
        const(draw.integers(-32768, 32768, (N, 2)), "INT16", scale=3e-5, zero=0),
        const(draw.integers(-3000, 3000, N), "INT32", scale=3e-8, zero=0),
        Tensor((2, 2 * N), "INT16", is_variable=True, scale=0.001, zero=0),
        Tensor((2, N), "INT8", scale=0.03, zero=7),
    ]  # fmt: skip
    options = {"rank": 1, "fusedActivationFunction": 1}
    ops = [binary("ADD", 0, 3, 4), Op("SVDF", [2, 5, 6, 7, 8], [9], "SVDFOptions", options)]
    body = Graph(tensors, ops, [0, 1, 2], [4, 1, 9])
    scaled = Tensor((2, N), "INT8", scale=0.03, zero=7)
    main = Graph(
        [ONE, scaled, const(np.array([0], I)), ONE, ONE, scaled], [while_([2, 0, 1], [3, 4, 5], 1, 2)], [0, 1], [3, 5]
    )  # fmt: skip
    test = Graph([ONE, ONE, scaled, Tensor((1,), "BOOL")], [Op("LESS", [0, 1], [3])], [0, 1, 2], [3])
    return file(main, test, body)
