"""Programs as text."""

from __future__ import annotations

from tract_llvm.program.views import Address, View

from tract_core.compile.groups import outlet_text
from tract_core.dims import Dim
from tract_core.model.typed import TypedModel
from tract_cuda.program import Argument, CudaProgram, Download, Hosted, Launch, Shown, Step, Upload


def program_text(program: CudaProgram, model: TypedModel) -> str:
    """A line for each step, with what it is launched with; then the memory."""
    lines = [f"{number:4} {_step_text(step, model)}" for number, step in enumerate(program.steps)]
    lines += [f"arena[{number}] {size} bytes" for number, size in enumerate(program.arena)]
    lines += [f"constant[{n}] {array.dtype}{list(array.shape)}" for n, array in enumerate(program.constants)]
    return "".join(f"{line}\n" for line in lines)


def _step_text(step: Step, model: TypedModel) -> str:
    if isinstance(step, Hosted):
        return f"host {step.node.name} {step.node.op.name}: {step.why}"
    if isinstance(step, Upload):
        return f"upload {outlet_text(model, step.outlet)} to {view_text(step.view)}"
    if isinstance(step, Download):
        return f"download {outlet_text(model, step.outlet)} from {view_text(step.view)}"
    if isinstance(step, Shown):
        return f"show {', '.join(outlet_text(model, outlet) for outlet in step.outlets)}"
    return _launch_text(step, model)


def _launch_text(step: Launch, model: TypedModel) -> str:
    names = ", ".join(model.nodes[node].name for node in step.nodes)
    given = zip(step.kernel.parameters, step.arguments, strict=True)
    arguments = " ".join(f"{one.name}={_argument_text(value)}" for one, value in given)
    return f"{step.kernel.name} [{'x'.join(map(str, step.grid))}] {arguments}{f' for {names}' if names else ''}"


def _argument_text(value: Argument) -> str:
    if not isinstance(value, Address):
        return str(value)
    return f"{value.storage.kind.value}[{value.storage.number}]{_offset_text(value.offset)}"


def _offset_text(offset: Dim) -> str:
    return "" if isinstance(offset, int) and not offset else f"+{offset}"


def view_text(view: View) -> str:
    """Where a tensor lies, its shape, and its strides."""
    shape, strides = (",".join(map(str, dims)) for dims in (view.shape, view.strides))
    return f"{_argument_text(view.address)} {view.element.name}[{shape}] by [{strides}]"
