"""Where everything is in the memory in which a compiled model runs: one piece, which whoever calls it gives.

It begins with what stays from run to run; then come the tables of addresses, what kernels work with, and the tensors
in between. How many bytes these take, only a run tells where sizes are open (`tract_cpu.ahead.open_sizes`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from tract_llvm.language.types import numpy_type

from tract_core.dims import evaluate, symbols_of
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_cpu.ahead.open_sizes import WORD, OpenSizes, open_sizes
from tract_cpu.aligned import ALIGNMENT
from tract_cpu.binding import ArgumentLayout, Bound, Section
from tract_cpu.compile import Planned
from tract_cpu.lay_arguments import argument_layout
from tract_cpu.native.executor import LINE_WORDS
from tract_cpu.program.program import HostStep, ReadStep

_STATUS_WORDS: Final = 2


@frozen
class RunMemory:
    """``kept``, ``passed``, ``status``, ``course``, ``arguments``, ``scratch``, ``arena``: where these begin, in bytes.

    ``work``: of what threads are told; ``sizes``: of what is known of open sizes. ``bytes``: of all of it, but for
    scratch and arena where sizes are open. ``each``: of the scratch of one thread.
    """

    kept: int
    passed: int
    status: int
    course: int
    work: int
    sizes: int
    arguments: int
    scratch: int
    arena: int
    bytes: int
    each: int = 0


@frozen
class Tables:
    """What fills the arguments of kernels.

    ``template``: the arguments, with numbers, and with offsets in the places of addresses. ``in_constants``,
    ``in_arena``, ``in_arguments``, ``in_passed``: the places to which the begin of these is added. ``passed``: places,
    numbers of what is passed, and offsets, that a run fills. ``starts``: what is passed of tensors that stay, from
    where in memory on. ``begins``, ``tasks``, ``parts``: of each step, its first argument, its tasks, and in how many
    parts threads do these; ``None`` where sizes tell.
    """

    template: tuple[int, ...]
    in_constants: tuple[int, ...]
    in_arena: tuple[int, ...]
    in_arguments: tuple[int, ...]
    in_passed: tuple[int, ...]
    passed: tuple[tuple[int, int, int], ...]
    starts: tuple[tuple[int, int], ...]
    begins: tuple[int, ...]
    tasks: tuple[int | None, ...]
    parts: tuple[int | None, ...]


@frozen
class Laid:
    """A program with its memory. ``constants``: those that kernels read, each at its place in ``offsets``, in bytes.

    The last offset is where they end. ``open``: what there is to know of open sizes, if there are any.
    """

    layout: ArgumentLayout
    memory: RunMemory
    tables: Tables
    constants: tuple[Array, ...]
    offsets: tuple[int, ...]
    open: OpenSizes | None = None


def refuse_unfit(planned: Planned) -> None:
    """Raise Unsupported, with the names, where nodes have no native code, or keep what has open sizes."""
    program = planned.program
    problems = [f"node {step.node.name!r}: {step.why}" for step in program.steps if isinstance(step, HostStep)]
    problems += [
        f"node {step.node.name!r}: its sizes are only known in a run"
        for step in program.steps
        if isinstance(step, ReadStep)
    ]
    problems += [
        f"output {number}: it is no tensor of native code" for number, one in enumerate(program.outputs) if one is None
    ]
    if problems:
        raise Unsupported("\n".join(["an object has native code only", *problems]))
    kept = [size for one in program.kept for _, shape in one.tensors for size in shape]
    symbols = sorted(frozenset[str]().union(*map(symbols_of, kept), planned.model.told_symbols()))
    if symbols:
        problem = f"what stays from run to run has open sizes: {', '.join(symbols)}"
        raise Unsupported(problem, hint=f"fix them: {' '.join(f'--set {name}=...' for name in symbols)}")


def laid(planned: Planned, threads: int = 1) -> Laid:
    """Where everything is, for so many threads. Raises Unsupported as `refuse_unfit`."""
    refuse_unfit(planned)
    model, program = planned.model, planned.program
    layout = argument_layout(program, planned.arena, len(model.inputs))
    (section,) = layout.sections
    read: set[int] = set(section.in_constants[1].tolist())
    constants = {number: program.constants[number] for number in sorted(read)}
    offsets = list(_apart([one.nbytes for one in constants.values()]))
    places = dict(zip(constants, offsets, strict=False))
    kept = list(_apart([_bytes(shape, element) for one in program.kept for element, shape in one.tensors]))
    starts = tuple(_starts(planned, layout, kept))
    if model.given_symbols():
        sizes = open_sizes(model, section, places)
        memory = _memory(layout, kept[-1], threads, sizes=sizes.words)
        tables = _open_tables(layout, starts, threads)
        return Laid(layout, memory, tables, tuple(constants.values()), tuple(offsets), sizes)
    bound = layout.bind({})
    memory = _memory(layout, kept[-1], threads, bound=bound)
    shared = bound.parts(threads)
    parts = (1,) * len(bound.tasks) if shared is None else tuple(shared.tolist())
    tables = _tables(layout, bound, places, starts, parts)
    return Laid(layout, memory, tables, tuple(constants.values()), tuple(offsets))


def _apart(sizes: Sequence[int]) -> Iterator[int]:
    """Where things of these sizes begin, one behind the other, and where the last one ends."""
    end = 0
    yield end
    for size in sizes:
        end += -(-size // ALIGNMENT) * ALIGNMENT
        yield end


def _bytes(shape: Sequence[Any], element: Any) -> int:
    return int(np.prod([evaluate(size, {}) for size in shape], dtype=np.int64)) * numpy_type(element).itemsize


def _memory(
    layout: ArgumentLayout, kept: int, threads: int, *, sizes: int = 0, bound: Bound | None = None
) -> RunMemory:
    """``kept``: bytes of what stays. ``sizes``: how many words are for sizes; or ``bound``: what these are."""
    each, arena = (bound.scratch_apart, bound.slots[-1]) if bound else (0, 0)
    work, arguments = LINE_WORDS if threads > 1 else 0, len(layout.sections[0].which)
    words = (layout.passed_count, _STATUS_WORDS, LINE_WORDS, work, sizes, arguments)
    return RunMemory(*_apart([kept, *(WORD * count for count in words), each * threads, arena]), each=each)


def _tables(
    layout: ArgumentLayout,
    bound: Bound,
    where: Mapping[int, int],
    starts: tuple[tuple[int, int], ...],
    parts: tuple[int, ...],
) -> Tables:
    """``where``: of constants, by their numbers."""
    (section,) = layout.sections
    arguments = bound.arguments.copy()
    places, numbers = section.in_constants
    arguments[places] += np.array([where[int(one)] for one in numbers], np.int64)
    arguments[section.in_arena[0]] += np.array(bound.slots, np.int64)[section.in_arena[1]]
    arguments[section.in_arguments[0]] = WORD * section.in_arguments[1]
    arguments[section.in_passed[0]] = WORD * section.in_passed[1]
    passed = [(place, number, int(arguments[place])) for place, number in section.passed]
    in_constants, in_arena, in_arguments, in_passed = (
        tuple(columns[0].tolist())
        for columns in (section.in_constants, section.in_arena, section.in_arguments, section.in_passed)
    )
    return Tables(
        tuple(arguments.tolist()),
        in_constants,
        in_arena,
        in_arguments,
        in_passed,
        tuple(passed),
        starts,
        section.begins,
        tuple(bound.tasks.tolist()),
        parts,
    )


def _open_tables(layout: ArgumentLayout, starts: tuple[tuple[int, int], ...], threads: int) -> Tables:
    """Those where sizes are open: arguments are filled by code, and offsets are among the values of sizes."""
    (section,) = layout.sections
    passed = tuple((place, number, int(section.which[place])) for place, number in section.passed)
    tasks = tuple(_tasks(section, step) for step in range(section.last))
    parts = (None if threads > 1 else 1,) * len(tasks)
    return Tables((), (), (), (), (), passed, starts, section.begins, tasks, parts)


def _tasks(section: Section, step: int) -> int | None:
    """How many tasks a step has, where no size changes that."""
    tasks, work = (section.sizes[int(numbers[step])] for numbers in section.of_steps[:2])
    if isinstance(tasks, int) and (tasks <= 0 or not section.needs_work[step] or (isinstance(work, int) and work > 0)):
        return tasks
    return None


def _starts(planned: Planned, layout: ArgumentLayout, places: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The numbers of kept tensors among what is passed, and where in memory they are seen before the first run."""
    for one in planned.program.kept:
        fresh = [
            np.zeros([evaluate(size, {}) for size in shape], numpy_type(element)) for element, shape in one.tensors
        ]
        for number, start in enumerate(one.keeping.starts(fresh), one.first):
            yield layout.first_kept + number, places[number] + start
