"""Where each part of a result begins, of how much each part has."""

from __future__ import annotations

from tract_llvm.language.types import INDEX

from tract_core.frozen import frozen
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size


@frozen
class StartsPlan:
    """Where what is found in each part begins among all, in the place of how much that is; behind, how much all is."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "starts"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Size("parts"), Memory("counts", INDEX))

    def emit(self, k: Kernel) -> None:
        """One task."""
        taken = self.signature.taken(k)
        parts, counts = taken.size("parts"), taken.memory("counts")
        with k.loop("task", k.end, k.begin):
            total = k.variable(k.index(0))
            with k.loop("part", parts) as part:
                count = counts[part]
                counts[part] = total.value
                total.value = total.value + count
            counts[parts] = total.value
