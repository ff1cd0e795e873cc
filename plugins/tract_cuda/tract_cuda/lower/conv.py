"""Convolutions: as products of the windows with the weights, with channels side by side in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

from tract_llvm.fuse.chain import Chain
from tract_llvm.language.types import ElementType
from tract_llvm.program.loops import collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_core.ops.conv import Conv
from tract_core.ops.pool_spec import AxisPlan
from tract_core.plugins.tables import Rows
from tract_cuda.group.conv import biased, sums_of
from tract_cuda.group.groups import Convolved
from tract_cuda.kernels.depthwise import THREADS as DEPTHWISE_THREADS
from tract_cuda.kernels.depthwise import DepthwisePlan
from tract_cuda.kernels.window import THREADS as WINDOW_THREADS
from tract_cuda.kernels.window import WindowPlan
from tract_cuda.lowering import Lowering, Site
from tract_cuda.maps import is_multiple
from tract_cuda.products.choose import add_product
from tract_cuda.products.product import Product, WindowsOf
from tract_cuda.table import CUDA, KINDS

ROWS = Rows()

FEW_CHANNELS = 4
"""Groups of so few channels are summed window by window."""

MOST_TAPS = 64
"""Windows of so many positions are written out."""

MOST_LANES = 4

ACCESS_BYTES = 16
"""What one thread reads at once, at most."""


@ROWS.row(CUDA, Conv)
def lower_conv(op: Conv, site: Site) -> str | None:
    """A convolution that nothing is computed behind."""
    model = site.lowering.model
    if op.q_output is not None:
        return "there are no kernels for quantised convolutions yet"
    start = biased(op, model, model.nodes[site.node.node])
    return "kernels do not sum in that type" if start is None else _lower(op, site, start)


@ROWS.row(KINDS, Convolved)
def lower_convolved(site: Site) -> str | None:
    """A convolution, and what is computed behind it."""
    group, op = site.group, site.node.op
    assert isinstance(group, Convolved) and isinstance(op, Conv)  # noqa: PT018 (as the tables say)
    return _lower(op, site, group.chain)


def _lower(op: Conv, site: Site, behind: Chain) -> str | None:
    sums = sums_of(site.lowering.model, site.lowering.model.nodes[site.node.node])
    assert sums is not None, "groups are made where there is such a type"
    parts = parts_of(op, site)
    if parts.groups == 1 or not isinstance(parts.each, int) or parts.each > FEW_CHANNELS:
        return _as_product(site, parts, sums, behind)
    if parts.each == 1 and parts.outputs == parts.groups and prod(parts.window) <= MOST_TAPS:
        return _by_channels(site, parts, sums, behind)
    return _by_windows(site, parts, sums, behind)


@frozen
class Parts:
    """What a convolution is made of.

    ``data``: [batch, spatial ..., channels]; ``weights``: [outputs, channels of a group, window ...]; ``axes``: the
    spatial ones; ``groups``: of channels; ``each``: how many input channels a group has; ``shape``: of the result, as
    the data's axes; ``order``: where these are in the operator's, with a batch; ``back``: its axes among these.
    """

    data: View
    weights: View
    axes: tuple[AxisPlan, ...]
    groups: int
    each: Dim
    shape: tuple[Dim, ...]
    order: tuple[int, ...]
    back: tuple[int, ...]

    @property
    def window(self) -> tuple[int, ...]:
        """The sizes of a window."""
        return tuple(one.window.kernel for one in self.axes)

    @property
    def outputs(self) -> Dim:
        """How many output channels there are."""
        return self.shape[-1]


def parts_of(op: Conv, site: Site) -> Parts:
    """The parts of a convolution, as its tensors lie."""
    x, weights = site.lowering.view(site.node.inputs[0]), site.lowering.view(site.node.inputs[1])
    layout, rank = op.pool.data_format, op.pool.rank
    axes = op.pool.plan(op, x.shape)
    if not layout.has_n:
        x = replace(x, shape=(1, *x.shape), strides=(0, *x.strides))
    order = (0, *range(2, 2 + rank), 1) if layout.channels_first else tuple(range(rank + 2))
    back = tuple(order.index(axis) for axis in range(int(not layout.has_n), rank + 2))
    result = (*((1,) if not layout.has_n else ()), *site.lowering.model.outlet_fact(site.outlet).shape)
    start = op.kernel_format.h_axis
    kernel = [op.kernel_format.o_axis(rank + 2), op.kernel_format.i_axis(rank + 2), *range(start, start + rank)]
    weights = weights.transposed(kernel)
    shape = tuple(result[axis] for axis in order)
    return Parts(x.transposed(order), weights, axes, op.group, weights.shape[1], shape, order, back)


def placed_result(site: Site, parts: Parts, behind: Chain) -> View:
    """New memory for the result, [batch, spatial ..., channels]."""
    found = site.lowering.scratch(behind.expression.result, parts.shape)
    site.lowering.put(behind.outlet, found.transposed(parts.back))
    return found


def operands_of(site: Site, parts: Parts, behind: Chain) -> list[View]:
    """The operands of what is behind, in the shape of the result: the bias, which comes first, and whole tensors."""
    lowering = site.lowering
    bias, *others = behind.operands
    shape = tuple(lowering.model.outlet_fact(site.outlet).shape)
    found = [lowering.compact(lowering.view(bias)).stretched(parts.shape)]
    for outlet in others:
        view = lowering.view(outlet).stretched(shape)
        if len(shape) < len(parts.shape):
            view = replace(view, shape=(1, *shape), strides=(0, *view.strides))
        found.append(view.transposed(parts.order))
    return found


# ---- window by window


def _by_channels(site: Site, parts: Parts, sums: ElementType, behind: Chain) -> str | None:
    """Each channel by itself, with weights as [window ..., channels]."""
    lowering, data = site.lowering, parts.data
    data = data if data.strides[-1] == 1 else lowering.compact(data)
    weights = parts.weights.transposed([*range(1, len(parts.weights.shape)), 0])
    weights = lowering.packed(weights)
    operands = [one if one.strides[-1] in {0, 1} else lowering.compact(one) for one in operands_of(site, parts, behind)]
    result = placed_result(site, parts, behind)
    moving = [data, result, *(one for one in operands if one.strides[-1] == 1)]
    lanes = _lanes(parts.outputs, [*moving, weights])
    moves = tuple(one.strides[-1] == 1 for one in operands)
    plan = DepthwisePlan(data.element, weights.element, sums, parts.window, lanes, behind.expression, moves)
    count = product(parts.shape) // lanes
    given: dict[str, View | Dim] = {"count": count, "channels": parts.outputs, "weights": weights} | _along(parts)
    tensors = {"data": data, "result": result} | {f"operand{number}": one for number, one in enumerate(operands)}
    for name, view in tensors.items():
        given[name] = view
        given |= {f"{name}.{axis}": stride for axis, stride in enumerate(view.strides)}
    site.launch(plan, [ceil_div(count, DEPTHWISE_THREADS)], given, [result])
    return None


def _lanes(channels: Dim, views: Sequence[View]) -> int:
    """How many neighbouring channels one thread computes: what is read at once, at most."""
    most = min(MOST_LANES, *(ACCESS_BYTES // one.element.bytes for one in views))
    steps = [channels, *(one.offset for one in views), *(step for one in views for step in one.strides[:-1])]
    while most > 1 and not all(is_multiple(one, most) for one in steps):
        most //= 2
    return max(most, 1)


def _by_windows(site: Site, parts: Parts, sums: ElementType, behind: Chain) -> str | None:
    plan = WindowPlan(parts.data.element, parts.weights.element, sums, parts.window, behind.expression)
    operands = operands_of(site, parts, behind)
    result = placed_result(site, parts, behind)
    batch, *_, outputs = parts.shape
    count = product(parts.shape)
    given: dict[str, View | Dim] = {"count": count, "batch": batch, "outputs": outputs}
    given |= {"outputs_each": outputs // parts.groups, "channels_each": parts.each}
    given |= _along(parts)
    tensors = {"weights": parts.weights, "data": parts.data, "result": result}
    tensors |= {f"operand{number}": one for number, one in enumerate(operands)}
    for name, view in tensors.items():
        given[name] = view
        given |= {f"{name}.{axis}": stride for axis, stride in enumerate(view.strides)}
    site.launch(plan, [(count + WINDOW_THREADS - 1) // WINDOW_THREADS], given, [result])
    return None


def _along(parts: Parts) -> dict[str, View | Dim]:
    found: dict[str, View | Dim] = {}
    for number, axis in enumerate(parts.axes):
        found |= {f"size{number}": axis.input, f"positions{number}": axis.output, f"before{number}": axis.before}
        found |= {f"stride{number}": axis.window.stride, f"dilation{number}": axis.window.dilation}
    return found


# ---- as products


def _as_product(site: Site, parts: Parts, sums: ElementType, behind: Chain) -> str | None:
    """[groups, positions, window and channels] times [groups, window and channels, outputs]."""
    lowering, groups = site.lowering, parts.groups
    rows, depth = product(parts.shape[:-1]), product(parts.window) * parts.each
    right, each = _packed(lowering, parts, depth), parts.outputs // groups
    columns = (groups, rows, each)
    operands = tuple(_of_groups(lowering, view, columns, each) for view in operands_of(site, parts, behind))
    flat = _positions(site, parts, rows)
    data = parts.data if parts.data.strides[-1] == 1 else lowering.compact(parts.data)
    result = placed_result(site, parts, behind)
    shaped = replace(result, shape=columns, strides=(each, parts.outputs, 1))
    left, windows = (data, _windows(parts, data)) if flat is None else (flat, None)
    found = Product(left, right, operands, shaped, sums, behind.expression, windows)
    add_product(lowering, found, site.group.nodes)
    return None


def _of_groups(lowering: Lowering, view: View, shape: tuple[Dim, ...], each: Dim) -> View:
    """An operand in the shape of the result as [groups, rows, outputs of a group]."""
    rows = collapsed(view.shape[:-1], [view.strides[:-1]])
    if len(rows) > 1:
        view = lowering.compact(view)
        rows = collapsed(view.shape[:-1], [view.strides[:-1]])
    step, along = view.strides[-1], rows[0].strides[0] if rows else 0
    return replace(view, shape=shape, strides=(step * each, along, step))


def _positions(site: Site, parts: Parts, rows: Dim) -> View | None:
    """The windows as [groups, positions, channels], where each is one position; ``None`` for others."""
    lowering, data = site.lowering, parts.data
    if any(axis.window.kernel != 1 or axis.before != 0 or axis.after != 0 for axis in parts.axes):
        return None
    for number, axis in enumerate(parts.axes, start=1):
        data = data.part(number, 0, axis.output, axis.window.stride)
    flat = data.shaped((rows, data.shape[-1])) or lowering.compact(data).shaped((rows, data.shape[-1]))
    assert flat is not None, "what has no gaps has any shape"
    step = flat.strides[1]
    return replace(flat, shape=(parts.groups, rows, parts.each), strides=(parts.each * step, flat.strides[0], step))


def _windows(parts: Parts, data: View) -> WindowsOf:
    """How the windows are read. ``data``: with its channels side by side."""
    found: dict[str, Dim] = {"window.batch": data.strides[0]}
    for number, axis in enumerate(parts.axes):
        along = {"size": axis.input, "positions": axis.output, "stride": axis.window.stride}
        along |= {"dilation": axis.window.dilation, "before": axis.before, "step": data.strides[1 + number]}
        found |= {f"window.{name}{number}": value for name, value in along.items()}
    return WindowsOf(parts.window, parts.each, found)


def _packed(lowering: Lowering, parts: Parts, depth: Dim) -> View:
    """The weights as [groups, window and channels, outputs of a group]: copied, at best before the model runs."""
    each = parts.outputs // parts.groups
    _, _, *window = range(len(parts.weights.shape))
    turned = parts.weights.split(0, (parts.groups, each)).transposed([0, *(one + 1 for one in window), 2, 1])
    shape: Sequence[Dim] = (parts.groups, depth, each)
    flat = turned.shaped(shape) or lowering.packed(turned).shaped(shape)
    assert flat is not None, "what has no gaps has any shape"
    return flat
