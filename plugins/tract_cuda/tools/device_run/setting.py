"""What every part works with: the device, the networks that were asked for, and the rows that it has found so far."""

from __future__ import annotations

import json
import os
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from tract_cuda.driver.device import MULTIPROCESSORS, Device, device_of
from tract_cuda.driver.library import LOST, DriverError, native
from tract_cuda.language.arch import arch_for
from tract_cuda.lowering import Target

VIRTUAL = "virtual"
"""How the virtual GPU calls itself: nothing that it takes is the time of anything."""

DEVICE_IS_LOST = 3
"""The status of a part that has to go on in a new process."""

UNFINISHED = "it did not end: the process was stopped, or died"


class Setting:
    """``folder``: where rows are kept; ``small``: tiny sizes; ``until``: when the part has to be done, in monotonic
    seconds; ``only``: names of networks, or of what else a part goes through, all where there are none.
    """

    def __init__(self, folder: Path, part: str, *, small: bool, until: float, only: tuple[str, ...] = ()) -> None:
        self.folder, self.part, self.small, self.until, self.only = folder, part, small, until, only
        self._file = folder / f"{part}.json"
        kept = json.loads(self._file.read_text()) if self._file.exists() else {}
        self.rows: dict[str, dict[str, Any]] = kept.get("rows", {})
        self.notes: dict[str, Any] = kept.get("device", {})

    @cached_property
    def device(self) -> Device:
        found = device_of(0)
        self.notes = {
            "device": found.model,
            "capability": found.capability / 10,
            "driver": native().number("cuDriverGetVersion"),
            "multiprocessors": found.attribute(MULTIPROCESSORS),
            "memory_gib": round(found.memory_bytes / (1 << 30), 1),
            "sizes": "tiny" if self.small else "those of the bench",
        }
        return found

    @property
    def virtual(self) -> bool:
        return self.device.model == VIRTUAL

    @cached_property
    def target(self) -> Target:
        arch = arch_for(self.device.capability)
        if arch is None:
            raise RuntimeError(f"the GPU has compute capability {self.device.capability / 10}, which is too old")
        return Target(arch, self.device.attribute(MULTIPROCESSORS))

    @property
    def left(self) -> float:
        """Seconds until the part has to be done."""
        return self.until - time.monotonic()

    def wanted(self, names: Iterator[str] | list[str] | tuple[str, ...]) -> list[str]:
        """Those that were asked for, in order."""
        return [name for name in names if not self.only or name in self.only]

    def attempt(self, what: str, function: Callable[[], dict[str, Any]]) -> None:
        """A row: what a function gives, or why it failed. One that there is already is not made anew.

        A lost device ends the process, as nothing can be done on it any more; the part goes on in another one.
        """
        if what in self.rows:
            return
        self._put(what, {"failed": UNFINISHED})
        begin = time.monotonic()
        try:
            found = function()
        except Exception as error:  # whatever it is, it is told, and the part goes on
            traceback.print_exc()
            found = {"failed": f"{type(error).__name__}: {str(error)[:400]}"}
            if isinstance(error, DriverError) and error.code in LOST:
                self._put(what, found)
                sys.exit(DEVICE_IS_LOST)
        self._put(what, found)
        print(f"[{self.part}] {what}: {_told(found)} ({time.monotonic() - begin:.1f} s)", flush=True)

    def timed(self, function: Callable[[], float]) -> float | None:
        """What a function measures, once; of the virtual GPU, ``None``, though it is done."""
        found = function()
        return None if self.virtual else found

    def _put(self, what: str, row: dict[str, Any]) -> None:
        self.rows[what] = row
        self.save()

    def save(self) -> None:
        """Write down what there is, at once or not at all."""
        self.folder.mkdir(parents=True, exist_ok=True)
        there = self._file.with_suffix(".new")
        there.write_text(json.dumps({"device": self.notes, "rows": self.rows}, indent=1))
        os.replace(there, self._file)


def _told(row: dict[str, Any]) -> str:
    return ", ".join(f"{key} {_number(value)}" for key, value in row.items() if not isinstance(value, list | dict))


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
