"""A plugin of pytest: kernels are compiled by a Python of this computer, not by an emulated one.

LLVM makes the same code wherever it runs, in a fraction of the time. ``ARM_COMPILER`` is that Python, and
``ARM_COMPILER_PLACES`` are the folders of its packages, as `tract_llvm.objects.compilers` passes them. Processes that
an emulated one starts are not emulated.
"""

from __future__ import annotations

import os
from typing import Any


def pytest_configure() -> None:
    """Have every kernel compiled in a process, and that process be one of this computer."""
    from tract_llvm.objects import compilers

    module: Any = compilers
    start = module._process
    module.FEW = module.FEW_MORE = 0
    module._PLACES[:] = os.environ["ARM_COMPILER_PLACES"].split(os.pathsep)
    module._process = lambda command: start([os.environ["ARM_COMPILER"], *command[1:]])
