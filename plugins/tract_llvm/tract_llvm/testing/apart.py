"""Assembly that is made in a process of its own, as LLVM ends the one that gives it code which it does not expect."""

from __future__ import annotations

import subprocess
import sys
from typing import Final

from tract_llvm.isa import Isa

_COMMAND: Final = """
import sys
from tract_llvm.objects.child import Wanted
from tract_llvm.objects.target import assembly
sys.stdout.write(assembly(sys.stdin.read(), Wanted(*sys.argv[1:])))
"""


def assembly_apart(text: str, isa: Isa) -> str:
    """What the processor is told, of a module. Raises CalledProcessError where LLVM does not survive it."""
    command = [sys.executable, "-c", _COMMAND, isa.architecture, isa.processor, isa.features]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout
