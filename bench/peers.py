"""This project beside other engines: ``make bench``, or ``python bench/peers.py --only bert --threads 1 --rounds 3``.

Every engine runs in a process of its own (`engines.py`); they take turns, a short round each, while the others wait.
So what else the machine does hits all of them alike, and ratios are taken within rounds. What was measured is kept for
each workload and number of threads in ``bench/.measured``: ``--resume`` goes on where a run was interrupted, and
``--write`` makes `docs/performance.md` of all that there is. Results are compared with those of ONNX Runtime without
optimisations; an engine that is further off than the workload allows is named at the end, and the run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import report
from ceilings import ceilings
from engines import ENGINES
from workloads import WORKLOADS, Workload

HERE = Path(__file__).resolve().parent
MODELS, MEASURED = HERE / ".models", HERE / ".measured"
PEERS_PYTHON = HERE.parent / ".venv-peers" / "bin" / "python"
WITH_BYTECODE = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""What installers give the peers, this project has too, though it runs from its sources."""


class Failed(Exception):
    """An engine has no figures for a workload, for the reason given."""


class Process:
    """An engine that has loaded a model and waits for questions."""

    def __init__(self, engine: str, files: tuple[Path, Path], threads: int, cache: Path, precision: str) -> None:
        python = PEERS_PYTHON if engine != "ours" and PEERS_PYTHON.exists() else sys.executable
        command = [python, HERE / "engines.py", engine, *files, str(threads), cache, precision]
        self._complaints = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed by `end`
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._complaints,
            text=True,
            env=WITH_BYTECODE,
            cwd=cache,  # some engines write where they are
        )
        try:
            self.start = self._answer()
        except BaseException:
            self.end()
            raise
        if "failed" in self.start:
            self.end()
            raise Failed(self.start["failed"])

    def ask(self, *question: Any) -> Any:
        """The answer to a question, see `engines.py`."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._complaints.close()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._complaints.seek(0)
            last = (self._complaints.read().strip().splitlines() or ["no message"])[-1]
            raise Failed(f"the process ended with {code}: {last}")
        return json.loads(line)


@contextmanager
def _started(
    options: argparse.Namespace, workload: Workload, threads: int, found: dict[str, Any]
) -> Iterator[dict[str, Process]]:
    """Engines that have loaded the model, by name. What they say of it, or why they have not, is added to ``found``.

    Unless only results matter each starts twice: what it keeps between processes is there the second time. A peer whose
    results are too far off is left out.
    """
    files = workload.files(MODELS, small=options.short)
    processes: dict[str, Process] = {}
    with tempfile.TemporaryDirectory() as cache:
        try:
            for name in options.engines:
                progress(f"{files[0].stem}, {threads} thread(s): {name} loads it")
                folder = Path(cache) / name
                folder.mkdir()
                how = (name, files, threads, folder, workload.precision)
                try:
                    colds = [] if options.short else [_loading(*how)]
                    process = processes[name] = Process(*how)
                    error = process.start["error"]
                    if name != "ours" and not error <= workload.allowed(ours=False):
                        processes.pop(name).end()
                        raise Failed(f"its results are off by {error:.1e}")
                except Failed as failure:
                    found[name] = {"failed": str(failure)}
                    continue
                start = process.start
                found[name] = {**start, "cold": min(colds, default=start["load"]), "rounds": []}
            yield processes
        finally:
            for process in processes.values():
                process.end()


def _loading(name: str, files: tuple[Path, Path], threads: int, cache: Path, precision: str) -> float:
    """How long it takes an engine to load the model, in seconds."""
    process = Process(name, files, threads, cache, precision)
    process.end()
    return process.start["load"]


def measure(workload: Workload, threads: int, options: argparse.Namespace) -> dict[str, Any]:
    """What each engine says of a workload, by name of engine."""
    found: dict[str, Any] = {}
    with _started(options, workload, threads, found) as processes:
        for number in range(options.rounds):
            for name, process in processes.items():
                progress(f"{workload.name}, {threads} thread(s), round {number + 1} of {options.rounds}: {name}")
                found[name]["rounds"].append(process.ask("time", options.seconds))
                found[name].setdefault("megabytes", process.ask("memory"))  # to measure the machine takes some more
                if name == "ours" and not options.short:
                    found[name].setdefault("ceilings", []).append(process.ask("ceilings"))
        if "ours" in processes and not options.short:
            model, _ = workload.files(MODELS, small=False)
            ask = processes["ours"].ask
            found["ours"] |= {**ask("bounds"), "hosted": ask("hosted"), "weights": model.stat().st_size}
    progress("")
    return found


def progress(text: str) -> None:
    """One line on a terminal, which the next one replaces."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


def wrong(found: dict[str, Any], workload: Workload) -> list[str]:
    """A line for each engine whose results count and are too far off; and for us, if we have none."""
    lines = [
        f"{name} is off by {one['error']:.1e}"
        for name, one in found.items()
        if "error" in one and not one["error"] <= workload.allowed(ours=name == "ours")
    ]
    return [*lines, f"ours: {found['ours']['failed']}"] if "failed" in found.get("ours", {}) else lines


def chosen(only: list[str]) -> list[Workload]:
    """The workloads whose names have one of the words in them; all where there are no words."""
    found = [one for one in WORKLOADS if not only or any(word.lower() in one.name.lower() for word in only)]
    if not found:
        raise SystemExit(f"no workload has {' or '.join(only)} in its name; there are {', '.join(names())}")
    return found


def names() -> list[str]:
    return [workload.name for workload in WORKLOADS]


def run(options: argparse.Namespace) -> list[str]:
    """Measure what is asked for, print a line of each, and keep it. Returns what is wrong."""
    complaints: list[str] = []
    for threads in options.threads:
        for workload in chosen(options.only):
            kept = MEASURED / f"{workload.name}-{threads}.json"
            if options.resume and kept.exists():
                continue
            found = measure(workload, threads, options)
            lines = wrong(found, workload)
            complaints += [f"{workload.name}: {line}" for line in lines]
            print(report.line(workload.name, threads, found), *lines, sep="\n    ", flush=True)
            if not options.short:
                MEASURED.mkdir(exist_ok=True)
                measured = {"date": date.today().isoformat(), "engines": found}
                kept.write_text(json.dumps(measured, indent=1), encoding="utf-8")
    return complaints


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure this project beside other engines.")
    parser.add_argument("--only", nargs="+", default=[], metavar="WORD", help="workloads with a word in their name")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, metavar="NAME", help="all, or those named")
    parser.add_argument("--threads", nargs="+", type=int, metavar="N", help="1 and 2, or those named")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long a round of one engine takes")
    parser.add_argument("--resume", action="store_true", help="leave out what is measured already")
    parser.add_argument("--write", action="store_true", help="write docs/performance.md")
    parser.add_argument("--short", action="store_true", help="small sizes, one round, for the results alone")
    options = parser.parse_args()
    options.engines = options.engines or (["ours"] if options.short else list(ENGINES))
    options.threads = options.threads or ([1] if options.short else [1, 2])
    if options.short:
        options.rounds, options.seconds = 1, 0.0
    return options


def main() -> None:
    options = arguments()
    complaints = run(options)
    if options.write:
        home = HERE.parent
        report.write(home / "docs" / "performance.md", home / "README.md", MEASURED, names(), ceilings())
    if complaints:
        raise SystemExit("\n".join(["", "Wrong:", *complaints]))


if __name__ == "__main__":
    main()
