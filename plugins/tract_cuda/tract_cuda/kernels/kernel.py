"""What every kernel is: a plan, which is data, and how it is written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tract_cuda.language.kernel import Kernel, Parameter


class KernelPlan(Protocol):
    """All that is decided about a kernel: a frozen dataclass whose fields tell it from every other kernel."""

    @property
    def name(self) -> str:
        """What profiles call it: a word that PTX takes as a name."""
        ...

    @property
    def threads(self) -> int:
        """Of a block: a multiple of 32, at most 1024."""
        ...

    @property
    def parameters(self) -> Sequence[Parameter]:
        """What it is called with."""
        ...

    def emit(self, k: Kernel) -> None:
        """Write it: nothing is decided here."""
        ...
