"""Attention, found in a model: two products with a softmax in between, along an axis that the second one sums over.

Nothing but that form counts: which axes there are besides, in which order, and which operators stand between the first
product and the softmax, is up to the model. The nodes before the second product wait for it, as masks and values may
come later than the first one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Final

from tract_llvm.elements.expressions import ELEMENTS, Apply, Expression, element_of
from tract_llvm.isa import Isa
from tract_llvm.language.types import ElementType

from tract_core.dims import Dim, ceil_div, is_one, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Sub
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Exp
from tract_core.ops.softmax import Softmax
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.draft.repeats import Repeated
from tract_cpu.elements.chain import Chain
from tract_cpu.kernels.attention import AttentionPlan, attention_tile
from tract_cpu.kernels.dots import GROUPED, Grouping
from tract_cpu.kernels.query import QueryPlan
from tract_cpu.products.dots import Factor, grouping_for
from tract_cpu.program.loops import Loop, collapsed
from tract_cpu.program.program import Argument, NativeStep
from tract_cpu.program.views import Address, View

FEW: Final = 2
"""From one part in so many of a vector on, queries are computed side by side."""

MOST_VECTORS: Final = 16
"""How many vectors a key or a value may take whose queries are computed one by one."""

Sizes = dict[str, Dim]
Strides = dict[str, Dim]


@frozen
class Attention:
    """What was found. Axes have names, the same in all tensors.

    ``factors``: the outlets of queries, keys and values; ``terms``: the names of their axes, of the scores and of the
    result. ``query``, ``key``: the axes of the scores that tell queries and keys apart, the first one empty where
    queries are few, and computed one by one; ``depth``, ``width``: those that are summed over in the first product, and
    that only values have; none where these have size 1.
    """

    chain: Chain
    nodes: tuple[int, ...]
    factors: tuple[OutletId, OutletId, OutletId]
    terms: tuple[tuple[str, ...], ...]
    query: str
    key: str
    depth: str | None
    width: str | None
    powers: Expression


def waits(site: Site) -> bool:
    """Whether a product waits for that which mixes values by its softmax, if there is one: so a mask may come later.

    Of several products that are added to scores, one waits.
    """
    lowering, model, number = site.lowering, site.lowering.model, site.node.node
    if number in lowering.waiting:
        return False
    nodes, elements = [number], model.registry[ELEMENTS]
    while (reader := _only_reader(lowering, OutletId(nodes[-1]))) is not None and reader not in lowering.waiting:
        nodes.append(reader)
        if isinstance(model.nodes[reader].op, Softmax):
            last = _only_reader(lowering, OutletId(reader))
            if last is None or not isinstance(model.nodes[last].op, EinSum):
                return False
            lowering.wait(nodes, last)
            return True
        if elements.find(type(model.nodes[reader].op)) is None:
            return False
    return False


def attention_behind(op: EinSum, site: Site, chain: Chain) -> Attention | None:
    """The attention that begins with a product and the element-wise operators behind it, if it does."""
    lowering, model = site.lowering, site.lowering.model
    softmax = _only_reader(lowering, chain.outlet)
    mix = None if softmax is None else _only_reader(lowering, OutletId(softmax))
    if softmax is None or mix is None:
        return None
    soft, second = model.nodes[softmax].op, model.nodes[mix].op
    if not isinstance(soft, Softmax) or not isinstance(second, EinSum) or len(soft.axes) != 1:
        return None
    kinds = {model.outlet_fact(one).datum_type for one in [chain.outlet, *site.node.inputs, *model.nodes[mix].inputs]}
    kinds |= {model.outlet_fact(OutletId(mix)).datum_type}
    element = chain.expression.result
    powers = _powers(lowering, element.computed)
    if len(kinds) > 1 or second.q_output is not None or second.acc.itemsize > element.computed.bytes or powers is None:
        return None
    names = _named(op, second, model.nodes[mix].inputs.index(OutletId(softmax)))
    if names is None:
        return None
    terms, (scores, result) = names[:-2], names[-2:]
    key = scores[soft.axes[0]]
    first = 1 if key in terms[0] else 0
    others = [outlet for outlet in model.nodes[mix].inputs if outlet != OutletId(softmax)]
    if key in terms[first] or key in result or key not in terms[2] or len(others) != 1:
        return None
    ordered = (terms[first], terms[1 - first], terms[2], scores, result)
    factors = (site.node.inputs[first], site.node.inputs[1 - first], others[0])
    return _checked(
        lowering, Attention(chain, (*chain.nodes, softmax, mix), factors, ordered, "", key, None, None, powers)
    )


def _only_reader(lowering: Lowering, outlet: OutletId) -> int | None:
    """The node that alone reads a tensor, once, if native code knows its types and sizes."""
    readers = lowering.model.outlet(outlet).successors
    if outlet in lowering.model.outputs or len(readers) != 1:
        return None
    (reader,) = readers
    return None if lowering.why_unfit(reader.node) is not None else reader.node


def _powers(lowering: Lowering, element: ElementType) -> Expression | None:
    """exp(score - largest score)"""
    registry, both = lowering.model.registry, (element, element)
    less, exp = element_of(registry, Sub(), both), element_of(registry, Exp(), (element,))
    if less is None or exp is None:
        return None
    return Expression(both, (Apply(Sub(), (0, 1), element, less.emit), Apply(Exp(), (2,), element, exp.emit)))


def _named(op: EinSum, second: EinSum, slot: int) -> tuple[tuple[str, ...], ...] | None:
    """The names of the axes of both factors, of the values, of the scores and of the result; none for diagonals."""
    left, right, scores = op.axes.inputs[0], op.axes.inputs[1], op.axes.outputs[0]
    shares, values, result = second.axes.inputs[slot], second.axes.inputs[1 - slot], second.axes.outputs[0]
    if any(len(set(term)) < len(term) for term in (left, right, shares, values)):
        return None
    renamed = {name: f"new {name}" for name in values} | dict(zip(shares, scores, strict=True))
    again = [tuple(renamed[name] for name in term) for term in (values, result)]
    return tuple(left), tuple(right), again[0], tuple(scores), again[1]


def _sizes(lowering: Lowering, found: Attention) -> Sizes:
    """The size of each axis: that which is not 1, if there is one."""
    sizes: Sizes = {}
    for outlet, term in zip(found.factors, found.terms[:3], strict=True):
        for name, size in zip(term, lowering.model.outlet_fact(outlet).shape, strict=True):
            if is_one(sizes.get(name, 1)):
                sizes[name] = size
    return sizes


def _checked(lowering: Lowering, found: Attention) -> Attention | None:
    """The attention with its axes, where each of them plays one part only."""
    sizes = _sizes(lowering, found)
    shapes = [lowering.model.outlet_fact(outlet).shape for outlet in found.factors]
    moving = [
        {name for name, size in zip(term, shape, strict=True) if not is_one(size)}
        for term, shape in zip(found.terms[:3], shapes, strict=True)
    ]
    if any(
        size != sizes[name]
        for term, shape in zip(found.terms[:3], shapes, strict=True)
        for name, size in zip(term, shape, strict=True)
        if not is_one(size)
    ):
        return None  # a symbolic size may have to stretch
    queries, keys, values = moving
    scores, result = set(found.terms[3]), set(found.terms[4])
    depth, width = (queries | keys) - scores, values - scores
    if len(depth) > 1 or len(width) > 1 or not depth <= queries & keys or not width <= result:
        return None
    summed_too = (scores - {found.key} - result) & (queries | keys | values)
    if summed_too or found.key not in keys & values:
        return None
    found = replace(found, depth=next(iter(depth), None), width=next(iter(width), None))
    alone = [name for name in found.terms[3] if name in queries - keys - values]
    lanes = attention_tile(lowering.isa, found.chain.expression.inputs[0]).lanes
    count = sizes[alone[-1]] if alone else 1
    if isinstance(count, int) and count * FEW < lanes:
        return _with_operands(lowering, found, found.key) if _are_vectors(found, sizes, lanes) else None
    return _with_operands(lowering, replace(found, query=alone[-1]), alone[-1])


def _are_vectors(found: Attention, sizes: Sizes, lanes: int) -> bool:
    """Whether keys and values are made of whole vectors, and results lie like these."""
    lengths = [sizes[name] if name else 1 for name in (found.depth, found.width)]
    whole = [isinstance(size, int) and 0 < size <= MOST_VECTORS * lanes and size % lanes == 0 for size in lengths]
    return all(whole) and found.terms[4][-1] == found.width


def _with_operands(lowering: Lowering, found: Attention, axis: str) -> Attention | None:
    """The attention, with operands of the scores that lie along an axis, in which vectors go."""
    place = found.terms[3].index(axis)
    operands = tuple(_along(lowering, view, place) for view in found.chain.operands)
    if any(view.strides[place] not in {0, 1} for view in operands):
        return None
    return replace(found, chain=replace(found.chain, operands=operands))


def _along(lowering: Lowering, view: View, axis: int) -> View:
    """An operand whose neighbours along an axis lie side by side, or are one element: copied if need be."""
    order = [*(one for one in range(len(view.shape)) if one != axis), axis]
    turned = lowering.near(view.transposed(order))
    return turned.transposed([order.index(one) for one in range(len(order))])


def lower_attention(found: Attention, site: Site) -> None:
    """Add the step that computes an attention that was found, at its second product."""
    lowering, sizes = site.lowering, _sizes(site.lowering, found)
    names = [name for name in found.terms[3] if name not in {found.query, found.key}]
    repeated = _repeated(lowering, found, names)
    views = [one.once if one else lowering.view(outlet) for one, outlet in zip(repeated, found.factors, strict=True)]
    factors = [view for view in views if view is not None]
    assert len(factors) == len(views)  # kernels know the types
    if not found.query:
        axes = zip(factors, found.terms, (found.depth, found.depth, found.width), strict=False)
        factors = [_along(lowering, view, term.index(axis)) for view, term, axis in axes if axis]
    result = lowering.new(site.outlet)
    tensors = [*factors, *found.chain.operands, result]
    terms = [*found.terms[:3], *(found.terms[3] for _ in found.chain.operands), found.terms[4]]
    at = [_strides(view, term) for view, term in zip(tensors, terms, strict=True)]
    loops = _loops(names, sizes, at, [*repeated, *(None for _ in tensors[3:])], terms)
    around = product([loop.size for loop in loops])
    placed = _Placed(found, sizes, [view.address for view in tensors], at, loops, result.element)
    step = placed.many(lowering.isa) if found.query else placed.few(lowering.isa)
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
) -> list[Loop]:
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

    ``at``: how far apart neighbours along each axis are, for each tensor. ``loops``: around. ``result``: its type.
    """

    found: Attention
    sizes: Sizes
    addresses: Sequence[Address]
    at: Sequence[Strides]
    loops: Sequence[Loop]
    result: ElementType

    @property
    def element(self) -> ElementType:
        """The type of the factors."""
        return self.found.chain.expression.inputs[0]

    def many(self, isa: Isa) -> NativeStep:
        """A call for all queries, whose tasks are vectors of them."""
        found, at, tile = self.found, self.at, attention_tile(isa, self.element)
        along = tuple(one.get(found.query, 0) != 0 for one in at[3:-1])
        expression, count = found.chain.expression, len(self.loops)
        grouping = self._grouping(isa)
        plan = AttentionPlan(tile, self.element, expression, along, found.powers, self.result, count, grouping)
        queries, keys = self.sizes[found.query], self.sizes[found.key]
        depth, width = (self.sizes[name] if name else 1 for name in (found.depth, found.width))
        rows = ((found.query, found.depth), (found.key, found.depth), (found.key, found.width))
        arguments: list[Argument] = [queries, keys, depth, width]
        for address, strides, (row, step) in zip(self.addresses, at, rows, strict=False):
            arguments += [address, strides[row], strides.get(step or "", 0)]
        for address, strides in zip(self.addresses[3:-1], at[3:-1], strict=True):
            arguments += [address, strides.get(found.key, 0)]
        arguments += [self.addresses[-1], at[-1][found.query], at[-1].get(found.width or "", 0), *self._around()]
        scratch = tile.lanes * (depth + keys + width) * plan.sums.bytes
        if grouping is not None:
            scratch = scratch + ceil_div(keys, grouping.size) * width * GROUPED.bytes
        return NativeStep(plan, tuple(arguments), ceil_div(queries, tile.lanes), (), (), scratch)

    def _grouping(self, isa: Isa) -> Grouping | None:
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
        kinds = (self.element, found.chain.expression, along, found.powers, self.result)
        plan = QueryPlan(lanes, depth, width, *kinds, len(self.loops))
        query, key, value, *further, result = self.addresses
        keys = self.sizes[found.key]
        arguments: list[Argument] = [keys, query, key, at[1][found.key], value, at[2][found.key], *further, result]
        scratch = (keys + lanes) * plan.sums.bytes
        return NativeStep(plan, (*arguments, *self._around()), 1, (), (), scratch)

    def _around(self) -> Iterator[Argument]:
        for loop in self.loops:
            yield from (loop.size, *loop.strides)


def _strides(view: View, term: Sequence[str]) -> Strides:
    named = zip(term, view.shape, view.strides, strict=True)
    return {name: 0 if is_one(size) else stride for name, size, stride in named}
