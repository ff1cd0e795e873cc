"""What object files are made for: processors and systems, as data."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from tract_llvm.isa import ISAS, ByteLookup, Dot, Isa, chosen, of_this_machine

from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_cpu.ahead.arm import ARM


@frozen
class ObjectTarget:
    """``name``: as one asks for it. ``isa``: what kernels are planned and written for; ``triple``: as LLVM says it."""

    name: str
    isa: Isa
    triple: str

    @property
    def system(self) -> str:
        """The system that it is for, by Python's name."""
        return "win32" if "-windows-" in self.triple else "darwin" if "-apple-" in self.triple else "linux"

    @property
    def is_module(self) -> bool:
        """Whether it is WebAssembly."""
        return self.triple.startswith(WASM)

    @property
    def address_bits(self) -> int:
        """Of an address there."""
        return 32 if self.isa.architecture in {ARM, WASM} else 64

    @property
    def has_pages_to_touch(self) -> bool:
        """Whether a thread has no more of its stack than it has touched, one page after the other."""
        return "-windows-" in self.triple


_SYSTEMS: Final[Mapping[str, Mapping[str, str]]] = {
    "x86_64": {
        "": "x86_64-unknown-linux-gnu",
        "-windows": "x86_64-pc-windows-gnu",
        "-macos": "x86_64-apple-macosx11.0.0",
    },
    "aarch64": {
        "": "aarch64-unknown-linux-gnu",
        "-windows": "aarch64-pc-windows-gnu",
        "-macos": "arm64-apple-macosx11.0.0",
    },
}
"""The triples of LLVM, by architecture, and by what stands behind the name of a processor: Linux where nothing does.

Objects for Windows are what Microsoft's linker and others take alike. With ``msvc`` in the triple they would ask for
``_fltused``, a symbol of Microsoft's library that is about printing floats.
"""

_NEVER: Final = 1 << 10
"""Wider than any element."""

SIMD128: Final = Isa(
    "simd128",
    "wasm32",
    "generic",
    "+simd128,+bulk-memory,+nontrapping-fptoint,+sign-ext,+mutable-globals",
    (),
    16,
    12,  # engines have 15 on x86-64, and load all factors of a step before they multiply any
    masks_bits=_NEVER,
    fma=False,
    half=False,
    rounds=True,
    scales=(),
    dots=(Dot("wasm.dot", 2, "i16", "i16", "i32", adds=False),),
    pause=(),
    any_nan=True,
    widens=True,
    lookup=ByteLookup("wasm.swizzle", 1),
)
"""The vectors of WebAssembly: no Python of ours runs there, so it is not among the sets of machines."""

RELAXED_SIMD: Final = replace(SIMD128, name="relaxed-simd", features=f"{SIMD128.features},+relaxed-simd", may_fuse=True)
"""With instructions whose results may differ from one processor to another: of these, what multiplies and adds.

The relaxed sum of products of bytes is exact where one factor has seven bits and no sign, which nothing says of usual
models: bytes are multiplied as they are without it.
"""

ARMV7: Final = Isa(
    "armv7",
    ARM,
    "generic",
    "+v7,+neon,+vfp3,+d32",
    (),
    16,
    12,
    masks_bits=_NEVER,
    fma=False,
    half=False,
    rounds=False,
    scales=(),
    dots=(),
    pause=(),
    flushes=True,
    extremes_bits=32,  # of f64, LLVM 22 ends the process
)
"""32-bit ARM with NEON, whose vectors know no subnormal f32, and with doubles in registers of their own."""

ARMV7_FMA: Final = replace(ARMV7, name="armv7+vfpv4", features="+v7,+neon,+vfp4,+d32,+hwdiv-arm", fma=True, half=True)
"""As Cortex-A7 and A15 have it, and all that came later."""

RISCV64: Final = Isa(
    "riscv64",
    "riscv64",
    "generic-rv64",
    "+m,+a,+f,+d,+c,+zicsr,+zifencei",
    (),
    16,
    9,  # each is four registers, as LLVM takes vectors apart; with fewer, no tile of a convolution fits
    masks_bits=_NEVER,
    fma=True,
    half=False,
    rounds=False,
    scales=(),
    dots=(),
    pause=(),
)
"""What distributions are made for (rv64gc), without vectors."""

RISCV64_V: Final = replace(RISCV64, name="riscv64+v", features=f"{RISCV64.features},+v,+zvl128b", registers=28)
"""With vectors, of which 128 bits are used: every processor for applications has as many at least."""

WASM: Final = "wasm32"

_MODULES: Final[Mapping[str, Isa]] = {WASM: SIMD128, "wasm32+relaxed-simd": RELAXED_SIMD}

_EMBEDDED: Final = (ARMV7, ARMV7_FMA, RISCV64, RISCV64_V)
"""What only objects are for: the runtime does not know these processors."""

_ALONE: Final = {ARM: "armv7-unknown-linux-gnueabihf", "riscv64": "riscv64-unknown-linux-gnu"}
"""The triples of those that have one system."""

_PROCESSORS: Final[Mapping[str, str]] = {
    "x86-64": "sse2",
    "x86-64-v3": "avx2",
    "x86-64-v3-vnni": "avxvnni",
    "x86-64-v4": "avx512",
    "x86-64-v4-vnni": "avx512vnni",
    "aarch64": "neon",
    "aarch64+dotprod": "neondot",
    "aarch64+i8mm+bf16": "neoni8mm",
}
"""The instruction sets of processors, by the names that compilers have for these."""

_OWN_SYSTEM: Final = {"linux": "", "win32": "-windows", "darwin": "-macos"}

NATIVE: Final = "native"


def _every() -> dict[str, ObjectTarget]:
    found = dict[str, ObjectTarget]()
    for processor, name in _PROCESSORS.items():
        isa = next(one for one in ISAS if one.name == name)
        for system, triple in _SYSTEMS[isa.architecture].items():
            found[processor + system] = ObjectTarget(processor + system, isa, triple)
    found |= {isa.name: ObjectTarget(isa.name, isa, _ALONE[isa.architecture]) for isa in _EMBEDDED}
    return found | {name: ObjectTarget(name, isa, "wasm32-unknown-unknown") for name, isa in _MODULES.items()}


TARGETS: Final[Mapping[str, ObjectTarget]] = _every()


def _everywhere_the_same() -> Isa:
    """The best set of this machine whose registers need no permission, and have one length in every process.

    Nobody asks for that who calls an object.
    """
    chosen("")  # raises where there is none
    return [one for one in of_this_machine() if not one.tiles and not one.vscale][-1]


def target_named(name: str) -> ObjectTarget:
    """The target of a name; ``native`` is this machine. Raises Unsupported where there is none of that name."""
    if name == NATIVE:
        isa, system = _everywhere_the_same(), _OWN_SYSTEM.get(sys.platform)
        if system is None:
            raise Unsupported(f"nobody knows the objects of {platform.system()}", hint="name a target")
        return ObjectTarget(NATIVE, isa, _SYSTEMS[isa.architecture][system])
    found = TARGETS.get(name)
    if found is None:
        raise Unsupported(f"there is no target {name!r}", hint=f"there are {NATIVE}, {', '.join(TARGETS)}")
    return found
