"""Products of f32 matrices on the CPU runtime, beside what the machine can do: ``python bench/bench_products.py``

    python bench/bench_products.py [--threads N] [--seconds S] [WORD ...]

Prints GFLOP/s, and how large a share that is of the multiply-adds of registers alone, measured between the products;
and GB/s of the right matrix, as a share of what reading as many bytes again and again reaches. Shares are medians of
rounds, in each of which the ceilings and the product take turns. Beside them: the largest difference from NumPy in
float64, relative to the largest result. Only shapes whose names contain one of the words are measured.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter

import numpy as np
from tract_cpu.ceilings import Meter
from tract_cpu.plan import CpuPlan
from tract_llvm.isa import of_this_machine

from tract_core.data import DatumType
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.einsum import EinSum


@dataclass(frozen=True)
class Case:
    """``weights``: whether the right matrix is part of the model."""

    name: str
    rows: int
    depth: int
    columns: int
    batch: int = 1
    weights: bool = True


CASES = [
    *(Case(f"{size} cubed", size, size, size) for size in (64, 128, 256, 512, 1024)),
    *(Case("128 tokens", 128, *size) for size in ((768, 768), (768, 3072), (3072, 768))),
    *(Case("197 patches", 197, *size) for size in ((192, 192), (192, 768), (768, 192))),
    *(Case("150 frames", 150, *size) for size in ((256, 256), (256, 1024), (1024, 256))),
    *(Case("1024 states", 1024, *size) for size in ((64, 256), (256, 256), (256, 8))),
    *(Case("32 states", 32, *size) for size in ((64, 256), (256, 256))),
    *(Case("few rows", rows, 512, 1408) for rows in (1, 2, 4, 8, 13)),
    Case("one row, wide", 1, 512, 8192),
    Case("one row, memory", 1, 4096, 16384),
    Case("four rows, memory", 4, 4096, 16384),
    Case("pairs", 128, 64, 128, 12, weights=False),
    Case("pairs of weights", 128, 64, 128, 12),
    Case("both come in", 256, 256, 256, weights=False),
    Case("tall", 20000, 32, 32),
    Case("deep", 32, 20000, 32),
]


def model_of(case: Case, right: np.ndarray) -> TypedModel:
    model, batch = TypedModel(), f"{case.batch}," if case.batch > 1 else ""
    left = model.add_source("a", parse_typed_fact(f"{batch}{case.rows},{case.depth},f32"))
    fact = parse_typed_fact(f"{batch}{case.depth},{case.columns},f32")
    other = model.add_const("b", right) if case.weights else model.add_source("b", fact)
    axes = AxesMapping.parse("bmk,bkn->bmn" if batch else "mk,kn->mn")
    model.set_outputs(model.wire_node("c", EinSum(axes, DatumType.F32), [left, other]))
    return model


def call_of(
    case: Case, right: np.ndarray, inputs: list[np.ndarray], out: np.ndarray, threads: int
) -> Callable[[], object]:
    """The native call that computes a product, after the first time, without what Python does around it."""
    plan = CpuPlan(model_of(case, right), of_this_machine()[-1], threads)
    state = plan.spawn()
    state.run(inputs, [out])
    execution = state._execution  # pyright: ignore[reportPrivateUsage] # nobody but a measure wants it
    assert execution is not None
    return lambda: plan.call_all(execution, [*inputs, out])


def per_call(call: Callable[[], object], seconds: float) -> float:
    """The time of one call, in a round of several."""
    count, begin = 0, perf_counter()
    while (passed := perf_counter() - begin) < seconds:
        call()
        count += 1
    return passed / count


def measure(case: Case, threads: int, seconds: float) -> None:
    rng = np.random.default_rng(0)
    pairs = (case.batch,) if case.batch > 1 else ()
    left = rng.standard_normal((*pairs, case.rows, case.depth)).astype(np.float32)
    right = rng.standard_normal((*pairs, case.depth, case.columns)).astype(np.float32)
    inputs = [left] if case.weights else [left, right]
    out = np.empty((*pairs, case.rows, case.columns), np.float32)
    call = call_of(case, right, inputs, out, threads)
    wanted = left.astype(np.float64) @ right
    error = float(np.abs(out - wanted).max() / np.abs(wanted).max())
    meter = Meter(of_this_machine()[-1], 0.004)
    work, size = 2 * case.batch * case.rows * case.depth * case.columns, right.nbytes
    found: list[tuple[float, float, float, float]] = []
    end = perf_counter() + seconds
    while perf_counter() < end or len(found) < 5:
        peak = meter.flops("f32", threads)
        passed = per_call(call, 0.004)
        read = meter.bytes_read(size // threads, threads) if case.rows <= 16 else float("inf")
        found.append((work / passed, work / passed / peak, size / passed, size / passed / read))
    flops, of_peak, rate, of_reading = (statistics.median(column) for column in zip(*found, strict=True))
    shape = " x ".join(map(str, (*pairs, case.rows, case.depth, case.columns)))
    reading = f"{rate / 1e9:7.1f} {of_reading:6.0%}" if case.rows <= 16 else ""
    print(f"{case.name:18} {shape:20} {flops / 1e9:8.1f} {of_peak:6.0%} {error:9.0e} {reading}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    given = parser.parse_args()
    print(f"{'':18} {'':20} {'GFLOP/s':>8} {'share':>6} {'error':>9} {'GB/s':>7} {'share':>6}")
    for case in CASES:
        if not given.words or any(word in case.name for word in given.words):
            measure(case, given.threads, given.seconds)


if __name__ == "__main__":
    main()
