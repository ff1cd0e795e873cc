"""What a model becomes: launches of kernels, nodes for the host, copies between both, and their memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tract_llvm.program.views import Address, Kind, Storage, View

from tract_core.dims import Dim
from tract_core.dims.walk import symbols_of
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_core.runtime.host import HostNode
from tract_cuda.kernels.kernel import KernelPlan

Argument = Address | Dim
"""The address of memory, or a size or position, in elements."""

Grid = tuple[Dim, Dim, Dim]
"""How many blocks there are along x, y and z. Where one is 0, there is nothing to do."""


@frozen
class Launch:
    """One launch of a kernel. ``arguments``: in the order of its parameters. ``nodes``: what it computes.

    ``writes``: the storages that it writes to.
    """

    kernel: KernelPlan
    grid: Grid
    arguments: tuple[Argument, ...]
    nodes: tuple[int, ...]
    writes: tuple[Storage, ...]

    @staticmethod
    def of(
        kernel: KernelPlan,
        grid: Sequence[Dim],
        arguments: Mapping[str, View | Dim],
        writes: Sequence[View],
        nodes: Sequence[int] = (),
    ) -> Launch:
        """``arguments``: for each parameter, by its name, a tensor or a size. Raises KeyError where one is amiss."""
        names = [one.name for one in kernel.parameters]
        if set(arguments) != set(names):
            raise KeyError(f"kernel {kernel.name} takes {names}, not {sorted(arguments)}")
        given = [arguments[name] for name in names]
        found = tuple(one.address if isinstance(one, View) else one for one in given)
        x, y, z = (*grid, 1, 1)[:3]
        return Launch(kernel, (x, y, z), found, tuple(nodes), tuple(one.storage for one in writes))

    def dims(self) -> Iterator[Dim]:
        """All sizes and offsets that it is launched with."""
        yield from self.grid
        yield from (one.offset if isinstance(one, Address) else one for one in self.arguments)


@frozen
class Upload:
    """Copy a tensor from the host to where it lies on the device, without gaps."""

    outlet: OutletId
    view: View


@frozen
class Download:
    """Copy a tensor, which lies without gaps, from the device to the host."""

    outlet: OutletId
    view: View


@frozen
class Hosted:
    """One node that the node executor of the core runs, on arrays of the host. ``why``: for want of what."""

    node: HostNode
    why: str


@frozen
class Shown:
    """Somebody looks at what a group gives, on the host, and may exchange it. ``nodes``: of the group."""

    nodes: tuple[int, ...]
    outlets: tuple[OutletId, ...]


Step = Launch | Upload | Download | Hosted | Shown


@frozen
class RunStage:
    """From step ``begin`` on, these symbols have values too."""

    begin: int
    symbols: frozenset[str]


@frozen
class CudaProgram:
    """``steps``: in order. ``arena``: the sizes in bytes of the storages of kind ARENA, by their numbers.

    ``constants``: the arrays of those of kind CONSTANT. ``stages``: the first one is the begin of the run.
    """

    steps: tuple[Step, ...]
    arena: tuple[Dim, ...]
    constants: tuple[Array, ...]
    stages: tuple[RunStage, ...]

    def stage_of(self, dims: Iterable[Dim]) -> int:
        """The number of the first stage from which on sizes have values."""
        wanted = frozenset(symbol for dim in dims for symbol in symbols_of(dim))
        return max((number for number, stage in enumerate(self.stages) if wanted & stage.symbols), default=0)


def storages_of(step: Step) -> tuple[Storage, ...]:
    """All memory of the device that a step touches."""
    if isinstance(step, Launch):
        return tuple(one.storage for one in step.arguments if isinstance(one, Address))
    return (step.view.storage,) if isinstance(step, Upload | Download) else ()


def arena_of(step: Step) -> list[int]:
    """The numbers of the storages of the arena that a step touches."""
    return [one.number for one in storages_of(step) if one.kind is Kind.ARENA]
