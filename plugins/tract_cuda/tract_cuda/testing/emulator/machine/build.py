"""The machine as native code, once per process."""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from tract_llvm.llvm import LOCK, binding, ir
from tract_llvm.objects.c_library import function_of_system

from tract_cuda.testing.emulator.machine import access, barriers, copies, mbarriers, schedule

_SPEED: Final = 2

FUNCTIONS: Final = (
    *(f"access_{space}" for space in ("global", "shared", "local", "generic")),
    *("copy_start", "copy_commit", "copy_wait", "barrier_arrive", "warp_meet", "trap", "run_launch"),
    *("mbarrier_init", "mbarrier_arrive", "mbarrier_test", "bulk_start"),
)
"""What kernels and launches call."""


class Machine:
    """``addresses``: of its functions, by name."""

    def __init__(self) -> None:
        with LOCK:
            llvm = binding()
            llvm.initialize_native_target()
            llvm.initialize_native_asmprinter()
            self._engine = compiled(_text(), _SPEED)
            self.addresses = {name: self._engine.get_function_address(name) for name in FUNCTIONS}
            for name, address in self.addresses.items():
                llvm.add_symbol(f"tract.{name}", address)
            for name in ("exp2", "log2", "sin", "cos", "tanh"):
                llvm.add_symbol(f"tract.{name}", function_of_system(name))


def _target(speed: int) -> Any:
    llvm = binding()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=speed
    )


def compiled(text: str, speed: int) -> Any:
    """The engine that holds the functions of a module of LLVM. ``speed`` 0: compiled fast, above: fast code."""
    llvm, target = binding(), _target(speed)  # which belongs to the engine from then on
    module = llvm.parse_assembly(text)
    module.verify()
    if not speed:
        _simplify(module, target)
    passes = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=speed))
    passes.getModulePassManager().run(module, passes)
    engine = llvm.create_mcjit_compiler(module, target)
    engine.finalize_object()
    return engine


def _simplify(module: Any, target: Any) -> None:
    """What makes code small that nothing else improves: registers for memory, and no more."""
    llvm = binding()
    passes = llvm.create_new_module_pass_manager()
    for name in ("always_inliner", "sroa", "simplify_cfg", "instruction_combine"):
        getattr(passes, f"add_{name}_pass")()
    passes.run(module, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=0)))


def _text() -> str:
    module: Any = ir.Module("machine")
    for part in (access, mbarriers, copies, barriers, schedule):
        part.write(module)
    return str(module)


@cache
def machine() -> Machine:
    """That of this process."""
    return Machine()
