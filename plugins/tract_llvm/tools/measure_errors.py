"""The largest errors over all f32 numbers: ``python plugins/tract_llvm/tools/measure_errors.py ISA [FUNCTION ...]``

For each name (all of them where none is given) prints the largest error in units of the last place, and where it is.
What is right is said by the same function of f64, which tests compare with mpmath: so all is done by native code.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tract_llvm.functions.floats import at_most, magnitude
from tract_llvm.isa import chosen
from tract_llvm.language.function import where
from tract_llvm.language.types import F32, F64, U32
from tract_llvm.language.values import Value

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from test_functions import FUNCTIONS
from tract_llvm.testing.elements import ElementRunner

CHUNK = 1 << 16
GREATEST, BEYOND = float(np.finfo(np.float32).max), 2.0**128


def off(function: Callable[[Value], Value], bits: Value) -> Value:
    """How far the function of a number, given by its bits, is off. What is beyond all numbers counts as 2**128."""
    x = bits.bits(F32)
    convert = x.function.convert
    found, wanted = convert(function(x), F64), function(convert(x, F64))
    nearest = magnitude(convert(at_most(magnitude(wanted), GREATEST), F32))
    below = where(nearest.equals(GREATEST), nearest.bits(U32) - 1, nearest.bits(U32))
    unit = convert((below + 1).bits(F32), F64) - convert(below.bits(F32), F64)
    apart = magnitude(_ended(found) - _ended(wanted)) / unit
    one, other = found.differs(found), wanted.differs(wanted)
    return convert(where(one & other, apart.like(0), where(one ^ other, apart.like(np.inf), apart)), F32)


def _ended(x: Value) -> Value:
    return where(x > BEYOND, x.like(BEYOND), where(x < -BEYOND, x.like(-BEYOND), x))


def worst(isa: str, name: str) -> tuple[float, np.float32]:
    """The largest error, and the number that it is found for."""
    bits, found = np.arange(CHUNK, dtype=np.uint32), np.empty(CHUNK, np.float32)
    run = ElementRunner(chosen(isa)).function(lambda x: off(FUNCTIONS[name][0], x), [bits], found, 16)
    largest, place = 0.0, np.float32(0)
    for _ in range(0, 1 << 32, CHUNK):
        run()
        here = int(found.argmax())
        if found[here] > largest:
            largest, place = float(found[here]), bits.view(np.float32)[here]
        bits += np.uint32(CHUNK)
    return largest, place


def main() -> None:
    """Print a line for each function."""
    for name in sys.argv[2:] or FUNCTIONS:
        largest, place = worst(sys.argv[1], name)
        print(f"{sys.argv[1]} {name:8} {largest:.3f} at {place!r}", flush=True)


if __name__ == "__main__":
    main()
