"""Where in its stream a pulse is: a number that is kept from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tract_cuda.language.kernel import Kernel, Parameter
from tract_cuda.lowering import Site
from tract_llvm.language.types import I64
from tract_llvm.language.values import Value
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array


@frozen
class PositionOnDevice(Keeping):
    """How many positions of the stream came before."""

    def frozen(self, tensors: Sequence[Array]) -> int:
        """The number."""
        return int(tensors[0])

    def thaw(self, frozen: int, tensors: Sequence[Array]) -> None:
        """The number."""
        tensors[0][...] = np.int64(frozen)


def kept_position(site: Site) -> View:
    """Memory for the position of a node that keeps nothing else."""
    (position,) = site.lowering.keep(site.node.node, PositionOnDevice(), [(I64, ())])
    return position


def advance(site: Site, position: View, count: Dim) -> None:
    """Have the position go on by so many when the turn is over."""
    then = site.lowering.scratch(I64, ())
    site.launch(NextPositionPlan(), [1], {"count": count, "position": position, "result": then}, [then])
    site.lowering.keep_at_end(then, position)


def from_here(k: Kernel, size: str) -> Value:
    """How far a place of the stream is from the begin of the pulse: a parameter less ``position``."""
    return k.convert(k.size(size), I64) - k.memory("position")[0]


@frozen
class NextPositionPlan:
    """The position of the next pulse."""

    name = "next_position"
    threads = 32

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How much is added, that of this pulse, and that of the next one."""
        return (Parameter("count"), Parameter("position", I64), Parameter("result", I64))

    def emit(self, k: Kernel) -> None:
        """Add the count."""
        with k.when(k.thread().equals(0)):
            k.memory("result")[0] = k.memory("position")[0] + k.convert(k.size("count"), I64)
