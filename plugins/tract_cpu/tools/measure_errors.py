"""The largest errors over all f32 numbers: ``python plugins/tract_cpu/tools/measure_errors.py ISA [FUNCTION ...]``

For each name (all of them where none is given) prints the largest error in units of the last place, and where it is.
NumPy in f64 says what is right, SciPy for erf. Of odd and even functions, only numbers above zero are gone through: a
test compares signs. Takes a minute or two per function.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from scipy.special import erf
from tract_cpu.isa import chosen

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from element_functions import Elements
from test_functions import FUNCTIONS

CHUNK = 1 << 16
ALL = 1 << 32
SIGNED = frozenset({"exp", "sigmoid", "acos"})
EXACT = {"erf": erf}


def worst(isa: str, name: str) -> tuple[float, float]:
    """The largest error, and the number that it is found for."""
    x, found = np.empty(CHUNK, np.float32), np.empty(CHUNK, np.float32)
    run = Elements(chosen(isa)).function(FUNCTIONS[name][0], [x], found, 16)
    exact = EXACT.get(name, FUNCTIONS[name][1])
    largest, place = 0.0, 0.0
    for start in range(0, ALL if name in SIGNED else ALL // 2, CHUNK):
        x.view(np.uint32)[:] = np.arange(start, start + CHUNK, dtype=np.uint64)
        run()
        wanted = exact(x.astype(np.float64))
        usual = np.isfinite(wanted) & (np.abs(wanted) < np.finfo(np.float32).max) & np.isfinite(found)
        unit = np.spacing(np.abs(wanted).astype(np.float32)).astype(np.float64)
        off = np.where(usual, np.abs(found - wanted) / unit, 0)
        same = usual | (found == wanted.astype(np.float32)) | (np.isnan(found) & np.isnan(wanted))
        off[~same] = np.inf
        here = int(off.argmax())
        if off[here] > largest:
            largest, place = float(off[here]), float(x[here])
    return largest, place


def main() -> None:
    """Print a line for each function."""
    np.seterr(all="ignore")
    for name in sys.argv[2:] or FUNCTIONS:
        largest, place = worst(sys.argv[1], name)
        print(f"{sys.argv[1]} {name:8} {largest:.3f} at {np.float32(place)!r}", flush=True)


if __name__ == "__main__":
    main()
