"""How long models take from their file to a model that is ready to prepare: from ONNX, and from the cooked archive.

Modules are imported before anything is measured. A round loads the ONNX file and each archive once, in turn; what is
printed is the median of each, and the median of the ratios of the rounds.

    python bench/bench_cook.py FILE.onnx ... [--rounds 7] [--profile]
"""

from __future__ import annotations

import argparse
import cProfile
import gc
import pstats
import tempfile
from pathlib import Path
from statistics import median
from time import perf_counter

import tract_core as tract

ARCHIVES = {"folder": "model.nnef", "tar": "model.nnef.tar"}


def seconds(path: Path) -> float:
    """To load a model, in normal form."""
    gc.collect()
    begin = perf_counter()
    model = tract.load(path)
    taken = perf_counter() - begin
    del model
    return taken


def measure(path: Path, rounds: int, *, profile: bool) -> None:
    """Print a line per archive."""
    with tempfile.TemporaryDirectory() as folder:
        archives = {kind: Path(folder) / name for kind, name in ARCHIVES.items()}
        model = tract.load(path)
        for archive in archives.values():
            model.save(archive)
        del model
        for archive in archives.values():
            seconds(archive)
        if profile:
            profiled(archives["tar"])
            return
        found: dict[str, list[float]] = {kind: [] for kind in ("onnx", *archives)}
        for _ in range(rounds):
            found["onnx"].append(seconds(path))
            for kind, archive in archives.items():
                found[kind].append(seconds(archive))
        before = median(found["onnx"])
        for kind in archives:
            ratio = median(a / b for a, b in zip(found["onnx"], found[kind], strict=True))
            after = median(found[kind])
            print(f"{path.stem:20} {kind:7} {before * 1e3:8.1f} ms -> {after * 1e3:7.1f} ms  {ratio:5.1f} times faster")


def profiled(archive: Path) -> None:
    """Print where the time of loading goes."""
    profile = cProfile.Profile()
    profile.runcall(tract.load, archive)
    pstats.Stats(profile).sort_stats("tottime").print_stats(35)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--profile", action="store_true", help="print where the time of the tar goes, by function")
    given = parser.parse_args()
    for one in given.files:
        measure(one, given.rounds, profile=given.profile)
