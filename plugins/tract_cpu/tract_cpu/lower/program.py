"""A program: the steps that compute a model, and the memory that they work on. It is data, made once for all sizes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_core.runtime.host import HostNode
from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.lower.form import Blocked
from tract_cpu.lower.views import Address, Kind, Storage, View

Argument = Dim | Address

STATUS: Final = Address(Storage(Kind.STATUS, 0))
"""The argument of kernels that may refuse: where they write a 1 when they cannot do their work.

No step after that one runs, and its nodes are left to the node executor, which gives their results, or the error. Such
a kernel touches no memory beyond what it was given, and its step has the nodes that it computes, in order, or stands
before the step that has.
"""


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


@dataclass(frozen=True, slots=True)
class ViewStep:
    """A node whose result is a view on a tensor that is there: nothing is done for it.

    ``results``: the memory where it lies.
    """

    nodes: tuple[int, ...]
    results: tuple[Storage, ...]


Step = NativeStep | HostStep | ViewStep


@dataclass(frozen=True, slots=True)
class Program:
    """``arena``: the size of each storage of the arena, in bytes. ``constants``: the arrays that it reads.

    ``outputs``: where the outputs of the model are when all steps are done. ``views``: where each tensor is that a step
    writes; ``blocked``: the same for those that it writes in blocks of channels.
    """

    steps: tuple[Step, ...]
    constants: tuple[Array, ...]
    arena: tuple[Dim, ...]
    outputs: tuple[View | None, ...]
    views: Mapping[OutletId, View | None]
    blocked: Mapping[OutletId, Blocked]
