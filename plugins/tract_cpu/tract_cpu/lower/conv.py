"""Convolutions, on tensors in blocks of channels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any, Final

import numpy as np

from tract_core.dims import Dim, product
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv, Convolution
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.kernels.conv import ConvPlan
from tract_cpu.kernels.expressions import Apply, Expression, element_of
from tract_cpu.lower.blocked import bordered, ends_of, form_of, operands_in_blocks, to_blocks
from tract_cpu.lower.copies import copy_step
from tract_cpu.lower.form import Form
from tract_cpu.lower.fusion import Chain, extended
from tract_cpu.lower.loops import Loop, collapsed
from tract_cpu.lower.lowering import CPU, Site
from tract_cpu.lower.program import Argument, NativeStep
from tract_cpu.lower.views import View
from tract_cpu.lower.wholes import new_blocked

ROWS = Rows()

NEAR: Final = 1 << 18
"""Bytes that stay in the second cache while other data goes through it."""


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis: where it is in the tensors, and how the window moves along it."""

    place: int
    window: int = 1
    stride: int = 1
    dilation: int = 1
    before: Dim = 0


@dataclass(frozen=True, slots=True)
class Source:
    """What a convolution reads, in axes as a tensor in blocks has. ``block``: channels that follow each other."""

    view: View
    block: int


@dataclass(frozen=True, slots=True)
class Parts:
    """All that a convolution is made of.

    ``form``: of the result; ``axes``: the spatial ones; ``weights``: output channels, input channels of a group,
    window; ``has_batch``: whether there are several inputs, along the first axis.
    """

    form: Form
    axes: tuple[Axis, ...]
    source: Source
    weights: Array
    groups: int
    chain: Chain
    result: View
    has_batch: bool

    @property
    def depthwise(self) -> bool:
        """Whether each channel is summed alone."""
        return self.weights.shape[1] == 1 and self.groups == self.weights.shape[0] and self.groups > 1


@ROWS.row(CPU, Conv)
def lower_conv(op: Conv, site: Site) -> str | None:
    """A direct convolution, with its bias and the element-wise operators behind it."""
    if op.q_output is not None:
        return "there is no native code for quantised convolutions yet"
    why = unfit(op, site)
    if why is not None:
        return why
    parts = prepared(op, site)
    if parts is None:
        return "the number of channels is not known, windows do not fit, or native code cannot read the data"
    plans = enumerate(op.pool.plan(op, site.facts()[0].shape), start=op.pool.data_format.h_axis)
    windows = [(place, plan.window, plan.before) for place, plan in plans]
    axes = tuple(Axis(place, one.kernel, one.stride, one.dilation, before) for place, one, before in windows)
    add_steps(site, parts, [conv_step(site, replace(parts, axes=axes))])
    return None


def lower_pointwise(site: Site, data: OutletId, weights: Array, axis: int) -> str | None:
    """The product of a matrix, [output channels, input channels], with the channels at every position of a tensor.

    ``axis``: where the channels are, 0, or 1 behind a batch, in the data and in the result.
    """
    form, given, element = form_of(site.lowering, site.outlet, axis), form_of(site.lowering, data, axis), site.result()
    if form is None or given is None or element is None:
        return "the number of channels is not known"
    rank = site.lowering.model.outlet_fact(data).rank
    view = to_blocks(site.lowering, data, given, ((0, 0),) * (rank + 1))
    if view is None:
        return "native code cannot read the data"
    start = Chain(Expression((element,)), (), site.outlet, (site.node.node,))
    chain = extended(site.lowering, start, operands_in_blocks(site.lowering, form))
    result = new_blocked(site.lowering, chain.outlet, form)
    axes = tuple(map(Axis, range(axis + 1, rank)))
    parts = Parts(form, axes, Source(view, given.block), weights, 1, chain, result, bool(axis))
    site.add(conv_step(site, parts))
    return None


