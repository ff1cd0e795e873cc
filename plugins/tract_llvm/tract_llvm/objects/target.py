"""LLVM for one instruction set: modules become object code, and object code is linked where we cannot do that.

This loads LLVM, so it is imported when something is compiled, and by processes that do nothing else: it imports no more
than it needs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Protocol

from tract_llvm.llvm import AS_WRITTEN, binding
from tract_llvm.objects.system import convention

if TYPE_CHECKING:
    from tract_llvm.isa import Isa
    from tract_llvm.objects.linker import Linked

llvm: Any = binding()


class Processor(Protocol):
    """What LLVM has to know of an instruction set."""

    @property
    def architecture(self) -> str:
        """Which instructions there are at all."""
        ...

    @property
    def processor(self) -> str:
        """As LLVM calls it."""
        ...

    @property
    def features(self) -> str:
        """What it can do besides, as LLVM wants it."""
        ...


LONG: Final = 1 << 15
"""How many characters of text make a long module: one with tiles, most of which is products and sums in a row.

There, all passes of the optimiser take as long as the writer of machine code, and change nothing that counts. In short
ones they save what is computed again for every row, which counts where rows are short.
"""


@cache
def machine(isa: Processor) -> Any:
    """What writes code for an instruction set, and for this system."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    triple, more = convention(isa.architecture)
    features = ",".join(filter(None, (isa.features, more)))
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=isa.processor, features=features, opt=3, reloc="pic", codemodel="small", jit=True
    )


def optimised(text: str, isa: Processor) -> Any:
    """A module of LLVM from its text, as the optimiser leaves it. Kernels say themselves what is a vector."""
    return optimised_for(text, machine(isa))


def machine_for(isa: Processor, triple: str) -> Any:
    """What writes code for an instruction set on another system, for whoever links it there."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple(triple)
    reloc = "static" if isa.architecture == "wasm32" else "pic"  # where addresses are numbers anyway
    return target.create_target_machine(cpu=isa.processor, features=isa.features, opt=3, reloc=reloc, codemodel="small")


def parsed(text: str, machine: Any) -> Any:
    """A module of LLVM from its text, for the system of a machine."""
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    module.verify()
    return module


def optimised_for(text: str, machine: Any) -> Any:
    """The same, as the optimiser leaves it."""
    module = parsed(text, machine)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = options.loop_interleaving = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    passes = _few_passes() if len(text) > LONG else builder.getModulePassManager()
    passes.run(module, builder)
    return module


def _few_passes() -> Any:
    """Variables become values, and what was written at length is written shortly."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes


def object_code(text: str, isa: Processor) -> bytes:
    """The object file of a module."""
    return bytes(_written(text, isa, machine(isa).emit_object))


def assembly(text: str, isa: Processor) -> str:
    """What the processor is told, to be read."""
    return str(_written(text, isa, machine(isa).emit_assembly))


def _written(text: str, isa: Processor, write: Callable[[Any], Any]) -> Any:
    module = optimised(text, isa)
    if f'"{AS_WRITTEN}"' not in text.partition("\n")[0]:
        return write(module)
    llvm.set_option("tract", "-disable-lsr=true")  # an option of LLVM as a whole
    try:
        return write(module)
    finally:
        llvm.set_option("tract", "-disable-lsr=false")


def linked(name: str, code: bytes, isa: Isa) -> Linked:
    """A function out of an object file."""
    from tract_llvm.objects.linker import Linked  # which processes that only compile cannot import

    builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(name)
    tracker = builder.link(_linker(isa), f"{next(_NUMBERS)}.{name}")
    sections = llvm.ObjectFileRef.from_data(code).sections()
    return Linked(tracker[name], max((one.size() for one in sections if one.is_text()), default=0), tracker)


_NUMBERS: Final = count()
"""Libraries of the linker have names of their own."""


@cache
def _linker(isa: Isa) -> Any:
    """JITLink, which lays the sections of an object side by side.

    LLVM's older linker has them wherever there is room: in a process with gigabytes of memory farther apart than 32
    bits reach, which ends the process. On Windows it is the one that is complete.
    """
    return llvm.create_lljit_compiler(machine(isa), use_jit_link=sys.platform != "win32")
