"""What must hold of every program: each tensor is written before it is read, in memory that is there.

It is for tests and for whoever changes what decides: a wrong decision is told where it was made, not by wrong numbers.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from tract_llvm.program.check import Touched, constant_faults, order_faults, storage_faults
from tract_llvm.program.storages import Address, Kind, Storage, storage_text

from tract_core.dims import symbols_of
from tract_core.model.const import Const
from tract_core.model.source import TypedSource
from tract_core.model.typed import TypedModel
from tract_core.runtime.parts import BodyPath
from tract_cpu.kernels.signature import Signature
from tract_cpu.program.eventual import Eventual
from tract_cpu.program.program import (
    ArgumentPlace,
    HostStep,
    NativeStep,
    PassedPlace,
    Program,
    ReadStep,
    Step,
    StepNumber,
    touched,
)
from tract_cpu.program.text import program_text

_WRITTEN: Final = {Kind.ARENA, Kind.OUTPUT, Kind.HOST}
"""Memory in which nothing is before a step writes there."""


def check_program(program: Program, model: TypedModel, known: frozenset[str] = frozenset()) -> None:
    """Raises AssertionError with all that is wrong with a program for ``model``, and its text.

    ``known``: symbols that whoever runs it gives besides.
    """
    found = list(faults(program, model, known))
    if found:
        told = "\n".join(found)
        raise AssertionError(f"{told}\n\n{program_text(program, model)}")


def faults(program: Program, model: TypedModel, known: frozenset[str] = frozenset()) -> Iterator[str]:
    """What is wrong with a program for ``model``, a sentence each, with the places of steps; nothing if all is well."""
    yield from _storages_that_are_not_there(program, model)
    yield from _read_before_written(program)
    yield from _left_out(program, model)
    yield from _wrong_arguments(program)
    yield from _places_outside(program)
    yield from _crossing_loops(program)
    yield from _late_sizes(program, model.symbols.definitions.with_known(model.given_symbols() | known))
    yield from _outputs_of_others(program, model)


def _storages_that_are_not_there(program: Program, model: TypedModel) -> Iterator[str]:
    counts = {
        Kind.INPUT: len(model.inputs),
        Kind.OUTPUT: len(model.outputs),
        Kind.CONSTANT: len(program.constants),
        Kind.ARENA: len(program.arena),
        Kind.KEPT: sum(len(one.tensors) for one in program.kept),
        Kind.HOST: sum(len(step.results) for step in program.steps if isinstance(step, HostStep)),
        Kind.STATUS: 1,
    }
    yield from storage_faults([_touched(step) for step in program.steps], counts)
    yield from constant_faults(map(_written, program.steps))


def _touched(step: Step) -> Touched:
    """What a step reads and writes: what it only checks is a result too."""
    return Touched(frozenset(touched(step)).difference(step.results), frozenset(step.results))


def _written(step: Step) -> set[Storage]:
    """The storages whose elements a kernel is given to write."""
    if not isinstance(step, NativeStep):
        return set()
    return {one.storage for one in step.arguments if isinstance(one, Address)}.intersection(step.results)


def _read_before_written(program: Program) -> Iterator[str]:
    """What loops hand from one iteration to the next is written in front of them, too."""
    yield from order_faults([_touched(step) for step in program.steps], _WRITTEN)
    written = {storage for step in program.steps for storage in step.results}
    for number, view in enumerate(program.outputs):
        if view is not None and view.storage.kind in _WRITTEN and view.storage not in written:
            yield f"output {number} is in {storage_text(view.storage)}, to which no step writes"


def _left_out(program: Program, model: TypedModel) -> Iterator[str]:
    """Nodes of the model that no step computes, and that are no constants."""
    done = {one.node for one in program.inlined if not one.body}
    for step in program.steps:
        done.update([step.node.node] if isinstance(step, HostStep) else () if step_body(step) else step.nodes)
    for node_id in model.eval_order():
        node = model.nodes[node_id]
        if node_id not in done and not isinstance(node.op, TypedSource | Const):
            yield f"no step computes node {node.name!r} ({node.op.name})"


def step_body(step: Step) -> BodyPath:
    """The way to the body that the nodes of a step are in."""
    return () if isinstance(step, HostStep | ReadStep) else step.body


def _wrong_arguments(program: Program) -> Iterator[str]:
    """Calls with other arguments than the signature of the kernel says."""
    for place, step in enumerate(program.steps):
        if not isinstance(step, NativeStep):
            continue
        wanted, rest = step.kernel.signature.slots(), Signature(step.kernel.signature.rest).slots()
        rounds, over = divmod(max(len(step.arguments) - len(wanted), 0), len(rest) or 1)
        if len(step.arguments) < len(wanted) or over or (rounds and not rest):
            yield f"step {place} gives {step.kernel.name} {len(step.arguments)} arguments, wanted {len(wanted)}"
            continue
        for number, (argument, element) in enumerate(zip(step.arguments, (*wanted, *rest * rounds), strict=True)):
            if isinstance(argument, _ADDRESSES) != (element is not None):
                kind = "a size" if element is None else f"an address of {element.name}"
                yield f"step {place} gives {step.kernel.name} something else than {kind} as argument {number}"


_ADDRESSES: Final = (Address, ArgumentPlace, PassedPlace)
"""Arguments that are addresses."""


def _places_outside(program: Program) -> Iterator[str]:
    """Arguments that speak of other steps."""
    for place, step in enumerate(program.steps):
        for argument in step.arguments if isinstance(step, NativeStep) else ():
            if isinstance(argument, StepNumber) and not 0 <= argument.place <= len(program.steps):
                yield f"step {place} leads to step {argument.place}, of {len(program.steps)}"
            if isinstance(argument, ArgumentPlace) and not _is_there(program.steps, argument):
                yield f"step {place} mentions argument {argument.argument} of step {argument.place}, which has none"


def _is_there(steps: tuple[Step, ...], place: ArgumentPlace) -> bool:
    step = steps[place.place] if 0 <= place.place < len(steps) else None
    return isinstance(step, NativeStep) and 0 <= place.argument < len(step.arguments)


def _crossing_loops(program: Program) -> Iterator[str]:
    for number, loop in enumerate(program.loops):
        if not 0 <= loop.first <= loop.last < len(program.steps):
            yield f"loop {number} goes from step {loop.first} to {loop.last}, of {len(program.steps)}"
        for other in program.loops[:number]:
            first, second = sorted([other, loop], key=lambda one: (one.first, -one.last))
            if second.first <= first.last < second.last:
                yield f"loop {number} crosses another one, from step {other.first} to {other.last}"


def _late_sizes(program: Program, given: frozenset[str]) -> Iterator[str]:
    """Sizes of which a step makes use before they have values. ``given``: symbols that have values from the begin."""
    for before, after in pairwise(program.stages):
        if before.place > after.place:
            yield f"a stage at step {after.place} comes behind one at step {before.place}"
    for place, step in enumerate(program.steps):
        if not isinstance(step, NativeStep):
            continue
        stage = program.stage_at(place)
        dims = [step.tasks, step.scratch, *(one for one in step.arguments if not isinstance(one, _NO_DIMS))]
        dims += [one.offset for one in step.arguments if isinstance(one, Address)]
        names = {name for dim in dims for name in symbols_of(dim)} - given
        late = sorted(name for name in names if program.since.get(name, 0) > stage)
        if late:
            yield f"step {place} needs {', '.join(late)}, which only later steps tell"
        if unknown := sorted(names - program.since.keys()):
            yield f"step {place} needs {', '.join(unknown)}, which nothing tells"


_NO_DIMS = (Address, StepNumber, ArgumentPlace, PassedPlace, Eventual)
"""Arguments that are no size; a size that is eventual may have no value yet."""


def _outputs_of_others(program: Program, model: TypedModel) -> Iterator[str]:
    """Outputs in memory that is not theirs, or of another shape than the model says."""
    for number, (view, outlet) in enumerate(zip(program.outputs, model.outputs, strict=True)):
        if view is None:
            continue
        shape = tuple(model.outlet_fact(outlet).shape)
        if len(view.shape) != len(shape) or False in map(model.symbols.same, view.shape, shape):
            yield f"output {number} is {view.shape}, the model says {shape}"
        if view.storage.kind is not Kind.HOST and view.storage != Storage(Kind.OUTPUT, number):
            yield f"output {number} is in {storage_text(view.storage)}"
