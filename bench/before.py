"""This checkout beside another one of this project: the same results to the bit, and how long each takes.

    python bench/before.py OTHER [--only WORD ...] [--threads 1 2] [--rounds 9] [--starts 1] [--seconds 0.3] [--short]

``OTHER`` is a folder with another version and its ``.venv``. Each version runs in a process of its own; they take
turns, a short round each, so that what else the machine does hits both alike, and ratios are taken within rounds.
Printed are the median ratio of a run with the middle half of the ratios, of loads with an empty cache (cold) and of
such with a full one (warm), of which each version does ``--starts``, in turns, and of the bytes of compiled code; at
the end their geometric means. Results that differ end the run with an error.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from math import exp, log
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
OURS = HERE.parent
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
WHAT = ("run", "cold", "warm", "code")


class Version:
    """One checkout that has loaded a model, in a process of its own."""

    def __init__(self, checkout: Path, cache: Path, model: Path, data: Path, threads: int) -> None:
        command = [checkout / ".venv" / "bin" / "python", __file__, "--worker", model, data, str(threads)]
        given = {**ENVIRONMENT, "TRACT_CACHE": str(cache)}
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=given, cwd=cache
        )
        self.start = self.ask()

    def ask(self, seconds: float | None = None) -> Any:
        """What it says at first, or the median time of the runs that fit into so many seconds."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        if seconds is not None:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"the process ended with {self._process.wait()}")
        return json.loads(line)

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def work(model: str, data: str, threads: str) -> None:
    """What such a process does. It knows of this project what users do."""
    from hashlib import sha256
    from time import perf_counter

    import numpy as np

    with np.load(data) as arrays:
        inputs = {name: arrays[name] for name in arrays.files}
    begin = perf_counter()
    import tract_core as tract

    loaded = tract.onnx().load(model).into_model()
    runnable = tract.runtime_for_name("cpu", threads=int(threads)).prepare(loaded)
    found = runnable.run([inputs[runnable.input_name(slot)] for slot in range(runnable.input_count())])
    seconds = perf_counter() - begin
    digests = [sha256(np.ascontiguousarray(one.to_numpy()).tobytes()).hexdigest() for one in found]
    print(json.dumps({"load": seconds, "outputs": digests}), flush=True)
    given = [inputs[runnable.input_name(slot)] for slot in range(runnable.input_count())]
    for line in sys.stdin:
        times, end = list[float](), perf_counter() + float(line)
        while len(times) < 3 or perf_counter() < end:
            begin = perf_counter()
            runnable.run(given)
            times.append(perf_counter() - begin)
        print(json.dumps(statistics.median(times)), flush=True)


def compared(model: Path, data: Path, threads: int, options: argparse.Namespace) -> dict[str, list[float]] | None:
    """Ratios of ours to the other one, by what they are of; ``None`` where results differ."""
    found: dict[str, list[float]] = {name: [] for name in WHAT}
    checkouts = (OURS, options.other)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.starts):
            caches = [Path(folder) / f"{name}{number}" for name in ("ours", "other")]
            for cache in caches:
                cache.mkdir()
            begin = [partial(Version, *one, model, data, threads) for one in zip(checkouts, caches, strict=True)]
            for what in ("cold", "warm"):
                found[what].append(_ratio_of_loads(begin, number))
        found["code"] = [_bytes(caches[0]) / _bytes(caches[1])]
        running = [one() for one in begin]
        for number in range(options.rounds):
            times = [version.ask(options.seconds) for version in (running if number % 2 else running[::-1])]
            found["run"].append(times[0] / times[1] if number % 2 else times[1] / times[0])
        for version in running:
            version.end()
    same = running[0].start["outputs"] == running[1].start["outputs"]
    return found if same else None


def _ratio_of_loads(begin: Sequence[Callable[[], Version]], number: int) -> float:
    """How long the first version takes to be ready, and to have run once, over the second. They begin in turns."""
    seconds = [0.0, 0.0]
    for which in (0, 1) if number % 2 else (1, 0):
        version = begin[which]()
        seconds[which] = version.start["load"]
        version.end()
    return seconds[0] / seconds[1]


def _bytes(cache: Path) -> int:
    return sum(path.stat().st_size for path in cache.rglob("*.o"))


def line(name: str, found: dict[str, list[float]]) -> str:
    low, middle, high = statistics.quantiles(found["run"], n=4)
    others = "  ".join(f"{what} {statistics.median(found[what]):.3f}" for what in WHAT[1:])
    return f"{name:<30} run {middle:.3f} ({low:.3f} to {high:.3f})  {others}"


def mean(ratios: Sequence[float]) -> float:
    return exp(statistics.mean(map(log, ratios)))


def main() -> None:
    if sys.argv[1:2] == ["--worker"]:
        work(*sys.argv[2:])
        return
    parser = argparse.ArgumentParser(description="Compare this checkout with another one of this project.")
    parser.add_argument("other", type=lambda text: Path(text).resolve(), help="its folder, which has a .venv")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="workloads with a word in their name")
    parser.add_argument("--threads", nargs="+", type=int, default=[1], metavar="N")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--starts", type=int, default=1, help="how often each version loads with an empty and a full cache"
    )
    parser.add_argument("--seconds", type=float, default=0.3, help="how long a round of one version takes")
    parser.add_argument("--short", action="store_true", help="small sizes")
    options = parser.parse_args()
    from peers import chosen

    differ, medians = list[str](), {name: list[float]() for name in WHAT}
    with tempfile.TemporaryDirectory() as folder:
        for workload in chosen(options.only):
            model, data = _files(workload, Path(folder), small=options.short)
            for threads in options.threads:
                name = f"{workload.name}, {threads} thread{'s' * (threads > 1)}"
                found = compared(model, data, threads, options)
                if found is None:
                    differ.append(name)
                    print(f"{name:<30} other results", flush=True)
                    continue
                for what, ratios in found.items():
                    medians[what].append(statistics.median(ratios))
                print(line(name, found), flush=True)
    print("geometric means: ", ", ".join(f"{what} {mean(ratios):.3f}" for what, ratios in medians.items() if ratios))
    if differ:
        raise SystemExit(f"other results than before: {'; '.join(differ)}")


def _files(workload: Any, folder: Path, *, small: bool) -> tuple[Path, Path]:
    """The model and its inputs."""
    import numpy as np
    import onnx

    network = workload.build(**workload.small if small else {})
    model, data = folder / f"{workload.name}.onnx", folder / f"{workload.name}.npz"
    onnx.save(network.model, model)
    np.savez(data, **network.inputs)
    return model, data


if __name__ == "__main__":
    main()
