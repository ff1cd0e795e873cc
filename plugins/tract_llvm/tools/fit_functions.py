"""Fit the polynomials of `tract_llvm.functions`: ``python plugins/tract_llvm/tools/fit_functions.py``

Writes ``coefficients.py`` there. Each polynomial is the one of least degree whose largest weighted error stays below
the bound of its type; it is found by Remez's exchange, on a grid that is denser towards the ends, with numbers of 50
digits.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import asin, atan, cos, erf, erfc, exp, log, lu_solve, matrix, mp, mpf, pi, sin, sinh, sqrt

mp.dps = 50
POINTS = 600
DIGIT, DIGITS, SCALE = 26, 45, 120
MOST_EXCHANGES = 30
HERE = Path(__file__).resolve().parents[1]
TARGET = HERE / "tract_llvm" / "functions" / "coefficients.py"

F32, F64 = ("F32", 2.0**-27), ("F64", 2.0**-57)
NARROW = {"F32": np.float32, "F64": np.float64}


@dataclass(frozen=True)
class Fit:
    """``weight(x) * (wanted(x) - polynomial(x))`` is kept small between ``low`` and ``high``."""

    name: str
    text: str
    wanted: Callable[[Any], Any]
    weight: Callable[[Any], Any]
    low: Any
    high: Any
    bounds: tuple[tuple[str, float], ...] = (F32, F64)


def of_square(odd: Callable[[Any], Any], first: Any, power: int) -> Callable[[Any], Any]:
    """What is left of an odd function behind its first term, by a power of x, as a function of the square of x."""
    return lambda z: (odd(sqrt(z)) - first * sqrt(z)) / sqrt(z) ** power


def twice_atanh(s: Any) -> Any:
    return log((1 + s) / (1 - s))


def below(x: Any) -> Any:
    """The share of normally distributed numbers."""
    return erfc(-x / sqrt(mpf(2))) / 2


THIRD = mpf(2) / 3
LOG_END = (3 - 2 * sqrt(mpf(2))) ** 2 * mpf("1.001")
QUARTER = (pi / 4) ** 2 * mpf("1.001")
EIGHTH = (sqrt(mpf(2)) - 1) ** 2 * mpf("1.001")
ERF_SPLIT = mpf(1)

FITS = (
    Fit("EXP", "exp(r) = 1 + r + r*r * EXP(r), |r| <= log(2)/2",
        lambda r: (exp(r) - 1 - r) / r**2, abs, -log(2) / 2 * mpf("1.01"), log(2) / 2 * mpf("1.01")),
    Fit("LOG", "log((1+s) / (1-s)) = 2*s + s*z * LOG(z), z = s*s, |s| <= 3 - 2*sqrt(2)",
        of_square(twice_atanh, 2, 3), lambda z: z / 2, mpf(0), LOG_END),
    Fit("LOG_FIFTH", "log((1+s) / (1-s)) = 2*s + 2/3*s*z + s*z*z * LOG_FIFTH(z), as before",
        lambda z: (twice_atanh(sqrt(z)) - 2 * sqrt(z) - THIRD * sqrt(z) ** 3) / sqrt(z) ** 5, lambda z: z * z / 2,
        mpf(0), LOG_END, (("F64", 2.0**-68),)),
    Fit("SIN", "sin(r) = r + r*z * SIN(z), z = r*r, |r| <= pi/4", of_square(sin, 1, 3), lambda z: z, mpf(0), QUARTER),
    Fit("COS", "cos(r) = 1 - z/2 + z*z * COS(z), z = r*r, |r| <= pi/4",
        lambda z: (cos(sqrt(z)) - 1 + z / 2) / z**2, lambda z: z * z, mpf(0), QUARTER),
    Fit("ATAN", "atan(t) = t + t*z * ATAN(z), z = t*t, |t| <= tan(pi/8)",
        of_square(atan, 1, 3), lambda z: z, mpf(0), EIGHTH),
    Fit("ASIN", "asin(x) = x + x*z * ASIN(z), z = x*x <= 1/4",
        of_square(asin, 1, 3), lambda z: z, mpf(0), mpf("0.2501")),
    Fit("SINH", "sinh(x) = x + x*z * SINH(z), z = x*x <= 1",
        of_square(sinh, 1, 3), lambda z: z, mpf(0), mpf("1.001")),
    Fit("ERF", "erf(x) = x + x * ERF(z), z = x*x <= 1", of_square(erf, 1, 1), lambda _z: mpf(1), mpf(0), ERF_SPLIT),
    Fit("ERFC", "erfc(x) = exp(-x * ERFC(x)), 1 <= x, up to where erf is 1",
        lambda x: -log(erfc(x)) / x, lambda x: x * erfc(x), ERF_SPLIT, mpf("4.0"), (F32,)),
    Fit("ERFC", "erfc(x) = exp(-x * ERFC(x)), 1 <= x, up to where erf is 1",
        lambda x: -log(erfc(x)) / x, lambda x: x * erfc(x), ERF_SPLIT, mpf("6.0"), (F64,)),
    Fit("TAIL", "the share of normally distributed numbers below -x: exp(TAIL(x)), 0 <= x, which falls on and on",
        lambda x: log(below(-x)), lambda x: below(-x), mpf(0), mpf("5.5"), (("F32", 2.0**-26.9),)),
    Fit("TAIL", "the share of normally distributed numbers below -x: exp(TAIL(x)), 0 <= x, which falls on and on",
        lambda x: log(below(-x)), lambda x: below(-x), mpf(0), mpf("8.5"), (("F64", 2.0**-55.9),)),
)  # fmt: skip


def fitted(fit: Fit, bound: float) -> tuple[list[Any], Any]:
    """The coefficients, the constant one first, and the largest weighted error."""
    grid = [fit.low + (fit.high - fit.low) * (1 - cos(pi * (k + mpf("0.5")) / POINTS)) / 2 for k in range(POINTS)]
    wanted, weight = [fit.wanted(x) for x in grid], [fit.weight(x) for x in grid]
    for count in range(1, 40):
        found, error = exchanged(grid, wanted, weight, count)
        if error < bound:
            return found, error
    raise ValueError(f"{fit.name}: no polynomial of up to 40 terms stays below {bound}")


def exchanged(grid: list[Any], wanted: list[Any], weight: list[Any], count: int) -> tuple[list[Any], Any]:
    """The polynomial of so many terms whose error is as large at one point more, with changing signs."""
    chosen = [round((len(grid) - 1) * k / count) for k in range(count + 1)]
    found, worst = [], mpf(0)
    for _ in range(MOST_EXCHANGES):
        rows = [[weight[p] * grid[p] ** n for n in range(count)] + [(-1) ** k] for k, p in enumerate(chosen)]
        solved = lu_solve(matrix(rows), matrix([weight[p] * wanted[p] for p in chosen]))
        found = [solved[n] for n in range(count)]
        errors = [w * (f - value(found, x)) for x, f, w in zip(grid, wanted, weight, strict=True)]
        worst = max(map(abs, errors))
        if worst < abs(solved[count]) * mpf("1.02"):
            break
        chosen = alternating(errors, count + 1) or chosen
    return found, worst


def alternating(errors: list[Any], count: int) -> list[int]:
    """So many points at which the error is largest, with changing signs; none where it does not change so often."""
    peaks: list[int] = []
    for place, error in enumerate(errors):
        if peaks and (errors[peaks[-1]] > 0) == (error > 0):
            if abs(error) > abs(errors[peaks[-1]]):
                peaks[-1] = place
        else:
            peaks.append(place)
    while len(peaks) > count:
        first, last = abs(errors[peaks[0]]), abs(errors[peaks[-1]])
        peaks = peaks[1:] if first < last else peaks[:-1]
    return peaks if len(peaks) == count else []


def value(coefficients: list[Any], x: Any) -> Any:
    total = mpf(0)
    for one in reversed(coefficients):
        total = total * x + one
    return total


def parts(number: Any, bits: Sequence[int], type_: str) -> str:
    """A number as a sum: so many bits of it each, then the rest as the type holds it."""
    found: list[Any] = []
    for one in bits:
        scale = mpf(2) ** (one - 1 - int(mp.floor(log(abs(number), 2))))
        found.append(mp.nint(number * scale) / scale)
        number -= found[-1]
    return ", ".join(str(NARROW[type_](float(one))) for one in [*found, number])


def digits_of_two_over_pi() -> str:
    """2/pi as a sum of numbers of `DIGIT` bits each, one behind the other, times 2**`SCALE` lest they be subnormal."""
    with mp.workprec(DIGIT * DIGITS + 64):
        rest, found = mpf(2) / pi, []
        for place in range(1, DIGITS + 1):
            digit = int(mp.floor(rest * 2**DIGIT))
            rest = rest * 2**DIGIT - digit
            found.append(float(mpf(digit) * mpf(2) ** (SCALE - DIGIT * place)))
    return ", ".join(map(str, found))


def constants() -> list[str]:
    """Numbers in parts, the first of them short, so that its products with small integers are exact."""
    half_pi = pi / 2
    return [
        f"LN2: Final[Table] = {{F32: ({parts(log(2), [15], 'F32')}), F64: ({parts(log(2), [40], 'F64')})}}",
        '"""log(2) in two parts; of the first, multiples by exponents are exact."""',
        "",
        f"QUARTER_TURN: Final = ({parts(half_pi, [33, 33, 33], 'F64')})",
        '"""pi/2 in four parts; of all but the last, multiples of up to 2**20 are exact."""',
        "",
        f"HALF_PI: Final[Table] = {{F32: ({parts(half_pi, [24], 'F32')}), F64: ({parts(half_pi, [53], 'F64')})}}",
        '"""pi/2 in two parts."""',
        "",
        f"THIRDS: Final = ({parts(mpf(2) / 3, [53], 'F64')})",
        '"""2/3 in two parts."""',
        "",
        f"DIGITS_SCALE: Final = {SCALE}",
        f"DIGITS: Final = ({digits_of_two_over_pi()})",
        f'"""2/pi, times 2**DIGITS_SCALE, as a sum of numbers of {DIGIT} bits each."""',
        "",
    ]


def main() -> None:
    """Write the coefficients."""
    tables: dict[str, list[str]] = {}
    texts: dict[str, str] = {}
    for fit in FITS:
        for type_, bound in fit.bounds:
            coefficients, error = fitted(fit, bound)
            numbers = ", ".join(str(NARROW[type_](float(one))) for one in coefficients)
            tables.setdefault(fit.name, []).append(f"{type_}: ({numbers},),  # within {float(error):.1e}")
            texts[fit.name] = fit.text
    lines = ['"""Polynomials, the constant coefficient first. Written by ``tools/fit_functions.py``."""', ""]
    lines += ["from __future__ import annotations", "", "from typing import Final", ""]
    lines += ["from tract_llvm.language.types import F32, F64, ElementType", ""]
    lines += ["Table = dict[ElementType, tuple[float, ...]]", ""]
    for name, rows in tables.items():
        lines += [f"{name}: Final[Table] = {{", *(f"    {row}" for row in rows), "}", f'"""{texts[name]}"""', ""]
    TARGET.write_text("\n".join([*lines, *constants()]))
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", str(TARGET)], check=True)


if __name__ == "__main__":
    main()
