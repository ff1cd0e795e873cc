"""Resized axes: each output element is a sum of elements times weights."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

import numpy as np
from tract_llvm.language.types import F64, I64, ElementType, numpy_type
from tract_llvm.program.resized import PLACES, ResizedAxis, axes_of, known_tables, taps_along, why_unfit
from tract_llvm.program.views import View, memory_order

from tract_core.dims import Dim, ceil_div
from tract_core.frozen import frozen
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import Coordinates, Resize
from tract_core.plugins.tables import Rows
from tract_cuda.kernels.positions import THREADS
from tract_cuda.kernels.resize import ResizePlan, TapsPlan
from tract_cuda.lower.kinds import why_carried
from tract_cuda.lowering import Site
from tract_cuda.positions import in_vectors, launch_over, loops_over
from tract_cuda.table import CUDA

ROWS = Rows()


@frozen
class _Tables:
    """What is read along an axis: ``taps`` elements for each output position, and their weights.

    ``taps`` is ``None`` where they are counted in the run, from the numbers ``counted`` that kernels take.
    """

    taps: int | None
    indices: View
    weights: View
    counted: Mapping[str, Dim] = field(default_factory=dict[str, Dim])


@ROWS.row(CUDA, Resize)
def lower_resize(op: Resize, site: Site) -> str | None:
    """One kernel, behind those that fill tables; where no axis is resized, a view."""
    facts = site.lowering.model.outlet_fact(site.node.inputs[0]), site.node.facts[0]
    found, crops = axes_of(op, *facts), op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    why = why_unfit(op, found) or why_carried(site)
    if why is not None:
        return why
    axes = [one for one in found if crops or one.moves]
    (x,) = site.inputs()
    if not axes:
        site.place(x)
        return None
    _resize(op, site, axes, x)
    return None


def _resize(op: Resize, site: Site, axes: list[ResizedAxis], x: View) -> None:
    """``axes``: those that are resized, in order. All axes lie in memory as those of the input do."""
    weighted = op.sampling.interpolator is not Interpolator.NEAREST
    computed = F64 if weighted and x.element.kind != "f" else x.element.computed
    tables = {one.place: _tables(op, site, one, computed) for one in axes}
    result = site.lowering.new_like(site.outlet, x)
    order = memory_order(result) or tuple(range(len(x.shape)))
    still = tuple(0 if axis in tables else stride for axis, stride in enumerate(x.strides))
    data = replace(x, shape=result.shape, strides=still).transposed(order)
    target = result.transposed(order)
    resized = sorted(order.index(one.place) for one in axes)
    loops, kept = loops_over(target.shape, [data.strides, target.strides], resized)
    lanes = 1
    if len(loops) - 1 not in kept:
        loops, lanes = in_vectors(loops, [data, target], [0, 1], [x.strides[one.place] for one in axes])
    given: dict[str, View | Dim] = {}
    for number, axis in enumerate(resized):
        table = tables[order[axis]]
        given |= {f"{name}{number}": value for name, value in table.counted.items()}
        given |= {f"indices{number}": table.indices, f"weights{number}": table.weights}
        given[f"along{number}"] = x.strides[order[axis]]
    crops = op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    if crops:
        given["outside"] = _outside(op, site, computed)
    taps = tuple(tables[order[axis]].taps for axis in resized)
    plan = ResizePlan(x.element, computed, len(loops), tuple(kept), taps, weighted, crops, lanes)
    launch_over(site, plan, loops, {"data": data, "result": target}, [result], **given)


def _outside(op: Resize, site: Site, computed: ElementType) -> View:
    """The number that stands for what is outside of the input, in the type of the sums."""
    blended = op.sampling.interpolator is not Interpolator.NEAREST
    kind = numpy_type(computed) if blended else site.node.facts[0].datum_type.storage.numpy
    return site.lowering.constant(np.array([op.sampling.extrapolation_value]).astype(kind).astype(numpy_type(computed)))


def _tables(op: Resize, site: Site, axis: ResizedAxis, weights: ElementType) -> _Tables:
    """Constants where the sizes are known, else memory that a kernel fills."""
    lowering, sampling = site.lowering, op.sampling
    if axis.is_known:
        indices, factors = known_tables(sampling, axis)
        numbers = lowering.constant(factors.astype(numpy_type(weights)))
        return _Tables(indices.shape[1], lowering.constant(indices), numbers)
    nearest = sampling.nearest_mode if sampling.interpolator is Interpolator.NEAREST else None
    crops = sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    counted, room = taps_along(sampling, axis)
    filled = lowering.scratch(I64, (room,)), lowering.scratch(weights, (room,))
    mode, a = sampling.interpolator, sampling.cubic_coeff_a
    plan = TapsPlan(nearest, mode, a, sampling.antialias, sampling.exclude_outside, crops, weights)
    start, stride, bottom = PLACES[sampling.coordinates](axis)
    given: dict[str, View | Dim] = {"count": axis.output, "start": start, "stride": stride, "bottom": bottom}
    given |= {"input": axis.input, **counted, "indices": filled[0], "weights": filled[1]}
    site.launch(plan, [ceil_div(axis.output, THREADS)], given, filled)
    return _Tables(1, *filled) if nearest else _Tables(None, *filled, counted)
