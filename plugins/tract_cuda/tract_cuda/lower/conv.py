"""Convolutions: as products of the windows with the weights, with channels side by side in memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.elements.expressions import Expression, element_of
from tract_llvm.language.types import ElementType, element_type
from tract_llvm.program.views import View

from tract_core.data import DatumType
from tract_core.dims import Dim, product
from tract_core.frozen import frozen
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv, sum_type
from tract_core.ops.expect import wide
from tract_core.ops.pool_spec import AxisPlan
from tract_core.plugins.tables import Rows
from tract_cuda.group.groups import Behind
from tract_cuda.kernels.unfold import THREADS, UnfoldPlan
from tract_cuda.kernels.window import THREADS as WINDOW_THREADS
from tract_cuda.kernels.window import WindowPlan
from tract_cuda.lowering import Lowering, Site
from tract_cuda.maps import is_multiple
from tract_cuda.products.product import Product, add_product
from tract_cuda.table import CUDA

ROWS = Rows()

FEW_CHANNELS = 4
"""Groups of so few channels are summed window by window."""

ACCESS_BYTES = 16
"""What one thread reads at once, at most."""


@ROWS.row(CUDA, Conv)
def lower_conv(op: Conv, site: Site) -> str | None:
    """A convolution with its bias."""
    if op.q_output is not None:
        return "there are no kernels for quantised convolutions yet"
    sums = _sums(op, site)
    behind = None if sums is None else with_bias(site, sums)
    if sums is None or behind is None:
        return "kernels do not sum in that type"
    parts = parts_of(op, site)
    if not isinstance(parts.each, int) or parts.each > FEW_CHANNELS:
        return _as_product(site, parts, sums, behind)
    return _by_windows(site, parts, sums, behind)


def _sums(op: Conv, site: Site) -> ElementType | None:
    """In which type products are summed."""
    kinds = [site.lowering.model.outlet_fact(one).datum_type.storage for one in site.node.inputs[:2]]
    found = element_type(DatumType.from_numpy(wide(sum_type(*kinds).numpy)))
    return None if found is None or found.is_carried else found


def with_bias(site: Site, sums: ElementType) -> Behind | None:
    """The sum of each window plus the bias, rounded to the type of the result."""
    bias, result = (site.lowering.element(one) for one in (site.node.inputs[2], site.outlet))
    if bias is None or result is None:
        return None
    added = element_of(site.lowering.model.registry, Add(), [sums, bias], result)
    if added is None:
        return None
    return Behind(
        Expression((sums, bias), (added.applied(Add(), (0, 1), result),)), (site.node.inputs[2],), site.outlet
    )


@frozen
class Parts:
    """What a convolution is made of.

    ``data``: [batch, spatial ..., channels]; ``weights``: [outputs, channels of a group, window ...]; ``axes``: the
    spatial ones; ``groups``: of channels; ``each``: how many input channels a group has; ``shape``: of the result, as
    the data's axes; ``back``: its axes in the order of the operator.
    """

    data: View
    weights: View
    axes: tuple[AxisPlan, ...]
    groups: int
    each: Dim
    shape: tuple[Dim, ...]
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
    return Parts(x.transposed(order), weights, axes, op.group, weights.shape[1], shape, back)


def placed_result(site: Site, parts: Parts, behind: Behind) -> View:
    """New memory for the result, [batch, spatial ..., channels]."""
    found = site.lowering.scratch(behind.expression.result, parts.shape)
    site.lowering.put(behind.outlet, found.transposed(parts.back))
    return found


def per_output(lowering: Lowering, parts: Parts, behind: Behind) -> list[View]:
    """The operands of what is behind: the bias, in the shape of the result."""
    return [lowering.compact(lowering.view(one)).stretched(parts.shape) for one in behind.operands]


# ---- window by window


def _by_windows(site: Site, parts: Parts, sums: ElementType, behind: Behind) -> str | None:
    plan = WindowPlan(parts.data.element, parts.weights.element, sums, parts.window, behind.expression)
    operands = per_output(site.lowering, parts, behind)
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


def _as_product(site: Site, parts: Parts, sums: ElementType, behind: Behind) -> str | None:
    """[groups, positions, window and channels] times [groups, window and channels, outputs]."""
    lowering, groups = site.lowering, parts.groups
    rows, depth = product(parts.shape[:-1]), product(parts.window) * parts.each
    left = _windows(site, parts, rows, depth)
    right = _packed(lowering, parts, depth)
    each = parts.outputs // groups
    columns = (groups, rows, each)
    operands = tuple(_of_groups(view, columns, each) for view in per_output(lowering, parts, behind))
    result = placed_result(site, parts, behind)
    strides = (each, parts.outputs, 1)
    shaped = replace(result, shape=columns, strides=strides)
    return add_product(lowering, Product(left, right, operands, shaped, sums, behind.expression), site.group.nodes)


def _of_groups(view: View, shape: tuple[Dim, ...], each: Dim) -> View:
    """An operand with one number per output channel, or one for all, as [groups, rows, outputs of a group]."""
    step = view.strides[-1]
    return replace(view, shape=shape, strides=(step * each, 0, step))


def _windows(site: Site, parts: Parts, rows: Dim, depth: Dim) -> View:
    """The windows as [groups, positions, window and channels]: the data itself where each is one position."""
    lowering, data = site.lowering, parts.data
    if all(axis.window.kernel == 1 and axis.before == axis.after == 0 for axis in parts.axes):
        for number, axis in enumerate(parts.axes, start=1):
            data = data.part(number, 0, axis.output, axis.window.stride)
        flat = data.shaped((rows, data.shape[-1])) or lowering.compact(data).shaped((rows, data.shape[-1]))
        assert flat is not None, "what has no gaps has any shape"
        step = flat.strides[1]
        return replace(flat, shape=(parts.groups, rows, parts.each), strides=(parts.each * step, flat.strides[0], step))
    return _unfolded(site, parts, rows, depth)


def _unfolded(site: Site, parts: Parts, rows: Dim, depth: Dim) -> View:
    lowering, data = site.lowering, parts.data
    if data.strides[-1] != 1:
        data = lowering.compact(data)
    result = lowering.scratch(data.element, (parts.groups, rows, depth))
    most = min(8, ACCESS_BYTES // data.element.bytes)
    lanes = most if _aligned(data, parts.each, most) else 1
    count = product([parts.groups, rows, depth]) // lanes
    plan = UnfoldPlan(data.as_bits().element, parts.window, lanes)
    given: dict[str, View | Dim] = {"count": count, "batch": parts.shape[0], "channels": parts.each}
    given |= {"data": data, "data.batch": data.strides[0], "data.channel": data.strides[-1], "result": result}
    given |= _along(parts)
    given |= {f"data.axis{number}": data.strides[1 + number] for number in range(len(parts.axes))}
    site.launch(plan, [(count + THREADS - 1) // THREADS], given, [result])
    return result


def _aligned(data: View, each: Dim, lanes: int) -> bool:
    return data.strides[-1] == 1 and all(is_multiple(one, lanes) for one in (each, data.offset, *data.strides[:-1]))


def _packed(lowering: Lowering, parts: Parts, depth: Dim) -> View:
    """The weights as [groups, window and channels, outputs of a group]: copied, at best before the model runs."""
    each = parts.outputs // parts.groups
    _, _, *window = range(len(parts.weights.shape))
    turned = parts.weights.split(0, (parts.groups, each)).transposed([0, *(one + 1 for one in window), 2, 1])
    shape: Sequence[Dim] = (parts.groups, depth, each)
    flat = turned.shaped(shape) or lowering.packed(turned).shaped(shape)
    assert flat is not None, "what has no gaps has any shape"
    return flat
