"""Factors with a fixed point: against the arithmetic of whole numbers of Python, which has no width."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import floor
from typing import Any

import numpy as np
import pytest
from tract_tensorflow.tflite.steps import _step  # pyright: ignore[reportPrivateUsage]: what it gives is the point
from tract_tensorflow.tflite_only.fixed_point import FixedPointScale, FixedPointSteps, Rounding
from tract_tensorflow.tflite_only.fixed_point_sum import FixedPointSum, Term

import tract_core as tract
from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel

SIZES = (0, 1, 2, 3, 16, 33)


def up(number: Fraction) -> int:
    """The nearest integer, halves up."""
    return floor(number + Fraction(1, 2))


def away(number: Fraction) -> int:
    """The nearest integer, halves away from zero."""
    return up(number) if number >= 0 else -up(-number)


def twice(x: int, multiplier: int, shift: int) -> int:
    high = min(up(Fraction((x << max(shift, 0)) * multiplier, 2**31)), 2**31 - 1)
    return away(Fraction(high, 2 ** max(-shift, 0)))


def once(x: int, multiplier: int, shift: int) -> int:
    return up(Fraction(x * multiplier, 2 ** (31 - shift)))


def short(x: int, multiplier: int, shift: int) -> int:
    cut = min((multiplier + 2**15) >> 16, 2**15 - 1)
    return up(Fraction(x * cut, 2 ** (15 - shift)))


def run(op: TypedOp, *arrays: Any) -> list[Any]:
    """What an operator makes of inputs, on both runtimes; those behind the first are constants where they are i32."""
    found = []
    for runtime in ("reference", "cpu"):
        model = TypedModel()
        outlets = [
            model.add_const(f"x{slot}", one)
            if slot and one.dtype == np.int32
            else model.add_source(f"x{slot}", TypedFact.of(DatumType.from_numpy(one.dtype), one.shape))
            for slot, one in enumerate(arrays)
        ]
        model.set_outputs(model.wire_node("y", op, outlets))
        given = [one for slot, one in enumerate(arrays) if not slot or one.dtype != np.int32]
        prepared = tract.runtime_for_name(runtime).prepare(tract.Model.from_typed(model))
        found.append(np.asarray(prepared.run(given)[0]))
    return found


def expected(compute: Callable[[int, int, int], int], x: Any, multipliers: Any, shifts: Any) -> Any:
    wide = np.broadcast_arrays(x, multipliers, shifts)
    numbers = [compute(*map(int, one)) for one in zip(*(part.reshape(-1) for part in wide), strict=True)]
    return np.array(numbers, np.int64).reshape(wide[0].shape)


def factors(draw: np.random.Generator, size: int, first: int, last: int) -> tuple[Any, Any]:
    """Multipliers and shifts for each column; a half is among them."""
    multipliers = draw.integers(2**30, 2**31, (1, size)).astype(np.int32)
    multipliers[:, :1] = 2**30
    return multipliers, draw.integers(first, last + 1, (1, size)).astype(np.int32)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("shrinks", [False, True])
def test_twice(size: int, shrinks: bool) -> None:
    draw = np.random.default_rng(size)
    multipliers, shifts = factors(draw, size, -31, -1 if shrinks else 3)
    rows = [-(2**31), 2**31 - 1, -1, 0, 1, -(2**20), 3 * 2**19, -5 * 2**18]
    x = np.vstack([np.full((len(rows), size), [[row] for row in rows]), draw.integers(-(2**27), 2**27, (4, size))])
    if not shrinks:
        x = x // 16  # what is shifted to the left has room for it
    for found in run(FixedPointScale(Rounding.TWICE, shrinks), x.astype(np.int32), multipliers, shifts):
        np.testing.assert_array_equal(found, expected(twice, x, multipliers, shifts))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("rounding", "compute"), [(Rounding.ONCE, once), (Rounding.SHORT, short)])
def test_once(size: int, rounding: Rounding, compute: Callable[[int, int, int], int]) -> None:
    draw = np.random.default_rng(size)
    multipliers, shifts = factors(draw, size, -31, -4)
    x = draw.integers(-(2**32), 2**32, (5, size))
    for found in run(FixedPointScale(rounding), x, multipliers, shifts):
        np.testing.assert_array_equal(found, expected(compute, x, multipliers, shifts))


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(
    ("to", "zero", "low", "high"),
    [
        (DatumType.I8, -128, -128, 127),
        (DatumType.I8, 5, -128, 127),
        (DatumType.U8, 3, 3, 200),
        (DatumType.U8, 9, 0, 255),
    ],
)
def test_steps(size: int, to: DatumType, zero: int, low: int, high: int) -> None:
    draw = np.random.default_rng(size)
    multipliers, shifts = factors(draw, size, -22, -1)
    ends = np.array([[2**29 - 1], [1 - 2**29], [-1], [0], [1]]) * np.ones((1, size), np.int64)
    ties = (2 * draw.integers(-9, 10, (6, size)) + 1) << (-shifts.astype(np.int64))
    x = np.vstack([ends, ties, draw.integers(-(2**13), 2**13, (9, size))]).clip(1 - 2**29, 2**29 - 1)
    wanted = np.clip(expected(twice, x, multipliers, shifts) + zero, low, high)
    for found in run(FixedPointSteps(zero, low, high, to), x.astype(np.int32), multipliers, shifts):
        assert found.dtype == to.numpy
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("second", [Term(3, -1, 2**30, 0), Term(-7, 1, 1518500250, 2)])
def test_sum(size: int, second: Term) -> None:
    draw = np.random.default_rng(size)
    first, steps = Term(-20, 1, 2**30, 0), FixedPointSteps(11, -128, 127, DatumType.I8)
    op = FixedPointSum((first, second), 20, 1288490189, -18, steps)
    a, b = (draw.integers(-128, 128, (4, size)).astype(np.int8) for _ in range(2))
    parts = [
        expected(twice, (x.astype(np.int64) - term.zero) * (term.sign << 20), np.array(term.multiplier), -term.right)
        for x, term in ((a, first), (b, second))
    ]
    wanted = np.clip(expected(twice, sum(parts), np.array(op.multiplier), np.array(op.shift)) + 11, -128, 127)
    for found in run(op, a, b):
        np.testing.assert_array_equal(found, wanted)


def test_types_that_do_not_fit() -> None:
    wide, whole = (TypedFact.of(kind, (2,)) for kind in (DatumType.I64, DatumType.I32))
    with pytest.raises(FactError, match="FixedPointScale wants i32, i32 and i32, found 2,i64"):
        FixedPointScale().output_facts([wide, whole, whole])
    with pytest.raises(FactError, match="FixedPointScale wants i64, i32 and i32, found 2,i32"):
        FixedPointScale(Rounding.SHORT).output_facts([whole, whole, whole])
    steps = FixedPointSteps(0, -128, 127, DatumType.I8)
    with pytest.raises(FactError, match="FixedPointSteps wants i32, found 2,i64"):
        steps.output_facts([wide, whole, whole])
    half = Term(0, 1, 2**30, 0)
    total = FixedPointSum((half, half), 20, 2**30, -18, steps)
    with pytest.raises(FactError, match="FixedPointSum wants integers of 8 bits, found 2,i32 and 2,i32"):
        total.output_facts([whole, whole])


@pytest.mark.parametrize(("scale", "wanted"), [(1e-40, (-3, 127)), (0.5, (-3, 9)), (1e30, (-3, -3))])
def test_ends_of_an_activation_where_no_float_holds_the_quotient(scale: float, wanted: tuple[int, int]) -> None:
    """RELU6 in steps of a scale around -3, in 8 bits."""
    assert (max(-128, _step(0.0, scale, -3)), min(127, _step(6.0, scale, -3))) == wanted
