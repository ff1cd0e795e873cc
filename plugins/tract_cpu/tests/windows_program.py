"""A program for Windows with many models in it, built by mingw-w64 and run by Wine."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from object_program import Work, build, given_by

COMPILER: Final = shutil.which("x86_64-w64-mingw32-gcc")
WINE: Final = next(filter(None, map(shutil.which, ("wine64", "wine64-stable", "/usr/lib/wine/wine64", "wine"))), None)

_SECONDS: Final = 300

_MAIN: Final = """
#include <windows.h>

static void *room(size_t size) {
  return VirtualAlloc(NULL, size + 64, MEM_COMMIT | MEM_RESERVE, PAGE_READWRITE);
}

/* In a thread, whose stack is as small as it can be in the beginning. */
static DWORD WINAPI in_thread(void *unused) {
  (void)unused;
  return (DWORD)work();
}

int main(void) {
  DWORD status = 7;
  HANDLE thread = CreateThread(NULL, 0, in_thread, NULL, 0, NULL);
  WaitForSingleObject(thread, INFINITE);
  GetExitCodeThread(thread, &status);
  return (int)status;
}
"""


def run_on_windows(works: Sequence[Work], folder: Path) -> list[list[np.ndarray]]:
    """What each model gives. Builds and runs one program in a folder."""
    assert COMPILER is not None
    assert WINE is not None
    build(works, folder, [COMPILER], main=_MAIN, ending=".obj")
    settings = {**os.environ, "WINEPREFIX": str(folder / "wine"), "WINEDEBUG": "-all", "DISPLAY": ""}
    subprocess.run([WINE, "main.exe"], cwd=folder, env=settings, check=True, timeout=_SECONDS)
    return given_by(works, folder)
