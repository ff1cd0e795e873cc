"""`torch.compile` with our backend, beside others: ``python bench/bench_torch_compile.py [NAME ...] [--threads 1]``

Networks with random weights, from torchvision and transformers. For each of them, in a process of its own: milliseconds
of a call in eager PyTorch, by ``backend="tract"``, by our own runnable of the exported module, and by
``backend="inductor"``, the median of several rounds in turn; how our backend is beside our own call; seconds of the
first call by both backends, without what earlier processes kept; and the largest difference of an output from eager
PyTorch, relative to its largest element, of both. ``--small``: the small networks of the tests in their place.

Needs what `make test-torch` installs, and a C++ compiler for inductor.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

from bench_torch import networks, tell_each
from stopwatch import seconds

AT_LEAST = 0.2  # seconds that a round of each takes

COLUMNS = ("eager ms", "tract ms", "direct ms", "inductor ms", "of direct", "tract s", "inductor s", "error", "theirs")


def measured(network: Any, threads: int, rounds: int, backends: list[str]) -> dict[str, Any]:
    """What is told of a network, at the second of its sizes, which is mostly a batch of one."""
    import torch
    from torch.utils import _pytree as pytree

    import tract_core as tract

    torch.set_num_threads(threads)
    module, given = network.module(), network.given(network.sizes[1])
    arrays = [one.numpy() for one in pytree.tree_leaves(given)]
    found: dict[str, Any] = {}
    with torch.no_grad():
        wanted = pytree.tree_leaves(module(**given))
        calls: dict[str, Callable[[], Any]] = {"eager": lambda: module(**given)}
        for backend in backends:
            torch._dynamo.reset()
            call = torch.compile(module, backend=backend)
            begin = time.perf_counter()
            results = pytree.tree_leaves(call(**given))
            found[f"{backend} s"] = time.perf_counter() - begin
            found[f"{backend} error"] = max(map(_difference, results, wanted))
            calls[backend] = lambda call=call: call(**given)
        runnable = tract.runtime_for_name("cpu", threads=threads).prepare(network.load(module))
        calls["direct"] = lambda: runnable.run(arrays)
        times = {name: [seconds(call, AT_LEAST)] for name, call in calls.items()}
        for _ in range(rounds - 1):
            for name, call in calls.items():
                times[name].append(seconds(call, AT_LEAST))
    return found | {f"{name} ms": 1e3 * median(several) for name, several in times.items()}


def _difference(found: Any, wanted: Any) -> float:
    return float((found.double() - wanted.double()).abs().max() / wanted.double().abs().max().clamp_min(1e-6))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--backends", nargs="*", default=["tract", "inductor"])
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--here", action="store_true", help="measure the one network in this process")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    every = networks(small=options.small)
    if options.here:
        print(json.dumps(measured(every[options.names[0]], options.threads, options.rounds, options.backends)))
        return
    tell_each(options.names or every, lambda name: _child(name, options), None if options.json else _show)


def _child(name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, name, "--here", "--threads", str(options.threads)]
    command += ["--rounds", str(options.rounds), "--backends", *options.backends, *(["--small"] * options.small)]
    with tempfile.TemporaryDirectory() as folder:
        kept = {"TORCHINDUCTOR_CACHE_DIR": folder, "TRACT_CACHE": folder}
        changed = {**os.environ, **kept, "OMP_NUM_THREADS": str(options.threads), "PYTHONWARNINGS": "ignore"}
        return json.loads(subprocess.check_output(command, env=changed, stderr=subprocess.DEVNULL).splitlines()[-1])


def _show(name: str, row: dict[str, Any], *, first: bool) -> None:
    if first:
        print(f"{'network':<20} " + " ".join(f"{title:>11}" for title in COLUMNS))
    figures = [row.get(f"{one} ms", float("nan")) for one in ("eager", "tract", "direct", "inductor")]
    figures += [row["tract ms"] / row["direct ms"], row["tract s"], row.get("inductor s", float("nan"))]
    errors = [row["tract error"], row.get("inductor error", float("nan"))]
    print(
        f"{name:<20} " + " ".join(f"{one:11.3f}" for one in figures) + " " + " ".join(f"{one:11.1e}" for one in errors)
    )


if __name__ == "__main__":
    main()
