"""Kernels as PTX: what LLVM makes of them."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tract_llvm.elements.plan_text import plan_text
from tract_llvm.llvm import LOCK, binding
from tract_llvm.objects.library import module_text
from tract_llvm.objects.origins import key_of_code

from tract_core.cache.cache import cache_here
from tract_core.frozen import frozen
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.language.arch import TRIPLE, Arch
from tract_cuda.language.kernel import Kernel

_SPEED: Final = 3


@frozen
class Ptx:
    """A kernel as PTX. ``name``: of its entry; ``text``: all of it.

    ``threads``: of a block; ``shared_bytes``: of the shared memory that a launch gives a block.
    """

    name: str
    text: str
    threads: int
    shared_bytes: int


def ptx_for(plan: KernelPlan, arch: Arch, *, wide: bool = False) -> Ptx:
    """A kernel as PTX, out of the cache where it is kept. ``wide``: whether positions are i64."""
    kept, key = cache_here(), key_of_code(type(plan), f"{plan_text(plan)}{' wide' if wide else ''}", arch)
    content = kept.get(key)
    if content is not None:
        head, _, text = content.decode().partition("\n")
        return Ptx(plan.name, text, plan.threads, int(head))
    found = written(plan, arch, wide=wide)
    kept.put(key, f"{found.shared_bytes}\n{found.text}".encode())
    return found


def written(plan: KernelPlan, arch: Arch, *, wide: bool = False) -> Ptx:
    """The same, written anew."""
    kernels: list[Kernel] = []

    def emit(module: Any) -> None:
        k = Kernel(module, plan.name, arch, plan.threads, plan.parameters, wide=wide)
        plan.emit(k)
        k.finish()
        kernels.append(k)

    text = module_text(emit)
    (k,) = kernels
    return Ptx(plan.name, ptx_of(_bounded(text, k), arch), plan.threads, k.shared_bytes)


def _bounded(text: str, k: Kernel) -> str:
    """With the number of threads, which llvmlite has no attribute for: compilers share out registers by it."""
    head, body = text.split("nounwind", 1)
    blocks = f' "nvvm.minctasm"="{k.least_blocks}"' if k.least_blocks else ""
    return f'{head}nounwind "nvvm.maxntid"="{k.threads}"{blocks}{body}'


def ptx_of(text: str, arch: Arch) -> str:
    """The PTX of a module of LLVM."""
    with LOCK:
        llvm = binding()
        _initialise()
        target = llvm.Target.from_triple(TRIPLE)
        machine = target.create_target_machine(cpu=arch.name, features=f"+ptx{arch.ptx}", opt=_SPEED)
        module = llvm.parse_assembly(text)
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=_SPEED)
        passes = llvm.create_pass_builder(machine, options)
        passes.getModulePassManager().run(module, passes)
        return machine.emit_assembly(module)


@cache
def _initialise() -> None:
    llvm = binding()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
