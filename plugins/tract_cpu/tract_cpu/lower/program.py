"""A program: the steps that compute a model, and the memory that they work on. It is data, made once for all sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_core.runtime.host import HostNode
from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.lower.views import Address, Storage, View

Argument = Dim | Address


@dataclass(frozen=True, slots=True)
class NativeStep:
    """A call of a kernel. ``tasks``: into how many independent parts the work is cut; ``scratch``: bytes per thread.

    ``nodes``: those of the model that it computes, in order. ``results``: the tensors that it writes. ``work``: about
    how many elements are computed, or products summed.
    """

    kernel: KernelPlan
    arguments: tuple[Argument, ...]
    tasks: Dim
    nodes: tuple[int, ...]
    results: tuple[Storage, ...]
    scratch: Dim = 0
    work: Dim = 0


@dataclass(frozen=True, slots=True)
class HostStep:
    """A node that the node executor runs. ``why``: why there is no native code for it.

    ``inputs``: where they are; ``None`` for what only the host can hold, which it keeps by outlet.
    ``results``: the storages of its outputs.
    """

    node: HostNode
    why: str
    inputs: tuple[View | None, ...]
    results: tuple[Storage, ...]


Step = NativeStep | HostStep


@dataclass(frozen=True, slots=True)
class Program:
    """``arena``: the size of each storage of the arena, in bytes. ``constants``: the arrays that it reads.

    ``outputs``: where the outputs of the model are when all steps are done. ``views``: where each tensor is that a step
    writes.
    """

    steps: tuple[Step, ...]
    constants: tuple[Array, ...]
    arena: tuple[Dim, ...]
    outputs: tuple[View | None, ...]
    views: Mapping[OutletId, View | None]
