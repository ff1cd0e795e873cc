"""All of ours imports where the system is another one, and what needs no compiler works there.

What runs is in `another_system`, each time in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("another_system.py")


@pytest.mark.parametrize("system", ["win32", "darwin"])
def test_all_modules_import_and_a_model_runs(system: str) -> None:
    done = subprocess.run([sys.executable, SCRIPT, system], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tract model.onnx doctor" in done.stdout
    count = int(done.stdout.splitlines()[-1].removesuffix(" modules"))
    assert count > 1000, "there are more modules than that"


GONE = """
import sys
sys.path.insert(0, {folder!r})
from another_system import pretend
pretend("win32")
import os, mmap, signal, sys
from contextlib import suppress
for act in (lambda: os.fork, lambda: mmap.MAP_PRIVATE, lambda: signal.SIGKILL, lambda: __import__("fcntl")):
    with suppress(AttributeError, ImportError):
        act()
        sys.exit("it is still there")
assert (sys.platform, os.name, os.path.join("a", "b")) == ("win32", "nt", os.path.sep.join("ab"))
"""


def test_what_posix_has_is_gone() -> None:
    script = GONE.format(folder=str(SCRIPT.parent))
    subprocess.run([sys.executable, "-c", script], check=True)
