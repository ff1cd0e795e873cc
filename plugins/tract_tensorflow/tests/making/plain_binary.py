"""Operators on two tensors, element by element, that are plain numbers, truth values or texts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from single import Case, numbers, single, with_ends

FUSED = {"ADD": "AddOptions", "SUB": "SubOptions", "MUL": "MulOptions", "DIV": "DivOptions"}
TYPES = {
    "ADD": "FLOAT32 INT32 INT64 INT16",
    "SUB": "FLOAT32 INT32 INT64",
    "MUL": "FLOAT32 INT32 INT64 INT16 UINT32 COMPLEX64",
    "DIV": "FLOAT32 INT32",
    "FLOOR_DIV": "FLOAT32 INT32 INT16 INT8",
    "FLOOR_MOD": "FLOAT32 INT32 INT64 INT16 INT8",
    "POW": "FLOAT32 INT32",
    "MAXIMUM": "FLOAT32 INT32 INT64 INT16 INT8 UINT8",
    "MINIMUM": "FLOAT32 INT32 INT64 INT16 INT8 UINT8",
    "SQUARED_DIFFERENCE": "FLOAT32 INT32",
    "ATAN2": "FLOAT32 FLOAT64",
    "BITWISE_XOR": "INT8 UINT8 INT16 UINT16 INT32 UINT32",
    "RIGHT_SHIFT": "INT8 UINT8 INT16 UINT16 INT32 UINT32",
    "LESS": "FLOAT32 INT32 INT64",
    "LESS_EQUAL": "FLOAT32 INT32 INT64",
    "GREATER": "FLOAT32 INT32 INT64",
    "GREATER_EQUAL": "FLOAT32 INT32 INT64",
    "EQUAL": "FLOAT32 INT32 INT64 INT16 BOOL STRING",
    "NOT_EQUAL": "FLOAT32 INT32 INT64 BOOL STRING",
    "LOGICAL_AND": "BOOL",
    "LOGICAL_OR": "BOOL",
}
TRUTHS = {"LESS", "LESS_EQUAL", "GREATER", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL", "LOGICAL_AND", "LOGICAL_OR"}


def cases(draw: np.random.Generator) -> Iterator[Case]:
    """By operator, type, shapes and what is fused."""
    for name, types in TYPES.items():
        for kind in types.split():
            a, b = pair(draw, name, kind, (2, 3, 5), (2, 3, 5))
            yield (f"{name} {kind}", *made(name, kind, a, b))
            a, b = pair(draw, name, kind, (2, 3, 5), (2, 3, 5) if name == "ATAN2" else (3, 1))
            yield (f"{name} {kind} stretched", *made(name, kind, a, b, opened={0}))
        kind = types.split()[0]
        a, b = pair(draw, name, kind, (1, 4), (1, 4) if name == "ATAN2" else ())
        yield (f"{name} {kind} constant", *made(name, kind, a, b, fixed={1}))
    for name, table in FUSED.items():
        for activation in (1, 2, 3):
            for kind in ("FLOAT32", "INT32"):
                a, b = pair(draw, name, kind, (3, 4), (3, 4))
                options = (table, {"fusedActivationFunction": activation})
                yield (f"{name} {kind} activation {activation}", *made(name, kind, a, b, options=options))
    yield from edges(draw)


def pair(draw: np.random.Generator, name: str, kind: str, *shapes: tuple[int, ...]) -> list[Any]:
    """Operands that the operator is defined on."""
    values = [numbers(draw, kind, shape, 4 if kind.startswith("INT") and name not in ("ADD", "SUB") else 100)
              for shape in shapes]  # fmt: skip
    if name in ("DIV", "FLOOR_DIV", "FLOOR_MOD"):
        values[1] = np.where(values[1] == 0, np.array(3, values[1].dtype), values[1])
    if name == "POW":
        values[0 if kind == "FLOAT32" else 1] = np.abs(values[0 if kind == "FLOAT32" else 1])
    if name == "RIGHT_SHIFT":
        values = [with_ends(numbers(draw, kind, shapes[0])), np.abs(values[1]) % 8]
    return values


def edges(draw: np.random.Generator) -> Iterator[Case]:
    """At the ends of types."""
    for kind in ("INT32", "INT64"):
        values = with_ends(numbers(draw, kind, (5,)))
        for name in ("ADD", "SUB", "MUL"):
            yield (f"{name} {kind} ends", *made(name, kind, values, values[::-1].copy()))
    values = with_ends(numbers(draw, "FLOAT32", (10,)))
    for name in ("EQUAL", "LESS", "GREATER_EQUAL"):
        yield (f"{name} no numbers", *made(name, "FLOAT32", values[:, None], values))
    yield ("ATAN2 no numbers", *made("ATAN2", "FLOAT32", *np.meshgrid(values[1:], values[1:])))
    yield ("ADD no elements", *made("ADD", "FLOAT32", np.zeros((0, 3), np.float32), np.zeros((1, 3), np.float32)))
    for count in (2, 3):
        given = [numbers(draw, "FLOAT32", (2, 3)) for _ in range(count)]
        yield (f"ADD_N {count}", *single("ADD_N", given, "FLOAT32", ("AddNOptions", {}), ranks=2))
    given = [numbers(draw, "INT32", (2, 3)) for _ in range(3)]
    yield ("ADD_N INT32", *single("ADD_N", given, "INT32", ("AddNOptions", {}), ranks=2, opened={0, 1, 2}))
    for name in ("MAXIMUM", "MINIMUM"):
        for kind in ("INT8", "UINT8", "INT16"):
            a, b = (with_ends(numbers(draw, kind, (2, 5))) for _ in range(2))
            yield (f"{name} {kind} scaled", *single(name, [a, b[::-1].copy()], kind, scaled=True, ranks=2))


def made(name: str, kind: str, a: Any, b: Any, **more: Any) -> tuple[bytes, list[Any]]:
    """The file, and what it is given."""
    out = "BOOL" if name in TRUTHS else kind
    return single(name, [a, b], out, ranks=max(a.ndim, b.ndim), **more)
