"""Convolutions, on tensors in blocks of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.language.types import ElementType

from tract_core.dims import Dim, ceil_div, product
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv, Convolution
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.blocks.blocked import bordered, ends_of, fills_blocks, form_of, operands_in_blocks, to_blocks
from tract_cpu.blocks.wholes import new_blocked
from tract_cpu.draft.lowering import CPU, Site
from tract_cpu.draft.written_out import written_out
from tract_cpu.elements.chain import Chain, extended
from tract_cpu.elements.copies import copy_step
from tract_cpu.kernels.dots import Grouping
from tract_cpu.products.direct import direct
from tract_cpu.products.dots import factor_of, factor_of_array, grouping_for
from tract_cpu.products.pipeline import pipelined
from tract_cpu.products.quantized import wire_conv
from tract_cpu.products.weights import Weights
from tract_cpu.products.windows import Axis, Parts, Source
from tract_cpu.products.winograd import tile_of, winograd_step
from tract_cpu.program.form import Form
from tract_cpu.program.program import NativeStep
from tract_cpu.program.views import View

ROWS = Rows()


@ROWS.row(CPU, Conv)
def lower_conv(op: Conv, site: Site) -> str | None:
    """A convolution, with its bias and the element-wise operators behind it."""
    if op.q_output is not None:
        return written_out(site, partial(wire_conv, op))
    why = unfit(op, site)
    if why is not None:
        return why
    parts = prepared(op, site)
    if parts is None:
        return "windows do not fit, or reach far beyond the data, or native code cannot read it"
    plans = enumerate(op.pool.plan(op, site.facts()[0].shape), start=op.pool.data_format.h_axis)
    windows = [(place, plan.window, plan.before) for place, plan in plans]
    axes = tuple(Axis(place, one.kernel, one.stride, one.dilation, before) for place, one, before in windows)
    parts = replace(parts, axes=axes)
    tile = tile_of(site.lowering, site.lowering.model.nodes[site.node.node])
    step = pipelined(site, direct(site, _in_one_row(parts))) if tile is None else winograd_step(site, parts, tile)
    add_steps(site, parts, [step])
    return None


def _in_one_row(parts: Parts) -> Parts:
    """The same without axes of one position behind the others: tiles are made of positions along the last axis.

    Where windows are one position, all axes become one anyway, and others may be computed row by row with these.
    """
    axes, strides = parts.axes, parts.source.view.strides
    moves = any(one.window != 1 for one in axes)
    while moves and len(axes) > 1:
        last, before = axes[-1], axes[-2]
        is_one = parts.result.shape[last.place] == last.window == 1 and last.before == 0
        if not is_one or not isinstance(strides[before.place], int):
            break
        axes = axes[:-1]
    return replace(parts, axes=axes)


def lower_pointwise(site: Site, data: OutletId, weights: Array, axis: int) -> str | None:
    """The product of a matrix, [output channels, input channels], with the channels at every position of a tensor.

    ``axis``: where the channels are, 0, or 1 behind a batch, in the data and in the result.
    """
    form, element, matrix = (
        form_of(site.lowering, site.outlet, axis),
        site.result(),
        Weights.of_array(site.lowering, weights),
    )
    rank, channels = site.lowering.model.outlet_fact(data).rank, site.lowering.model.outlet_fact(data).shape[axis]
    if form is None or not isinstance(channels, int) or not channels or element is None or matrix is None:
        return "the number of channels is not known"
    view = to_blocks(site.lowering, data, Form(axis, channels, form.block), ((0, 0),) * (rank + 1))
    if view is None:
        return "native code cannot read the data"
    start = Chain(Expression((element,)), (), site.outlet, (site.node.node,))
    chain = extended(site.lowering, start, operands_in_blocks(site.lowering, form))
    result = new_blocked(site.lowering, chain.outlet, form)
    axes = tuple(map(Axis, range(axis + 1, rank)))
    parts = Parts(form, axes, Source(view, form.block), matrix, 1, chain, result, bool(axis))
    parts = replace(parts, grouping=_grouping(site, data, matrix, element))
    add_steps(site, parts, [pipelined(site, direct(site, parts))])
    return None


def unfit(op: Convolution, site: Site) -> str | None:
    """Why native code cannot compute a convolution, or a deconvolution, of such types and channels."""
    weights = site.facts()[1]
    if site.result() is None:
        return f"native code does not know {site.node.facts[0].datum_type.short}"
    outputs = weights.shape[op.kernel_format.o_axis(weights.rank)]
    if not isinstance(outputs, int):
        return "the number of output channels is not known"
    if 0 in (outputs, weights.shape[op.kernel_format.i_axis(weights.rank)], *op.pool.kernel_shape):
        return "there is nothing to compute"
    return None


def prepared(op: Convolution, site: Site) -> Parts | None:
    """What a convolution or a deconvolution is made of, but for its axes; ``None`` where native code cannot read that.

    Where groups do not fill whole blocks of channels, each gets blocks of its own; nothing behind is computed along.
    """
    lowering, layout, weights = site.lowering, op.pool.data_format, _weights(op, site)
    axis, last = layout.c_axis(site.facts()[0].rank), layout.h_axis + op.pool.rank - 1
    form = form_of(lowering, site.outlet, axis)
    if form is None or weights is None:
        return None
    outputs, inputs = weights.outputs // op.group, weights.inputs
    whole = fills_blocks(op, outputs, inputs, form.block)
    if not whole:
        form = replace(form, channels=op.group * -(-outputs // form.block) * form.block)
    grouping, element = None, site.result()
    if whole and (outputs, inputs) != (1, 1) and element is not None:
        grouping = _grouping(site, site.node.inputs[0], weights, element)
    source = source_of(op, site, axis, form.block, 0 if whole else inputs, grouping=grouping)
    chain = source and _biased(site, form, 1 if whole else op.group)
    if source is None or chain is None or (op.pool.rank and not isinstance(source.view.strides[last], int)):
        return None
    if whole:
        chain = extended(lowering, chain, operands_in_blocks(lowering, form))
        result = new_blocked(lowering, chain.outlet, form)
    else:
        shape = form.shape(site.node.facts[0].shape)
        element = chain.expression.result
        result = View.contiguous(lowering.room(product(shape) * element.bytes), element, shape)
    return Parts(form, (), source, weights, op.group, chain, result, layout.has_n, grouping)


def _grouping(site: Site, data: OutletId, weights: Weights, sums: ElementType) -> Grouping | None:
    """How products are summed in groups of channels: of data whose elements are stored as the instruction takes them.

    Channels that a last group lacks are multiplied by zero, so that floats there may not be just anything.
    """
    left, array = factor_of(site.lowering, data), weights.array
    if left is None or array is None:
        return None
    found = grouping_for(site.isa, left, factor_of_array(weights.view.element, array), sums.computed)
    if found is None or left.element.bits != found.left.bits or not isinstance(weights.inputs, int):
        return None
    return found if left.element.kind != "f" or weights.inputs % found.size == 0 else None


def _weights(op: Convolution, site: Site) -> Weights | None:
    """The weights; ``None`` where native code cannot read them."""
    array, layout = site.array(1), op.kernel_format
    if array is not None:
        return Weights.of_array(site.lowering, layout.to_oihw(array))
    view = site.lowering.view(site.node.inputs[1])
    if view is None:
        return None
    rank, start = len(view.shape), layout.h_axis
    shape = (*view.shape[:start], *op.pool.kernel_shape, *view.shape[start + op.pool.rank :])
    order = [layout.o_axis(rank), layout.i_axis(rank), *range(start, start + op.pool.rank)]
    return Weights(replace(view, shape=shape).transposed(order))


def add_steps(site: Site, parts: Parts, steps: Sequence[NativeStep]) -> None:
    """Add the calls that compute the result, and copy it from blocks of the groups, where these have their own."""
    lowering = site.lowering
    copies = [] if parts.chain.outlet in lowering.born_in_blocks else _ungrouped(site, parts)
    *others, last = *steps, *copies
    lowering.steps += [replace(step, nodes=()) for step in others]
    site.add(last if copies == [] else replace(last, nodes=parts.chain.nodes))


def _ungrouped(site: Site, parts: Parts) -> list[NativeStep]:
    """The calls that put the channels of all groups one behind the other."""
    plain, axis, groups = site.lowering.new(site.outlet), parts.form.axis, parts.groups
    of_one = Form(axis + 1, parts.weights.outputs // groups, parts.form.block)
    blocked, apart = (
        view.shaped((*view.shape[:axis], groups, count, *view.shape[axis + 1 :]))
        for view, count in ((parts.result, of_one.blocks), (plain, of_one.channels))
    )
    assert blocked is not None  # as the result of its kernel, it has no gaps
    assert apart is not None  # nor has new memory
    return [copy_step(out_of, into, site.isa, ()) for out_of, into in of_one.parts(blocked, apart)]


def source_of(
    op: Convolution, site: Site, axis: int, block: int, apart: Dim, *, grouping: Grouping | None
) -> Source | None:
    """The data with the zeros around it that windows reach: in blocks, or, where there are few channels, as it lies.

    ``block``: of blocks, which are smaller where there are few channels that are taken in groups; ``apart``: how many
    channels each group of the operator has, where these do not fill whole blocks, else 0.
    """
    lowering, data = site.lowering, site.node.inputs[0]
    fact, ends, start = lowering.model.outlet_fact(data), ends_of(lowering, site.node.node), op.pool.data_format.h_axis
    if ends is None:
        return None
    channels = fact.shape[axis]
    if not isinstance(channels, int) and op.group > 1 and apart == 0:
        return None  # groups are parts of blocks, or blocks, and of how many channels these are has to be known
    border = tuple(ends[one - start] if start <= one < start + len(ends) else (0, 0) for one in range(fact.rank))
    many = isinstance(channels, int) and (channels >= block or op.group > 1 or not lowering.is_plain(data))
    if isinstance(channels, int) and apart == 0 and many:
        view = to_blocks(lowering, data, Form(axis, channels, block), (*border, (0, 0)))
        return view and Source(view, block)
    if isinstance(channels, int) and grouping is not None:
        few = ceil_div(channels, grouping.size) * grouping.size
        view = to_blocks(lowering, data, Form(axis, channels, int(few)), (*border, (0, 0)))
        return view and Source(view, int(few))
    plain = lowering.view(data)
    if plain is None:
        return None
    if any(end != 0 for pair in border for end in pair):
        wide = bordered(lowering, plain, border)
        lowering.copy(plain, wide)
        plain = wide
    few = next((one for one in (apart, channels) if isinstance(one, int) and one != 0), 1)
    return Source(Form(axis, few, few).cut(plain, 0, channels // few, few), few)


def _biased(site: Site, form: Form, groups: int) -> Chain | None:
    """The bias. The sum is the first operand, in the type in which it is summed.

    ``groups``: how many have blocks of their own.
    """
    lowering, element = site.lowering, site.result()
    shape = tuple(lowering.model.outlet_fact(site.outlet).shape)
    blocks = _bias_in_blocks(site, Form(1, int(shape[form.axis]) // groups, form.block), groups)
    add = element and element_of(lowering.model.registry, Add(), [element])
    if blocks is None or element is None or add is None:
        return None
    sizes = [form.blocks if place == form.axis else 1 for place in range(len(shape))]
    bias = blocks.shaped((*sizes, form.block))
    assert bias is not None  # it was made without gaps
    expression = Expression((element.computed, element), (Apply(Add(), (0, 1), element, add.emit),))
    return Chain(expression, (bias.stretched(form.shape(shape)),), site.outlet, (site.node.node,))


def _bias_in_blocks(site: Site, form: Form, groups: int) -> View | None:
    """The bias as [groups, blocks, block], by now or by steps that are added. ``form``: of [groups, channels]."""
    lowering, array = site.lowering, site.array(2)
    plain = (groups, form.channels)
    if array is not None:
        outputs = np.broadcast_to(array.reshape(-1), (groups * form.channels,)).reshape(plain)
        return lowering.constant(form.blocked_array(outputs))
    view = lowering.view(site.node.inputs[2])
    if view is None:
        return None
    of_group = view.stretched((groups * form.channels,)).split(0, plain)
    shape = form.shape(plain)
    blocks = View.contiguous(lowering.room(product(shape) * view.element.bytes), view.element, shape)
    for into, out_of in form.parts(blocks, of_group):
        lowering.copy(out_of, into)
    return blocks
