"""How fast the CPU runtime transforms batches of frames, beside numpy.fft.

Run from the root of the repository: ``python bench/bench_fft.py [INSTRUCTION SET]``. Prints microseconds of this
project on one thread, where it knows the length and where that is symbolic, and of NumPy, medians of rounds in which
all take turns; then how many times as fast this project is. NumPy is given complex numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from statistics import median

import numpy as np
from stopwatch import seconds
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import chosen

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.fft import Fft

_ROUNDS = 15
_LONG_ENOUGH_S = 0.005

SIZES = [(100, 256), (100, 400), (100, 512), (100, 1024), (100, 1009), (100, 77), (1, 256), (1, 1024), (1, 65536)]
"""Frames, and the length of each."""


def _ours(name: str, fact: str, x: np.ndarray) -> Callable[[], object]:
    model = TypedModel()
    model.set_outputs(model.wire_node("fft", Fft(1), [model.add_source("x", parse_typed_fact(fact, model.symbols))]))
    state = CpuPlan(model, chosen(name)).spawn()
    given, out = [x], state.run([x])
    return lambda: state.run(given, out)


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else ""
    print(f"{'frames x length':>16} {'ours':>8} {'symbolic':>8} {'NumPy':>8} {'x NumPy':>8} {'symbolic':>8}")
    for frames, length in SIZES:
        x = np.random.default_rng(0).standard_normal((frames, length, 2)).astype("f4")
        numbers = x.view("c8")[..., 0]
        runs = [_ours(name, fact, x) for fact in (f"{frames},{length},2,f32", "B,S,2,f32")]
        rounds = [
            [seconds(run, _LONG_ENOUGH_S) for run in (*runs, lambda numbers=numbers: np.fft.fft(numbers))]
            for _ in range(_ROUNDS)
        ]
        times = [median(one) * 1e6 for one in zip(*rounds, strict=True)]
        ratios = [median(one[2] / one[k] for one in rounds) for k in range(2)]
        print(f"{frames:>8} x {length:<5} {' '.join(f'{one:8.1f}' for one in [*times, *ratios])}", flush=True)


if __name__ == "__main__":
    main()
