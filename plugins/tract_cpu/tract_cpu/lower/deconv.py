"""Deconvolutions: a convolution for every phase of the output, all on tensors in blocks of channels."""

from __future__ import annotations

from dataclasses import replace
from itertools import product as every
from math import prod

import numpy as np

from tract_core.dims import ceil_div, product
from tract_core.ops.deconv import Deconv
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import CPU, Site
from tract_cpu.kernels.finite import CHUNK, FinitePlan
from tract_cpu.kernels.runs import Run
from tract_cpu.lower.conv import add_steps, prepared, unfit
from tract_cpu.products.direct import conv_step
from tract_cpu.products.phases import MOST_PHASES, Phase, ends, phases
from tract_cpu.products.windows import Axis, Parts
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.program.views import View

ROWS = Rows()


@ROWS.row(CPU, Deconv)
def lower_deconv(op: Deconv, site: Site) -> str | None:
    """With its bias and the element-wise operators behind it."""
    why = unfit(op, site)
    if why is not None:
        return why
    shape, start = site.facts()[0].shape, op.pool.data_format.h_axis
    by_axis = [phases(plan) for plan in op.pool.transposed_plan(op, shape, op.adjustments)]
    known = [one for one in by_axis if one is not None]
    if len(known) < len(by_axis) or prod(map(len, known)) > MOST_PHASES:
        return "what is cut off is not known, or the strides are too large"
    weights, reaches = site.array(1), any(end != 0 for one in known for end in ends(one))
    if reaches and weights is not None and not np.isfinite(weights).all():
        return "native code multiplies zeros by weights, which must be finite for that"
    whole = prepared(op, site)
    if whole is None:
        return "native code cannot read the data"
    steps = [conv_step(site, _phase(whole, start, chosen)) for chosen in every(*known)]
    if reaches and weights is None:
        _want_finite(site)
    add_steps(site, whole, steps)
    return None


def _want_finite(site: Site) -> None:
    """Have the weights of a run looked at, which the step behind leaves to the host where they are not finite."""
    view = site.lowering.view(site.node.inputs[1])
    if view is None or view.element.kind != "f":
        return
    view, element = site.lowering.contiguous(view), view.element
    size = product(view.shape)
    plan = FinitePlan(element, Run.of(site.isa, element))
    step = NativeStep(plan, (STATUS, view.address, size), ceil_div(size, CHUNK), (), (), work=size)
    site.lowering.steps.append(step)


def _phase(whole: Parts, start: int, chosen: tuple[Phase, ...]) -> Parts:
    """What one phase along every spatial axis, the first of which is ``start``, is made of."""
    weights, result = whole.weights, whole.result
    operands: tuple[View, ...] = whole.chain.operands
    axes: list[Axis] = []
    for number, one in enumerate(chosen):
        place = start + number
        weights = weights.of_taps(number + 2, one.taps)
        result = result.part(place, one.first, one.count, one.stride)
        operands = tuple(view.part(place, one.first, one.count, one.stride) for view in operands)
        axes.append(Axis(place, len(one.taps), 1, one.dilation, one.before))
    chain = replace(whole.chain, operands=operands)
    return replace(whole, axes=tuple(axes), weights=weights, chain=chain, result=result)
