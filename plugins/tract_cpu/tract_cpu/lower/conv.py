"""Convolutions, on tensors in blocks of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
from tract_llvm.native_form.parameters import wire_conv
from tract_llvm.program.views import View

from tract_core.dims import Dim, product
from tract_core.model.graph import OutletId
from tract_core.ops.conv import Conv, Convolution
from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_cpu.draft.copies import copy_step
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.group.forms import form_of
from tract_cpu.group.groups import Channels, Convolved, CpuGroup
from tract_cpu.group.reach import ends_of
from tract_cpu.group.winograd import tile_of
from tract_cpu.kernels.dots import DotGrouping
from tract_cpu.lower.written_out import written_out
from tract_cpu.place.blocked import bordered, converted_blocks, operands_in_blocks, to_blocks
from tract_cpu.place.chain import placed
from tract_cpu.place.tiled import tiled
from tract_cpu.place.wholes import result_for
from tract_cpu.products.direct import Candidate, direct
from tract_cpu.products.weights import Weights
from tract_cpu.products.windows import ConvInput, Parts, WindowAxis
from tract_cpu.products.winograd import winograd_step
from tract_cpu.program.form import Border, Form
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU, KINDS

ROWS = Rows()


@ROWS.row(CPU, Conv)
def lower_conv(op: Conv, site: Site) -> str | None:
    """A convolution, with its bias and the element-wise operators behind it."""
    if op.q_output is not None:
        return written_out(site, partial(wire_conv, op))
    plans = enumerate(op.pool.plan(op, site.facts()[0].shape), start=op.pool.data_format.h_axis)
    windows = [(place, plan.window, plan.before) for place, plan in plans]
    axes = tuple(WindowAxis(place, one.kernel, one.stride, one.dilation, before) for place, one, before in windows)
    parts = replace(prepared(op, site), axes=axes)
    tile = tile_of(site.lowering, site.lowering.model.nodes[site.node.node])
    if tile is None or parts.in_tiles:
        _add_direct(site, _in_one_row(parts))
    else:
        add_steps(site, parts, [winograd_step(site, parts, tile)])
    return None


def _add_direct(site: Site, parts: Parts) -> None:
    """Add the call, and note what may be computed row by row with others."""
    lowering, conv, outlet = site.lowering, direct(site, parts), parts.chain.outlet
    readers = [one.node for one in lowering.model.outlet(outlet).successors]
    reader = readers[0] if len(readers) == 1 and outlet not in lowering.model.outputs else None
    add_steps(site, parts, [conv.step()])
    stays = outlet in lowering.born_in_blocks
    lowering.draft.convs.append(Candidate(conv, lowering.owner, reader, stays))


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


@ROWS.row(KINDS, Channels)
def lower_channels(site: Site) -> None:
    """A product of a matrix with the channels at every position: a convolution with windows of one position."""
    group, lowering, op = site.group, site.lowering, site.node.op
    assert isinstance(group, Channels)  # as the table says
    assert isinstance(op, EinSum)  # nothing else begins such a group
    assert group.form is not None  # it is one of blocks
    data, axis, array = site.node.inputs[group.slot], group.axis, site.array(1 - group.slot)
    rank, form = lowering.model.outlet_fact(data).rank, group.form
    ordered = array if array is None or op.axes.inputs[1 - group.slot][0] == op.axes.outputs[0][axis] else array.T
    matrix = None if ordered is None else Weights.of_array(lowering, ordered)
    assert matrix is not None  # that was looked at
    nothing = ((0, 0),) * (rank + 1)
    read = _form_read(group)
    view, block = _blocks(lowering, data, read, nothing, group.grouping), form.block
    if group.in_tiles:
        view = tiled(lowering, view, read, nothing, 1)
        block = int(view.shape[-1])
    chain = placed(site, operands_in_blocks(lowering, form))
    result = result_for(lowering, chain.outlet, form)
    axes = tuple(map(WindowAxis, range(axis + 1, rank)))
    kinds = bool(axis), group.grouping, group.in_tiles
    parts = Parts(form, axes, ConvInput(view, block), matrix, 1, chain, result, *kinds)
    _add_direct(site, parts)


def _blocks(lowering: Lowering, data: OutletId, form: Form, border: Border, grouping: DotGrouping | None) -> View:
    """The data in blocks, with zeros around it, as numbers of as many bits as are multiplied in groups."""
    element = lowering.element(lowering.model.outlet_fact(data).datum_type.storage)
    if grouping is None or element is None or element.bits == grouping.left.bits:
        return to_blocks(lowering, data, form, border)
    return converted_blocks(lowering, to_blocks(lowering, data, form, ((0, 0),) * len(border)), grouping.left, border)


def _form_read(group: CpuGroup) -> Form:
    """The blocks in which a group reads its data, which comes first."""
    _, form = group.reads[0]
    assert form is not None  # it was said so when groups were decided on
    return form


def prepared(op: Convolution, site: Site) -> Parts:
    """What a convolution or a deconvolution is made of, but for its axes.

    Where groups do not fill whole blocks of channels, each gets blocks of its own; nothing behind is computed along.
    """
    lowering, layout, weights, group = site.lowering, op.pool.data_format, _weights(op, site), site.group
    assert isinstance(group, Convolved)  # nothing else begins with one
    form = group.form or _forms_apart(op, site, weights)
    apart = weights.inputs if group.form is None else 0
    source = source_of(op, site, apart)
    bias = _bias(site, form, 1 if group.form is not None else op.group)
    chain = placed(site, operands_in_blocks(lowering, form), (bias,))
    if group.form is not None:
        result = result_for(lowering, chain.outlet, form)
    else:
        shape, element = form.shape(site.node.facts[0].shape), chain.expression.result
        result = View.contiguous(lowering.room(product(shape) * element.bytes), element, shape)
    return Parts(form, (), source, weights, op.group, chain, result, layout.has_n, group.grouping, group.in_tiles)


def _forms_apart(op: Convolution, site: Site, weights: Weights) -> Form:
    """The blocks of the result where each group of channels has its own."""
    axis = op.pool.data_format.c_axis(site.facts()[0].rank)
    form = form_of(site.lowering, site.outlet, axis)
    assert form is not None  # it was looked at when groups were decided on
    return replace(form, channels=op.group * -(-(weights.outputs // op.group) // form.block) * form.block)


def _weights(op: Convolution, site: Site) -> Weights:
    """The weights."""
    array, layout = site.array(1), op.kernel_format
    found = None if array is None else Weights.of_array(site.lowering, layout.to_oihw(array))
    if found is not None:
        return found
    view = site.lowering.known_view(site.node.inputs[1])
    rank, start = len(view.shape), layout.h_axis
    shape = (*view.shape[:start], *op.pool.kernel_shape, *view.shape[start + op.pool.rank :])
    order = [layout.o_axis(rank), layout.i_axis(rank), *range(start, start + op.pool.rank)]
    return Weights(replace(view, shape=shape).transposed(order), view.element)


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


def source_of(op: Convolution, site: Site, apart: Dim) -> ConvInput:
    """The data with the zeros around it that windows reach: in blocks, or, where there are few channels, as it lies.

    ``apart``: how many channels each group of the operator has, where these do not fill whole blocks, else 0.
    """
    lowering, group, data = site.lowering, site.group, site.node.inputs[0]
    assert isinstance(group, Convolved)  # nothing else begins with one
    fact, ends, start = lowering.model.outlet_fact(data), ends_of(lowering, site.node.node), op.pool.data_format.h_axis
    assert ends is not None  # it was looked at when groups were decided on
    border = tuple(ends[one - start] if start <= one < start + len(ends) else (0, 0) for one in range(fact.rank))
    form = group.reads[0][1]
    if form is not None:
        if group.in_tiles:
            view = to_blocks(lowering, data, form, ((0, 0),) * (fact.rank + 1))
            view = tiled(lowering, view, form, (*border, (0, 0)), op.pool.strides[-1] if op.pool.strides else 1)
            return ConvInput(view, int(view.shape[-1]))
        return ConvInput(_blocks(lowering, data, form, (*border, (0, 0)), group.grouping), form.block)
    plain, axis = lowering.known_view(data), op.pool.data_format.c_axis(fact.rank)
    if group.form is not None:
        plain = lowering.converted(plain, lowering.held(plain.element))
    if any(end != 0 for pair in border for end in pair):
        wide = bordered(lowering, plain, border)
        lowering.copy(plain, wide)
        plain = wide
    elif op.pool.rank and not isinstance(plain.strides[start + op.pool.rank - 1], int):
        plain = lowering.contiguous(plain)
    channels = fact.shape[axis]
    few = next((one for one in (apart, channels) if isinstance(one, int) and one != 0), 1)
    return ConvInput(Form(axis, few, few).cut(plain, 0, channels // few, few), few)


def _bias(site: Site, form: Form, groups: int) -> View:
    """The bias in blocks, stretched to the result. ``groups``: how many have blocks of their own."""
    shape = tuple(site.lowering.model.outlet_fact(site.outlet).shape)
    blocks = _bias_in_blocks(site, Form(1, int(shape[form.axis]) // groups, form.block), groups)
    sizes = [form.blocks if place == form.axis else 1 for place in range(len(shape))]
    bias = blocks.shaped((*sizes, form.block))
    assert bias is not None  # it was made without gaps
    return bias.stretched(form.shape(shape))


def _bias_in_blocks(site: Site, form: Form, groups: int) -> View:
    """The bias as [groups, blocks, block], by now or by steps that are added. ``form``: of [groups, channels]."""
    lowering, array = site.lowering, site.array(2)
    plain = (groups, form.channels)
    if array is not None:
        outputs = np.broadcast_to(array.reshape(-1), (groups * form.channels,)).reshape(plain)
        constant = lowering.constant(form.blocked_array(outputs))
        assert constant is not None  # kernels know its type
        return constant
    view = lowering.known_view(site.node.inputs[2])
    of_group = view.stretched((groups * form.channels,)).split(0, plain)
    shape = form.shape(plain)
    blocks = View.contiguous(lowering.room(product(shape) * view.element.bytes), view.element, shape)
    for into, out_of in form.parts(blocks, of_group):
        lowering.copy(out_of, into)
    return blocks
