"""How fast functions of single elements are: ``python bench/bench_functions.py [ISA] [ELEMENTS]``

Prints elements per nanosecond of native code on one thread, of NumPy, and the ratio, for f32 and f64, as medians of
rounds in which both take turns. The first line, a negation, is what memory allows for an array of so many elements
(16,384 by default, which a cache of the second level holds). Both write into an array that is there already.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from stopwatch import seconds
from tract_llvm.elements.expressions import ELEMENTS
from tract_llvm.isa import chosen
from tract_llvm.testing.elements import ElementRunner

from tract_core.ops import binary, elementwise
from tract_core.plugins import default_registry

ROUNDS = 15
SECONDS = 0.005
_erf = np.frompyfunc(math.erf, 1, 1)

NUMPY: dict[str, Callable[..., Any]] = {
    "Neg": np.negative,
    "Exp": np.exp,
    "Ln": np.log,
    "Sigmoid": lambda x, out: np.divide(1, np.add(1, np.exp(np.negative(x, out=out), out=out), out=out), out=out),
    "Tanh": np.tanh,
    "Erf": lambda x, out: np.copyto(out, _erf(x), casting="unsafe"),
    "Sin": np.sin,
    "Cos": np.cos,
    "Tan": np.tan,
    "Asin": np.arcsin,
    "Acos": np.arccos,
    "Atan": np.arctan,
    "Sinh": np.sinh,
    "Cosh": np.cosh,
    "Asinh": np.arcsinh,
    "Acosh": np.arccosh,
    "Atanh": np.arctanh,
    "Pow": np.power,
    "Rem": np.fmod,
}
RANGES = {"Ln": (0.1, 10.0), "Asin": (-1.0, 1.0), "Acos": (-1.0, 1.0), "Acosh": (1.0, 10.0), "Atanh": (-0.99, 0.99)}
RANGES |= {"Pow": (0.1, 10.0)}
HUGE = {"Sin, huge numbers": ("Sin", (1e9, 1e30)), "Rem, of far apart": ("Rem", (1e-30, 1e30))}


def cases(count: int) -> Iterator[tuple[str, Any, Callable[..., Any], list[Any]]]:
    """Names, operators, what NumPy has for them, and operands in f64."""
    rng = np.random.default_rng(0)
    for name, (kind, (low, high)) in {**{one: (one, RANGES.get(one, (-8.0, 8.0))) for one in NUMPY}, **HUGE}.items():
        op = getattr(elementwise, kind, None) or getattr(binary, kind)
        operands = [rng.uniform(low, high, count) for _ in range(2 if issubclass(op, binary.Binary) else 1)]
        if name in HUGE:
            operands = [np.exp(rng.uniform(np.log(low), np.log(high), count)) for _ in operands]
        yield name, op(), NUMPY[kind], operands


def compiled(op: Any, operands: list[Any], out: Any, native: ElementRunner) -> Callable[[], Any]:
    """The loop that native code makes of an operator."""
    emit = default_registry()[ELEMENTS].find(type(op)).emit
    return native.function(lambda *x: emit(op, *x), operands, out, native.isa.lanes(out.itemsize * 8))


def main() -> None:
    native = ElementRunner(chosen(next((one for one in sys.argv[1:] if not one.isdigit()), "")))
    count = next((int(one) for one in sys.argv[1:] if one.isdigit()), 1 << 14)
    print(f"elements per ns, of {count}   f32   NumPy  ratio      f64   NumPy  ratio")
    np.seterr(all="ignore")
    for name, op, of_numpy, operands in cases(count):
        line = f"{name:24}"
        for dtype in (np.float32, np.float64):
            narrow = [one.astype(dtype) for one in operands]
            out = np.empty_like(narrow[0])
            calls = [compiled(op, narrow, out, native), lambda x=narrow, y=out, f=of_numpy: f(*x, out=y)]
            rounds = [[count / seconds(call, SECONDS) / 1e9 for call in calls] for _ in range(ROUNDS)]
            ours, theirs = (statistics.median(column) for column in zip(*rounds, strict=True))
            ratio = statistics.median(one / other for one, other in rounds)
            line += f"  {ours:7.3f} {theirs:7.3f} {ratio:6.2f}"
        print(line, flush=True)


if __name__ == "__main__":
    main()
