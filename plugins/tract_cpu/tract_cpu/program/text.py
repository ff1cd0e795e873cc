"""A program as text: each step with what it computes, its kernel, and its arguments; the memory, loops and stages."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tract_llvm.elements.plan_text import plan_text
from tract_llvm.program.storages import Address, Storage, storage_text
from tract_llvm.program.views import View, contiguous_strides

from tract_core.dims import Dim
from tract_core.model.typed import TypedModel
from tract_core.runtime.parts import BodyPath, body_at
from tract_cpu.kernels.kernel import KernelPlan
from tract_cpu.program.arguments import named
from tract_cpu.program.eventual import Eventual
from tract_cpu.program.program import (
    STATUS,
    Argument,
    ArgumentPlace,
    HostStep,
    NativeStep,
    PassedPlace,
    Program,
    ProgramLoop,
    ReadStep,
    Step,
    StepNumber,
)


def program_text(program: Program, model: TypedModel) -> str:
    """All of a program but the numbers in its constants, the same for the same program. ``model``: what it computes."""
    return "\n".join(_lines(program, model)) + "\n"


def _lines(program: Program, model: TypedModel) -> Iterator[str]:
    for place, step in enumerate(program.steps):
        yield from (f"loop {number}:" for number, one in enumerate(program.loops) if one.first == place)
        yield f"{place:>4} {step_text(step, model)}"
        yield from _arguments(step)
        yield from (
            f"end of loop {number}{_moves(one)}" for number, one in enumerate(program.loops) if one.last == place
        )
        for number, stage in enumerate(program.stages, 1):
            if stage.place == place:
                yield f"stage {number}: {', '.join(sorted(stage.symbols))} from here on"
    for number, view in enumerate(program.outputs):
        yield f"output {_output(model, number)} = {'host' if view is None else view_text(view)}"
    yield from (f"arena[{number}] {size} bytes" for number, size in enumerate(program.arena))
    yield from (f"constant[{number}] {_array(one)}" for number, one in enumerate(program.constants))
    for kept in program.kept:
        for number, (element, shape) in enumerate(kept.tensors, kept.first):
            yield f"kept[{number}] {','.join(map(str, [*shape, element.name]))} of node {kept.node}"
    for one in program.inlined:
        yield f"steps {one.first} to {one.last} are bodies of {_node(model, one.body, one.node)}: {one.how}"


def step_text(step: Step, model: TypedModel) -> str:
    """What a step is, in one line: its kind, the nodes that it computes, and what it writes."""
    if isinstance(step, HostStep):
        return f"host {step.node.name} -> {_storages(step.results)}: {step.why}"
    if isinstance(step, ReadStep):
        return f"read sizes for {step.node.name} of {'; '.join(map(view_text, step.inputs))}"
    names = ", ".join(_node(model, step.body, node) for node in step.nodes) or "-"
    if not isinstance(step, NativeStep):
        return f"view {names} -> {_storages(step.results)}"
    numbers = {
        "tasks": step.tasks,
        "work": step.work,
        "weight": step.weight,
        "scratch": step.scratch,
        "times": step.times,
    }
    usual: dict[str, Dim] = {"work": 0, "weight": 1, "scratch": 0, "times": 1}
    told = " ".join(f"{name}={value}" for name, value in numbers.items() if value != usual.get(name))
    return f"{step.kernel.name} {names} -> {_storages(step.results)} ({told})"


def kernel_text(kernel: KernelPlan) -> str:
    """All that a plan says of its kernel, but the digests of sources, which change with any of them."""
    return re.sub("[@ ][0-9a-f]{32}", "", plan_text(kernel))


def view_text(view: View) -> str:
    """Where a tensor is: its memory, the offset in elements, its shape, and strides where it has gaps."""
    shape = ",".join(map(str, [*view.shape, view.element.name]))
    strides = f" strides {','.join(map(str, view.strides))}" if view.strides != contiguous_strides(view.shape) else ""
    return f"{storage_text(view.storage)}{_plus(view.offset)} {shape}{strides}"


def _arguments(step: Step) -> Iterator[str]:
    if isinstance(step, NativeStep):
        yield f"       {kernel_text(step.kernel)}"
        yield f"       {named(step.kernel.signature, list(map(_argument, step.arguments)))}"
    elif isinstance(step, HostStep):
        yield f"       {'; '.join('host' if one is None else view_text(one) for one in step.inputs)}"


def _argument(argument: Argument) -> str:
    if argument == STATUS:
        return "status"
    if isinstance(argument, Address):
        return f"{storage_text(argument.storage)}{_plus(argument.offset)}"
    if isinstance(argument, StepNumber):
        return f"step({argument.place})"
    if isinstance(argument, ArgumentPlace):
        return f"argument({argument.place},{argument.argument})"
    if isinstance(argument, PassedPlace):
        return f"passed({storage_text(argument.storage)})"
    return f"eventual({argument.size})" if isinstance(argument, Eventual) else str(argument)


def _moves(loop: ProgramLoop) -> str:
    found = [f"argument({one.place},{one.argument}) by {far}{' and back' * back}" for one, far, back in loop.moves]
    return "".join(f"; moves {one}" for one in found)


def _storages(storages: tuple[Storage, ...]) -> str:
    return ", ".join(map(storage_text, storages)) or "nothing"


def _plus(offset: Dim) -> str:
    return "" if offset == 0 else f"+{offset}" if isinstance(offset, int) else f"+({offset})"


def _array(array: object) -> str:
    return f"{','.join(map(str, getattr(array, 'shape', ())))}:{getattr(array, 'dtype', '')}"


def _node(model: TypedModel, body: BodyPath, node: int) -> str:
    return body_at(model, body).nodes[node].name


def _output(model: TypedModel, number: int) -> str:
    outlet = model.outputs[number]
    return model.outlet_labels.get(outlet, model.nodes[outlet.node].name)
