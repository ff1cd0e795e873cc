"""From the plan of a kernel to its native function: the name, the key under which it is kept, and what writes it."""

from __future__ import annotations

from typing import Any

from tract_llvm.elements.plan_text import plan_text
from tract_llvm.isa import Isa
from tract_llvm.objects.library import Code
from tract_llvm.objects.origins import key_of_code

from tract_cpu.kernels.kernel import Kernel, KernelPlan


def code_of(kernel: KernelPlan, isa: Isa, *, watches: bool = False) -> Code:
    """The native function of a kernel, for one instruction set. ``watches``: as in `Kernel`."""
    how = " watches" if watches else ""
    key = key_of_code(type(kernel), f"{plan_text(kernel)}{how}", isa)
    name = f"{kernel.name}_{key.digest[:8]}"

    def emit(module: Any) -> None:
        k = Kernel(module, name, isa, watches=watches)
        kernel.emit(k)
        k.finish()

    return Code(key, name, emit)
