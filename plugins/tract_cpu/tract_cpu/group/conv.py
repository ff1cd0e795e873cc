"""Convolutions and deconvolutions: in which blocks of channels they read and write, and what is behind them."""

from __future__ import annotations

from math import prod

import numpy as np
from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.fuse.chain import Chain

from tract_core.dims import ceil_div, is_symbolic, product
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv, Convolution
from tract_core.ops.deconv import Deconv
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.group.dots import grouping_of_channels
from tract_cpu.group.forms import fills_blocks, form_of
from tract_cpu.group.groups import Channels, Convolved, CpuGroup
from tract_cpu.group.phases import MOST_PHASES, ends, phases
from tract_cpu.group.reach import ends_of
from tract_cpu.group.start import GROUPS, Start, read_along
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.program.form import Form

ROWS = Rows()


@ROWS.row(GROUPS, Conv)
def group_conv(op: Conv, start: Start) -> CpuGroup:
    """With its bias and the chain behind it; a quantised one is written out as others."""
    if op.q_output is not None:
        return start.alone()
    why = _unfit(op, start)
    if why is None and ends_of(start.known, start.node.node) is None:
        why = "windows do not fit, or reach far beyond the data"
    return start.host(why) if why is not None else _group(op, start)


@ROWS.row(GROUPS, Deconv)
def group_deconv(op: Deconv, start: Start) -> CpuGroup:
    """The same, where a convolution for every phase of the output computes it."""
    why = _unfit(op, start)
    if why is None:
        plans = op.pool.transposed_plan(op, start.facts()[0].shape, op.adjustments)
        by_axis = [phases(plan) for plan in plans]
        known = [one for one in by_axis if one is not None]
        weights, reaches = start.array(1), any(end != 0 for one in known for end in ends(one))
        if len(known) < len(by_axis) or prod(map(len, known)) > MOST_PHASES:
            why = "what is cut off is not known, or the strides are too large"
        elif reaches and weights is not None and not np.isfinite(weights).all():
            why = "native code multiplies zeros by weights, which must be finite for that"
        elif ends_of(start.known, start.node.node) is None:
            why = "windows reach far beyond the data"
    return start.host(why) if why is not None else _group(op, start)


def channels_of(start: Start, slot: int, weights: Array, axis: int) -> CpuGroup:
    """The product of a matrix, [output channels, input channels], with the channels at every position of a tensor.

    ``slot``: which input that tensor is; ``axis``: where its channels are, there and in the result.
    """
    form, element, data = form_of(start.known, start.outlet, axis), start.result(), start.facts()[slot]
    channels = data.shape[axis]
    if form is None or element is None or not isinstance(channels, int) or not channels:
        return start.host("the number of channels is not known")
    chain = start.behind(Expression((element,)), form)
    reads = [(start.node.inputs[slot], Form(axis, channels, form.block)), *read_along(chain, form)]
    factors = start.node.inputs[slot], start.node.inputs[1 - slot]
    grouping, in_tiles = grouping_of_channels(start.known, factors, weights, element)
    return Channels(chain.nodes, tuple(reads), form, chain, grouping, in_tiles, slot, axis)


def _unfit(op: Convolution, start: Start) -> str | None:
    """Why native code cannot compute a convolution, or a deconvolution, of such types and channels."""
    data, weights = start.facts()[:2]
    if start.result() is None:
        return f"native code does not know {start.node.facts[0].datum_type.short}"
    outputs = weights.shape[op.kernel_format.o_axis(weights.rank)]
    if not isinstance(outputs, int):
        return "the number of output channels is not known"
    if 0 in (outputs, weights.shape[op.kernel_format.i_axis(weights.rank)], *op.pool.kernel_shape):
        return "there is nothing to compute"
    layout = op.pool.data_format
    if not isinstance(data.shape[layout.c_axis(data.rank)], int):
        apart = product(data.shape[layout.h_axis + op.pool.rank :])
        return "the number of channels is not known" if op.pool.rank and is_symbolic(apart) else None
    return None


def _group(op: Convolution, start: Start) -> CpuGroup:
    """Where its groups do not fill whole blocks of channels, each has blocks of its own, and there is no chain."""
    data, weights = start.facts()[:2]
    axis, element = op.pool.data_format.c_axis(data.rank), start.result()
    outputs = int(weights.shape[op.kernel_format.o_axis(weights.rank)]) // op.group
    inputs = weights.shape[op.kernel_format.i_axis(weights.rank)]
    form = form_of(start.known, start.outlet, axis)
    add = element and element_of(start.model.registry, Add(), [element])
    if form is None or element is None or add is None:
        return start.host("the number of output channels is not known")
    biased = Expression((element.computed, element), (Apply(Add(), (0, 1), element, add.emit),))
    bias = start.node.inputs[2]
    if not fills_blocks(op, outputs, inputs, form.block):
        chain = Chain(biased, (bias,), start.outlet, (start.node.node,), own=1)
        return Convolved(chain.nodes, tuple(start.read()), None, chain, None, in_tiles=False)
    is_known = isinstance(data.shape[axis], int)
    if op.group > 1 and not is_known:
        return start.host("the number of channels is not known")
    array = start.array(1)
    first, grouping, in_tiles = start.node.inputs[0], None, False
    if array is not None and is_known and (outputs, inputs) != (1, 1):
        factors, ordered = (first, start.node.inputs[1]), op.kernel_format.to_oihw(array)
        groups = op.group if isinstance(op, Conv) else 0
        grouping, in_tiles = grouping_of_channels(start.known, factors, ordered, element, groups)
    chain = start.behind(biased, form, [bias])
    data_read = first, _form_read(op, start, axis, form.block, grouping)
    reads = (data_read, *start.read(slots=(1, 2)), *read_along(chain, form))
    return Convolved(chain.nodes, reads, form, chain, grouping, in_tiles)


def _form_read(op: Convolution, start: Start, axis: int, block: int, grouping: DotGrouping | None) -> Form | None:
    """The blocks in which the data is read, smaller where few channels are taken in groups; ``None`` for plain data."""
    channels = start.facts()[0].shape[axis]
    if not isinstance(channels, int):
        return None
    if channels >= block or op.group > 1 or not start.walk.layouts.is_plain(start.node.inputs[0]):
        return Form(axis, channels, block)
    return None if grouping is None else Form(axis, channels, int(ceil_div(channels, grouping.size) * grouping.size))
