"""Functions of real numbers, against NumPy with more digits, and against mpmath."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest
from tract_llvm.elements.expressions import ELEMENTS
from tract_llvm.functions import (
    erf,
    exponential,
    hyperbolic,
    inverse,
    logarithm,
    trigonometric,
)
from tract_llvm.objects.target import assembly
from ulps import in_parts, numbers, ulps, with_many_digits

from tract_core.ops.binary import FloorRem, Pow, Rem
from tract_core.ops.elementwise import Ceil, Floor, Round, RoundHalfToEven
from tract_core.plugins import default_registry

Function = Callable[..., Any]

_erf = np.frompyfunc(math.erf, 1, 1)


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + mpmath.exp(-x))


FUNCTIONS: dict[str, tuple[Function, Function, Function, float]] = {
    "exp": (exponential.exp, np.exp, mpmath.exp, 1),
    "log": (logarithm.log, np.log, mpmath.log, 0.85),
    "sigmoid": (exponential.sigmoid, lambda x: 1 / (1 + np.exp(-x)), _sigmoid, 2.5),
    "tanh": (exponential.tanh, np.tanh, mpmath.tanh, 2.5),
    "erf": (erf.erf, lambda x: _erf(x).astype(np.float64), mpmath.erf, 1.5),
    "sin": (trigonometric.sin, np.sin, mpmath.sin, 1.6),
    "cos": (trigonometric.cos, np.cos, mpmath.cos, 1.6),
    "tan": (trigonometric.tan, np.tan, mpmath.tan, 3.3),
    "asin": (inverse.asin, np.arcsin, mpmath.asin, 1.7),
    "acos": (inverse.acos, np.arccos, mpmath.acos, 1.3),
    "atan": (inverse.atan, np.arctan, mpmath.atan, 1.9),
    "sinh": (hyperbolic.sinh, np.sinh, mpmath.sinh, 1.7),
    "cosh": (hyperbolic.cosh, np.cosh, mpmath.cosh, 1.5),
    "asinh": (hyperbolic.asinh, np.arcsinh, mpmath.asinh, 1.9),
    "acosh": (hyperbolic.acosh, np.arccosh, mpmath.acosh, 2.5),
    "atanh": (hyperbolic.atanh, np.arctanh, mpmath.atanh, 2.1),
}
"""What is tested, what NumPy and mpmath have for it, and how many units of the last place it may be off."""


@cache
def of_f32(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    x = numbers(np.float32)
    with np.errstate(all="ignore"):
        return x, *in_parts(FUNCTIONS[name][1](x.astype(np.float64)), np.float32)


@cache
def of_f64(name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fewer numbers, as mpmath takes its time; NumPy where the result is none."""
    x = numbers(np.float64, 20)
    x = np.concatenate([x[:-12288:37], x[-12288:]])
    x = x[: x.size // 64 * 64]
    with np.errstate(all="ignore"):
        high, low = FUNCTIONS[name][1](x), np.zeros_like(x)
    real = np.isfinite(x) & ~np.isnan(high) & (x != 0)
    high[real], low[real] = with_many_digits(FUNCTIONS[name][2], x[real])
    return x, high, low


@pytest.mark.parametrize("lanes", [0, 16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_f32_is_as_near_as_it_says(elements, name, lanes) -> None:
    x, wanted, missing = of_f32(name)
    off = ulps(elements(FUNCTIONS[name][0], x, "f4", lanes), wanted, missing)
    worst = off.argmax()
    assert off[worst] <= FUNCTIONS[name][3], f"{name}({x[worst]!r}) is {off[worst]} units off {wanted[worst]!r}"


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_f64_is_as_near_as_it_says(elements, name, lanes) -> None:
    x, wanted, missing = of_f64(name)
    off = ulps(elements(FUNCTIONS[name][0], x, "f8", lanes), wanted, missing)
    worst = off.argmax()
    assert off[worst] <= FUNCTIONS[name][3], f"{name}({x[worst]!r}) is {off[worst]} units off {wanted[worst]!r}"


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_normal_distribution_is_as_near_as_units_of_one(elements, dtype) -> None:
    """It falls to 0 on the one side, and ends at 1 on the other."""
    ends = [0.0, -0.0, 5.5, 6.0, 8.5, 9.0, 12.0, 14.5, 40.0, 1e3, 1e15, 1e30, np.inf]
    x = np.concatenate([np.linspace(-9, 9, 4096 - 64), ends, np.negative(ends), [np.nan]])
    x = np.resize(x, 4096).astype(dtype)
    found = elements(erf.normal, x, dtype, elements.isa.lanes(8 * x.itemsize))
    wanted = np.array([math.erfc(-one / math.sqrt(2)) / 2 for one in x.astype("f8")])
    np.testing.assert_allclose(found, wanted, rtol=0, atol=np.finfo(dtype).eps)
    assert np.isnan(found[np.isnan(x)]).all()
    assert (found[x < -38] == 0).all()
    assert (found[x > 9] == 1).all()


@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_nothing_is_called(elements, dtype) -> None:
    """Vectors of whatever cannot be done by instructions would be taken apart, and given to the C library."""
    rows = default_registry()[ELEMENTS]
    x, lanes = np.ones(64, dtype), elements.isa.lanes(np.dtype(dtype).itemsize * 8)
    functions = {name: lambda *x, emit=entry[0]: emit(*x) for name, entry in FUNCTIONS.items()}
    for op in [Pow(), Rem(), FloorRem(), Floor(), Ceil(), Round(), RoundHalfToEven()]:
        functions[op.name] = lambda *x, op=op: rows.find(type(op)).emit(op, *x)
    for name, emit in functions.items():
        count = 2 if name in {"Pow", "Rem", "FloorRem"} else 1
        elements(emit, (x,) * count, dtype, lanes)
        code = assembly(elements.text, elements.isa)
        assert not re.search(r"^\s(callq?|bl)\s", code, re.MULTILINE), f"{name} calls something"
