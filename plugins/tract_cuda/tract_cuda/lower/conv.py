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
from tract_core.ops.pool_spec import AxisPlan, PoolSpec
from tract_core.plugins.tables import Rows
from tract_cuda.group.conv import biased, sums_of
from tract_cuda.group.groups import Convolved
from tract_cuda.kernels.depthwise import DepthwisePlan
from tract_cuda.kernels.window import WindowPlan
from tract_cuda.lower.spatial import along, in_order, out_of_order, positions, sizes_in_order, weights_in_order
from tract_cuda.lowering import Lowering, Site
from tract_cuda.maps import vector_width
from tract_cuda.positions import strides_of
from tract_cuda.products.choose import add_product
from tract_cuda.products.product import Product, WindowsOf
from tract_cuda.table import CUDA, KINDS

ROWS = Rows()

FEW_CHANNELS = 4
"""Groups of so few channels are summed window by window."""

MOST_TAPS = 64
"""Windows of so many positions are written out."""

MOST_LANES = 4
"""So many neighbouring channels one thread computes at most: it holds the sums of all of them."""


@ROWS.row(CUDA, Conv)
def lower_conv(op: Conv, site: Site) -> str | None:
    """A convolution that nothing is computed behind."""
    model = site.lowering.model
    if op.q_output is not None:
        return "sizes of its parameters do not fit"
    start = biased(op, model, model.nodes[site.node.node])
    if start is None:
        return "kernels do not sum in that type"
    _lower(op, site, start)
    return None


@ROWS.row(KINDS, Convolved)
def lower_convolved(site: Site) -> None:
    """A convolution, and what is computed behind it."""
    group, op = site.group, site.node.op
    assert isinstance(group, Convolved) and isinstance(op, Conv)  # noqa: PT018 (as the tables say)
    _lower(op, site, group.chain)


def _lower(op: Conv, site: Site, behind: Chain) -> None:
    """Add the launches. ``behind``: what is computed of each sum, by the bias first."""
    sums = sums_of(site.lowering.model, site.lowering.model.nodes[site.node.node])
    assert sums is not None, "groups are made where there is such a type"
    parts = parts_of(op, site)
    add = _by_windows
    if parts.groups == 1 or not isinstance(parts.each, int) or parts.each > FEW_CHANNELS:
        add = _as_product
    elif parts.each == 1 and parts.outputs == parts.groups and prod(parts.window) <= MOST_TAPS:
        add = _by_channels
    add(site, parts, sums, behind)


@frozen
class Parts:
    """What a convolution is made of.

    ``data``: [batch, spatial ..., channels]; ``weights``: [outputs, channels of a group, window ...]; ``axes``: the
    spatial ones; ``groups``: of channels; ``each``: how many input channels a group has; ``shape``: of the result, as
    the data's axes; ``pool``: the order in which the operator has these.
    """

    data: View
    weights: View
    axes: tuple[AxisPlan, ...]
    groups: int
    each: Dim
    shape: tuple[Dim, ...]
    pool: PoolSpec

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
    axes = op.pool.plan(op, x.shape)
    weights = weights_in_order(op, weights)
    shape = sizes_in_order(op.pool, site.lowering.model.outlet_fact(site.outlet).shape)
    return Parts(in_order(op.pool, x), weights, axes, op.group, weights.shape[1], shape, op.pool)


def placed_result(site: Site, parts: Parts, behind: Chain) -> View:
    """New memory for the result, [batch, spatial ..., channels]."""
    found = site.lowering.scratch(behind.expression.result, parts.shape)
    site.lowering.put(behind.outlet, out_of_order(parts.pool, found))
    return found


def operands_of(site: Site, parts: Parts, behind: Chain) -> list[View]:
    """The operands of what is behind, in the shape of the result: the bias, which comes first, and whole tensors."""
    lowering = site.lowering
    bias, *others = behind.operands
    shape = tuple(lowering.model.outlet_fact(site.outlet).shape)
    whole = (lowering.view(outlet).stretched(shape) for outlet in others)
    return [lowering.compact(lowering.view(bias)).stretched(parts.shape), *(in_order(parts.pool, one) for one in whole)]


# ---- window by window


def _by_channels(site: Site, parts: Parts, sums: ElementType, behind: Chain) -> None:
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
    given: dict[str, View | Dim] = {"count": count, "channels": parts.outputs, "weights": weights}
    given |= _told(parts) | strides_of({"data": data, "result": result, **_named(operands)})
    site.launch(plan, [ceil_div(count, plan.threads)], given, [result])


def _lanes(channels: Dim, views: Sequence[View]) -> int:
    """How many neighbouring channels one thread computes: what is read at once, at most."""
    steps = [channels, *(one.offset for one in views), *(step for one in views for step in one.strides[:-1])]
    return vector_width([one.element for one in views], steps, MOST_LANES)


