"""What this machine can do at most, measured with NumPy: floating-point operations and bytes a second."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter

import numpy as np

ROUNDS = 9
PRODUCT = 1024
BYTES = 256 << 20


def ceilings() -> dict[str, str]:
    """By name, for the machine: its processor, its memory, and figures with their units."""
    return {
        "processor": _processor(),
        "system": f"{platform.system()} {platform.release()}, Python {platform.python_version()}",
        "products of f32 matrices, one thread": f"{_single(_gigaflops):.0f} GFLOP/s (NumPy, {PRODUCT} cubed)",
        "reading memory, one thread": f"{_single(_gigabytes):.1f} GB/s (NumPy, sum of {BYTES >> 20} MiB)",
    }


def _processor() -> str:
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    flags = next((line.split(":")[1].split() for line in lines if line.startswith("flags")), [])
    known = [flag for flag in ("avx2", "fma", "avx512f", "avx512_vnni", "avx512_bf16") if flag in flags]
    return f"{model}, {len(os.sched_getaffinity(0))} cores, {' '.join(known)}"


def _single(figure: Callable[[], float]) -> float:
    """What a function of this module gives where NumPy has one thread, which it must be told before it is imported."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    code = f"import ceilings; print(ceilings.{figure.__name__}())"
    here = Path(__file__).parent
    return float(subprocess.check_output([sys.executable, "-c", code], env=environment, cwd=here, text=True))


def _gigaflops() -> float:
    one = np.ones((PRODUCT, PRODUCT), np.float32)
    return 2 * PRODUCT**3 / _quickest(lambda: one @ one) / 1e9


def _gigabytes() -> float:
    one = np.ones(BYTES // 4, np.float32)
    return BYTES / _quickest(one.sum) / 1e9


def _quickest(run: Callable[[], object]) -> float:
    times: list[float] = []
    for _ in range(ROUNDS):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return min(times)
