"""How long do imports and the command's help take? Medians of fresh processes, in milliseconds."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import numpy": ["-c", "import numpy"],
    "import tract_core": ["-c", "import tract_core"],
    "import tract_core, every public name": ["-c", "from tract_core import *"],
    "tract --help": ["-m", "tract_core", "--help"],
}


def milliseconds(arguments: list[str], rounds: int = 9) -> float:
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


if __name__ == "__main__":
    for name, arguments in COMMANDS.items():
        print(f"{name:<40} {milliseconds(arguments):7.0f} ms")
