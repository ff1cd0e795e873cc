"""Sizes: those that must be equal, and those that are elements of a tensor."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.language.types import I32, I64

from tract_core.frozen import frozen
from tract_cuda.kernels.gather import refuse
from tract_cuda.language.arch import WARP
from tract_cuda.language.kernel import Kernel, Parameter, sizes


@frozen
class EqualPlan:
    """Refuses where the sizes of a pair differ. ``pairs``: how many there are."""

    pairs: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "equal"

    @property
    def threads(self) -> int:
        """Of a block."""
        return WARP

    @property
    def parameters(self) -> Sequence[Parameter]:
        """Both sizes of all pairs."""
        return (*sizes("left", self.pairs), *sizes("right", self.pairs), Parameter("status", I32))

    def emit(self, k: Kernel) -> None:
        """Look at each pair."""
        for left, right in zip(k.sizes("left", self.pairs), k.sizes("right", self.pairs), strict=True):
            with k.when(left.differs(right) & k.thread().equals(0)):
                refuse(k)


@frozen
class WrittenSizesPlan:
    """Writes sizes to a tensor. ``count``: how many there are."""

    count: int

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "sizes"

    @property
    def threads(self) -> int:
        """Of a block."""
        return WARP

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The sizes, and the tensor."""
        return (*sizes("size", self.count), Parameter("result", I64))

    def emit(self, k: Kernel) -> None:
        """result[i] = size i"""
        with k.when(k.thread().equals(0)):
            for number, size in enumerate(k.sizes("size", self.count)):
                k.memory("result")[number] = k.convert(size, I64)
