"""Networks of PyTorch, beside PyTorch itself: ``python bench/bench_torch.py [NAME ...] [--threads 2] [--json]``

Networks of usual sizes, with random weights, from torchvision and transformers. For each of them, in a process of its
own: seconds to export and to import it (``load``), which is mostly `torch.export`; seconds to prepare it for the
runtime ``cpu``, where kernels may be in the cache; milliseconds of a run of both, the least of several rounds in turn,
how many times as fast as PyTorch in eager mode it is, and the largest difference of an output, relative to its largest
element. ``--small``: the small networks of the tests in their place.

Needs what `make test-torch` installs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "plugins" / "tract_torch" / "tests"))

AT_LEAST = 0.3  # seconds that a round of either takes


def networks(*, small: bool) -> dict[str, Any]:
    """Those of the tests, or those of usual sizes, by their names."""
    module: Any = import_module("torch_networks" if small else "torch_networks.usual")
    return {network.name: network for network in module.NETWORKS}


def measured(network: Any, threads: int, rounds: int) -> dict[str, Any]:
    """What is told of a network, at the second of its sizes, which is mostly a batch of one."""
    import torch

    import tract_core as tract

    torch.set_num_threads(threads)
    module, given = network.module(), network.given(network.sizes[1])
    begin = time.perf_counter()
    model = network.load(module)
    loaded = time.perf_counter()
    runnable = tract.runtime_for_name("cpu", threads=threads).prepare(model)
    prepared = time.perf_counter()
    with torch.no_grad():
        inputs, wanted = _flat(given), _flat(module(**given))
        found = [tensor.to_numpy() for tensor in runnable.run(inputs)]
        pairs = [(_least(lambda: runnable.run(inputs)), _least(lambda: module(**given))) for _ in range(rounds)]
    ours, theirs = (min(column) for column in zip(*pairs, strict=True))
    error = max(abs(a - b).max() / max(abs(b).max(), 1e-6) for a, b in zip(found, wanted, strict=True))
    return {
        "load": loaded - begin,
        "prepare": prepared - loaded,
        "ours": 1e3 * ours,
        "theirs": 1e3 * theirs,
        "error": float(error),
    }


def _flat(values: Any) -> list[Any]:
    """All tensors in a structure, as arrays."""
    from torch.utils import _pytree as pytree

    return [one.numpy() for one in pytree.tree_leaves(values)]


def _least(run: Callable[[], object]) -> float:
    """The least time of a call, of as many calls as take a while together."""
    begin, least = time.perf_counter(), float("inf")
    while time.perf_counter() - begin < AT_LEAST:
        start = time.perf_counter()
        run()
        least = min(least, time.perf_counter() - start)
    return least


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--here", action="store_true", help="measure the one network in this process")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    every = networks(small=options.small)
    if options.here:
        print(json.dumps(measured(every[options.names[0]], options.threads, options.rounds)))
        return
    tell_each(options.names or every, lambda name: _child(name, options), None if options.json else _show)


def tell_each(names: Iterable[str], measure: Callable[[str], dict[str, Any]], show: Callable[..., None] | None) -> None:
    """What is measured of each network, a line each as soon as it is known; all as JSON where nothing shows lines."""
    results: dict[str, dict[str, Any]] = {}
    for name in names:
        results[name] = measure(name)
        if show is not None:
            show(name, results[name], first=len(results) == 1)
    if show is None:
        print(json.dumps(results, indent=1))


def _child(name: str, options: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, __file__, name, "--here", "--threads", str(options.threads)]
    command += ["--rounds", str(options.rounds), *(["--small"] if options.small else [])]
    changed = {**os.environ, "OMP_NUM_THREADS": str(options.threads), "PYTHONWARNINGS": "ignore"}
    return json.loads(subprocess.check_output(command, env=changed).splitlines()[-1])


def _show(name: str, row: dict[str, Any], *, first: bool) -> None:
    if first:
        titles = ("load s", "prepare s", "ours ms", "PyTorch ms", "times", "error")
        print(f"{'network':<24} " + " ".join(f"{title:>10}" for title in titles))
    times = row["theirs"] / row["ours"]
    figures = f"{row['load']:10.2f} {row['prepare']:10.2f} {row['ours']:10.3f} {row['theirs']:10.3f} {times:10.2f}"
    print(f"{name:<24} {figures} {row['error']:10.1e}", flush=True)


if __name__ == "__main__":
    main()
