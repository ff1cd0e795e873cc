"""How long until a model can run on the runtime ``cpu``, and how much memory does it take?

``python bench/bench_prepare.py MODEL.onnx [...] [--together N] [--json]``

For each model, in processes of their own, in turn, several times: with an empty cache of kernels (cold), with a filled
one (warm), N at once with an empty one (together), and ONNX Runtime. Loading and preparing are told apart; the peak of
resident memory is that of loading, preparing and one run. Medians. Seconds are those on the clock, so measure on a
quiet machine; ``cpu`` seconds, of all threads together, depend less on what else runs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

MEASURE = """
import json, resource, sys, time
import numpy as np

def zeros(shape, dtype):
    return np.zeros([int(str(size)) if str(size).isdigit() else 1 for size in shape], dtype)  # one of what is symbolic

def told(begin, loaded, done, cpu):
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"load": loaded - begin, "prepare": done - loaded, "cpu": cpu, "peak_mb": peak / 1e6}))

path, threads = sys.argv[1], int(sys.argv[2])
"""

OURS = """
import tract_core as tract
begin = time.perf_counter()
model = tract.onnx().load(path).into_model()
facts = [model.input_fact(number) for number in range(model.input_count())]
loaded, used = time.perf_counter(), time.process_time()
runnable = tract.runtime_for_name("cpu", threads=threads).prepare(model)
done, cpu = time.perf_counter(), time.process_time() - used
runnable.run([zeros(fact.dims(), fact.datum_type().numpy) for fact in facts])
told(begin, loaded, done, cpu)
"""

THEIRS = """
import onnxruntime
begin = loaded = time.perf_counter()
used = time.process_time()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
done, cpu = time.perf_counter(), time.process_time() - used
types = {"tensor(float)": "f4", "tensor(int64)": "i8", "tensor(int32)": "i4", "tensor(bool)": "?"}
session.run(None, {one.name: zeros(one.shape, types[one.type]) for one in session.get_inputs()})
told(begin, loaded, done, cpu)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--together", type=int, default=2, metavar="N", help="processes that start at once")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = {path.name: measure(path, options) for path in options.models}
    if options.json:
        print(json.dumps(results, indent=1))
        return
    print(f"{'model':<24} {'':<12} {'load s':>8} {'prepare s':>10} {'cpu s':>8} {'peak MB':>8}")
    for name, rows in results.items():
        for way, row in rows.items():
            figures = f"{row['load']:8.3f} {row['prepare']:10.3f} {row['cpu']:8.3f} {row['peak_mb']:8.0f}"
            print(f"{name:<24} {way:<12} {figures}")


def measure(path: Path, options: argparse.Namespace) -> dict[str, dict[str, float]]:
    """Medians, by way."""
    runs: dict[str, list[dict[str, float]]] = {"cold": [], "warm": [], "together": [], "onnxruntime": []}
    threads = options.threads
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory() as folder:
            runs["cold"].append(_told(_child(OURS, path, threads, folder)))
            runs["warm"].append(_told(_child(OURS, path, threads, folder)))
        with tempfile.TemporaryDirectory() as folder:
            several = [_child(OURS, path, threads, folder) for _ in range(options.together)]
            runs["together"] += map(_told, several)
        runs["onnxruntime"].append(_told(_child(THEIRS, path, threads, "")))
    return {way: {key: statistics.median(row[key] for row in rows) for key in rows[0]} for way, rows in runs.items()}


def _child(script: str, path: Path, threads: int, cache: str) -> subprocess.Popen[bytes]:
    changed = {**os.environ, "TRACT_CACHE": cache}
    changed.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed distribution has its bytecode
    command = [sys.executable, "-c", MEASURE + script, str(path), str(threads)]
    return subprocess.Popen(command, env=changed, stdout=subprocess.PIPE)


def _told(child: subprocess.Popen[bytes]) -> dict[str, float]:
    told, _ = child.communicate()
    assert child.returncode == 0, child.args
    return json.loads(told)


if __name__ == "__main__":
    main()
