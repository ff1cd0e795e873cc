"""What the processor of this machine can do, by the names that LLVM has for it, and what the system lets it do."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

from tract_core.frozen import frozen
from tract_core.machine import architecture

if TYPE_CHECKING:
    from os import PathLike

FAST_BF16: Final = "fast-bf16-dots"
"""Whether the instruction that sums products of pairs of bf16 is faster than one that multiplies and adds f32.

It is on AMD's processors, from Zen 4 on; on Intel's, networks in bf16 took 1.6 times as long with it as those in f32.
"""

_NEWEST: Final = {"avx512fp16", "avxvnniint8"}
"""Processors that have AVX10.2 have both, and others lack one of them."""

_TILES: Final = {"amx-tile", "amx-int8", "amx-bf16"}
"""What needs registers that Linux only gives to processes that ask for them."""


@frozen
class _ArmFeature:
    """How systems say that an ARM processor has a feature.

    ``vector``, ``bit``: the entry of Linux's auxiliary vector, and the bit of it. ``apple``: what follows
    ``hw.optional.arm.`` in the name for ``sysctlbyname``.
    """

    vector: int
    bit: int
    apple: str


_HWCAP, _HWCAP2 = 16, 26
"""Linux, `include/uapi/linux/auxvec.h`."""

ARM_FEATURES: Final[Mapping[str, _ArmFeature]] = {
    "dotprod": _ArmFeature(_HWCAP, 20, "FEAT_DotProd"),
    "i8mm": _ArmFeature(_HWCAP2, 13, "FEAT_I8MM"),
    "bf16": _ArmFeature(_HWCAP2, 14, "FEAT_BF16"),
    "sve": _ArmFeature(_HWCAP, 22, "FEAT_SVE"),
    "sve-i8mm": _ArmFeature(_HWCAP2, 9, "FEAT_SVE_I8MM"),
    "sve-bf16": _ArmFeature(_HWCAP2, 12, "FEAT_SVE_BF16"),
}
"""By the names of LLVM. Linux, `arch/arm64/include/uapi/asm/hwcap.h`; Apple, "Determining instruction set
characteristics".
"""


def features(cpuinfo: str | PathLike[str] = "/proc/cpuinfo") -> Mapping[str, bool]:
    """The features of this processor, as far as the system lets programs use them; none where nobody can tell.

    They have the names of LLVM, but for `FAST_BF16` and those of `sve_of`. Linux lists them for x86, all but those of
    processors that have the `_NEWEST`, and counts them as bits for ARM; macOS is asked by name. Elsewhere LLVM is
    asked, which takes as long as loading it does.
    """
    if architecture() == "aarch64":
        if sys.platform == "linux":
            found = features_by_bits(_c_function("getauxval", ctypes.c_ulong))
            return found | lengths_of_sve(found, _c_function("prctl", ctypes.c_int))
        if sys.platform == "darwin":
            return features_by_name(_c_function("sysctlbyname", ctypes.c_int))
    found: dict[str, bool] = _listed(cpuinfo) if sys.platform == "linux" else {}
    if not found or found.keys() >= _NEWEST:
        found = _asked() or found
    if any(map(found.get, _TILES)) and not gives_tiles():
        found = {name: has and name not in _TILES for name, has in found.items()}
    return found


def gives_tiles() -> bool:
    """Whether this process may use tiles: Linux is asked for their registers.

    ``arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)``, of Linux's "Documentation/arch/x86/xstate.rst". Threads
    that are there and those to come have it from then on.
    """
    if sys.platform != "linux" or architecture() != "x86_64":
        return False
    try:
        call = ctypes.CDLL(None).syscall
    except (OSError, AttributeError):  # there is no C library that has it
        return False
    call.restype = ctypes.c_long
    return call(*map(ctypes.c_long, (_ARCH_PRCTL, _REQUEST_PERMISSION, _TILE_DATA))) == 0


_ARCH_PRCTL: Final = 158
"""The system call of x86-64 on Linux."""
_REQUEST_PERMISSION: Final = 0x1023
_TILE_DATA: Final = 18


def _asked() -> dict[str, bool]:
    from tract_llvm.llvm import binding

    try:
        names = binding().get_host_cpu_name()
        return {**binding().get_host_cpu_features(), FAST_BF16: names.startswith("znver")}
    except RuntimeError:  # it cannot tell on every system; what every processor of an architecture has is sure
        return {}


def features_by_bits(getauxval: Any) -> dict[str, bool]:
    """The features of an ARM processor, by Linux's auxiliary vector."""
    vectors = {number: getauxval(ctypes.c_ulong(number)) for number in (_HWCAP, _HWCAP2)}
    return {name: bool(vectors[one.vector] >> one.bit & 1) for name, one in ARM_FEATURES.items()}


def sve_of(bits: int) -> str:
    """The feature that registers of SVE have so many bits."""
    return f"sve-of-{bits}"


def lengths_of_sve(features: Mapping[str, bool], prctl: Any) -> dict[str, bool]:
    """How many bits the registers of SVE have in this process, as a feature; none where there are no such registers.

    ``prctl(PR_SVE_GET_VL)``, of Linux's "Documentation/arch/arm64/sve.rst": bytes, with flags above.
    """
    if not features["sve"]:
        return {}
    found = prctl(ctypes.c_int(_SVE_GET_VL), *[ctypes.c_ulong(0)] * 4)
    return {} if found < 0 else {sve_of((found & _LENGTH) * 8): True}


_SVE_GET_VL: Final = 51
_LENGTH: Final = 0xFFFF


def features_by_name(sysctlbyname: Any) -> dict[str, bool]:
    """The features of a processor of Apple; one whose name the system does not know is not there."""
    found = dict[str, bool]()
    for name, one in ARM_FEATURES.items():
        has, size = ctypes.c_int(0), ctypes.c_size_t(ctypes.sizeof(ctypes.c_int))
        asked = f"hw.optional.arm.{one.apple}".encode()
        failed = sysctlbyname(asked, ctypes.byref(has), ctypes.byref(size), None, ctypes.c_size_t(0))
        found[name] = not failed and bool(has.value)
    return found


def _c_function(name: str, returns: Any) -> Any:
    found = ctypes.CDLL(None)[name]  # a function of its own, so that its type is nobody else's
    found.restype = returns
    return found


def _listed(cpuinfo: str | PathLike[str]) -> dict[str, bool]:
    """What Linux says of the first processor: ``flags : ... avx512_vnni ...``, which LLVM calls ``avx512vnni``."""
    try:
        with open(cpuinfo, encoding="utf-8", errors="replace") as lines:
            said = dict(takewhile(lambda pair: pair[0], map(_pair, lines)))
    except OSError:
        return {}
    flags = said.get("flags", "").split()
    if not flags:
        return {}
    found = {flag.replace("_", "-" if flag.startswith("amx") else ""): True for flag in flags}
    return {**found, FAST_BF16: said.get("vendor_id") == "AuthenticAMD"}


def _pair(line: str) -> tuple[str, str]:
    name, _, value = line.partition(":")
    return name.strip(), value.strip()
