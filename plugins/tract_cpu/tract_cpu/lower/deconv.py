"""Deconvolutions: a convolution for every phase of the output, all on tensors in blocks of channels."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as every

from tract_llvm.program.views import View

from tract_core.dims import ceil_div, product
from tract_core.ops.deconv import Deconv
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.group.phases import Phase, ends, phases
from tract_cpu.kernels.finite import CHUNK, FinitePlan
from tract_cpu.kernels.runs import Run
from tract_cpu.lower.conv import add_steps, prepared
from tract_cpu.products.direct import conv_step
from tract_cpu.products.windows import Parts, WindowAxis
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.table import CPU

ROWS = Rows()


@ROWS.row(CPU, Deconv)
def lower_deconv(op: Deconv, site: Site) -> None:
    """With its bias and the element-wise operators behind it."""
    shape, start = site.facts()[0].shape, op.pool.data_format.h_axis
    by_axis = [phases(plan) for plan in op.pool.transposed_plan(op, shape, op.adjustments)]
    known = [one for one in by_axis if one is not None]
    whole = prepared(op, site)
    steps = [conv_step(site, _phase(whole, start, chosen)) for chosen in every(*known)]
    if site.array(1) is None and any(end != 0 for one in known for end in ends(one)):
        _want_finite(site)
    add_steps(site, whole, steps)


def _want_finite(site: Site) -> None:
    """Have the weights of a run looked at, which the step behind leaves to the host where they are not finite."""
    view = site.lowering.known_view(site.node.inputs[1])
    if view.element.kind != "f":
        return
    view, element = site.lowering.contiguous(view), view.element
    size = product(view.shape)
    plan = FinitePlan(element, Run.of(site.isa, element))
    given = arguments(plan, status=STATUS, x=view.address, size=size)
    step = NativeStep(plan, given, ceil_div(size, CHUNK), (), (), work=size)
    site.lowering.steps.append(step)


def _phase(whole: Parts, start: int, chosen: tuple[Phase, ...]) -> Parts:
    """What one phase along every spatial axis, the first of which is ``start``, is made of."""
    weights, result = whole.weights, whole.result
    operands: tuple[View, ...] = whole.chain.operands
    axes: list[WindowAxis] = []
    for number, one in enumerate(chosen):
        place = start + number
        weights = weights.of_taps(number + 2, one.taps)
        result = result.part(place, one.first, one.count, one.stride)
        operands = tuple(view.part(place, one.first, one.count, one.stride) for view in operands)
        axes.append(WindowAxis(place, len(one.taps), 1, one.dilation, one.before))
    chain = replace(whole.chain, operands=operands)
    return replace(whole, axes=tuple(axes), weights=weights, chain=chain, result=result)
