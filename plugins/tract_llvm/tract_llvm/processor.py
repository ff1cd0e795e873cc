"""What the processor of this machine can do, by the names that LLVM has for it."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from tract_core.machine import architecture
from tract_llvm.llvm import binding


class _ArmFeature(NamedTuple):
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
}
"""By the names of LLVM. Linux, `arch/arm64/include/uapi/asm/hwcap.h`; Apple, "Determining instruction set
characteristics".
"""


def features(cpuinfo: Path = Path("/proc/cpuinfo")) -> Mapping[str, bool]:
    """The features of this processor, as far as the system lets programs use them; none where nobody can tell.

    Linux lists them for x86, and counts them as bits for ARM; macOS is asked by name. Elsewhere LLVM is asked, which
    takes as long as loading it does.
    """
    if architecture() == "aarch64":
        if sys.platform == "linux":
            return features_by_bits(_c_function("getauxval", ctypes.c_ulong))
        if sys.platform == "darwin":
            return features_by_name(_c_function("sysctlbyname", ctypes.c_int))
    listed: dict[str, bool] = _listed(cpuinfo) if sys.platform == "linux" else {}
    if listed:
        return listed
    try:
        return dict(binding().get_host_cpu_features())
    except RuntimeError:  # it cannot tell on every system; what every processor of an architecture has is sure
        return {}


def features_by_bits(getauxval: Any) -> dict[str, bool]:
    """The features of an ARM processor, by Linux's auxiliary vector."""
    vectors = {number: getauxval(ctypes.c_ulong(number)) for number in (_HWCAP, _HWCAP2)}
    return {name: bool(vectors[one.vector] >> one.bit & 1) for name, one in ARM_FEATURES.items()}


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


def _listed(cpuinfo: Path) -> dict[str, bool]:
    """What Linux says of the first processor: ``flags : ... avx512_vnni ...``, which LLVM calls ``avx512vnni``."""
    try:
        with cpuinfo.open(encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return {}
    return {flag.replace("_", ""): True for flag in flags.partition(":")[2].split()}
