"""What all fuzz targets do: change a seed, look what comes of it in a process of its own, and keep what is found.

A *finding* is an error that is not a `TractError`, one that only wraps a mistake of ours, what a target says is one, a
process that dies, or one that takes too long. Its file is kept in ``fuzz/findings``, together with a text that says
what happened. The time begins when the seeds are made.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import select
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
FINDINGS = HERE / "findings"
TOO_LONG = 10.0
"""Seconds that one file may take."""
MEMORY = 1 << 30
"""Bytes of address space that one file may take, beyond what the process has to begin with."""
MISTAKES = (AttributeError, TypeError, AssertionError, KeyError, NameError, RecursionError, NotImplementedError)
"""Errors that no input should lead to: they are findings even where they are wrapped in a typed one."""


class Finding(Exception):
    """Something that should not have happened."""


@dataclass(frozen=True)
class Target:
    """``script``: its file; ``suffix``: of the files that it reads; ``seeds``: contents, always in one order.

    ``parsed``: what ``mutated`` takes of the contents, with a source of chance, to give a damaged file. ``examine``:
    what became of a file, in a word; it raises whatever is a finding.
    """

    script: str
    suffix: str
    seeds: Callable[[], list[bytes]]
    mutated: Callable[[Any, random.Random], bytes]
    examine: Callable[[bytes, random.Random], str]
    parsed: Callable[[list[bytes]], Any] = list


def look_for_mistake(error):
    """Raise a finding where a typed error wraps what can only be a mistake of ours."""
    cause, seen = error, set()
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        if isinstance(cause, MISTAKES) or "it cannot be wired: " in getattr(cause, "problem", ""):
            raise Finding(f"wrapped {place_of(cause)}") from error
        if isinstance(cause, BaseExceptionGroup):
            for part in cause.exceptions:
                look_for_mistake(part)
        cause = cause.__cause__


def place_of(error):
    """The kind of an error, and the last line of the project that it came through."""
    inner = error.__cause__ or error
    frames = traceback.extract_tb(inner.__traceback__)
    ours = [frame for frame in frames if "tract_" in frame.filename]
    last = ours[-1] if ours else frames[-1] if frames else None
    return f"{type(inner).__name__} at {Path(last.filename).name}:{last.lineno}" if last else type(inner).__name__


def content_of(target, seeds, seed, number):
    chance = random.Random(f"{seed}/{number}")
    return target.mutated(seeds, chance), chance


def work(target, seed, first, path):
    """Examine one file after the other, from a number on, and say so on the standard output. ``path``: the seeds."""
    import numpy as np

    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    contents = read_all(path)
    seeds = target.parsed(contents)
    target.examine(contents[0], random.Random(0))  # imports everything
    pages = int(Path("/proc/self/statm").read_text().split()[0]) if Path("/proc/self/statm").exists() else 0
    if pages:
        limit = pages * resource.getpagesize() + MEMORY
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    say({"ready": True})
    number = first
    while True:
        content, chance = content_of(target, seeds, seed, number)
        say({"number": number})
        try:
            say({"result": target.examine(content, chance)})
        except Exception as error:
            key = str(error) if isinstance(error, Finding) else place_of(error)
            say({"finding": key[:300], "text": traceback.format_exc()[-6000:]})
        number += 1


def read_all(path):
    """The contents of the seeds, as one JSON list of texts in hexadecimal digits."""
    return [bytes.fromhex(text) for text in json.loads(Path(path).read_text())]


def say(message):
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Worker:
    """A process that works, and the number of the file that it is at."""

    def __init__(self, target, seed, first, path):
        command = [sys.executable, target.script, "--work", str(seed), str(first), str(path)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.number = first
        self.patience = 120.0  # for the imports

    def next(self):
        """The next message; ``None`` when it took too long, ``{}`` when the process died."""
        ready, _, _ = select.select([self.process.stdout], [], [], self.patience)
        if not ready:
            return None
        line = self.process.stdout.readline()
        message = json.loads(line) if line else {}
        self.patience = 2 * TOO_LONG if message.get("ready") else TOO_LONG
        self.number = message.get("number", self.number)
        return message

    def stop(self):
        self.process.kill()
        return self.process.wait()


def fuzz(target, seed, seconds):
    """Returns the number of different findings."""
    contents = target.seeds()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "seeds.json"
        path.write_text(json.dumps([content.hex() for content in contents]))
        counts, found = _fuzz(target, seed, seconds, path, target.parsed(contents))
    total = sum(counts.values())
    listed = ", ".join(f"{count} {result}" for result, count in sorted(counts.items()))
    sys.stdout.write(f"{total} files in {seconds:g} s: {listed}; {len(found)} different findings\n")
    return len(found)


def _fuzz(target, seed, seconds, path, seeds):
    counts, found = Counter(), set()
    worker = Worker(target, seed, 0, path)
    worker.next()  # it is ready
    start = time.monotonic()
    while time.monotonic() - start < seconds:
        message = worker.next()
        key, text = None, ""
        if message:
            counts.update(message["result"] for _ in range("result" in message))
            key, text = message.get("finding"), message.get("text", "")
        else:
            key = "takes too long" if message is None else f"died with status {worker.stop()}"
            key = f"{key} ({worker.number})"
            worker.stop()
        if key is not None:
            counts["found"] += 1
        if key is not None and key not in found:
            found.add(key)
            keep(target, key, text, seeds, (seed, worker.number))
        if not message:
            worker = Worker(target, seed, worker.number + 1, path)
    worker.stop()
    return counts, found


def keep(target, key, text, seeds, place):
    """Write down a finding. ``place``: the seed and the number of its file."""
    FINDINGS.mkdir(exist_ok=True)
    content, _ = content_of(target, seeds, *place)
    path = FINDINGS / f"{place[0]}-{place[1]}{target.suffix}"
    path.write_bytes(content)
    path.with_suffix(".txt").write_text(f"{key}\n\n{text}")
    sys.stdout.write(f"finding: {key}\n  {path}\n")
    sys.stdout.flush()


def main(target, description):
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--replay", nargs="+", type=Path, default=[], metavar="FILE")
    parser.add_argument("--work", nargs=3, default=None, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        seed, first, path = options.work
        work(target, int(seed), int(first), path)
    for path in options.replay:
        sys.stdout.write(f"{path}: {target.examine(path.read_bytes(), random.Random(0))}\n")
    if options.replay:
        return 0
    return 1 if fuzz(target, options.seed, options.seconds) else 0
