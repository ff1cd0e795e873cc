"""Running sums, products and extremes over signals of every type, with whatever may be in them, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import ml_dtypes
import numpy as np
import pytest
from stream_runs import chunked_outputs, pulsed, streamed_outputs

from tract_core.data import DatumType
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.cumsum import CumLogSumExp, CumMax, CumMin, CumProd, CumSum, Running
from tract_core.ops.slice import wire_slice
from tract_core.ops.wiring import wire_one
from tract_core.testing.tolerance import Tolerance, mismatch, rounding_of

Array = np.ndarray[Any, Any]

JOINED: Final[dict[type[Running], tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]]] = {
    CumSum: (np.add, lambda _: 0),
    CumProd: (np.multiply, lambda _: 1),
    CumMax: (np.maximum, lambda ends: ends.min),
    CumMin: (np.minimum, lambda ends: ends.max),
    CumLogSumExp: (np.logaddexp, lambda ends: ends.min),
}
FLOATS: Final = {"f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64}
INTEGERS: Final = {f"{kind}{bits}": np.dtype(f"{kind}{bits // 8}") for kind in "iu" for bits in (8, 16, 32, 64)}
TYPES: Final = {**FLOATS, **INTEGERS}
KINDS: Final = [(op, fact) for op in JOINED for fact in TYPES if op is not CumLogSumExp or fact in FLOATS]
LENGTHS: Final = (0, 1, 2, 3, 4, 5, 9)


class FloatEnds:
    """What `np.iinfo` is for integers: no float is below or above."""

    min = -np.inf
    max = np.inf


def ends_of(fact: str) -> Any:
    return FloatEnds if fact in FLOATS else np.iinfo(TYPES[fact])


def expected(op: Running, fact: str, x: Array) -> Array:
    """Element after element, in the type, or in f32 for what is narrower; -0.0 is below 0.0."""
    join, first = JOINED[type(op)]
    wide = np.float32 if fact in ("f16", "bf16") else TYPES[fact]
    found, total = np.empty(x.shape, wide), np.full(x.shape[1:], first(ends_of(fact)), wide)
    for place in range(len(x)):
        before, element = total, x[place].astype(wide)
        total = np.asarray(join(total, element)).astype(wide)
        if type(op) in (CumMax, CumMin) and fact in FLOATS:
            negative = (np.logical_and if type(op) is CumMax else np.logical_or)(
                np.signbit(before), np.signbit(element)
            )
            total = np.where(total == 0, np.where(negative, -0.0, 0.0), total).astype(wide)
        found[place] = before if op.exclusive else total
    return found.astype(TYPES[fact])


def signal(op: type[Running], fact: str, length: int) -> Array:
    """Two signals side by side: numbers, and the ends of the type in the begin, the middle and the end."""
    random = np.random.default_rng(length)
    if fact in FLOATS:
        x = random.uniform(-2, 2, (length, 8))
        ends = [np.nan, np.inf, -np.inf, -0.0, 0.0, -0.0]
    else:
        limits = np.iinfo(TYPES[fact])
        x = random.integers(max(-3, limits.min), 4, (length, 8))
        ends = [limits.min, limits.max, limits.max, limits.min, 0, 1]
        x = x.astype(TYPES[fact])
    x = x.astype(TYPES[fact])
    for column, end in enumerate(ends):
        place = (0, length // 2, length - 1, 0, 0, slice(None))[column]
        if length:
            x[place, column] = end
    if length > 1 and fact in FLOATS:
        x[length // 2 :, 3] = 0.0  # after -0.0
        x[0, 4], x[1, 4] = 0.0, -0.0
    return x


def model_of(op: Running, fact: str, *, late: bool) -> TypedModel:
    """``late``: of what comes behind the first two positions, so that the stream has a delay."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"S,8,{fact}", model.symbols))
    if late:
        x = wire_slice(model, "late", x, 0, start=2, end=None)
    model.set_outputs([wire_one(model, "y", op, x)])
    return model.declutter()


def agree(found: Array, wanted: Array, op: Running, fact: str) -> None:
    kind = DatumType.from_numpy(wanted.dtype)
    exact = not kind.is_float() or type(op) in (CumMax, CumMin)
    problem = mismatch(found, wanted, Tolerance(0, 0) if exact else rounding_of(kind))
    assert problem is None, (op, fact, problem)
    if type(op) in (CumMax, CumMin) and kind.is_float():
        numbers = ~np.isnan(wanted.astype("f8"))
        np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(wanted)[numbers])


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize(("kind", "fact"), KINDS)
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_every_running_value_goes_on_from_pulse_to_pulse(
    kind: type[Running], fact: str, exclusive: bool, runtime: str
) -> None:
    op = kind(0, exclusive)
    for late in (False, True):
        streaming = pulsed(model_of(op, fact, late=late), 2)
        for length in LENGTHS[2 * late :]:
            x = signal(kind, fact, length)
            (found,) = streamed_outputs(streaming, [x], runtime)
            agree(found, expected(op, fact, x[2:] if late else x), op, fact)


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize(("kind", "fact"), [(CumMax, "f32"), (CumMin, "i8"), (CumLogSumExp, "bf16"), (CumSum, "u64")])
@pytest.mark.filterwarnings("ignore:.*encountered:RuntimeWarning")
def test_pulses_of_any_length_too(kind: type[Running], fact: str, runtime: str) -> None:
    op = kind(0)
    streaming = pulsed(model_of(op, fact, late=False), "P")
    for length in (1, 5, 9):
        x = signal(kind, fact, length)
        (found,) = chunked_outputs(streaming, [x], 3, runtime)
        agree(found, expected(op, fact, x), op, fact)
