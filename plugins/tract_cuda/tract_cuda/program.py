"""What a model becomes: launches of kernels, nodes for the host, copies between both, and their memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from tract_llvm.language.types import ElementType
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.storages import Address, Kind, Storage
from tract_llvm.program.views import View

from tract_core.compile.arena import Lives, lives_of
from tract_core.dims import Dim, product
from tract_core.dims.values import symbols_of
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array
from tract_core.runtime.host import HostNode
from tract_cuda.kernels.kernel import KernelPlan


@frozen
class EventualSize:
    """A size, or `NOT_YET` as long as one of its symbols has no value, as the length of a stream that goes on."""

    size: Dim


NOT_YET: Final = -(1 << 30)
"""Less than any size."""

Argument = Address | Dim | EventualSize
"""The address of memory, or a size or position, in elements."""

Given = View | Dim | EventualSize
"""The same, with a tensor in the place of its address."""

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
        arguments: Mapping[str, Given],
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
        """All sizes and offsets that it is launched with, and that have values then."""
        yield from self.grid
        for one in self.arguments:
            if not isinstance(one, EventualSize):
                yield one.offset if isinstance(one, Address) else one


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


@frozen
class Repeat:
    """Steps that are done ``count`` times, one time behind the other. ``nodes``: what it computes.

    ``index``: the symbol that tells its steps which time it is, from 0 on. No symbol of a model has its name.
    """

    count: Dim
    index: str
    steps: tuple[Work, ...]
    nodes: tuple[int, ...]


Work = Launch | Repeat
"""What kernels do."""

Step = Work | Upload | Download | Hosted | Shown


@frozen
class RunStage:
    """From step ``begin`` on, these symbols have values too."""

    begin: int
    symbols: frozenset[str]


@frozen
class KeptTensors:
    """What a node keeps from turn to turn, in memory of the state. ``first``: the number of its first storage.

    ``tensors``: what is in that one and in those that follow, zeros before the first turn. ``counts``: what the host
    counts, by its symbol what it is behind a turn; 0 before the first one. ``keeping``: what both are as a snapshot,
    the counts first.
    """

    node: int
    first: int
    tensors: tuple[tuple[ElementType, tuple[Dim, ...]], ...]
    counts: tuple[tuple[str, Dim], ...]
    keeping: Keeping


def count_name(node: int, place: int) -> str:
    """The name of the symbol for what the host counts for a node, which no symbol of a model has."""
    return f"#count{node}.{place}"


@frozen
class CudaProgram:
    """``steps``: in order. ``arena``: the sizes in bytes of the storages of kind ARENA, by their numbers.

    ``constants``: the arrays of those of kind CONSTANT. ``stages``: the first one is the begin of the run.
    ``kept``: what those of kind KEPT hold.
    """

    steps: tuple[Step, ...]
    arena: tuple[Dim, ...]
    constants: tuple[Array, ...]
    stages: tuple[RunStage, ...]
    kept: tuple[KeptTensors, ...] = ()

    def kept_bytes(self, number: int) -> Dim:
        """The size of a storage of kind KEPT."""
        element, shape = [tensor for one in self.kept for tensor in one.tensors][number]
        return product(shape) * element.bytes

    def stage_of(self, dims: Iterable[Dim]) -> int:
        """The number of the first stage from which on sizes have values."""
        wanted = frozenset(symbol for dim in dims for symbol in symbols_of(dim))
        return max((number for number, stage in enumerate(self.stages) if wanted & stage.symbols), default=0)

    def symbols(self) -> frozenset[str]:
        """The symbols on whose values launches depend."""
        launched = (one for launch in launches_in(self.steps) for one in launch.arguments)
        eventual = (symbols_of(one.size) for one in launched if isinstance(one, EventualSize))
        return frozenset[str]().union(*(stage.symbols for stage in self.stages), *eventual)

    def lives(self) -> Lives:
        """From which step to which the content of each storage of the arena counts, those of loops counted one by one.

        What a loop alone touches counts for a part of each time only.
        """
        touched, loops = list[list[int]](), list[tuple[int, int]]()
        _add_lives(self.steps, touched, loops)
        return lives_of(touched, loops=loops)

    def read_constants(self) -> Mapping[int, Array]:
        """The arrays that steps read, by their numbers; of others, they read a copy that lies in another way."""
        storages = {storage for step in self.steps for storage in storages_of(step)}
        return {n: array for n, array in enumerate(self.constants) if Storage(Kind.CONSTANT, n) in storages}


def _add_lives(steps: Iterable[Step], touched: list[list[int]], loops: list[tuple[int, int]]) -> None:
    for step in steps:
        if not isinstance(step, Repeat):
            touched.append(arena_of(step))
            continue
        begin, place = len(touched), len(loops)
        _add_lives(step.steps, touched, loops)
        if len(touched) > begin:
            loops.insert(place, (begin, len(touched) - 1))


def launches_in(steps: Iterable[Step]) -> Iterator[Launch]:
    """The launches among some steps, those of loops once."""
    for step in steps:
        if isinstance(step, Launch):
            yield step
        elif isinstance(step, Repeat):
            yield from launches_in(step.steps)


def refuses(launch: Launch) -> bool:
    """Whether a kernel may refuse to do its work: it is given where to say so, as ``status``."""
    return any(one.name == "status" for one in launch.kernel.parameters)


def storages_of(step: Step) -> tuple[Storage, ...]:
    """All memory of the device that a step touches."""
    if isinstance(step, Launch | Repeat):
        every = (one for launch in launches_in([step]) for one in launch.arguments)
        return tuple(one.storage for one in every if isinstance(one, Address))
    return (step.view.storage,) if isinstance(step, Upload | Download) else ()


def arena_of(step: Step) -> list[int]:
    """The numbers of the storages of the arena that a step touches."""
    return [one.number for one in storages_of(step) if one.kind is Kind.ARENA]
