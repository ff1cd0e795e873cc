"""What is run once on a machine with a GPU, in few calls: is all right there, and how fast is it?

``python first_device_run.py --out FOLDER [--only PART ...] [--minutes 9]``

Each part runs in a process of its own, with a limit of time, and tells what it finds row by row; a part that fails, or
that comes to its limit, leaves the rows that it has, and the next one goes on. Another call with the same folder goes
on where the one before ended: what failed is tried again. What was found is in FOLDER, as ``report.json`` and
``report.md``, and ``measured.json`` of the part `tiles` takes the place of that of `tract_cuda/products`.

``--small`` goes through all parts in tiny sizes, as with the virtual GPU, to see that they work:
``TRACT_CUDA_DRIVER=tract_cuda.testing.virtual:VirtualGpu``. Of what is not there nothing is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

PARTS = {
    "load": ("device_run.load:run", 300),
    "kit": ("device_run.kit:run_kit", 300),
    "networks": ("device_run.networks:run", 300),
    "ceilings": ("device_run.ceilings:run", 60),
    "tiles": ("device_run.tiles:run", 300),
    "speed": ("device_run.speed:run", 540),
    "where": ("device_run.where:run", 180),
    "sanitizer": ("device_run.kit:run_sanitizer", 300),
}
"""By name, in order: what does it, and its limit in seconds where none is given."""

_MOST_PROCESSES = 20
"""In which a part goes on, each after one that died."""


def arguments() -> argparse.Namespace:
    """What was asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="the folder for what is found")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS), metavar="PART", help="of these")
    parser.add_argument("--names", nargs="+", default=[], help="only these networks, or families of cases")
    parser.add_argument("--minutes", type=float, default=9.5, help="for all parts together (default: 9.5)")
    parser.add_argument("--seconds", type=float, help="for each part, instead of its own limit")
    parser.add_argument("--small", action="store_true", help="tiny sizes")
    parser.add_argument(
        "--part", choices=list(PARTS), help=argparse.SUPPRESS
    )  # what a process of a part is called with
    return parser.parse_args()


def main() -> int:
    """Returns 1 where any row failed."""
    given = arguments()
    if given.part is not None:
        run_part(given)
        return 0
    end = time.monotonic() + 60 * given.minutes
    given.out.mkdir(parents=True, exist_ok=True)
    told: dict[str, tuple[str, float]] = {}
    for part in given.only:
        limit = min(given.seconds or PARTS[part][1], end - time.monotonic())
        print(f"[{part}] at most {max(limit, 0):.0f} s", flush=True)
        begin = time.monotonic()
        told[part] = _in_processes(given, part, begin + limit), time.monotonic() - begin
        print(f"[{part}] {told[part][0]}", flush=True)
        report = write_report(given.out, told)
    return int(any("failed" in row for part in report["parts"].values() for row in part["rows"].values()))


def run_part(given: argparse.Namespace) -> None:
    """In a process of its own."""
    from device_run.setting import Setting

    until = time.monotonic() + given.seconds
    setting = Setting(given.out, given.part, small=given.small, until=until, only=tuple(given.names))
    module, _, name = PARTS[given.part][0].partition(":")
    run: Callable[[Setting], None] = getattr(import_module(module), name)
    run(setting)
    setting.save()


def _in_processes(given: argparse.Namespace, part: str, until: float) -> str:
    """How a part ended. It goes on in a new process where one died, as with a device that is lost."""
    _forget_what_failed(given.out / f"{part}.json")
    status, rows = 0, -1
    for _ in range(_MOST_PROCESSES):
        left = until - time.monotonic()
        if left < 1:
            return "out of time"
        before, rows = rows, _rows(given.out / f"{part}.json")
        if status and rows == before:
            return f"status {status}, without getting any further"
        status = _one_process(given, part, left)
        if status == 0:
            return "to its end"
        if status == -signal.SIGKILL and until - time.monotonic() < 1:
            return "stopped at its limit"
    return f"status {status}"


def _one_process(given: argparse.Namespace, part: str, seconds: float) -> int:
    """The status of one; all that it started is stopped with it where it comes to its limit."""
    command = [sys.executable, __file__, "--out", given.out, "--part", part, "--seconds", f"{seconds:.1f}"]
    command += ["--small"] if given.small else []
    command += ["--names", *given.names] if given.names else []
    with subprocess.Popen(list(map(str, command)), start_new_session=True) as process:
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            return process.wait()


def _rows(file: Path) -> int:
    return len(json.loads(file.read_text())["rows"]) if file.exists() else 0


def _forget_what_failed(file: Path) -> None:
    """So that it is tried again."""
    if file.exists():
        found = json.loads(file.read_text())
        found["rows"] = {what: row for what, row in found["rows"].items() if "failed" not in row}
        file.write_text(json.dumps(found))


def write_report(folder: Path, told: dict[str, tuple[str, float]]) -> dict[str, Any]:
    """All parts that there are in the folder, those of earlier calls too. Returns what is written."""
    from device_run.report import markdown

    report = folder / "report.json"
    before: dict[str, Any] = json.loads(report.read_text())["parts"] if report.exists() else {}
    parts, device = dict[str, Any](), dict[str, Any]()
    for part in PARTS:
        file = folder / f"{part}.json"
        found = json.loads(file.read_text()) if file.exists() else {"device": {}, "rows": {}}
        if part in told or file.exists():
            ended, seconds = told.get(part) or (
                before.get(part, {}).get("ended", "?"),
                before.get(part, {}).get("seconds", 0),
            )
            device = device or found["device"]
            parts[part] = {"ended": ended, "seconds": seconds, "device": found["device"], "rows": found["rows"]}
    whole = {"device": device, "parts": parts}
    report.write_text(json.dumps(whole, indent=1))
    report.with_suffix(".md").write_text(markdown(whole))
    return whole


if __name__ == "__main__":
    sys.exit(main())
