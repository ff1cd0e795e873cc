"""How long until a trained file runs, in a process after others? ``python bench/bench_restart.py [--only WORD ...]``

The files and their inputs are those of ``make test-shipped``. Each is loaded, prepared and run once in processes of
their own: with nothing kept (cold), with kernels kept but no plan (warm), with a plan kept (again), and by ONNX
Runtime, in turns, with one thread. Told are processor milliseconds from the import of the engine to where the model
can be called, the medians of the rounds; "ready" is a kept plan in a process that has run another model, and so has
imported what it takes. Then ratios: of "ready" over ONNX Runtime's session, and of "again" with its imports over ONNX
Runtime's import and session. The results of a kept plan are compared with those of the plan as it was made: they are
the same bits.

With ``--another``, only what a process pays that has prepared other models (`OTHERS`, so that what it takes is
imported) and keeps kernels but no plans: processor milliseconds of loading, typing, simplifying and preparing, beside
ONNX Runtime's session in a process that has made another one. Python looks for garbage before: a look at the objects of
all modules takes 35 to 55 ms, and falls on one model or another by chance. The last line has the median and the worst
ratio.
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
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "shipped"), str(ROOT / "plugins" / "tract_onnx" / "tests")]

import fetch  # noqa: E402 - found by the path above
from shipped_inputs import two_cases  # noqa: E402

DIGITS = ROOT / "examples" / "digits" / "digits.onnx"

OURS = """
import sys, time, json
import numpy as np
begin = time.process_time()
import tract_core as tract
for before in sys.argv[4:]:
    tract.runtime_for_name("cpu", threads=1).prepare(tract.onnx().load(before).into_model())
imported = time.process_time()
model = tract.onnx().load(sys.argv[1]).into_model()
runnable = tract.runtime_for_name("cpu", threads=1).prepare(model)
done = time.process_time()
inputs = dict(np.load(sys.argv[2], allow_pickle=True))
found = runnable.run({name: inputs[name] for name in runnable.input_names()})
ran = time.process_time()
np.savez(sys.argv[3], *[np.asarray(one.numpy()) for one in found])
times = {"begin": done - begin, "session": done - imported, "run": ran - done, "modules": len(sys.modules)}
print(json.dumps(times))
"""

OTHERS = ("320n", "ppocrv5_rec", "bilstm.int8", "nemo128", "plcmos_v2")
"""Parts of the names of files that have operators of all kinds between them."""

ANOTHER = """
import gc, sys, time, json
import tract_core as tract
from tract_core.api.model import Model
runtime = tract.runtime_for_name("cpu", threads=1)
for path in (*sys.argv[2:], sys.argv[1]):
    loaded = typed = None
    gc.collect()
    times = [time.process_time()]
    loaded = tract.onnx().load(path)
    times.append(time.process_time())
    typed = loaded._held.into_typed()
    times.append(time.process_time())
    typed = typed.declutter()
    times.append(time.process_time())
    runtime.prepare(Model(typed))
    times.append(time.process_time())
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""

ANOTHER_OF_THEIRS = """
import sys, time, json
import onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads, options.log_severity_level = 1, 4
for path in (*sys.argv[2:], sys.argv[1]):
    begin = time.process_time()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    seconds = time.process_time() - begin
print(json.dumps([seconds]))
"""

