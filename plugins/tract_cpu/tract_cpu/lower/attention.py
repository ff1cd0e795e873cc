"""Attention: the tensors of one that was found, the loops around, and the call of its kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.isa import Isa
from tract_llvm.language.types import ElementType
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.storages import Address
from tract_llvm.program.views import View

from tract_core.compile.attention import Sizes
from tract_core.dims import Dim, ceil_div, is_one, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.draft.repeats import Repeated
from tract_cpu.group.attention import Attention, are_vectors, sizes_of
from tract_cpu.group.dots import Factor, grouping_for
from tract_cpu.kernels.attention import AttentionPlan, attention_tiles
from tract_cpu.kernels.dots import GROUPED, DotGrouping
from tract_cpu.kernels.query import QueryPlan
from tract_cpu.place.chain import PlacedChain, as_they_are, placed
from tract_cpu.program.arguments import arguments, each_loop
from tract_cpu.program.program import NativeStep
from tract_cpu.table import KINDS

ROWS = Rows()

Strides = dict[str, Dim]


def _along(lowering: Lowering, view: View, axis: int) -> View:
    """An operand whose neighbours along an axis lie side by side, or are one element: copied if need be."""
    order = [*(one for one in range(len(view.shape)) if one != axis), axis]
    turned = lowering.near(view.transposed(order))
    return turned.transposed([order.index(one) for one in range(len(order))])


def _held(lowering: Lowering, view: View, axis: int) -> View:
    """A factor that is read often: narrow floats as f32 where that is faster, neighbours along an axis side by side."""
    element = lowering.held_apart(view.element)
    if element == view.element:
        return view
    order = [*(one for one in range(len(view.shape)) if one != axis), axis]
    turned = lowering.converted(view.transposed(order), element)
    return turned.transposed([order.index(one) for one in range(len(order))])


@ROWS.row(KINDS, Attention)
def lower_attention(site: Site) -> None:
    """An attention that was found, as one step."""
    found, lowering = site.group, site.lowering
    assert isinstance(found, Attention)  # as the table says
    sizes, place = sizes_of(lowering, found), found.terms[3].index(found.query or found.key)
    chain = placed(site, lambda outlet, shape: _along(lowering, as_they_are(lowering)(outlet, shape), place))
    names = [name for name in found.terms[3] if name not in {found.query, found.key}]
    repeated = _repeated(lowering, found, names)
    pairs = zip(repeated, found.factors, strict=True)
    factors = [one.once if one else lowering.known_view(outlet) for one, outlet in pairs]
    axes = list(zip(factors, found.terms, (found.depth, found.depth, found.width), strict=False))
    if found.query:
        factors = [_held(lowering, view, term.index(axis or term[-1])) for view, term, axis in axes]
    else:
        factors = [_along(lowering, view, term.index(axis)) for view, term, axis in axes if axis]
    result = lowering.new(OutletId(found.nodes[-1]))
    tensors = [*factors, *chain.operands, result]
    terms = [*found.terms[:3], *(found.terms[3] for _ in chain.operands), found.terms[4]]
    at = [_strides(view, term) for view, term in zip(tensors, terms, strict=True)]
    loops = _loops(names, sizes, at, [*repeated, *(None for _ in tensors[3:])], terms)
    around = product([loop.size for loop in loops])
    call = _Placed(
        found, chain, sizes, [view.address for view in tensors], at, loops, factors[0].element, result.element
    )
    step = call.many(lowering.isa) if found.query else call.few(lowering.isa)
    depth, width = (sizes[name] if name else 1 for name in (found.depth, found.width))
    work = around * sizes.get(found.query, 1) * sizes[found.key] * (depth + width)
    *before, last = ([outlet.node] if one else [] for outlet, one in zip(found.factors, repeated, strict=True))
    nodes = (*before[0], *before[1], *found.nodes[:-1], *last, found.nodes[-1])
    site.add(replace(step, tasks=around * step.tasks, nodes=nodes, results=(result.storage,), work=work))


def _repeated(lowering: Lowering, found: Attention, names: Sequence[str]) -> list[Repeated | None]:
    """The factors that repeat positions along one of the loops around, all of one loop as often."""
    taken: list[Repeated | None] = []
    times: dict[str, Dim] = {}
    for outlet, term in zip(found.factors, found.terms, strict=False):
        one = lowering.repeated.get(outlet)
        fits = one is not None and term[one.axis] in names and times.setdefault(term[one.axis], one.times) == one.times
        taken.append(one if fits else None)
    for outlet, one in zip(found.factors, taken, strict=True):
        if one is not None:
            lowering.repeated.pop(outlet, None)
    return taken


def _loops(
    names: Sequence[str],
    sizes: Sizes,
    at: Sequence[Strides],
    repeated: Sequence[Repeated | None],
    terms: Sequence[Sequence[str]],
) -> list[StridedLoop]:
    """The loops around: along an axis where positions are repeated, one over these, and one over how often."""
    at_axis = {term[one.axis]: one for one, term in zip(repeated, terms, strict=True) if one}
    lengths: list[Dim] = []
    strides: list[list[Dim]] = [[] for _ in at]
    for name in names:
        split = at_axis.get(name)
        lengths += [sizes.get(name, 1)] if split is None else [split.once.shape[split.axis], split.times]
        for number, one in enumerate(at):
            step = one.get(name, 0)
            repeats = repeated[number]
            again = repeats is not None and terms[number][repeats.axis] == name
            strides[number] += [step] if split is None else [step, 0] if again else [step * split.times, step]
    return collapsed(lengths, strides)


@frozen
class _Placed:
    """An attention whose tensors are placed: factors, further operands of the scores, and the result, in this order.

    ``at``: how far apart neighbours along each axis are, for each tensor. ``loops``: around. ``element``, ``result``:
    the types of the factors and of the result.
    """

    found: Attention
    chain: PlacedChain
    sizes: Sizes
    addresses: Sequence[Address]
    at: Sequence[Strides]
    loops: Sequence[StridedLoop]
    element: ElementType
    result: ElementType

    def many(self, isa: Isa) -> NativeStep:
        """A call for all queries, whose tasks are one or two vectors of them."""
        found, at, tiles = self.found, self.at, attention_tiles(isa, self.element, self.sizes[self.found.query])
        columns, lanes = tiles[0].columns, tiles[0].lanes
        along = tuple(one.get(found.query, 0) != 0 for one in at[3:-1])
        expression, count = self.chain.expression, len(self.loops)
        grouping = self._grouping(isa)
        kinds = (self.element, expression, along, found.powers, self.result)
        plan = AttentionPlan(tiles, *kinds, count, grouping, self._single(lanes), found.zeroes)
        queries, keys = self.sizes[found.query], self.sizes[found.key]
        depth, width = (self.sizes[name] if name else 1 for name in (found.depth, found.width))
        rows = ((found.query, found.depth), (found.key, found.depth), (found.key, found.width))
        factors = zip(self.addresses, at, rows, strict=False)
        further = zip(self.addresses[3:-1], at[3:-1], strict=True)
        given = arguments(
            plan,
            queries=queries,
            keys=keys,
            depth=depth,
            width=width,
            factors=[
                {"tensor": address, "row": strides[row], "step": strides.get(step or "", 0)}
                for address, strides, (row, step) in factors
            ],
            further=[{"tensor": address, "step": strides.get(found.key, 0)} for address, strides in further],
            result=self.addresses[-1],
            result_row=at[-1][found.query],
            result_step=at[-1].get(found.width or "", 0),
            batch=each_loop(self.loops),
        )
        scratch = columns * (depth + keys + width) * plan.sums.bytes
        if grouping is not None:
            scratch = scratch + ceil_div(keys, grouping.size) * width * GROUPED.bytes
        return NativeStep(plan, given, ceil_div(queries, columns), (), (), scratch)

    def _single(self, lanes: int) -> tuple[int, int]:
        """How many vectors keys and values take, where only a run knows whether there is one query; 0 for parts."""
        found, (query, key, value, *_, result) = self.found, self.at
        if not (found.depth and found.width) or isinstance(self.sizes[found.query], int):
            return 0, 0
        beside = [query[found.depth], key[found.depth], value[found.width], result[found.width]]
        depth, width = self.sizes[found.depth], self.sizes[found.width]
        if beside != [1] * 4 or not (are_vectors(depth, lanes) and are_vectors(width, lanes)):
            return 0, 0
        return int(depth) // lanes, int(width) // lanes

    def _grouping(self, isa: Isa) -> DotGrouping | None:
        """How products are summed in groups: where queries and keys are whole groups, and numbers lie side by side."""
        found, factor = self.found, Factor(self.element, None)
        steps = zip(self.at, (found.depth, found.depth, found.width), strict=False)
        beside = all(axis is not None and strides.get(axis) == 1 for strides, axis in steps)
        grouping = grouping_for(isa, factor, factor, self.element.computed) if self.element.kind == "f" else None
        depth = self.sizes[found.depth] if found.depth else 1
        whole = grouping is not None and isinstance(depth, int) and depth % grouping.size == 0
        return grouping if beside and whole else None

    def few(self, isa: Isa) -> NativeStep:
        """A call for queries one by one."""
        found, at, lanes = self.found, self.at, isa.lanes(self.element.computed.bits)
        along = tuple(one.get(found.key, 0) != 0 for one in at[3:-1])
        depth, width = (int(self.sizes[name]) // lanes for name in (found.depth, found.width) if name)
        kinds = (self.element, self.chain.expression, along, found.powers, self.result)
        plan = QueryPlan(lanes, depth, width, *kinds, len(self.loops), found.zeroes)
        query, key, value, *further, result = self.addresses
        keys = self.sizes[found.key]
        given = arguments(
            plan,
            keys=keys,
            query=query,
            key=key,
            key_row=at[1][found.key],
            value=value,
            value_row=at[2][found.key],
            further=further,
            result=result,
            batch=each_loop(self.loops),
        )
        scratch = (keys + lanes) * plan.sums.bytes
        return NativeStep(plan, given, 1, (), (), scratch)


def _strides(view: View, term: Sequence[str]) -> Strides:
    named = zip(term, view.shape, view.strides, strict=True)
    return {name: 0 if is_one(size) else stride for name, size, stride in named}
