"""Where in its stream a pulse is: a number that is kept from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep
from tract_llvm.language.types import INDEX
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array


@frozen
class KeptPosition(Keeping):
    """How many positions of the stream came before."""

    def frozen(self, tensors: Sequence[Array]) -> int:
        """The number."""
        return int(tensors[0])

    def thaw(self, frozen: int, tensors: Sequence[Array]) -> None:
        """The number."""
        tensors[0][...] = np.int64(frozen)


def advance(site: Site, position: View, count: Dim) -> None:
    """Have the position go on by so many when the turn is over."""
    plan = AdvancePlan()
    given = arguments(plan, position=position.address, count=count)
    site.lowering.at_end(NativeStep(plan, given, 1, (), (position.storage,)))


@frozen
class AdvancePlan:
    """Adds to a number."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "advance"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("position", INDEX), Size("count"))

    def emit(self, k: Kernel) -> None:
        """The number, and how much is added."""
        taken = self.signature.taken(k)
        position = taken.memory("position")
        position[0] = position[0] + taken.size("count")
