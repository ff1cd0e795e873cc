"""What a model becomes: steps, each one launch of a kernel or one node for the host, and the memory they work on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_llvm.program.views import Address, Storage, View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_cuda.kernels.kernel import KernelPlan

Argument = Address | Dim
"""The address of memory, or a size or position, in elements."""

Grid = tuple[Dim, Dim, Dim]
"""How many blocks there are along x, y and z. Where one is 0, there is nothing to do."""


@frozen
class Launch:
    """One launch of a kernel. ``arguments``: in the order of its parameters. ``nodes``: what it computes."""

    kernel: KernelPlan
    grid: Grid
    arguments: tuple[Argument, ...]
    nodes: tuple[int, ...] = ()

    @staticmethod
    def of(
        kernel: KernelPlan, grid: Sequence[Dim], arguments: Mapping[str, View | Dim], nodes: Sequence[int] = ()
    ) -> Launch:
        """``arguments``: for each parameter, by its name, a tensor or a size. Raises KeyError where one is missing."""
        given = [arguments[one.name] for one in kernel.parameters]
        unknown = arguments.keys() - {one.name for one in kernel.parameters}
        if unknown:
            raise KeyError(f"kernel {kernel.name} has no parameter {sorted(unknown)}")
        found = tuple(one.address if isinstance(one, View) else one for one in given)
        x, y, z = (*grid, 1, 1)[:3]
        return Launch(kernel, (x, y, z), found, tuple(nodes))


@frozen
class Hosted:
    """One node that the node executor of the core runs. ``why``: for want of what.

    ``reads``, ``writes``: where its inputs and outputs lie on the device; its arrays are copied from and to there.
    """

    node: int
    why: str
    reads: tuple[View, ...]
    writes: tuple[View, ...]


Step = Launch | Hosted


@frozen
class CudaProgram:
    """``steps``: in order. ``arena``: the size in bytes of each storage of kind ARENA, by its number.

    ``constants``: the tensors of the model that lie on the device, by the numbers of their storages. ``inputs``,
    ``outputs``: where the model's lie, in order.
    """

    steps: tuple[Step, ...]
    arena: tuple[Dim, ...]
    constants: tuple[OutletId, ...]
    inputs: tuple[View, ...]
    outputs: tuple[View, ...]


def storages_of(step: Step) -> tuple[Storage, ...]:
    """All memory that a step touches."""
    if isinstance(step, Launch):
        return tuple(one.storage for one in step.arguments if isinstance(one, Address))
    return tuple(one.storage for one in (*step.reads, *step.writes))
