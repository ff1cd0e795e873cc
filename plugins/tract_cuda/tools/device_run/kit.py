"""The conformance kit on the device, by pytest; and the same under NVIDIA's sanitizer, where that is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from device_run.setting import Setting

KIT = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--pyargs", "tract_core.testing", "--tract-runtime", "cuda")

_SUBSET = ("einsum", "conv", "reduce", "softmax", "gather", "scatter", "cumsum", "topk")
"""Families of cases that go through the sanitizer, each apart."""

_TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
_FOUND = 86
"""The status of the sanitizer where it found anything."""

_LEAST_SECONDS = 20


def run_kit(setting: Setting) -> None:
    """A row for all of it."""
    _ = setting.device
    words = [*setting.only] or ["trilu"] if setting.small or setting.only else []
    several = [] if setting.small else ["-n", str(os.cpu_count() or 1)]
    what = f"the kit: {' or '.join(words)}" if words else "the whole kit"
    setting.attempt(what, partial(_pytest, setting, [*several, *_chosen(words)]))


def _chosen(words: Sequence[str]) -> list[str]:
    return ["-k", " or ".join(words)] if words else []


def _pytest(setting: Setting, more: Sequence[str], before: Sequence[str | Path] = ()) -> dict[str, Any]:
    command = [*map(str, before), sys.executable, *KIT, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=max(setting.left - 2, 1))
    name = re.sub(r"\W+", "-", " ".join(map(str, [*before[1:3], *more])))[:60]
    (setting.folder / f"{setting.part}{name}.log").write_text(done.stdout + done.stderr)
    counts = {
        word: int(count) for count, word in re.findall(r"(\d+) (passed|failed|skipped|xfailed|error)", done.stdout)
    }
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    row: dict[str, Any] = {**counts, "status": done.returncode}
    if done.returncode:
        tail = (done.stdout + done.stderr).strip().splitlines()[-3:]
        row["failed"] = ", ".join(one.rsplit("::", 1)[-1] for one in failed[:20]) or " / ".join(tail)
    return row


def run_sanitizer(setting: Setting) -> None:
    """A row for each of its tools and each family of cases; one that says so where it is not installed."""
    _ = setting.device
    program = next(_sanitizers(), None)
    if program is None:
        setting.attempt("compute-sanitizer", lambda: {"left out": "compute-sanitizer is not installed"})
        return
    for tool in _TOOLS:
        for family in setting.wanted(_SUBSET):
            if setting.left < _LEAST_SECONDS:
                return
            before = [program, "--tool", tool, "--error-exitcode", str(_FOUND), "--target-processes", "all"]
            more = ["-x", "-k", f"{family} and fixed and not decluttered"]
            setting.attempt(f"{tool}, {family}", partial(_sanitized, setting, more, before))


def _sanitized(setting: Setting, more: Sequence[str], before: Sequence[str | Path]) -> dict[str, Any]:
    row = _pytest(setting, more, before)
    if row["status"] == _FOUND:
        row["failed"] = "the sanitizer found something: its log is beside the report"
    return row


def _sanitizers() -> Iterator[Path]:
    on_path, wheels = shutil.which("compute-sanitizer"), find_spec("nvidia")
    if on_path is not None:
        yield Path(on_path)
    yield from sorted(Path("/usr/local").glob("cuda*/bin/compute-sanitizer"))
    for folder in (wheels.submodule_search_locations or ()) if wheels is not None else ():
        yield from sorted(Path(folder).glob("*/bin/compute-sanitizer"))
