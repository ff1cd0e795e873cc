"""The cores of this machine: threads that share one get in each other's way."""

from __future__ import annotations

import sys

from tract_core.machine import processors_here, sysctl


def cores_here() -> int:
    """How many cores this process may use; as many as there are processors where the system does not say.

    Where some are slower than others, as in machines of Apple, the fast ones: a run would wait for the others.
    """
    processors = processors_here()
    if sys.platform == "win32":
        from tract_cpu.table_of_windows import table_of_windows

        cores = table_of_windows().cores
        return len({next((core for core in cores if core >> one & 1), -1 - one) for one in processors})
    if sys.platform == "darwin":
        return sysctl("hw.perflevel0.physicalcpu") or sysctl("hw.physicalcpu") or len(processors)
    return len({_siblings(one) for one in processors})


def _siblings(processor: int) -> str:
    """The processors that share a core with one, as the system writes them; its own number where it does not say."""
    try:
        with open(f"/sys/devices/system/cpu/cpu{processor}/topology/thread_siblings_list", encoding="utf-8") as file:
            return file.read().strip()
    except OSError:
        return str(processor)
