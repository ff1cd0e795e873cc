"""Programs as text."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.program.storages import Address
from tract_llvm.program.views import View

from tract_core.compile.groups import outlet_text
from tract_core.dims import Dim
from tract_core.model.typed import TypedModel
from tract_cuda.program import (
    Argument,
    CudaProgram,
    Download,
    EventualSize,
    Hosted,
    KeptTensors,
    Launch,
    Repeat,
    Shown,
    Step,
    Upload,
    Work,
)


def program_text(program: CudaProgram, model: TypedModel) -> str:
    """A line for each step, with what it is launched with; then the memory."""
    lines = [line for number, step in enumerate(program.steps) for line in _lines(f"{number:4} ", step, model)]
    lines += [f"arena[{number}] {size} bytes" for number, size in enumerate(program.arena)]
    lines += [f"constant[{n}] {array.dtype}{list(array.shape)}" for n, array in program.read_constants().items()]
    lines += [line for one in program.kept for line in _kept_lines(one, model)]
    return "".join(f"{line}\n" for line in lines)


def _kept_lines(kept: KeptTensors, model: TypedModel) -> list[str]:
    name = model.nodes[kept.node].name
    tensors = ((number, *one) for number, one in enumerate(kept.tensors, kept.first))
    lines = [f"kept[{n}] {element.name}[{','.join(map(str, shape))}] of {name}" for n, element, shape in tensors]
    return [*lines, *(f"{count} of {name}, then {then}" for count, then in kept.counts)]


def _lines(begin: str, step: Step, model: TypedModel) -> list[str]:
    """A step, and what is done in it again and again."""
    if not isinstance(step, Repeat):
        return [f"{begin}{step_text(step, model)}"]
    inside = [line for one in step.steps for line in _lines(f"{' ' * len(begin)}  ", one, model)]
    return [f"{begin}{step_text(step, model)}", *inside]


def step_text(step: Step, model: TypedModel) -> str:
    """A step, without what is done in it again and again."""
    if isinstance(step, Hosted):
        return f"host {step.node.name} {step.node.op.name}: {step.why}"
    if isinstance(step, Upload):
        return f"upload {outlet_text(model, step.outlet)} to {view_text(step.view)}"
    if isinstance(step, Download):
        return f"download {outlet_text(model, step.outlet)} from {view_text(step.view)}"
    if isinstance(step, Shown):
        return f"show {', '.join(outlet_text(model, outlet) for outlet in step.outlets)}"
    if isinstance(step, Repeat):
        return f"repeat {step.count} times, {step.index} from 0{_named(step.nodes, model)}"
    return _launch_text(step, model)


def kernels_text(step: Work) -> str:
    """The names of the kernels of a step, those that are launched again and again behind how often that is."""
    if isinstance(step, Launch):
        return step.kernel.name
    return f"{step.count} times ({', '.join(map(kernels_text, step.steps))})"


def _launch_text(step: Launch, model: TypedModel) -> str:
    given = zip(step.kernel.parameters, step.arguments, strict=False)  # a program that is wrong is shown, too
    arguments = " ".join(f"{one.name}={_argument_text(value)}" for one, value in given)
    return f"{step.kernel.name} [{'x'.join(map(str, step.grid))}] {arguments}{_named(step.nodes, model)}"


def _named(nodes: Sequence[int], model: TypedModel) -> str:
    return f" for {', '.join(model.nodes[node].name for node in nodes)}" if nodes else ""


def _argument_text(value: Argument) -> str:
    if isinstance(value, EventualSize):
        return f"{value.size} once known"
    if not isinstance(value, Address):
        return str(value)
    return f"{value.storage.kind.value}[{value.storage.number}]{_offset_text(value.offset)}"


def _offset_text(offset: Dim) -> str:
    return "" if isinstance(offset, int) and not offset else f"+{offset}"


def view_text(view: View) -> str:
    """Where a tensor lies, its shape, and its strides."""
    shape, strides = (",".join(map(str, dims)) for dims in (view.shape, view.strides))
    return f"{_argument_text(view.address)} {view.element.name}[{shape}] by [{strides}]"
