"""Instruction sets beside each other: ``python bench/bench_sets.py [SET ...] [--only WORD ...]``, by default of x86.

The networks of the bench and more of them in eight bits, one thread. Each line: milliseconds with each set, the medians
of rounds in turn, and how many times faster that is than with the set before. Outputs must agree within
`Workload.tolerance`, which is 0 for the networks added here. ``vnni256`` is `avxvnni` with its instructions as
AVX-512 encodes them: the same ones, for processors that have them only so.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from stopwatch import seconds
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import ISAS, Isa, chosen
from workloads import WORKLOADS, Workload

from networks import quantized, vision
from tract_core.frozen import replaced

ROUNDS = 5
SECONDS = 0.2

MORE = tuple(
    Workload(f"{name} int8", partial(quantized.static, build), exact=False, tolerance=0)
    for name, build in (
        ("MobileNetV2", vision.mobilenet_v2),
        ("VGG-style", vision.vgg),
        ("EfficientNet", vision.efficientnet),
        ("U-Net", vision.unet),
    )
)


def set_named(name: str) -> Isa:
    """An instruction set. Raises Unsupported where this processor lacks it."""
    if name != "vnni256":
        return chosen(name)
    vnni = next(one for one in ISAS if one.name == "avxvnni")
    features = "+avx512f,+avx512vl,+avx512vnni,+prefer-256-bit,+fast-dpwssd"
    return replaced(vnni, features=features, needs=chosen("avx512vnni").needs)


def runs_of(workload: Workload, sets: Sequence[Isa]) -> list[Callable[[], Sequence[Any]]]:
    """What runs the network once, for each set."""
    model, given = workload.loaded(workload.build())
    return [partial(CpuPlan(model, one, 1).spawn().run, given) for one in sets]


def check(workload: Workload, runs: Sequence[Callable[[], Sequence[Any]]]) -> None:
    """Sets give the same. Raises AssertionError where they do not."""
    wanted, *others = ([np.array(one).astype("f8") for one in run()] for run in runs)
    for found in others:
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=workload.tolerance * np.abs(other).max())


def main() -> None:
    parser = argparse.ArgumentParser(description="Compare instruction sets.")
    parser.add_argument("sets", nargs="*", default=["sse2", "avx2", chosen("").name])
    parser.add_argument("--only", nargs="+", default=[""], metavar="WORD")
    asked = parser.parse_args()
    sets = [set_named(name) for name in asked.sets]
    for workload in (*WORKLOADS, *MORE):
        if not any(word in workload.name for word in asked.only):
            continue
        runs = runs_of(workload, sets)
        check(workload, runs)
        rounds = [[seconds(run, SECONDS) for run in runs] for _ in range(ROUNDS)]
        times = [statistics.median(one) * 1e3 for one in zip(*rounds, strict=True)]
        faster = [statistics.median(one[n] / one[n + 1] for one in rounds) for n in range(len(sets) - 1)]
        text = "  ".join(f"{name} {time:.4g}" for name, time in zip(asked.sets, times, strict=True))
        print(f"{workload.name:18} {text}  ({', '.join(f'{one:.2f}' for one in faster)})", flush=True)


if __name__ == "__main__":
    main()
