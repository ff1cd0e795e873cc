"""Graphs that others call, and variables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from flatbuffers import flexbuffers
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any], int]

F = np.float32


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """Branches, loops, calls, variables."""
    x = draw.standard_normal((2, 3), F)
    for holds in (True, False):
        yield (f"branch {holds}", branches(), [np.array([holds]), x], 1)
        yield (f"branch of other sizes {holds}", branches_of_other_sizes(), [np.array([holds]), x], 1)
        yield (f"branch inside a branch {holds}", nested(), [np.array([holds]), x], 1)
    for most in (0, 1, 5):
        yield (f"loop {most} times", loop(), [np.array([most], np.int32), x], 1)
        yield (f"growing {most} times", growing(), [np.array([most], np.int32), x], 1)
        yield (f"loop inside a loop {most}", loops(), [np.array([most], np.int32), x], 1)
    yield ("call of a composite", composite(), [x], 1)
    yield ("call of a composite twice", composite(2), [x], 1)
    yield ("variable that is added to", variable(), [x], 3)
    yield ("variable that is only read", constant_variable(), [x], 2)
    yield ("two variables that change places", two_variables(), [x], 3)
    yield ("variable that is written first", scratch(), [x], 2)


def binary(name: str, a: int, b: int, out: int) -> Op:
    """Of two tensors."""
    table = {"ADD": "AddOptions", "MUL": "MulOptions", "SUB": "SubOptions"}.get(name, "")
    return Op(name, [a, b], [out], table)


def of_two(name: str, shape: tuple[int, ...] = (2, 3)) -> Graph:
    """A graph of one operator and a constant."""
    return Graph([Tensor(shape), const(F(1.5)), Tensor(shape)], [binary(name, 0, 1, 2)], [0], [2])


def branches() -> bytes:
    main = Graph(
        [Tensor((1,), "BOOL"), Tensor((2, 3)), Tensor((2, 3))],
        [Op("IF", [0, 1], [2], "IfOptions", {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2})],
        [0, 1], [2],
    )  # fmt: skip
    return file(main, of_two("ADD"), of_two("MUL"))


def joined() -> Graph:
    """A tensor behind itself."""
    op = Op("CONCATENATION", [0, 0], [1], "ConcatenationOptions", {"axis": 0})
    return Graph([Tensor((2, 3)), Tensor((4, 3))], [op], [0], [1])


def branches_of_other_sizes() -> bytes:
    main = Graph(
        [Tensor((1,), "BOOL"), Tensor((2, 3)), Tensor((2, 3), signature=(-1, 3)), const(F(2)), Tensor((2, 3))],
        [
            Op("IF", [0, 1], [2], "IfOptions", {"thenSubgraphIndex": 1, "elseSubgraphIndex": 2}),
            binary("MUL", 2, 3, 4),
        ],
        [0, 1], [4],
    )  # fmt: skip
    return file(main, joined(), of_two("MUL"))


def nested() -> bytes:
    main = Graph(
        [Tensor((1,), "BOOL"), Tensor((2, 3)), Tensor((2, 3))],
        [Op("IF", [0, 1, 0], [2], "IfOptions", {"thenSubgraphIndex": 1, "elseSubgraphIndex": 1})],
        [0, 1], [2],
    )  # fmt: skip
    inner = Graph(
        [Tensor((2, 3)), Tensor((1,), "BOOL"), Tensor((2, 3))],
        [Op("IF", [1, 0], [2], "IfOptions", {"thenSubgraphIndex": 2, "elseSubgraphIndex": 3})],
        [0, 1], [2],
    )  # fmt: skip
    return file(main, inner, of_two("ADD"), of_two("SUB"))


I = np.int32


def below(*others: tuple[int, ...]) -> Graph:
    """Whether the first of several values is below the second."""
    tensors = [Tensor((1,), "INT32"), Tensor((1,), "INT32"), *(Tensor(shape) for shape in others)]
    return Graph(
        [*tensors, Tensor((1,), "BOOL")], [Op("LESS", [0, 1], [len(tensors)])], [*range(len(tensors))], [len(tensors)]
    )


def while_(inputs: list[int], outputs: list[int], condition: int, body: int) -> Op:
    options = {"condSubgraphIndex": condition, "bodySubgraphIndex": body}
    return Op("WHILE", inputs, outputs, "WhileOptions", options)


def looping(shape: tuple[int, ...], body: Graph, *more: Graph, signature: tuple[int, ...] | None = None) -> bytes:
    one = Tensor((1,), "INT32")
    main = Graph(
        [one, Tensor(shape), const(np.array([0], I)), one, one, Tensor(shape, signature=signature)],
        [while_([2, 0, 1], [3, 4, 5], 1, 2)],
        [0, 1], [3, 5],
    )  # fmt: skip
    return file(main, below(shape), body, *more)


def loop() -> bytes:
    one, shape = Tensor((1,), "INT32"), (2, 3)
    body = Graph(
        [one, one, Tensor(shape), const(np.array([1], I)), one, const(F(1.5)), Tensor(shape)],
        [binary("ADD", 0, 3, 4), binary("MUL", 2, 5, 6)],
        [0, 1, 2], [4, 1, 6],
    )  # fmt: skip
    return looping(shape, body)


def growing() -> bytes:
    one, shape = Tensor((1,), "INT32"), (2, 3)
    body = Graph(
        [one, one, Tensor(shape), const(np.array([1], I)), one, const(np.ones((1, 3), F)), Tensor(shape)],
        [binary("ADD", 0, 3, 4), Op("CONCATENATION", [2, 5], [6], "ConcatenationOptions", {"axis": 0})],
        [0, 1, 2], [4, 1, 6],
    )  # fmt: skip
    return looping(shape, body, signature=(-1, 3))


def loops() -> bytes:
    one, shape = Tensor((1,), "INT32"), (2, 3)
    body = Graph(
        [one, one, Tensor(shape), const(np.array([1], I)), one, const(np.array([0], I)), one, one, Tensor(shape)],
        [binary("ADD", 0, 3, 4), while_([5, 4, 2], [6, 7, 8], 3, 4)],
        [0, 1, 2], [4, 1, 8],
    )  # fmt: skip
    inner = Graph(
        [one, one, Tensor(shape), const(np.array([1], I)), one, const(F(1.5)), Tensor(shape)],
        [binary("ADD", 0, 3, 4), binary("ADD", 2, 5, 6)],
        [0, 1, 2], [4, 1, 6],
    )  # fmt: skip
    return looping(shape, body, below(shape), inner)


def composite(times: int = 1) -> bytes:
    shape = (2, 3)
    attributes = np.frombuffer(bytes(flexbuffers.Dumps({})), np.uint8)
    options = {
        "name": b"some.composite", "decompositionSubgraphIndex": 1, "version": 1, "compositeAttributes": attributes,
    }  # fmt: skip
    ops = [Op("STABLEHLO_COMPOSITE", [slot], [slot + 1], "StableHLOCompositeOptions", options) for slot in range(times)]
    return file(Graph([Tensor(shape)] * (times + 1), ops, [0], [times]), of_two("ADD"))


RESOURCE = Tensor((), "RESOURCE")


def handle(name: bytes, out: int) -> Op:
    return Op("VAR_HANDLE", [], [out], "VarHandleOptions", {"sharedName": name, "container": b""})


def once() -> Op:
    return Op("CALL_ONCE", [], [], "CallOnceOptions", {"initSubgraphIndex": 1})


def start(*names: bytes) -> Graph:
    """A graph that lets variables begin with 0, 1, ..."""
    tensors, ops = [], []
    for number, name in enumerate(names):
        tensors += [RESOURCE, const(np.full((2, 3), number, F))]
        ops += [
            handle(name, 2 * number),
            Op("ASSIGN_VARIABLE", [2 * number, 2 * number + 1], [], "AssignVariableOptions"),
        ]
    return Graph(tensors, ops, [], [])


def read(slot: int, out: int) -> Op:
    return Op("READ_VARIABLE", [slot], [out], "ReadVariableOptions")


def assign(slot: int, value: int) -> Op:
    return Op("ASSIGN_VARIABLE", [slot, value], [], "AssignVariableOptions")


def variable() -> bytes:
    shape = Tensor((2, 3))
    main = Graph(
        [shape, RESOURCE, shape, shape, shape],
        [once(), handle(b"sum", 1), read(1, 2), binary("ADD", 0, 2, 3), assign(1, 3), read(1, 4)],
        [0], [4, 2],
    )  # fmt: skip
    return file(main, start(b"sum"))


def constant_variable() -> bytes:
    shape = Tensor((2, 3))
    main = Graph(
        [shape, RESOURCE, shape, shape],
        [once(), handle(b"b", 1), read(1, 2), binary("ADD", 0, 2, 3)],
        [0], [3],
    )  # fmt: skip
    return file(main, start(b"a", b"b"))


def two_variables() -> bytes:
    shape = Tensor((2, 3))
    main = Graph(
        [shape, RESOURCE, RESOURCE, shape, shape, shape],
        [
            once(), handle(b"a", 1), handle(b"b", 2), read(1, 3), read(2, 4), binary("ADD", 0, 3, 5),
            assign(1, 4), assign(2, 5),
        ],
        [0], [5],
    )  # fmt: skip
    return file(main, start(b"a", b"b"))


def scratch() -> bytes:
    shape = Tensor((2, 3))
    main = Graph(
        [shape, RESOURCE, shape, shape],
        [handle(b"a", 1), assign(1, 0), read(1, 2), binary("ADD", 0, 2, 3)],
        [0], [3],
    )  # fmt: skip
    return file(main)
