"""Fourier transforms: which tables they read, and whether a long one is cut in two."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

import numpy as np
from tract_llvm.language.types import F64, INDEX, numpy_type
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, dim_max, dim_min, is_symbolic, product
from tract_core.frozen import frozen
from tract_core.ops.fft import ComplexToInnerDim, Fft, InnerDimToComplex, Stft
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.fft import FftPlan, sums_of
from tract_cpu.kernels.fourier.ends import Lying
from tract_cpu.kernels.fourier.tables import MOST_PASSES, TablesPlan
from tract_cpu.kernels.transpose import PIECE_BITS
from tract_cpu.lower.waves import MOST_SUMMED, RADICES, Waves, across, splits
from tract_cpu.program.arguments import arguments, each_loop
from tract_cpu.program.program import STATUS, NativeStep
from tract_cpu.table import CPU, MOVES

ROWS = Rows()

_LONG: Final = 4096
"""Transforms of more elements are computed as two rounds of short ones, each of which stays in a near cache."""

_LONG_ALONE: Final = 256
"""The same for one transform, or a few, which would leave most lanes empty."""

_MOST_SIDE_BY_SIDE: Final = 1 << 15
"""Longer ones are computed one by one."""

_LEVELS: Final = 10
"""Operations per number, where the length is not known."""


@frozen
class _Transform:
    """What is transformed along ``axis``, where it goes, and what happens on the way, as `FftPlan` says.

    ``across``: the numbers that results are multiplied by, and how many columns these have.
    """

    source: View
    target: View
    axis: int
    window: Array | None = None
    across: tuple[View, int] | None = None
    swaps: tuple[bool, bool] = (False, False)

    @property
    def length(self) -> Dim:
        """Of each transform."""
        return self.source.shape[self.axis]

    def loops(self) -> list[StridedLoop]:
        """Over the transforms."""
        axes = [axis for axis in range(len(self.source.shape) - 1) if axis != self.axis]
        strides = [[view.strides[axis] for axis in axes] for view in (self.source, self.target)]
        return collapsed([self.source.shape[axis] for axis in axes], strides)


@ROWS.row(CPU, Fft)
def lower_fft(op: Fft, site: Site) -> str | None:
    """Along one axis."""
    x = _side_by_side(site)
    result = site.lowering.new(site.outlet)
    site.add_all(_steps(site, _Transform(x, result, op.axis, swaps=(op.inverse, op.inverse))))
    return None


@ROWS.row(CPU, Stft)
def lower_stft(op: Stft, site: Site) -> str | None:
    """The frames are a view on the signal, which overlap where the stride is short."""
    x, axis = _side_by_side(site), op.axis
    step, frames = x.strides[axis], site.node.facts[0].shape[axis]
    shape = (*x.shape[:axis], frames, op.frame, *x.shape[axis + 1 :])
    strides = (*x.strides[:axis], step * op.stride, step, *x.strides[axis + 1 :])
    window = None
    if op.window is not None:
        before = (op.frame - op.window.array.size) // 2
        window = np.zeros(op.frame, numpy_type(sums_of(x.element)))
        window[before : before + op.window.array.size] = op.window.array
    result = site.lowering.new(site.outlet)
    site.add_all(_steps(site, _Transform(replace(x, shape=shape, strides=strides), result, axis + 1, window)))
    return None


@ROWS.row(MOVES, InnerDimToComplex)
def lower_to_complex(op: InnerDimToComplex, site: Site) -> str | None:
    """A view, as the parts of a complex number are beside each other; a copy where those of the input are not."""
    (x,) = site.known_inputs()
    found = x.as_complex()
    if found is not None:
        site.place(found)
    else:
        site.copy_into(x, site.lowering.new(site.outlet).as_parts())
    return None


@ROWS.row(MOVES, ComplexToInnerDim)
def lower_to_pairs(op: ComplexToInnerDim, site: Site) -> str | None:
    """A view."""
    (x,) = site.known_inputs()
    site.place(x.as_parts())
    return None


def _side_by_side(site: Site) -> View:
    """The input, with the parts of each number beside each other."""
    (x,) = site.known_inputs()
    return x if x.strides[-1] == 1 else site.lowering.contiguous(x)


def _steps(site: Site, one: _Transform) -> list[NativeStep]:
    """The calls that transform along an axis."""
    if is_symbolic(one.length):
        tables, step = _computed_tables(site, one)
        return [step, _step(site, one, tables)]
    length, lanes = int(one.length), _lanes(site, one)
    batch = product(loop.size for loop in one.loops())
    alone = not is_symbolic(batch) and int(batch) * 4 <= lanes
    parts = splits(length, lanes, _LONG) if length > (_LONG_ALONE if alone else _LONG) else ()
    if not parts or one.window is not None:
        return [_step(site, one, _known_tables(site, one))]
    return _in_two(site, one, *parts)


@frozen
class _Tables:
    """What a transform reads besides its elements. ``radices``: of passes that are written out.

    ``terms``: as long as the largest other one is, 0 where there are none. ``inner``: how long the transforms are that
    have passes; ``chirps``: whether these may be part of a convolution.
    """

    views: tuple[View, ...]
    radices: tuple[int, ...]
    terms: int
    inner: Dim
    chirps: bool


def _known_tables(site: Site, one: _Transform) -> _Tables:
    waves, kind = Waves(int(one.length)), numpy_type(sums_of(one.source.element))
    arrays = [waves.passes(), waves.places(), waves.factors(kind)]
    arrays += [waves.chirp(kind), waves.spectrum(kind)] if waves.is_convolution else []
    terms = max((radix for radix in waves.radices if radix not in RADICES), default=0)
    radices = tuple(radix for radix in RADICES if radix in waves.radices)
    return _Tables(tuple(_constant(site, array) for array in arrays), radices, terms, waves.inner, waves.is_convolution)


def _computed_tables(site: Site, one: _Transform) -> tuple[_Tables, NativeStep]:
    """With the call that writes them, for a length that only a run tells."""
    length, element = one.length, sums_of(one.source.element)
    inner = 4 * length  # no convolution is longer
    sizes = [(INDEX, 2 + 3 * MOST_PASSES), (INDEX, inner), *((element, 2 * size) for size in (inner, length, inner))]
    *views, roots = (
        View.contiguous(site.lowering.room(size * kind.bytes), kind, (size,)) for kind, size in [*sizes, sizes[-1]]
    )
    plan = TablesPlan(element, RADICES, MOST_SUMMED, site.isa.lanes(F64.bits))
    results = tuple(view.storage for view in (*views, roots))
    names = ("passes", "places", "factors", "chirp", "spectrum", "roots")
    tables = dict(zip(names, (view.address for view in (*views, roots)), strict=True))
    step = NativeStep(plan, arguments(plan, status=STATUS, length=length, **tables), 1, (), results, work=inner)
    return _Tables(tuple(views), RADICES, MOST_SUMMED, inner, True), step


def _constant(site: Site, array: Array) -> View:
    found = site.lowering.constant(array)
    assert found is not None  # floats and 64-bit integers are known
    return found


def _in_two(site: Site, one: _Transform, rows: int, columns: int) -> list[NativeStep]:
    """The signal is a matrix: its columns are transformed, multiplied by roots of one, and then its rows."""
    lowering, axis = site.lowering, len(one.source.shape) - 2
    last = [*(place for place in range(axis + 1) if place != one.axis), one.axis, axis + 1]
    source, target = one.source.transposed(last), one.target.transposed(last)
    computed = sums_of(source.element)
    shape = (*source.shape[:axis], rows, columns, 2)
    between = View.contiguous(lowering.room(product(shape) * computed.bytes), computed, shape)
    matrix = _cut(source, axis, (rows, columns))
    turned = _cut(target, axis, (columns, rows)).transposed([*range(axis), axis + 1, axis, axis + 2])
    factors = _constant(site, across(rows, columns, numpy_type(computed)))
    first = _Transform(matrix, between, axis, across=(factors, columns), swaps=(one.swaps[0], False))
    second = _Transform(between, turned, axis + 1, swaps=(False, one.swaps[1]))
    return [_step(site, part, _known_tables(site, part)) for part in (first, second)]


def _cut(view: View, axis: int, sizes: tuple[int, int]) -> View:
    """An axis as two, the second of which goes on where the first one stands."""
    step = view.strides[axis]
    shape = (*view.shape[:axis], *sizes, *view.shape[axis + 1 :])
    return replace(view, shape=shape, strides=(*view.strides[:axis], step * sizes[1], step, *view.strides[axis + 1 :]))


def _lanes(site: Site, one: _Transform) -> int:
    return site.isa.lanes(sums_of(one.source.element).bits)


def _step(site: Site, one: _Transform, tables: _Tables) -> NativeStep:
    """The call that computes all transforms."""
    loops, lanes, computed = one.loops(), _lanes(site, one), sums_of(one.source.element)
    plan = FftPlan(
        (one.source.element, _lying(one.source, one.axis, loops, 0, lanes)),
        (one.target.element, _lying(one.target, one.axis, loops, 1, lanes)),
        len(loops),
        tables.radices,
        bool(tables.terms),
        tables.chirps,
        lanes,
        one.window is not None,
        one.across is not None,
        one.swaps,
    )
    count = product(loop.size for loop in loops)
    passes, numbers, factors, *chirps = (view.address for view in tables.views)
    given = arguments(
        plan,
        count=count,
        length=one.length,
        most=_MOST_SIDE_BY_SIDE,
        passes=passes,
        places=numbers,
        factors=factors,
        chirps=chirps,
        window=[_constant(site, one.window).address] if one.window is not None else [],
        across=[{"numbers": one.across[0].address, "columns": one.across[1]}] if one.across is not None else [],
        source=one.source.address,
        source_step=one.source.strides[one.axis],
        target=one.target.address,
        target_step=one.target.strides[one.axis],
        outer=each_loop(loops),
    )
    places = dim_max(lanes * dim_min(tables.inner, _MOST_SIDE_BY_SIDE), tables.inner)
    scratch = 2 * computed.bytes * (places * (2 if tables.chirps else 1) + lanes * tables.terms)
    work = product(one.source.shape) * (_LEVELS if is_symbolic(tables.inner) else int(tables.inner).bit_length())
    return NativeStep(plan, given, ceil_div(count, lanes), (), (one.target.storage,), scratch=scratch, work=work)


def _lying(view: View, axis: int, loops: list[StridedLoop], which: int, lanes: int) -> Lying:
    if loops and loops[-1].strides[which] == 2:
        return Lying.COLUMNS
    turns = view.element.computed is view.element and lanes * view.element.bits >= PIECE_BITS
    return Lying.ROWS if turns and view.strides[axis] == 2 else Lying.FAR