def unfit(op: Convolution, site: Site) -> str | None:
    """Why native code cannot compute a convolution, or a deconvolution, of such types and channels."""
    x, weights, *_ = site.facts()
    if not x.datum_type == weights.datum_type == site.node.facts[0].datum_type:
        return f"there is no native code for convolutions of {x.datum_type.short} yet"
    if site.array(1) is None or site.array(2) is None:
        return "native code wants weights and bias that are part of the model"
    inputs, outputs = op.kernel_format.i_axis(weights.rank), op.kernel_format.o_axis(weights.rank)
    counts = int(weights.shape[outputs]), int(weights.shape[inputs])
    if 0 in counts or 0 in op.pool.kernel_shape:
        return "there is nothing to compute"
    element = site.result()
    if element is None:
        return f"native code does not know {x.datum_type.short}"
    return None


def prepared(op: Convolution, site: Site) -> Parts | None:
    """What a convolution or a deconvolution is made of, but for its axes; ``None`` where native code cannot read that.

    Where groups do not fill whole blocks of channels, each gets blocks of its own; nothing behind is computed along.
    """
    lowering, layout, weights = site.lowering, op.pool.data_format, site.array(1)
    axis, last = layout.c_axis(site.facts()[0].rank), layout.h_axis + op.pool.rank - 1
    form = form_of(lowering, site.outlet, axis)
    if form is None or weights is None:
        return None
    kernel = op.kernel_format.to_oihw(weights)
    outputs, inputs = kernel.shape[0] // op.group, kernel.shape[1]
    whole = op.group == 1 or (outputs, inputs) == (1, 1) or outputs % form.block == inputs % form.block == 0
    if not whole:
        form = replace(form, channels=op.group * -(-outputs // form.block) * form.block)
    source = source_of(op, site, axis, 0 if whole else inputs)
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
    return Parts(form, (), source, kernel, op.group, chain, result, layout.has_n)


def add_steps(site: Site, parts: Parts, steps: Sequence[NativeStep]) -> None:
    """Add the calls that compute the result, and copy it from blocks of the groups, where these have their own."""
    lowering = site.lowering
    copies = [] if parts.chain.outlet in lowering.born_in_blocks else _ungrouped(site, parts)
    *others, last = *steps, *copies
    lowering.steps += [replace(step, nodes=()) for step in others]
    site.add(replace(last, nodes=parts.chain.nodes))


def _ungrouped(site: Site, parts: Parts) -> list[NativeStep]:
    """The calls that put the channels of all groups one behind the other."""
    plain, axis, groups = site.lowering.new(site.outlet), parts.form.axis, parts.groups
    of_one = Form(axis + 1, parts.weights.shape[0] // groups, parts.form.block)
    blocked, apart = (
        view.shaped((*view.shape[:axis], groups, count, *view.shape[axis + 1 :]))
        for view, count in ((parts.result, of_one.blocks), (plain, of_one.channels))
    )
    assert blocked is not None  # as the result of its kernel, it has no gaps
    assert apart is not None  # nor has new memory
    return [copy_step(out_of, into, site.isa, ()) for out_of, into in of_one.parts(blocked, apart)]


def source_of(op: Convolution, site: Site, axis: int, apart: int) -> Source | None:
    """The data with the zeros around it that windows reach: in blocks, or, where there are few channels, as it lies.

    ``apart``: how many channels each group has, where these do not fill whole blocks, else 0.
    """
    lowering, data = site.lowering, site.node.inputs[0]
    form = form_of(lowering, data, axis)
    ends, start = ends_of(lowering, op, data), op.pool.data_format.h_axis
    if form is None or ends is None:
        return None
    rank = lowering.model.outlet_fact(data).rank
    border = tuple(ends[one - start] if start <= one < start + len(ends) else (0, 0) for one in range(rank))
    if not apart and (form.channels >= form.block or op.group > 1 or not lowering.is_plain(data)):
        view = to_blocks(lowering, data, form, (*border, (0, 0)))
        return view and Source(view, form.block)
    plain = lowering.view(data)
    if plain is None:
        return None
    if any(end != 0 for pair in border for end in pair):
        wide = bordered(lowering, plain, border)
        lowering.copy(plain, wide)
        plain = wide
    few = apart or form.channels
    return Source(replace(form, block=few).cut(plain, 0, form.channels // few, few), few)


def _biased(site: Site, form: Form, groups: int) -> Chain | None:
    """The bias. The sum is the first operand, in the type in which it is summed.

    ``groups``: how many have blocks of their own.
    """
    lowering, element, array = site.lowering, site.result(), site.array(2)
    if array is None or element is None:
        return None
    shape = tuple(lowering.model.outlet_fact(site.outlet).shape)
    outputs = np.broadcast_to(array.reshape(-1), (int(shape[form.axis]),)).reshape(groups, -1)
    padded = np.zeros((groups, form.blocks * form.block // groups), array.dtype)
    padded[:, : outputs.shape[1]] = outputs
    sizes = [form.blocks if place == form.axis else 1 for place in range(len(shape))]
    view = lowering.constant(padded.reshape(*sizes, form.block))
    bias = view and view.stretched(form.shape(shape))
    add = element_of(lowering.model.registry, Add(), [element])
    if bias is None or add is None:
        return None
    expression = Expression((element.computed, element), (Apply(Add(), (0, 1), element, add.emit),))
    return Chain(expression, (bias,), site.outlet, (site.node.node,))


def conv_step(site: Site, parts: Parts) -> NativeStep:
    """The call of the kernel."""
    form, source, kernel = parts.form, parts.source.view, parts.weights
    groups = 1 if parts.depthwise else parts.groups
    views = (*parts.chain.operands, parts.result)
    loops = _loops(parts, views)
    blocks = form.blocks // groups
    columns, vectors = _tile(site, loops[-1].size, blocks, depthwise=parts.depthwise)
    if len(loops) == 1 and not _moves(parts):
        loops = _pieces(loops[0], columns, kernel.shape[1] * source.element.bytes)
    width = vectors * form.block
    run = width * prod(kernel.shape[1:])
    weights = site.lowering.made(
        (groups * -(-form.blocks // groups // vectors), run),
        source.element,
        lambda array: _packed(array, groups, width, parts.source.block),
        kernel,
    )
    channel, column = source.strides[-1], loops[-1].strides[0]
    assert isinstance(column, int)  # the caller asked
    windows = list(parts.axes) if _moves(parts) else []
    plan = ConvPlan(
        spatial=len(loops),
        columns=columns,
        vectors=vectors,
        lanes=form.block,
        block=parts.source.block,
        channel_step=channel if isinstance(channel, int) else None,
        column_step=column,
        depthwise=parts.depthwise,
        element=source.element,
        weights=weights.element,
        expression=parts.chain.expression,
        along_channels=tuple(view.strides[-1] != 0 for view in parts.chain.operands),
        runs_inside=kernel.nbytes <= NEAR,
    )
    runs = -(-blocks // vectors)
    block = source.strides[form.axis]
    per_group = kernel.shape[1] // parts.source.block if groups > 1 else 0
    arguments: list[Argument] = [groups, blocks, runs, kernel.shape[1]]
    arguments += [loop.size for loop in loops]
    arguments += [one.window for one in windows] or [1] * len(loops)
    arguments += [_first(parts).address, source.strides[0] if parts.has_batch else 0, block * per_group, block, channel]
    arguments += [loop.strides[0] for loop in loops]
    arguments += [source.strides[one.place] * one.dilation for one in windows] or [0] * len(loops)
    arguments += [weights.address, run]
    for number, view in enumerate(views, start=1):
        arguments += [view.address, view.strides[0] if parts.has_batch else 0, view.strides[form.axis]]
        arguments += [loop.strides[number] for loop in loops]
    count = parts.result.shape[0] if parts.has_batch else 1
    tasks = product([count, groups, runs, *(loop.size for loop in loops[:-1])])
    work = product(parts.result.shape) * prod(kernel.shape[1:])
    return NativeStep(plan, tuple(arguments), tasks, parts.chain.nodes, (parts.result.storage,), work=work)


def _moves(parts: Parts) -> bool:
    """Whether windows are not one element each."""
    return any(one.window != 1 for one in parts.axes)


def _loops(parts: Parts, views: Sequence[View]) -> list[Loop]:
    """The loops over positions of the result. Strides: of what a window reads first, of operands, of the result."""
    sizes = [parts.result.shape[one.place] for one in parts.axes]
    source = [parts.source.view.strides[one.place] * one.stride for one in parts.axes]
    strides = [source, *([view.strides[one.place] for one in parts.axes] for view in views)]
    if _moves(parts):
        return [Loop(size, tuple(one[axis] for one in strides)) for axis, size in enumerate(sizes)]
    found = collapsed(sizes, strides)
    if found and isinstance(found[-1].strides[0], int):
        return found
    return [*found, Loop(1, (0,) * len(strides))]  # kernels know how far apart the columns that they read are


def _first(parts: Parts) -> View:
    """The data from what the first window reads first on."""
    source = parts.source.view
    offset = source.offset
    for one in parts.axes:
        offset = offset - source.strides[one.place] * one.before
    return replace(source, offset=offset)


def _tile(site: Site, width: Dim, blocks: int, *, depthwise: bool) -> tuple[int, int]:
    """Columns and vectors of a tile: as many sums as registers hold, in columns that fill the row.

    ``width``: of a row of the result; ``blocks``: of output channels. A tile of more vectors reads less of the data.
    """
    room = site.isa.registers - 4
    if depthwise:
        return (min(room // 2, width) if isinstance(width, int) and width else room // 2), 1
    choices = [(room // vectors, vectors) for vectors in (1, 2, 4) if vectors <= blocks]
    filled = [(_filling(width, columns), vectors) for columns, vectors in choices]
    return min(filled, key=lambda one: (one[0] + one[1]) / (one[0] * one[1]))


def _pieces(loop: Loop, columns: int, each: int) -> list[Loop]:
    """A long loop over positions as two, so that all output channels can be computed while a piece is in the cache.

    ``columns``: of a tile; ``each``: bytes that a position has.
    """
    if not isinstance(loop.size, int):
        return [loop]
    sizes = [size for size in range(columns, loop.size, columns) if loop.size % size == 0 and size * each <= NEAR]
    if not sizes:
        return [loop]
    size = max(sizes)
    return [Loop(loop.size // size, tuple(stride * size for stride in loop.strides)), Loop(size, loop.strides)]


def _filling(width: Dim, columns: int) -> int:
    """About as many columns, so that a row is made of whole tiles."""
    if not isinstance(width, int) or width < 1:
        return columns
    return -(-width // -(-width // columns))


def _packed(kernel: Array, groups: int, width: int, block: int) -> Array:
    """Weights [output channels, input channels, window] in the order of the kernel: [groups * runs, ...].

    ``width``: output channels of a run; ``block``: input channels that follow each other.
    """
    outputs, inputs, taps = kernel.shape[0] // groups, kernel.shape[1], prod(kernel.shape[2:])
    runs = -(-outputs // width)
    made = np.zeros if outputs % width else np.empty
    packed: Any = made((groups, runs, inputs * taps * width), kernel.dtype)
    plain = kernel.reshape(groups, outputs, inputs, taps)
    for first, blocks, depth in _cuts(inputs, block):
        begin, size = first * taps * width, blocks * depth * taps * width
        into = packed[:, :, begin : begin + size].reshape(groups, runs, blocks, taps, depth, width)
        for output, whole, lanes in _cuts(outputs, width):
            cut = plain[:, output : output + whole * lanes, first : first + blocks * depth]
            pieces = cut.reshape(groups, whole, lanes, blocks, depth, taps)
            run = output // width
            into[:, run : run + whole, :, :, :, :lanes] = pieces.transpose(0, 1, 3, 5, 4, 2)
    return packed.reshape(groups * runs, -1)


def _cuts(size: int, block: int) -> list[tuple[int, int, int]]:
    """The whole blocks of an axis, then what is left over: where they begin, how many there are, how long each is."""
    whole, rest = divmod(size, block)
    return [cut for cut in ((0, whole, block), (whole * block, 1, rest)) if cut[1] and cut[2]]
