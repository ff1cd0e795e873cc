"""Programs for rows: along which loops vectors go, how many threads share a row, and what these hold of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from tract_llvm.fuse.code_size import code_size
from tract_llvm.fuse.nest import Number
from tract_llvm.fuse.region import Operand, Region
from tract_llvm.fuse.steps import Fold
from tract_llvm.language.types import numpy_type
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View, memory_order

from tract_core.compile.groups import given_by
from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_cuda.group.groups import Reduced as RowsGroup
from tract_cuda.group.passes import Scheduled, Timed, scheduled
from tract_cuda.kernels.reduce import Spread, kept_types
from tract_cuda.kernels.reduce_pieces import MergedPlan, PiecesPlan, kept_of
from tract_cuda.kernels.rows import Pass, RowsPlan, RowTensor
from tract_cuda.language.arch import MOST_THREADS, WARP
from tract_cuda.lowering import Lowering, Site
from tract_cuda.maps import lanes_along, move_of
from tract_cuda.table import KINDS

ROWS = Rows()

BLOCK: Final = 128
"""Threads of a block that has several rows."""

FEW_VECTORS: Final = 4
"""How many vectors of a row a thread has where there are rows enough for all multiprocessors."""

MOST_HELD: Final = 32
"""How many elements of each tensor a thread holds at most, in registers."""

MOST_CODE: Final = 1024
"""How much code may be written for the elements that a thread holds."""

SHARED: Final = 32 << 10
"""Bytes of shared memory in which threads merge what they kept."""

LITTLE_CODE: Final = 4
"""How much code there is for an element where a thread reads more of them before it computes with them."""

MANY_LANES: Final = 8
"""Where vectors have so many, blocks have half of the threads they may have: each of all has 64 registers only."""

LEAST_OF_PIECE: Final = 8
"""How many vectors a thread has at least of a piece of a row."""

UNKNOWN: Final = (1, 4)
"""How many vectors of a row a thread may hold where it is not known how long rows are."""


@ROWS.row(KINDS, RowsGroup)
def lower_rows(site: Site) -> None:
    """One kernel. What is read outside of the program gets memory, laid out as what is loaded is."""
    assert isinstance(site.group, RowsGroup)  # as the table says
    region, lowering = site.group.region, site.lowering
    loads = [_loaded(lowering, region, tensor) for tensor in region.tensors]
    like = next((one for one in loads if one.shape == region.shape and 0 not in one.strides), None)
    results: dict[OutletId, View] = {}
    for outlet in dict.fromkeys(given_by(lowering.model, region.nodes)):
        whole = tuple(lowering.model.outlet_fact(outlet).shape) == region.shape
        results[outlet] = lowering.new_like(outlet, like) if whole and like is not None else lowering.new(outlet)
    add_rows(lowering, region, loads, results, site.group.nodes)


def _loaded(lowering: Lowering, region: Region, tensor: object) -> View:
    """Where a tensor is that a region loads, stretched to its shape."""
    if isinstance(tensor, Number):
        number = np.full((1,) * len(region.shape), tensor.value, numpy_type(tensor.element))
        return lowering.constant(number).stretched(region.shape)
    assert isinstance(tensor, Operand)  # there are no others
    return lowering.view(tensor.outlet).stretched(tensor.shape).stretched(region.shape)


def add_rows(
    lowering: Lowering, region: Region, loads: Sequence[View], results: Mapping[OutletId, View], nodes: Sequence[int]
) -> None:
    """Add the launches that compute a region. ``loads``: what it loads; ``results``: where outlets of it go."""
    program = _Program.of(region, loads, results)
    loops = _Loops.of(region, program.views, program.kept_bytes, lowering.target.multiprocessors)
    pieces = loops.pieces(lowering.target.multiprocessors) if program.only_reduces else 1
    plan, blocks, given = program.plan(loops), ceil_div(loops.rows, loops.spread.rows), loops.given()
    if pieces == 1:
        lowering.launch(plan, [blocks], given, program.results, nodes)
        return
    single = _Loops.merging(region, program.views, pieces, program.kept_bytes, lowering.target.multiprocessors)
    shape = (pieces, product(one.size for one in single.outer))
    kept: dict[str, View] = {name: lowering.scratch(element, shape) for name, element in kept_of(plan)}
    piece = ceil_div(loops.count, pieces)
    first, told = PiecesPlan(plan), {**given, **kept, "piece": piece}
    taken = {one.name: told[one.name] for one in first.parameters}
    lowering.launch(first, [blocks, pieces], taken, list(kept.values()), nodes)
    merged, blocks = MergedPlan(program.plan(single)), ceil_div(single.rows, single.spread.rows)
    lowering.launch(merged, [blocks], {**single.given(), **kept}, program.results, nodes)


@frozen
class _Program:
    """What a region computes in which pass, and where it is written.

    ``views``: what is loaded, then what is written, stretched. ``passes``, ``last``: see `scheduled`. ``places``: the
    values that are written, by the numbers of their tensors; ``each``: those of them that there is one of at each
    position. ``results``: the memory of what is written.
    """

    region: Region
    views: tuple[View, ...]
    passes: tuple[Scheduled, ...]
    last: tuple[int, ...]
    places: Mapping[int, int]
    each: frozenset[int]
    results: tuple[View, ...]

    @staticmethod
    def of(region: Region, loads: Sequence[View], results: Mapping[OutletId, View]) -> _Program:
        """``loads``: where what it loads is; ``results``: where its outlets go that others read."""
        values = dict(region.values)
        each = {values[outlet] for outlet, view in results.items() if view.shape == region.shape}
        timed = Timed.of(region.steps, [all(one.strides[axis] == 0 for axis in region.axes) for one in loads])
        passes, last = scheduled(region.steps, timed, each, {values[outlet] for outlet in results} - each)
        views = (*loads, *(view.stretched(region.shape) for view in results.values()))
        places = {len(loads) + number: values[outlet] for number, outlet in enumerate(results)}
        return _Program(region, views, tuple(passes), last, places, frozenset(each), tuple(results.values()))

    @property
    def only_reduces(self) -> bool:
        """Whether nothing is left to do along rows, once they are reduced."""
        return len(self.passes) == 1 and not self.each

    @property
    def kept_bytes(self) -> int:
        """What the reductions of a pass keep of a row, at most."""
        steps = self.region.steps
        folds = [step for step in steps if isinstance(step, Fold)]
        kept = [kept_types(one.reducer, steps[one.operand].result) for one in folds]
        return sum(type_.bytes for types in kept for type_ in types)

    def plan(self, loops: _Loops) -> RowsPlan:
        """The kernel."""
        return RowsPlan(
            self.region.steps,
            loops.tensors(),
            tuple(_pass(one, self.places) for one in self.passes),
            self.last,
            tuple((value, tensor) for tensor, value in self.places.items() if value not in self.each),
            len(loops.outer),
            len(loops.inner),
            loops.spread,
            loops.slots,
            loops.exact,
            loops.longer,
            2 if sum(map(code_size, self.region.steps)) > LITTLE_CODE else 4,
        )


def _pass(one: Scheduled, places: Mapping[int, int]) -> Pass:
    writes = tuple((value, tensor) for tensor, value in places.items() if value in one.writes)
    return Pass(one.once, one.each, one.folds, writes)


@frozen
class _Loops:
    """The loops over rows, ``outer``, and over a row, ``inner``, in vectors; and who goes through them.

    ``steps``: between lanes, for each tensor. The other fields are as in `RowsPlan`.
    """

    views: tuple[View, ...]
    outer: tuple[StridedLoop, ...]
    inner: tuple[StridedLoop, ...]
    steps: tuple[Dim, ...]
    length: Dim
    spread: Spread
    slots: tuple[int, ...]
    longer: bool

    @staticmethod
    def of(region: Region, views: Sequence[View], kept_bytes: int, multiprocessors: int) -> _Loops:
        """Vectors go along a row where most tensors lie so, else across rows where they lie so."""
        inner, outer = _both(region, views)
        across = bool(outer) and _side_by_side(outer[-1]) > (_side_by_side(inner[-1]) if inner else 0)
        along, others = (outer, inner) if across else (inner, outer)
        lanes = lanes_along(views, [*others, *along]) if along else 1
        steps = along[-1].strides if along else (0,) * len(views)
        if along:
            along[-1] = StridedLoop(along[-1].size // lanes, tuple(stride * lanes for stride in steps))
        rows, count = (product(one.size for one in loops) for loops in (outer, inner))
        machine = _Machine(multiprocessors, kept_bytes)
        spread = machine.across(rows, count, lanes) if across else machine.along(rows, count, lanes)
        room = max(1, min(MOST_HELD, MOST_CODE // max(1, sum(map(code_size, region.steps)))) // lanes)
        known = isinstance(count, int)
        slots = (max(1, -(-count // spread.parts)),) if known else UNKNOWN
        held, length = tuple(one for one in slots if one <= room), product(region.shape[axis] for axis in region.axes)
        return _Loops(tuple(views), tuple(outer), tuple(inner), steps, length, spread, held, longer=not known)

    @staticmethod
    def merging(region: Region, views: Sequence[View], pieces: int, kept_bytes: int, multiprocessors: int) -> _Loops:
        """The loops over rows, when pieces of these are merged."""
        _, outer = _both(region, views)
        rows = product(one.size for one in outer)
        spread, steps = _Machine(multiprocessors, kept_bytes).across(rows, pieces, 1), (0,) * len(views)
        length = product(region.shape[axis] for axis in region.axes)
        return _Loops(
            tuple(views), tuple(outer), (StridedLoop(pieces, steps),), steps, length, spread, (), longer=False
        )

    def pieces(self, multiprocessors: int) -> int:
        """How many pieces a row is best cut into, so that all multiprocessors have something to do."""
        if not (isinstance(self.rows, int) and isinstance(self.count, int)) or self.rows == 0:
            return 1
        wanted = 2 * multiprocessors // -(-self.rows // self.spread.rows)
        return max(1, min(wanted, self.count // (self.spread.parts * LEAST_OF_PIECE)))

    @property
    def rows(self) -> Dim:
        """How many rows there are, or vectors of them."""
        return product(one.size for one in self.outer)

    @property
    def count(self) -> Dim:
        """How many vectors of positions a row has."""
        return product(one.size for one in self.inner)

    @property
    def exact(self) -> bool:
        """Whether all threads hold as many vectors."""
        return len(self.slots) == 1 and self.count == self.spread.parts * self.slots[0]

    def tensors(self) -> tuple[RowTensor, ...]:
        """How each moves along the lanes; no matter where there is one lane."""
        moves = [move_of(step) if self.spread.vector else "far" for step in self.steps]
        return tuple(RowTensor(view.element, move) for view, move in zip(self.views, moves, strict=True))

    def given(self) -> dict[str, View | Dim]:
        """What the kernel is called with."""
        found: dict[str, View | Dim] = {"rows": self.rows, "count": self.count, "length": self.length}
        for name, loops in (("outer", self.outer), ("inner", self.inner)):
            for axis, loop in enumerate(loops):
                found[f"{name}{axis}"] = loop.size
                found |= {f"{name}{number}.{axis}": stride for number, stride in enumerate(loop.strides)}
        for number, view in enumerate(self.views):
            found |= {f"tensor{number}": view, f"apart{number}": self.steps[number]}
        return found


def _both(region: Region, views: Sequence[View]) -> tuple[list[StridedLoop], list[StridedLoop]]:
    """The loops over a row, and over rows."""
    order = _order(region, views)
    inner, outer = ([axis for axis in order if (axis in region.axes) == within] for within in (True, False))
    return _loops(views, inner), _loops(views, outer)


def _order(region: Region, views: Sequence[View]) -> list[int]:
    """The axes in the order in which they lie in memory, as far as that is known."""
    whole = [one for one in views if one.shape == region.shape and 0 not in one.strides]
    found = next((order for one in whole if (order := memory_order(one)) is not None), None)
    return list(range(len(region.shape))) if found is None else list(found)


def _loops(views: Sequence[View], axes: Sequence[int]) -> list[StridedLoop]:
    shape = views[0].shape
    return collapsed([shape[axis] for axis in axes], [[one.strides[axis] for axis in axes] for one in views])


def _side_by_side(loop: StridedLoop) -> int:
    return sum(stride == 1 for stride in loop.strides)


def _power(number: int) -> int:
    """The least power of two that is not below a number."""
    return 1 << max(0, number - 1).bit_length()


@frozen
class _Machine:
    """What threads are shared out by. ``kept_bytes``: that are merged of each row."""

    multiprocessors: int
    kept_bytes: int

    def along(self, rows: Dim, count: Dim, lanes: int) -> Spread:
        """A warp or less for short rows, several warps for long ones, and where there are few rows."""
        if not isinstance(count, int):
            return Spread(BLOCK, 1, lanes, across=False)
        few = isinstance(rows, int) and rows <= 2 * self.multiprocessors
        wanted = count if few or count <= WARP else max(WARP, -(-count // FEW_VECTORS))
        parts = min(_power(wanted), MOST_THREADS // 2 if lanes >= MANY_LANES else MOST_THREADS)
        return Spread(parts, max(1, BLOCK // parts), lanes, across=False)

    def across(self, rows: Dim, count: Dim, lanes: int) -> Spread:
        """Neighbouring threads have neighbouring rows; as many share one as there are too few rows for."""
        most = max(1, min(WARP, SHARED // (WARP * lanes * max(self.kept_bytes, 1))))
        wanted = 4 * BLOCK * self.multiprocessors // max(rows, 1) if isinstance(rows, int) else BLOCK // WARP
        if isinstance(count, int):
            wanted = min(wanted, count)
        parts = min(_power(wanted), _power(most + 1) // 2)
        return Spread(parts, max(WARP, BLOCK // parts), lanes, across=True)
