"""What must hold of groups on a CPU: they say what they read, in blocks that fit, and chains hold together.

It is for tests and for whoever changes what decides: a wrong decision is told where it was made, not by wrong numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tract_llvm.fuse.region import Operand
from tract_llvm.fuse.steps import Load, operands_of
from tract_llvm.language.types import element_type

from tract_core.compile.check import group_faults
from tract_core.compile.groups import outlet_text
from tract_core.dims import is_one
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_cpu.group.groups import Convolved, CpuGroup, Epilogue, Host, Reduced
from tract_cpu.program.form import Form


def check_groups(model: TypedModel, groups: Sequence[CpuGroup]) -> None:
    """Raises AssertionError with all that is wrong with groups."""
    found = list(faults(model, groups))
    if found:
        raise AssertionError("\n".join(found))


def faults(model: TypedModel, groups: Sequence[CpuGroup]) -> Iterator[str]:
    """What is wrong with the groups of a model, a sentence each, with the numbers of groups; nothing if all is well."""
    yield from group_faults(model, groups)
    for number, group in enumerate(groups):
        if group.nodes:
            yield from (f"group {number} {what}" for what in _faults_of(model, group))


def _faults_of(model: TypedModel, group: CpuGroup) -> Iterator[str]:
    yield from _readings(model, group)
    if isinstance(group, Host) and len(group.nodes) > 1:
        yield "leaves several nodes to the host"
    if group.form is not None:
        last = group.nodes[len(group.nodes) - 1]
        yield from _not_in_blocks(model, OutletId(last), group.form)
    if isinstance(group, Epilogue):
        yield from _chain(model, group)
    if isinstance(group, Reduced):
        yield from _region(model, group)


def _readings(model: TypedModel, group: CpuGroup) -> Iterator[str]:
    """What it says that it reads is read by its nodes, and given by others; blocks fit what is in them."""
    read = {outlet for node in group.nodes for outlet in model.nodes[node].inputs}
    for outlet, form in group.reads:
        if outlet not in read or outlet.node in group.nodes:
            yield f"says that it reads {outlet_text(model, outlet)}, which it does not"
        shape = model.outlet_fact(outlet).shape
        if form is not None and not (form.axis < len(shape) and is_one(shape[form.axis])):
            yield from _not_in_blocks(model, outlet, form)


def _not_in_blocks(model: TypedModel, outlet: OutletId, form: Form) -> Iterator[str]:
    shape = model.outlet_fact(outlet).shape
    if form.axis >= len(shape) or shape[form.axis] != form.channels or form.block < 1:
        yield f"has {outlet_text(model, outlet)}, {model.outlet_fact(outlet)}, in blocks that do not fit: {form}"


def _chain(model: TypedModel, group: Epilogue) -> Iterator[str]:
    """Each of its nodes alone reads the one before; its steps are computed of what comes before them."""
    chain, inputs = group.chain, len(group.chain.expression.inputs)
    if chain.nodes != group.nodes[: len(chain.nodes)]:
        yield "does not begin with the nodes of its chain"
    if chain.outlet != OutletId(chain.nodes[-1]):
        yield f"has a chain that ends with {outlet_text(model, chain.outlet)}, not with its last node"
    for before, node in zip(chain.nodes, chain.nodes[1:], strict=False):
        readers = {reader.node for reader in model.outlet(OutletId(before)).successors}
        if readers != {node} or OutletId(before) in model.outputs:
            yield f"computes {model.nodes[before].name!r} along, which others read, too"
    if inputs - len(chain.operands) not in {0, 1}:
        yield f"has {len(chain.operands)} operands for {inputs} inputs"
    if isinstance(group, Convolved) and group.form is None and len(chain.nodes) > 1:
        yield "has a chain behind a convolution whose groups have blocks of their own"
    for number, step in enumerate(chain.expression.steps, inputs):
        if any(operand >= number for operand in step.operands):
            yield f"computes value {number} of a later one"
    yield from _types(model, group)


def _types(model: TypedModel, group: Epilogue) -> Iterator[str]:
    chain = group.chain
    computed = len(chain.expression.inputs) - len(chain.operands)
    for number, outlet in enumerate(chain.operands, computed):
        element, fact = chain.expression.inputs[number], model.outlet_fact(outlet)
        if element != element_type(fact.datum_type.storage):
            yield f"takes {outlet_text(model, outlet)}, {fact}, for {element.name}"


def _region(model: TypedModel, group: Reduced) -> Iterator[str]:
    region = group.region
    if set(region.nodes) != set(group.nodes):
        yield "has other nodes than its program for rows"
    for number, step in enumerate(region.steps):
        if any(operand >= number for operand in operands_of(step)):
            yield f"computes value {number} of a later one"
        if isinstance(step, Load) and step.tensor >= len(region.tensors):
            yield f"loads tensor {step.tensor}, of which there are {len(region.tensors)}"
    if any(value >= len(region.steps) for _, value in region.values):
        yield "gives a value that is not computed"
    if any(axis >= len(region.shape) for axis in region.axes):
        yield f"reduces along axes {sorted(region.axes)} of {len(region.shape)}"
    read = {outlet for outlet, _ in group.reads}
    for tensor in region.tensors:
        if isinstance(tensor, Operand) and tensor.outlet not in read:
            yield f"loads {outlet_text(model, tensor.outlet)}, which it does not say that it reads"