THEIRS = """
import sys, time, json
import numpy as np
begin = time.process_time()
import onnxruntime
imported = time.process_time()
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
done = time.process_time()
print(json.dumps({"begin": done - begin, "session": done - imported, "run": 0, "modules": len(sys.modules)}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=[""], help="files with one of these in their names")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--cold", action="store_true", help="measure with nothing kept too, which takes long")
    parser.add_argument("--another", action="store_true", help="measure processes that have prepared other models")
    options = parser.parse_args()
    if options.another:
        after_others(options.only, options.rounds)
        return
    ways = [*(["cold"] if options.cold else []), "warm", "again", "ready", "theirs"]
    print(f"{'file':<52}" + "".join(f"{way:>8}" for way in ways) + f"{'ready/theirs':>14}{'with imports':>14}")
    ratios: list[tuple[float, float, float]] = []
    for path in fetch.models():
        name = fetch.short_name(path)
        if not any(word in name for word in options.only) or path.stat().st_size > 100 << 20:
            continue
        try:
            case = next(iter(two_cases(path, fetch.known(path))))
        except Exception as error:  # what the other engine does not take is no matter here
            print(f"{name:<52} {type(error).__name__}")
            continue
        medians = measured(path, case.given, ways, options.rounds)
        if medians is None:
            print(f"{name:<52} not run")
            continue
        again, ready, theirs, warm = (medians[way] for way in ("again", "ready", "theirs", "warm"))
        ratios.append((ready[1] / theirs[1], again[0] / theirs[0], warm[0] / theirs[0]))
        told = "".join(f"{1e3 * medians[way][1]:8.1f}" for way in ways)
        print(f"{name:<52}{told}{ratios[-1][0]:14.2f}{ratios[-1][1]:14.2f}", flush=True)
    for what, column in zip(
        ("ready/session", "with imports", "warm with imports"), zip(*ratios, strict=True), strict=True
    ):
        print(f"{what:<16} median {statistics.median(column):6.2f}  worst {max(column):6.2f}  of {len(column)}")


def after_others(only: list[str], rounds: int) -> None:
    """Print what each file takes in processes that have prepared others."""
    others = [path for path in fetch.models() if any(word in path.name for word in OTHERS)]
    ratios: list[float] = []
    print(f"{'file':<52}{'load':>8}{'type':>8}{'simplify':>9}{'prepare':>8}{'all':>8}{'theirs':>8}{'ratio':>7}")
    with tempfile.TemporaryDirectory() as folder:
        kept = {**os.environ, "TRACT_CACHE": folder, "TRACT_PLANS": "0"}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        for path in fetch.models():
            name = fetch.short_name(path)
            if not any(word in name for word in only) or path.stat().st_size > 100 << 20:
                continue
            before = [one for one in others if one != path]
            if child(ANOTHER, kept, path) is None:
                print(f"{name:<52} not prepared")
                continue
            runs = [
                (child(ANOTHER, kept, path, *before), child(ANOTHER_OF_THEIRS, kept, path, DIGITS))
                for _ in range(rounds)
            ]
            ours = [statistics.median(times) for times in zip(*(one for one, _ in runs if one), strict=True)]
            theirs = statistics.median(one[0] for _, one in runs if one)
            ratios.append(sum(ours) / theirs)
            told = "".join(f"{1e3 * one:8.1f}" for one in (*ours, sum(ours), theirs))
            print(f"{name:<52}{told}{ratios[-1]:7.2f}", flush=True)
    print(
        f"warm after others/session  median {statistics.median(ratios):.2f}  worst {max(ratios):.2f}  of {len(ratios)}"
    )


def measured(path: Path, inputs: dict[str, Any], ways: list[str], rounds: int) -> dict[str, tuple[float, float]] | None:
    """Medians in seconds, with the import of the engine and without; ``None`` where a model cannot be prepared."""
    found: dict[str, list[dict[str, float]]] = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as folder:
        given, first, second = (str(Path(folder) / name) for name in ("inputs.npz", "first.npz", "second.npz"))
        np.savez(given, **inputs)
        kept = {**os.environ, "TRACT_CACHE": folder, "TRACT_PLANS": "1"}
        kept.pop("PYTHONDONTWRITEBYTECODE", None)
        if child(OURS, kept, path, given, first, DIGITS) is None:
            return None
        for _ in range(rounds):
            if "cold" in ways:
                with tempfile.TemporaryDirectory() as empty:
                    found["cold"].append(child(OURS, {**kept, "TRACT_CACHE": empty}, path, given, first))
            found["warm"].append(child(OURS, {**kept, "TRACT_PLANS": "0"}, path, given, first))
            found["again"].append(child(OURS, kept, path, given, second))
            found["ready"].append(child(OURS, kept, path, given, second, DIGITS))
            found["theirs"].append(child(THEIRS, kept, path))
            with np.load(first, allow_pickle=True) as before, np.load(second, allow_pickle=True) as after:
                for key in before:
                    np.testing.assert_array_equal(before[key], after[key])
    return {
        way: tuple(statistics.median(run[key] for run in runs) for key in ("begin", "session"))
        for way, runs in found.items()
    }


def child(script: str, environment: dict[str, str], *arguments: object) -> Any:
    """What a process tells that does this; ``None`` where it fails."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    done = subprocess.run(command, check=False, env=environment, capture_output=True, text=True)
    if done.returncode:
        print(done.stderr[-500:], file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


if __name__ == "__main__":
    main()
