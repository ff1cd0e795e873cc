"""How long does a model take to load, and how much memory? ``python bench/bench_load.py MODEL.onnx [...] [--json]``

Each measure is a fresh process; the median of several is printed, with the peak of the process's resident memory over
the size of the file. The peak includes what the interpreter and NumPy take.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path

CHILD = """
import json, resource, sys, time
start = time.perf_counter()
import tract_core as tract
imported = time.perf_counter()
model = tract.onnx().load(sys.argv[1])
loaded = time.perf_counter()
model.analyse()
analysed = time.perf_counter()
model = model.into_model()
done = time.perf_counter()
print(json.dumps({
    "import": imported - start,
    "load": loaded - imported,
    "analyse": analysed - loaded,
    "into_model": done - analysed,
    "total": done - imported,
    "nodes": len(model.typed.nodes),
    "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
}))
"""


def measure(path: Path, rounds: int) -> dict[str, float]:
    runs = [json.loads(subprocess.check_output([sys.executable, "-c", CHILD, str(path)])) for _ in range(rounds)]
    figures = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    size = path.stat().st_size
    data = path.with_name(path.name + ".data")
    return {**figures, "file_bytes": size + (data.stat().st_size if data.exists() else 0)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {path.name: measure(path, options.rounds) for path in options.models}
    if options.json:
        print(json.dumps(results, indent=1))
        return
    print(
        f"{'model':<34} {'MB':>6} {'nodes':>6} {'load':>7} {'analyse':>8} {'into':>7} {'total s':>8} {'peak/file':>9}"
    )
    for name, r in results.items():
        print(
            f"{name:<34} {r['file_bytes'] / 1e6:6.0f} {r['nodes']:6.0f} {r['load']:7.3f} {r['analyse']:8.3f} "
            f"{r['into_model']:7.3f} {r['total']:8.3f} {r['peak_bytes'] / r['file_bytes']:9.2f}"
        )


if __name__ == "__main__":
    main()
