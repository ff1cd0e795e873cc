"""What the processor of this machine can do, by the names that LLVM has for it."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from tract_llvm.llvm import binding


def features(cpuinfo: Path = Path("/proc/cpuinfo")) -> Mapping[str, bool]:
    """The features of this processor, as far as the system lets programs use them; none where nobody can tell.

    Linux lists them for x86; elsewhere LLVM is asked, which takes as long as loading it does.
    """
    listed = _listed(cpuinfo) if sys.platform == "linux" else {}
    if listed:
        return listed
    try:
        return dict(binding().get_host_cpu_features())
    except RuntimeError:  # it cannot tell on every system; what every processor of an architecture has is sure
        return {}


def _listed(cpuinfo: Path) -> dict[str, bool]:
    """What Linux says of the first processor: ``flags : ... avx512_vnni ...``, which LLVM calls ``avx512vnni``."""
    try:
        with cpuinfo.open(encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return {}
    return {flag.replace("_", ""): True for flag in flags.partition(":")[2].split()}
