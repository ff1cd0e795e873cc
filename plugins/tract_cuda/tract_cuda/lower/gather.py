"""Picking by positions that a tensor holds: all kinds are one kernel, in the loops of all places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.ops.gather import Gather, GatherElements, GatherNd
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.gather import GatherPlan, InsidePlan
from tract_cuda.lower.blocks import lower_slices
from tract_cuda.lowering import Site
from tract_cuda.positions import in_vectors, launch_over, loops_over
from tract_cuda.table import CUDA

ROWS = Rows()


@frozen
class Named:
    """Numbers that name places. ``step``: from one coordinate to the next.

    ``limits``: for each coordinate, how many places there are, and how far apart.
    """

    numbers: View
    step: Dim
    limits: tuple[tuple[Dim, Dim], ...]

    def given(self) -> dict[str, View | Dim]:
        """What kernels are told of it."""
        found: dict[str, View | Dim] = {"step": self.step}
        for coordinate, (places, apart) in enumerate(self.limits):
            found |= {f"places{coordinate}": places, f"apart{coordinate}": apart}
        return found


def without(view: View, axes: Sequence[int], shape: Sequence[Dim]) -> View:
    """A tensor in a shape of the same rank that does not move along some axes."""
    strides = tuple(0 if axis in axes else stride for axis, stride in enumerate(view.strides))
    return replace(view, shape=tuple(shape), strides=strides)


def spread(numbers: View, before: int, after: int, shape: Sequence[Dim]) -> View:
    """Numbers in a shape with more axes, before and after, along which they stay."""
    return replace(numbers, shape=tuple(shape), strides=(*(0,) * before, *numbers.strides, *(0,) * after))


@ROWS.row(CUDA, Gather)
def lower_gather(op: Gather, site: Site) -> None:
    """The axes of the numbers are where that was which is picked from."""
    tensor = site.lowering.in_blocks(site.node.inputs[0])
    if tensor is not None and tensor.axis != op.axis and not _may_be_empty(tensor.shape):
        lower_slices(op, site, tensor)
        return
    x, numbers = site.inputs()
    (result,) = site.results()
    axis, added = op.axis, len(numbers.shape)
    strides = (*x.strides[:axis], *(0,) * added, *x.strides[axis + 1 :])
    data = replace(x, shape=result.shape, strides=strides)
    places = spread(numbers, axis, len(x.shape) - axis - 1, result.shape)
    _gather(site, data, Named(places, 0, ((x.shape[axis], x.strides[axis]),)), result)
    if _may_be_empty([*x.shape[:axis], *x.shape[axis + 1 :]]):
        _check(site, Named(numbers, 0, ((x.shape[axis], 0),)))


@ROWS.row(CUDA, GatherElements)
def lower_gather_elements(op: GatherElements, site: Site) -> None:
    """Each element has a number of its own."""
    x, numbers = site.inputs()
    (result,) = site.results()
    limits = ((x.shape[op.axis], x.strides[op.axis]),)
    _gather(site, without(x, [op.axis], numbers.shape), Named(numbers, 0, limits), result)


@ROWS.row(CUDA, GatherNd)
def lower_gather_nd(op: GatherNd, site: Site) -> None:
    """Several numbers name a place."""
    x, numbers = site.inputs()
    (result,) = site.results()
    batch, depth = op.batch_dims, int(numbers.shape[-1])
    outer, kept = len(numbers.shape) - 1, len(x.shape) - batch - depth
    data = replace(
        x,
        shape=result.shape,
        strides=(*x.strides[:batch], *(0,) * (outer - batch), *x.strides[batch + depth :]),
    )
    each = replace(numbers, shape=numbers.shape[:-1], strides=numbers.strides[:-1])
    axes = range(batch, batch + depth)
    limits = tuple((x.shape[axis], x.strides[axis]) for axis in axes)
    _gather(site, data, Named(spread(each, 0, kept, result.shape), numbers.strides[-1], limits), result)
    if _may_be_empty(x.shape[batch + depth :]):
        _check(site, Named(each, numbers.strides[-1], limits))


def _gather(site: Site, data: View, named: Named, result: View) -> None:
    data, bits = data.as_bits(), result.as_bits()
    loops, _ = loops_over(result.shape, [data.strides, named.numbers.strides, result.strides])
    lanes = 1
    if loops[-1].strides[1] == 0:
        loops, lanes = in_vectors(loops, [data, bits], [0, 2], [apart for _, apart in named.limits])
    plan = GatherPlan(data.element, named.numbers.element, len(loops), len(named.limits), lanes)
    tensors = {"data": data, "numbers": named.numbers, "result": bits}
    launch_over(site, plan, loops, tensors, [result], **named.given(), status=site.lowering.status())


def _check(site: Site, named: Named) -> None:
    """Have numbers looked at, which nobody else does where there is nothing to move."""
    loops, _ = loops_over(named.numbers.shape, [named.numbers.strides])
    plan = InsidePlan(named.numbers.element, len(loops), len(named.limits))
    launch_over(site, plan, loops, {"numbers": named.numbers}, [], **named.given(), status=site.lowering.status())


def _may_be_empty(shape: Sequence[Dim]) -> bool:
    return any(not isinstance(size, int) or size == 0 for size in shape)
