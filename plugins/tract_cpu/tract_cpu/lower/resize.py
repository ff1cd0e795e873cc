"""Resized axes: which elements are read for which, in blocks of channels where these are the neighbours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Final

import numpy as np
from tract_llvm.elements.expressions import widest_bits
from tract_llvm.fuse.known import LATE
from tract_llvm.language.types import F64, INDEX, ElementType, numpy_type
from tract_llvm.program.loops import collapsed
from tract_llvm.program.resized import PLACES, ResizedAxis, axes_of, known_tables, taps_along
from tract_llvm.program.views import View

from tract_core.data import DatumType
from tract_core.dims import Dim, product
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.ops.interpolate import Interpolator
from tract_core.ops.resize import Coordinates, DynResize, Resize, static_now
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.resize import ResizePlan, TapsPlan
from tract_cpu.place.blocked import operands_in_blocks, to_blocks
from tract_cpu.place.chain import PlacedChain, near, placed
from tract_cpu.place.wholes import result_for
from tract_cpu.program.arguments import Given, arguments, each_target
from tract_cpu.program.program import NativeStep
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import CPU

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


@frozen
class _Parts:
    """What is read, what becomes of what is computed, and where that goes."""

    axes: list[ResizedAxis]
    source: View
    chain: PlacedChain
    result: View


@ROWS.row(CPU, Resize)
def lower_resize(op: Resize, site: Site) -> None:
    """Each output element is a sum of elements times weights; where none is resized, a view."""
    _resize(op, site, axes_of(op, site.facts()[0], site.node.facts[0]))


def _reading(op: DynResize, shapes: list[Shape], target: Array) -> Reading:
    """The output's shape; for each axis its scale as a fraction, and how many elements are blended."""
    static = static_now(op, TypedFact.of(DatumType.F32, shapes[0]), target)  # the type was looked at before
    sizes = [shapes[0][axis] for axis in op.axes]
    output = [int(size) for size in static.target.output(static, sizes)]
    shape, numbers = list(shapes[0]), list[int]()
    for axis, size in zip(op.axes, output, strict=True):
        shape[axis] = size
    for place, factor in enumerate(static.target.factors(sizes, output)):
        a, b = factor.as_integer_ratio() if output[place] else (1, 1)
        half = op.sampling.interpolator.reach // 2
        taps = 2 * -(-half * max(a, b) // max(1, a)) if op.sampling.antialias else 2 * half
        numbers += [a, b, taps]
    return Reading([shape], numbers)


ROWS.add(READS, DynResize, Reads((1,), _reading))


@ROWS.row(CPU, DynResize)
def lower_dyn_resize(op: DynResize, site: Site) -> str | None:
    """As the run says."""
    numbers = site.numbers(len(op.axes) * _NUMBERS)
    if numbers is None:
        return LATE
    before, after = site.facts()[0].shape, site.node.facts[0].shape
    found: list[ResizedAxis] = []
    for place, axis in enumerate(op.axes):
        a, b, taps = numbers[place * _NUMBERS : (place + 1) * _NUMBERS]
        found.append(ResizedAxis(axis, before[axis], after[axis], (a, b), op.sampling.region(place), taps))
    _resize(op, site, sorted(found, key=lambda one: one.place))
    return None


_NUMBERS: Final = 3
"""How many numbers are read for an axis."""


def _resize(op: Resize | DynResize, site: Site, found: Sequence[ResizedAxis]) -> None:
    lowering, outlet, form = site.lowering, site.node.inputs[0], site.group.form
    crops = op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    axes = [one for one in found if crops or one.moves]
    if not axes:
        site.place(lowering.known_view(outlet))
        return
    if form is not None:
        source = to_blocks(lowering, outlet, form, ((0, 0),) * (site.facts()[0].rank + 1))
    else:
        source = lowering.known_view(outlet)
        if axes[-1].place != len(source.shape) - 1 and source.strides[-1] != 1:
            source = lowering.contiguous(source)
    chain = placed(site, near(lowering) if form is None else operands_in_blocks(lowering, form))
    _add(op, site, _Parts(axes, source, chain, result_for(lowering, chain.outlet, form)))


def _add(op: Resize | DynResize, site: Site, parts: _Parts) -> None:
    """The call of the kernel, behind those that fill tables."""
    axes, source, chain, result = parts.axes, parts.source, parts.chain, parts.result
    element, weighted = source.element, op.sampling.interpolator is not Interpolator.NEAREST
    computed = F64 if weighted and element.kind != "f" else element.computed
    crops = op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    tables = [_tables(op, site, one, computed) for one in axes]
    places = [one.place for one in axes]
    run = places[-1] != len(source.shape) - 1
    tensors = (*chain.operands, result)
    outer = [axis for axis in range(len(source.shape) - run) if axis not in places]
    loops = collapsed([source.shape[a] for a in outer], [[v.strides[a] for a in outer] for v in (source, *tensors)])
    plan = ResizePlan(
        element,
        computed,
        tuple(one.taps for one in tables),
        weighted,
        crops,
        len(loops),
        site.isa.lanes(widest_bits([computed, *chain.expression.types])) if run else 0,
        site.isa.masks_bits <= min(view.element.bytes * 8 for view in (source, *tensors)),
        chain.expression,
        tuple(run and view.strides[-1] != 0 for view in chain.operands),
    )
    outside: dict[str, Given] = {"outside": _outside(op, site, computed).address} if crops else {}
    given = arguments(
        plan,
        source=source.address,
        run=source.shape[-1] if run else 1,
        axes=[_given(one, table, source.strides[one.place]) for one, table in zip(axes, tables, strict=True)],
        outer=[{"size": loop.size, "strides": loop.strides[:1]} for loop in loops],
        targets=each_target(tensors, loops, places),
        **outside,
    )
    lines = product([*(loop.size for loop in loops), *(one.output for one in axes[:-1])])
    work = product(result.shape) * product(table.taps or op.sampling.interpolator.reach for table in tables)
    site.add(NativeStep(plan, given, lines, chain.nodes, (result.storage,), work=work))


def _given(axis: ResizedAxis, table: _Tables, stride: Dim) -> dict[str, Given]:
    """What the kernel is told of an axis."""
    tables = {"indices": table.indices.address, "weights": table.weights.address}
    return {"output": axis.output, **table.counted, **tables, "stride": stride}


def _outside(op: Resize | DynResize, site: Site, computed: ElementType) -> View:
    """The number that stands for what is outside of the input, in the type of the sums."""
    blended = op.sampling.interpolator is not Interpolator.NEAREST
    kind = numpy_type(computed) if blended else site.facts()[0].datum_type.storage.numpy
    number = np.array([op.sampling.extrapolation_value]).astype(kind).astype(numpy_type(computed))
    found = site.lowering.constant(number)
    assert found is not None  # kernels know the types that they compute with
    return found


def _tables(op: Resize | DynResize, site: Site, axis: ResizedAxis, weights: ElementType) -> _Tables:
    """Constants where the sizes are known, else memory that a step fills."""
    if axis.is_known:
        return _constant_tables(op, site, axis, weights)
    lowering, sampling = site.lowering, op.sampling
    nearest = sampling.nearest_mode if sampling.interpolator is Interpolator.NEAREST else None
    crops = sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    counted, room = taps_along(sampling, axis)
    indices, factors = (View.contiguous(lowering.room(room * one.bytes), one, (room,)) for one in (INDEX, weights))
    plan = TapsPlan(
        nearest,
        sampling.interpolator,
        sampling.cubic_coeff_a,
        sampling.antialias,
        sampling.exclude_outside,
        crops,
        weights,
    )
    start, stride, bottom = PLACES[sampling.coordinates](axis)
    given = arguments(
        plan,
        start=start,
        stride=stride,
        bottom=bottom,
        input=axis.input,
        indices=indices.address,
        weights=factors.address,
        **counted,
    )
    results = (indices.storage, factors.storage)
    lowering.steps.append(NativeStep(plan, given, axis.output, (), results, work=room))
    return _Tables(1, indices, factors) if nearest else _Tables(None, indices, factors, counted)


def _constant_tables(op: Resize | DynResize, site: Site, axis: ResizedAxis, weights: ElementType) -> _Tables:
    """As the meaning computes them."""
    tables = known_tables(op.sampling, axis)
    views = [site.lowering.constant(one) for one in (tables[0], tables[1].astype(numpy_type(weights)))]
    found = [one for one in views if one is not None]
    return _Tables(tables[0].shape[1], found[0], found[1])
