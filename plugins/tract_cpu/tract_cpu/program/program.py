"""A program: the steps that compute a model, and the memory that they work on. It is data, made once for all sizes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import field, replace
from typing import ClassVar, Final

from tract_llvm.program.storages import Address, Kind, Storage
from tract_llvm.program.views import View

from tract_core.dims import Dim, symbols_of
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.runtime.host import HostNode
from tract_core.runtime.parts import BodyPath
from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.program.eventual import Eventual
from tract_cpu.program.form import Blocked
from tract_cpu.program.kept import Kept
from tract_cpu.program.reads import Reads


@frozen
class StepNumber:
    """The number of a native step, which is at ``place`` in the program, or the first one behind."""

    place: int


@frozen
class ArgumentPlace:
    """The address of an argument of a native step, which is at ``place`` in the program."""

    place: int
    argument: int


@frozen
class PassedPlace:
    """The address of the place where the address of a storage is passed to the executor, from the next turn on."""

    storage: Storage


Argument = Dim | Address | StepNumber | ArgumentPlace | PassedPlace | Eventual

STATUS: Final = Address(Storage(Kind.STATUS, 0))
"""The argument of kernels that may refuse: where they write a 1 when they cannot do their work.

No step after that one runs, and its nodes are left to the node executor, which gives their results, or the error. Such
a kernel touches no memory beyond what it was given, and its step has the nodes that it computes, in order, or stands
before the step that has.
"""


@frozen
class NativeStep:
    """A call of a kernel. ``tasks``: into how many independent parts the work is cut; ``scratch``: bytes per thread.

    ``nodes``: those of the model that it computes, in order. ``results``: the tensors that it writes. ``work``: about
    how many elements are computed, or products summed; ``weight``: how many products take as long as one of these, if
    more than one; ``needs_work``: whether there is nothing to do where there is no work. ``times``: how often it is
    called, as far as that is known. ``body``: the way from the model to the body that the nodes are in.
    """

    kernel: KernelPlan
    arguments: tuple[Argument, ...]
    tasks: Dim
    nodes: tuple[int, ...]
    results: tuple[Storage, ...]
    scratch: Dim = 0
    work: Dim = 0
    weight: int = 1
    needs_work: bool = False
    times: Dim = 1
    body: BodyPath = ()


@frozen
class HostStep:
    """A node that the node executor runs. ``why``: why there is no native code for it.

    ``inputs``: where they are; ``None`` for what only the host can hold, which it keeps by outlet.
    ``results``: the storages of its outputs.
    """

    node: HostNode
    why: str
    inputs: tuple[View | None, ...]
    results: tuple[Storage, ...]


@frozen
class ViewStep:
    """A node whose result is there when this is reached: it is a view on another tensor, or steps before made it.

    ``results``: the memory that has to be as it is until then. ``body``: the way from the model to the body that the
    node is in.
    """

    nodes: tuple[int, ...]
    results: tuple[Storage, ...]
    body: BodyPath = ()


@frozen
class ReadStep:
    """Sizes are read from what inputs of a node hold, as ``reads`` says, before the node is computed.

    ``inputs``: where those are that are read.
    """

    node: HostNode
    reads: Reads
    inputs: tuple[View, ...]
    nodes: ClassVar[tuple[int, ...]] = ()
    results: ClassVar[tuple[Storage, ...]] = ()


Step = NativeStep | HostStep | ViewStep | ReadStep


def touched(step: Step) -> list[Storage]:
    """The storages that a step reads or writes."""
    found = list[Storage]()
    if isinstance(step, NativeStep):
        found += [one.storage for one in step.arguments if isinstance(one, Address)]
    elif isinstance(step, HostStep | ReadStep):
        found += [one.storage for one in step.inputs if one is not None]
    return [*found, *step.results]


@frozen
class RunStage:
    """What comes after sizes came up in the middle of a run.

    ``place``: of the step that gives them. ``symbols``: their names.
    """

    place: int
    symbols: frozenset[str]


@frozen
class ProgramLoop:
    """Steps that are done again, by their places in the program: from ``first``, which begins the loop, to ``last``.

    ``moves``: addresses that move from one iteration to the next, by so many bytes, and whether they move back then.
    """

    first: int
    last: int
    moves: tuple[tuple[ArgumentPlace, Dim, bool], ...] = ()

    def moving(self, place: ArgumentPlace, step: Dim, back: bool) -> ProgramLoop:
        """The loop with one more address that moves."""
        return replace(self, moves=(*self.moves, (place, step, back)))


@frozen
class Inlined:
    """An operator whose bodies are part of the program, in the steps from ``first`` to ``last``.

    ``node``: its id; ``body``: the way to the body that it is in; ``how``: what placements call it. ``bodies``: as they
    are there, with symbols as in the model, and how often each runs at most.
    """

    node: int
    body: BodyPath
    how: str
    first: int
    last: int
    bodies: tuple[tuple[TypedModel, Dim], ...]


@frozen
class Program:
    """``arena``: the size of each storage of the arena, in bytes. ``constants``: the arrays that it reads.

    ``outputs``: where the outputs of the model are when all steps are done. ``views``: where each tensor is that a step
    writes; ``blocked``: the same for those that it writes in blocks of channels. ``loops``, ``inlined``: what became of
    operators with bodies. ``kept``: what stays from turn to turn. ``stages``: in order. ``since``: from which stage on
    symbols have values, if not from the begin of a run.
    """

    steps: tuple[Step, ...]
    constants: tuple[Array, ...]
    arena: tuple[Dim, ...]
    outputs: tuple[View | None, ...]
    views: Mapping[OutletId, View | None]
    blocked: Mapping[OutletId, Blocked]
    loops: tuple[ProgramLoop, ...] = ()
    inlined: tuple[Inlined, ...] = ()
    kept: tuple[Kept, ...] = ()
    stages: tuple[RunStage, ...] = ()
    since: Mapping[str, int] = field(default_factory=dict[str, int])

    def hosted(self) -> Iterator[tuple[HostNode, HostStep]]:
        """The nodes that are left to the host, with their steps."""
        yield from ((step.node, step) for step in self.steps if isinstance(step, HostStep))

    def stage_at(self, place: int) -> int:
        """The stage of a run in which a step is."""
        return bisect_left(self.stages, place, key=lambda one: one.place)

    def stage_of(self, dims: Iterable[Dim]) -> int:
        """From which stage on the values of sizes are known: 0 from the begin of a run, n from the nth stage."""
        return max((self.since.get(symbol, 0) for dim in dims for symbol in symbols_of(dim)), default=0)