def _by_windows(site: Site, parts: Parts, sums: ElementType, behind: Chain) -> None:
    """Groups of few channels."""
    plan = WindowPlan(parts.data.element, parts.weights.element, sums, parts.window, behind.expression)
    operands = operands_of(site, parts, behind)
    result = placed_result(site, parts, behind)
    batch, *_, outputs = parts.shape
    count = product(parts.shape)
    given: dict[str, View | Dim] = {"count": count, "batch": batch, "outputs": outputs}
    given |= {"outputs_each": outputs // parts.groups, "channels_each": parts.each}
    given |= _told(parts)
    given |= strides_of({"weights": parts.weights, "data": parts.data, "result": result, **_named(operands)})
    site.launch(plan, [ceil_div(count, plan.threads)], given, [result])


def _told(parts: Parts) -> dict[str, Dim]:
    """What kernels are told of the windows."""
    return along(parts.axes) | positions(parts.axes)


def _named(operands: Sequence[View]) -> dict[str, View]:
    return {f"operand{number}": one for number, one in enumerate(operands)}


# ---- as products


@frozen
class _Cut:
    """What pairs of matrices and their rows are: ``groups`` and all positions; or the batch and the positions of each.

    ``by_batch``: the latter, of one group.
    """

    groups: int
    by_batch: bool

    @staticmethod
    def of(groups: int, operands: Sequence[View]) -> _Cut:
        """By the batch where operands lie as matrices only so, as they are the same for all of the batch."""
        whole, batch = _Cut(groups, by_batch=False), _Cut(groups, by_batch=True)
        fits = [all(cut.matrices(one) is not None for one in operands) for cut in (whole, batch)]
        return batch if groups == 1 and fits == [False, True] else whole

    def matrices(self, view: View) -> View | None:
        """A tensor [batch, spatial ..., channels] as [pairs, rows, channels]; ``None`` where it lies in another way."""
        first = int(self.by_batch)
        rows = collapsed(view.shape[first:-1], [view.strides[first:-1]])
        if len(rows) > 1:
            return None
        each, step, along = view.shape[-1] // self.groups, view.strides[-1], rows[0].strides[0] if rows else 0
        pairs, apart = (view.shape[0], view.strides[0]) if self.by_batch else (self.groups, step * each)
        return replace(view, shape=(pairs, product(view.shape[first:-1]), each), strides=(apart, along, step))

    def found(self, lowering: Lowering, view: View) -> View:
        """The same, of a copy where it is to be."""
        found = self.matrices(view) or self.matrices(lowering.compact(view))
        assert found is not None, "what has no gaps goes on from axis to axis"
        return found


def _as_product(site: Site, parts: Parts, sums: ElementType, behind: Chain) -> None:
    """[groups, positions, window and channels] times [groups, window and channels, outputs]; or by the batch."""
    lowering, operands = site.lowering, operands_of(site, parts, behind)
    cut = _Cut.of(parts.groups, operands)
    flat = _positions(parts)
    data = parts.data if parts.data.strides[-1] == 1 else lowering.compact(parts.data)
    left, windows = (data, _windows(parts, data, cut)) if flat is None else (cut.found(lowering, flat), None)
    result = cut.found(lowering, placed_result(site, parts, behind))
    right = _packed(lowering, parts, product(parts.window) * parts.each)
    if cut.by_batch:
        right = replace(right, shape=(result.shape[0], *right.shape[1:]), strides=(0, *right.strides[1:]))
    behind_it = tuple(cut.found(lowering, one) for one in operands)
    found = Product(left, right, behind_it, result, sums, behind.expression, windows)
    add_product(lowering, found, site.group.nodes)


def _positions(parts: Parts) -> View | None:
    """The windows as [batch, spatial ..., channels], where each is one position; ``None`` for others."""
    data = parts.data
    if any(axis.window.kernel != 1 or axis.before != 0 or axis.after != 0 for axis in parts.axes):
        return None
    for number, axis in enumerate(parts.axes, start=1):
        data = data.part(number, 0, axis.output, axis.window.stride)
    return data


def _windows(parts: Parts, data: View, cut: _Cut) -> WindowsOf:
    """How the windows are read. ``data``: with its channels side by side."""
    batch, *spatial, _ = (0 if size == 1 else step for size, step in zip(data.shape, data.strides, strict=True))
    steps = {f"step{number}": step for number, step in enumerate(spatial)}
    given = {"batch": batch, "pair": batch if cut.by_batch else parts.each}
    given |= _told(parts) | steps
    return WindowsOf(parts.window, parts.each, {f"window.{name}": value for name, value in given.items()})


def _packed(lowering: Lowering, parts: Parts, depth: Dim) -> View:
    """The weights as [groups, window and channels, outputs of a group]: copied, at best before the model runs."""
    each = parts.outputs // parts.groups
    _, _, *window = range(len(parts.weights.shape))
    turned = parts.weights.split(0, (parts.groups, each)).transposed([0, *(one + 1 for one in window), 2, 1])
    shape: Sequence[Dim] = (parts.groups, depth, each)
    flat = turned.shaped(shape) or lowering.packed(turned).shaped(shape)
    assert flat is not None, "what has no gaps has any shape"
    return flat
