"""Deconvolutions: a convolution for every phase of the output, all on tensors in blocks of channels."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import prod
from typing import Final

import numpy as np

from tract_core.ops.deconv import Deconv
from tract_core.plugins.tables import Rows
from tract_cpu.lower.conv import Axis, Parts, add_steps, conv_step, prepared, unfit
from tract_cpu.lower.lowering import CPU, Site
from tract_cpu.lower.phases import Phase, phases
from tract_cpu.lower.views import View

ROWS = Rows()

MOST_PHASES: Final = 1024
"""Each is a call of a kernel."""


@ROWS.row(CPU, Deconv)
def lower_deconv(op: Deconv, site: Site) -> str | None:
    """With its bias and the element-wise operators behind it."""
    why = unfit(op, site)
    if why is not None:
        return why
    shape, weights, start = site.facts()[0].shape, site.array(1), op.pool.data_format.h_axis
    by_axis = [phases(plan) for plan in op.pool.transposed_plan(op, shape, op.adjustments)]
    known = [one for one in by_axis if one is not None]
    if len(known) < len(by_axis) or prod(map(len, known)) > MOST_PHASES:
        return "what is cut off is not known, or the strides are too large"
    if weights is None or not np.isfinite(weights).all():
        return "native code multiplies zeros by weights, which must be finite for that"
    whole = prepared(op, site)
    if whole is None:
        return "the number of channels is not known, or native code cannot read the data"
    add_steps(site, whole, [conv_step(site, _phase(whole, start, chosen)) for chosen in product(*known)])
    return None


def _phase(whole: Parts, start: int, chosen: tuple[Phase, ...]) -> Parts:
    """What one phase along every spatial axis, the first of which is ``start``, is made of."""
    weights, result = whole.weights, whole.result
    operands: tuple[View, ...] = whole.chain.operands
    axes: list[Axis] = []
    for number, one in enumerate(chosen):
        place = start + number
        weights = weights.take(one.taps, number + 2)
        result = result.part(place, one.first, one.count, one.stride)
        operands = tuple(view.part(place, one.first, one.count, one.stride) for view in operands)
        axes.append(Axis(place, len(one.taps), 1, one.dilation, one.before))
    chain = replace(whole.chain, operands=operands)
    return replace(whole, axes=tuple(axes), weights=weights, chain=chain, result=result)
