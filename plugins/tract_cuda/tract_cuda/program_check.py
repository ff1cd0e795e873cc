"""What must hold of every program for a GPU: memory is there, written before it is read, and nothing lies over another.

It is for tests and for whoever changes what decides: a wrong decision is told where it was made, not by wrong numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tract_llvm.language.types import I32
from tract_llvm.program.check import Touched, constant_faults, order_faults, storage_faults
from tract_llvm.program.storages import Address, Kind, Storage, storage_text
from tract_llvm.program.views import View

from tract_core.compile.arena_check import LARGE, arena_faults, sampled
from tract_core.compile.arena_plan import ArenaPlan
from tract_core.compile.check import group_faults
from tract_core.compile.groups import Group, is_constant, outlet_text
from tract_core.dims import Dim, evaluate, symbols_of
from tract_core.errors import DimError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_cuda.language.arch import MOST_THREADS, WARP
from tract_cuda.program import (
    CudaProgram,
    Download,
    Hosted,
    Launch,
    Repeat,
    Shown,
    Step,
    Upload,
    arena_of,
    launches_in,
    storages_of,
)
from tract_cuda.program_text import program_text
from tract_cuda.segments import Piece, Segment, pieces_of

_WRITTEN: Final = frozenset((Kind.ARENA,))
"""Memory in which nothing is before a step writes there."""


def check_groups(model: TypedModel, groups: Sequence[Group]) -> None:
    """Raises AssertionError with all that is wrong with groups."""
    found = list(group_faults(model, groups))
    if found:
        raise AssertionError("\n".join(found))


def check_program(program: CudaProgram, model: TypedModel) -> None:
    """Raises AssertionError with all that is wrong with a program for ``model``, and its text."""
    _check(list(faults(program, model)), program, model)


def check_memory(program: CudaProgram, arena: ArenaPlan, model: TypedModel, alignment: int) -> None:
    """The same of where its tensors lie. ``alignment``: bytes at multiples of which they begin."""
    _check(list(memory_faults(program, arena, model, alignment)), program, model)


def _check(found: Sequence[str], program: CudaProgram, model: TypedModel) -> None:
    if found:
        told = "\n".join(found)
        raise AssertionError(f"{told}\n\n{program_text(program, model)}")


def faults(program: CudaProgram, model: TypedModel) -> Iterator[str]:
    """What is wrong with a program for ``model``, a sentence each, with the places of steps; nothing if all is well."""
    steps = [_touched(step) for step in program.steps]
    counts = {Kind.ARENA: len(program.arena), Kind.CONSTANT: len(program.constants), Kind.STATUS: 1}
    counts |= {Kind.INPUT: len(model.inputs), Kind.KEPT: sum(len(one.tensors) for one in program.kept)}
    yield from storage_faults(steps, counts)
    yield from constant_faults(step.writes for step in steps)
    yield from order_faults(steps, _WRITTEN)
    yield from _wrong_arguments(program)
    yield from _not_on_the_host(program, model)
    yield from _copies_of_others(program, model)
    yield from _outside(program, model)
    yield from _late_sizes(program, model)
    yield from _wrong_pieces(program, list(pieces_of(program.steps)))


def memory_faults(program: CudaProgram, arena: ArenaPlan, model: TypedModel, alignment: int) -> Iterator[str]:
    """What is wrong with where the tensors of a program lie."""
    lives = {number: life for number, life in program.lives().items() if number < len(program.arena)}
    found = list(arena_faults(arena, program.arena, lives, alignment, sampled(model, _symbols(program))))
    yield from found
    for number in () if found else lives:
        wanted, stage = program.stage_of([program.arena[number]]), arena.stages[arena.slot_of[number]]
        if stage < wanted:
            yield f"arena[{number}] is in a slot of stage {stage}, its size is known from {wanted} on"


def _touched(step: Step) -> Touched:
    every = frozenset(storages_of(step))
    if isinstance(step, Launch):
        return Touched(every.difference(step.writes), frozenset(step.writes))
    if isinstance(step, Repeat):
        return _touched_first(step)
    nothing = frozenset[Storage]()
    return Touched(nothing, every) if isinstance(step, Upload) else Touched(every, nothing)


def _touched_first(step: Repeat) -> Touched:
    """What the first time through a loop reads before it writes there, and all that is written."""
    reads, writes = frozenset[Storage](), frozenset[Storage]()
    for one in map(_touched, step.steps):
        reads |= one.reads - writes
        writes |= one.writes
    return Touched(reads, writes)


def _symbols(program: CudaProgram) -> frozenset[str]:
    return frozenset[str]().union(*(stage.symbols for stage in program.stages))


def _wrong_arguments(program: CudaProgram) -> Iterator[str]:
    """Launches with other arguments than the parameters of the kernel say, or of blocks that no device takes."""
    steps = enumerate(program.steps)
    for place, step in [(place, launch) for place, one in steps for launch in launches_in([one])]:
        parameters, name = step.kernel.parameters, step.kernel.name
        if len(step.arguments) != len(parameters):
            yield f"step {place} gives {name} {len(step.arguments)} arguments, wanted {len(parameters)}"
        for parameter, argument in zip(parameters, step.arguments, strict=False):
            if isinstance(argument, Address) != (parameter.element is not None):
                kind = "a size" if parameter.element is None else f"an address of {parameter.element.name}"
                yield f"step {place} gives {name} something else than {kind} as {parameter.name}"
        for storage in set(step.writes) - set(storages_of(step)):
            yield f"step {place} says that it writes to {storage_text(storage)}, which {name} is not given"
        if step.kernel.threads % WARP or not 0 < step.kernel.threads <= MOST_THREADS:
            yield f"step {place} launches {name} with blocks of {step.kernel.threads} threads"


def _not_on_the_host(program: CudaProgram, model: TypedModel) -> Iterator[str]:
    """Tensors that are read on the host before they are there, outputs of the model among them."""
    there = set(model.inputs)
    for place, step in enumerate(program.steps):
        for outlet in _host_reads(step):
            if outlet not in there and not is_constant(model, outlet):
                yield f"step {place} reads {outlet_text(model, outlet)} on the host, where nothing before it gives it"
        if isinstance(step, Download):
            there.add(step.outlet)
        elif isinstance(step, Hosted):
            there.update(model.nodes[step.node.node].outlets())
    for outlet in model.outputs:
        if outlet not in there and not is_constant(model, outlet):
            yield f"the output {outlet_text(model, outlet)} never comes to the host"


def _host_reads(step: Step) -> Sequence[OutletId]:
    if isinstance(step, Hosted):
        return step.node.inputs
    if isinstance(step, Shown):
        return step.outlets
    return (step.outlet,) if isinstance(step, Upload) else ()


def _copies_of_others(program: CudaProgram, model: TypedModel) -> Iterator[str]:
    """Copies of another shape or type than the model says, with gaps, or over what is there."""
    written = set[Storage]()
    for place, step in enumerate(program.steps):
        if isinstance(step, Upload | Download):
            fact, view = model.outlet_fact(step.outlet), step.view
            known, what = tuple(fact.shape), outlet_text(model, step.outlet)
            if len(known) != len(view.shape) or False in map(model.symbols.same, view.shape, known):
                yield f"step {place} copies {what} as {_listed(view.shape)}, the model says {_listed(known)}"
            if view.element.bytes != fact.datum_type.storage.numpy.itemsize:
                yield f"step {place} copies {what} as {view.element.name}, the model says {fact.datum_type}"
            if not view.is_contiguous:
                yield f"step {place} copies {what}, which has gaps"
        if isinstance(step, Upload) and step.view.storage in written:
            yield f"step {place} copies {outlet_text(model, step.outlet)} over what a step before it wrote"
        written |= _touched(step).writes


def _listed(shape: Sequence[Dim]) -> str:
    return f"[{','.join(map(str, shape))}]"


def _outside(program: CudaProgram, model: TypedModel) -> Iterator[str]:
    """Addresses and copies outside of their storages, whatever the sizes are: small ones may be those of no turn."""
    samples = [dict(_outside_with(program, values)) for values in sampled(model, _symbols(program), LARGE)]
    every = set[tuple[int, int, int]](samples[0]).intersection(*samples)
    yield from (told for place, told in samples[0].items() if place in every)


def _outside_with(program: CudaProgram, values: Mapping[str, int]) -> Iterator[tuple[tuple[int, int, int], str]]:
    """By the place of the step, the number of the launch in it, and that of what it touches."""
    arena = [_value(size, values) for size in program.arena]
    constants = [array.nbytes for array in program.constants]
    sizes = {Kind.ARENA: arena, Kind.CONSTANT: constants, Kind.STATUS: [I32.bytes]}
    done = ((place, *one) for place, step in enumerate(program.steps) for one in enumerate(_done(step, values)))
    for place, which, (step, here) in done:
        nothing = isinstance(step, Launch) and 0 in (_value(size, here) for size in step.grid)
        for number, (address, extent) in enumerate(() if nothing else _extents(step, here)):
            storage, begin = address.storage, _value(address.offset, here)
            known = sizes.get(storage.kind, [])
            size = known[storage.number] if storage.number < len(known) else None
            if begin is None or size is None or extent is None or size < 0:
                continue
            if isinstance(step, Launch) and not size:  # of nothing, nothing is read
                continue
            if not 0 <= begin <= begin + extent <= size:
                told = "".join(f" with {name}={value}" for name, value in values.items())
                whole = f"{storage_text(storage)}, which has {size}{told}"
                yield (place, which, number), f"step {place} goes from byte {begin} to {begin + extent} of {whole}"


def _done(step: Step, values: Mapping[str, int]) -> Iterator[tuple[Step, Mapping[str, int]]]:
    """What is done in a step, with the values of symbols then: of loops, the first and the last time."""
    if not isinstance(step, Repeat):
        yield step, values
        return
    count = _value(step.count, values)
    for iteration in (0, (count or 1) - 1):
        for one in step.steps if count is None or count > 0 else ():
            yield from _done(one, {**values, step.index: iteration})


def _extents(step: Step, values: Mapping[str, int]) -> Iterator[tuple[Address, int | None]]:
    """Where a step touches memory, and how many bytes from there on at least: of a launch, its plan knows."""
    if isinstance(step, Launch):
        yield from ((one, 0) for one in step.arguments if isinstance(one, Address))
    elif isinstance(step, Upload | Download):
        yield step.view.address, _bytes(step.view, values)


def _bytes(view: View, values: Mapping[str, int]) -> int | None:
    """From the first element of a view to behind its last one."""
    shape, strides = ([_value(dim, values) for dim in dims] for dims in (view.shape, view.strides))
    if None in shape or None in strides:
        return None
    pairs = [(size, stride) for size, stride in zip(shape, strides, strict=True) if size is not None and stride]
    if any(size <= 0 for size in shape if size is not None):
        return 0
    return (1 + sum((size - 1) * stride for size, stride in pairs)) * view.element.bytes


def _value(dim: Dim, values: Mapping[str, int]) -> int | None:
    """``None`` where it has none."""
    try:
        return evaluate(dim, values) if symbols_of(dim) <= values.keys() else None
    except DimError:
        return None


def _late_sizes(program: CudaProgram, model: TypedModel) -> Iterator[str]:
    """Sizes of which a step makes use before they have values."""
    for before, after in pairwise(program.stages):
        if before.begin > after.begin:
            yield f"a stage that begins with step {after.begin} comes behind one that begins with step {before.begin}"
    for place, step in enumerate(program.steps):
        known = frozenset[str]().union(*(stage.symbols for stage in program.stages if stage.begin <= place))
        known = model.symbols.definitions.with_known(known)
        names = frozenset[str]().union(*map(symbols_of, _dims(step, program))) - _indices(step)
        if late := sorted(names - known):
            yield f"step {place} needs {', '.join(late)}, which nothing before it tells"


def _dims(step: Step, program: CudaProgram) -> Iterator[Dim]:
    """All sizes that have to be known when a step is done, those of its memory too."""
    if isinstance(step, Repeat):
        yield step.count
    if isinstance(step, Launch | Repeat):
        yield from (dim for launch in launches_in([step]) for dim in launch.dims())
    elif isinstance(step, Upload | Download):
        yield from (*step.view.shape, *step.view.strides, step.view.offset)
    yield from (program.arena[number] for number in arena_of(step) if 0 <= number < len(program.arena))


def _indices(step: Step) -> frozenset[str]:
    """The symbols that loops give values."""
    if not isinstance(step, Repeat):
        return frozenset()
    return frozenset((step.index,)).union(*map(_indices, step.steps))


def _wrong_pieces(program: CudaProgram, pieces: Sequence[Piece]) -> Iterator[str]:
    """Pieces that are not the steps in order, or a segment that begins in another stage than the program says."""
    flat = [step for piece in pieces for step in (piece.steps if isinstance(piece, Segment) else (piece,))]
    if flat != list(program.steps):
        yield "the pieces of the program are other steps than it has"
        return
    place = 0
    for number, piece in enumerate(pieces):
        stage = sum(one.begin <= place for one in program.stages) - 1
        if isinstance(piece, Segment) and piece.stage != stage:
            yield f"piece {number} is a segment of stage {piece.stage}, and begins in stage {stage}"
        place += len(piece.steps) if isinstance(piece, Segment) else 1
