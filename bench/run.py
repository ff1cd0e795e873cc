"""Every benchmark that needs no argument, one after the other: ``make bench-parts``.

``bench_load.py MODEL.onnx`` measures load time and memory of a model of yours.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

SCRIPTS = (
    "bench_start.py",
    "bench_dims.py",
    "bench_declutter.py",
    "bench_trees.py",
    "bench_calling.py",
    "bench_moves.py",
    "bench_rows.py",
    "bench_convs.py",
    "bench_loops.py",
    "bench_fft.py",
    "bench_nnef_text.py",
)
DIGITS = Path(__file__).parents[1] / "examples" / "digits" / "digits.onnx"


def main() -> None:
    folder = Path(__file__).parent
    for arguments in [*([name] for name in SCRIPTS), ["bench_load.py", str(DIGITS)]]:
        print(f"\n== {arguments[0]}", flush=True)
        subprocess.run([sys.executable, folder / arguments[0], *arguments[1:]], check=True)


if __name__ == "__main__":
    main()
