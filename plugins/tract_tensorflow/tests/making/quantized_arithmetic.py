"""Operators on two quantised tensors, element by element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from model import Graph, Op, Tensor, const, file

Case = tuple[str, bytes, list[Any]]

ENDS = {"INT8": (-128, 127), "UINT8": (0, 255), "INT16": (-32768, 32767)}
STEPS = {
    "INT8": ((0.05, -7), (0.021, 12), (0.13, 3)),
    "UINT8": ((0.04, 120), (0.055, 131), (0.2, 77)),
    "INT16": ((0.0002, 0), (0.00031, 0), (0.00047, 0)),
}
SAME = {"MAXIMUM", "MINIMUM"}
COMPARISONS = ("EQUAL", "NOT_EQUAL", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL")
SHAPES = {"same": ((3, 11), (3, 11)), "stretched": ((2, 1, 5, 3), (4, 1, 3)), "scalar": ((2, 9), ())}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator, type, shapes, and what is fused."""
    for kind in ENDS:
        for name in ("ADD", "SUB", "MUL", "DIV", "SQUARED_DIFFERENCE", *SAME, *COMPARISONS, "PRELU"):
            if name == "SQUARED_DIFFERENCE" and kind != "INT8":
                continue
            for shape, sizes in SHAPES.items():
                if (name in (*COMPARISONS, *SAME) and shape == "scalar") or (name == "PRELU" and shape == "stretched"):
                    continue
                yield (f"{name.lower()} {kind} {shape}", *two(draw, name, kind, sizes))
        for name in ("ADD", "SUB", "MUL", "DIV"):
            for activation in (1, 2, 3):
                more = {"fusedActivationFunction": activation}
                yield (f"{name.lower()} {kind} activation {activation}", *two(draw, name, kind, SHAPES["same"], more))
    for name in ("ADD", "SUB"):
        yield (f"{name.lower()} INT16 powers", *powers(draw, name, (-12, -10, -10)))
        yield (f"{name.lower()} INT16 same powers", *powers(draw, name, (-11, -11, -11)))
        for kind in ("INT8", "INT16"):
            yield (f"{name.lower()} {kind} ends", *ends(draw, name, kind))


def two(
    draw: np.random.Generator, name: str, kind: str, shapes: tuple[Any, Any], options: dict[str, Any] | None = None
) -> tuple[bytes, list[Any]]:
    """Integers of the whole type; divisors are not their zero point."""
    low, high = ENDS[kind]
    steps = STEPS[kind]
    if name in SAME:
        steps = (steps[0],) * 3
    values = [draw.integers(low, high + 1, shape).astype(kind.lower()) for shape in shapes]
    kinds = [kind, kind]
    if name == "PRELU" and kind == "INT16":  # slopes are bytes there
        kinds[1], steps = "INT8", (steps[0], STEPS["INT8"][1], (0.002, 0))
        values[1] = draw.integers(-128, 128, shapes[1]).astype(np.int8)
    if name == "DIV":
        values[1] = np.where(values[1] == steps[1][1], high, values[1]).astype(values[1].dtype)
    inputs = [
        Tensor(np.shape(one), part, scale=scale, zero=zero)
        for one, part, (scale, zero) in zip(values, kinds, steps, strict=False)
    ]
    scale, zero = steps[2]
    if name in ("MUL", "DIV", "SQUARED_DIFFERENCE"):
        scale = (
            scale * {"INT8": 4, "UINT8": 2, "INT16": 9}[kind]
            if name != "DIV"
            else scale / {"INT8": 2, "UINT8": 20, "INT16": 2}[kind]
        )
    shape = np.broadcast_shapes(*shapes)
    out = Tensor(shape, "BOOL") if name in COMPARISONS else Tensor(shape, kind, scale=scale, zero=zero)
    table = {"MAXIMUM": "MaximumMinimum", "MINIMUM": "MaximumMinimum", "PRELU": ""}.get(
        name, name.title().replace("_", "")
    )
    more = options or {}
    if kind == "INT16" and name in ("ADD", "SUB"):
        more = {**more, "potScaleInt16": False}
    op = Op(name, [0, 1], [2], f"{table}Options" if table else "", more)
    return file(Graph([*inputs, out], [op], [0, 1], [2])), values


def powers(draw: np.random.Generator, name: str, exponents: tuple[int, int, int]) -> tuple[bytes, list[Any]]:
    """Scales that are powers of two, which a kernel of older files only shifts by."""
    values = [draw.integers(-32768, 32768, (3, 40)).astype(np.int16) for _ in range(2)]
    tensors = [Tensor((3, 40), "INT16", scale=2.0**exponent, zero=0) for exponent in exponents]
    op = Op(name, [0, 1], [2], f"{name.title()}Options", {"potScaleInt16": True})
    return file(Graph(tensors, [op], [0, 1], [2])), values


def ends(draw: np.random.Generator, name: str, kind: str) -> tuple[bytes, list[Any]]:
    """The ends of the type, and a constant; sizes 1 and odd."""
    low, high = ENDS[kind]
    values = np.array([[low, low + 1, -1, 0, 1, high - 1, high]]).astype(kind.lower())
    (a, b, y) = STEPS[kind]
    constant = const(draw.integers(low, high + 1, (7, 1)), kind, scale=b[0], zero=b[1])
    tensors = [
        Tensor((1, 7), kind, scale=a[0], zero=a[1]),
        constant,
        Tensor((7, 7), kind, scale=y[0], zero=y[1]),
    ]
    op = Op(name, [0, 1], [2], f"{name.title()}Options", {"potScaleInt16": False})
    return file(Graph(tensors, [op], [0], [2])), [values]
