"""Sums of products as matrix products: which axes are rows, columns and inner ones, and where the matrices lie."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from tract_llvm.elements.expressions import Apply, Expression, element_of
from tract_llvm.language.types import ElementType

from tract_core.dims import Dim, ceil_div, is_one, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Mul
from tract_core.ops.einsum import EinSum
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.caches import LINE
from tract_cpu.draft.lowering import CPU, Site
from tract_cpu.draft.written_out import written_out
from tract_cpu.elements.chain import Chain, chain_after, extended
from tract_cpu.elements.code_size import CHEAP
from tract_cpu.elements.map import map_step
from tract_cpu.kernels.dots import GROUPED, Grouping
from tract_cpu.kernels.matmul import MatMulPlan, Tile, tile_for
from tract_cpu.kernels.pack import PackPlan
from tract_cpu.lower.attention import attention_behind, lower_attention, waits
from tract_cpu.lower.conv import lower_pointwise
from tract_cpu.lower.recurrent import StateProduct, lower_gates
from tract_cpu.products.cut import RowCut, cut_rows, piece_of, reads_in_place, tiles_per_task
from tract_cpu.products.dots import factor_of, grouping_for, in_panels
from tract_cpu.products.pairs import is_product_of_two, wire_pairs
from tract_cpu.products.quantized import wire_product
from tract_cpu.program.loops import Loop, collapsed
from tract_cpu.program.program import Argument, NativeStep
from tract_cpu.program.views import Address, View

ROWS = Rows()

_ANY_ELEMENT = 8
"""Bits of the narrowest elements: what masks them masks everything."""


@ROWS.row(CPU, EinSum)
def lower_einsum(op: EinSum, site: Site) -> str | None:
    """A product of two matrices, or of many pairs of them; of what else there is, several, or a view."""
    if op.q_output is not None:
        return written_out(site, partial(wire_product, op))
    if _moves_only(op, site):
        return _lower_view(op, site)
    if not is_product_of_two(op, site.facts()) or _sums_wider(op, site):
        return written_out(site, partial(wire_pairs, op))
    if waits(site):
        return None
    why, element = _unfit(op, site), site.result()
    if why is not None or element is None:
        return why or f"native code does not know {op.acc.short}"
    channels = _channels(op, site)
    if channels is not None:
        return lower_pointwise(site, *channels)
    outlet = site.outlet
    chain = chain_after(site.lowering, outlet, element, [site.node.node])
    attention = attention_behind(op, site, chain)
    if attention is not None:
        site.lowering.put_off(attention.nodes, lambda last: lower_attention(attention, last))
        return None
    views = _stretched(op, site)
    groups = _groups(op, views)
    shared = set(op.axes.inputs[0]).intersection(op.axes.inputs[1])
    if shared <= set(op.axes.outputs[0]) and all(view.element == element for view in views):
        return _lower_elements(op, site, views, element)
    chain = replace(chain, operands=tuple(site.lowering.near(view) for view in chain.operands))
    state = _of_state(op, site, groups, chain, views)
    if state is not None and lower_gates(site, state):
        return None
    shape = dict(zip(op.axes.outputs[0], site.lowering.model.outlet_fact(outlet).shape, strict=True))
    left, right = (factor_of(site.lowering, site.node.inputs[slot]) for slot in (groups.left, groups.right))
    grouping = grouping_for(site.isa, left, right, chain.expression.inputs[0].computed)
    product_of = _Product(site, op, groups, chain, shape, grouping)
    if product_of.lower(views) is None:
        return None
    return product_of.lower([_arranged(site, op, groups, slot, view) for slot, view in enumerate(views)])


def _stretched(op: EinSum, site: Site) -> list[View]:
    """The factors. An axis is repeated where its size is 1, or turns out to be, and another one in the other factor.

    Not one of size 1 that the result has, as such an axis is none; symbolic sizes of one that is summed over are equal.
    """
    sizes, found = op.sizes(site.facts()), list[View]()
    (output,) = op.axes.outputs
    for term, view in zip(op.axes.inputs, site.known_inputs(), strict=True):
        named = zip(term, view.shape, strict=True)
        found.append(
            view.stretched([sizes[name] if is_one(size) != (name in output) else size for name, size in named])
        )
    return found


def _moves_only(op: EinSum, site: Site) -> bool:
    """Whether there is one factor of the type of the result, of whose axes only some of size 1 are left out."""
    (fact, *others), (output,) = site.facts(), op.axes.outputs
    left_out = [size for name, size in zip(op.axes.inputs[0], fact.shape, strict=True) if name not in output]
    return not others and fact.datum_type == site.node.facts[0].datum_type and all(map(is_one, left_out))


def _sums_wider(op: EinSum, site: Site) -> bool:
    """Whether floats are summed in a wider type than kernels compute them in."""
    element = site.lowering.element(site.facts()[0].datum_type.storage)
    return element is not None and element.kind == "f" and op.acc.itemsize > element.computed.bytes


def _lower_view(op: EinSum, site: Site) -> None:
    """A diagonal goes on along all of its axes at once."""
    (x,), (term,), (output,) = site.known_inputs(), op.axes.inputs, op.axes.outputs
    strides: dict[str, Dim] = dict.fromkeys(term, 0)
    for name, stride in zip(term, x.strides, strict=True):
        strides[name] = strides[name] + stride
    shape = tuple(site.node.facts[0].shape)
    site.place(replace(x, shape=shape, strides=tuple(strides[name] for name in output)))


def _lower_elements(op: EinSum, site: Site, views: Sequence[View], element: ElementType) -> str | None:
    """Nothing is summed: a product for every element of the result, and the chain behind it."""
    shape, operands = tuple(site.node.facts[0].shape), list[View]()
    for term, view in zip(op.axes.inputs, views, strict=True):
        axes = zip(term, view.shape, view.strides, strict=True)
        at: dict[str, Dim] = {name: stride for name, size, stride in axes if not is_one(size)}
        operands.append(replace(view, shape=shape, strides=tuple(at.get(name, 0) for name in op.axes.outputs[0])))
    multiply = element_of(site.lowering.model.registry, Mul(), [element, element])
    if multiply is None:
        return f"native code does not multiply {element.name}"
    product_of = Expression((element, element), (Apply(Mul(), (0, 1), element, multiply.emit),))
    chain = extended(site.lowering, Chain(product_of, tuple(operands), site.outlet, (site.node.node,)))
    result = site.lowering.new(chain.outlet)
    site.add(map_step(chain.expression, chain.operands, result, site.isa, chain.nodes))
    return None


def _arranged(site: Site, op: EinSum, groups: _Groups, slot: int, view: View) -> View:
    """A factor, copied so that its pairs follow each other, and its summed axes lie beside each other."""
    inside = groups.rows + groups.inner if slot == groups.left else groups.inner + groups.columns
    if slot != groups.left and groups.columns not in op.axes.outputs[0]:
        inside = groups.columns[:-1] + groups.inner + groups.columns[-1:]  # columns apart are further pairs
    term, array = op.axes.inputs[slot], site.array(slot)
    named = [term.index(name) for name in groups.pairs + inside if name in term]
    order = [*named, *(axis for axis in range(len(term)) if axis not in named)]
    turned = view.transposed(order)
    copied = site.lowering.contiguous(turned) if array is None else site.lowering.constant(array.transpose(order))
    assert copied is not None  # the type was that of the factor
    return copied.transposed([order.index(axis) for axis in range(len(order))])


def _channels(op: EinSum, site: Site) -> tuple[OutletId, Array, int] | None:
    """The data, the matrix, and the axis, where the product mixes the channels of a tensor behind which more axes come.

    The matrix is part of the model, [output channels, input channels].
    """
    (output,) = op.axes.outputs
    for slot in (0, 1):
        array, data, term = site.array(1 - slot), op.axes.inputs[slot], op.axes.inputs[1 - slot]
        if array is None or site.array(slot) is not None or len(term) != 2 or len(data) != len(output):
            continue
        changed = [axis for axis, (one, other) in enumerate(zip(data, output, strict=True)) if one != other]
        if len(changed) != 1 or changed[0] > 1 or changed[0] == len(data) - 1:
            continue
        axis = changed[0]
        fits = set(term) == {data[axis], output[axis]}
        if fits and site.facts()[slot].shape[axis] == array.shape[term.index(data[axis])]:
            ordered = array if term[0] == output[axis] else array.T
            return site.node.inputs[slot], ordered, axis
    return None


def _unfit(op: EinSum, site: Site) -> str | None:
    facts = site.facts()
    elements = [site.lowering.element(fact.datum_type.storage) for fact in facts]
    kinds = [one for one in elements if one is not None]
    assert len(kinds) == 2  # the others were looked at before
    if any(one.kind == "b" for one in kinds):
        return "booleans have no products"
    return None


@frozen
class _Groups:
    """The axes by what they are: in both factors and the result, in the left one only, the right one only, summed.

    ``left``, ``right``: which input is which.
    """

    pairs: str
    rows: str
    columns: str
    inner: str
    left: int
    right: int


def _groups(op: EinSum, views: Sequence[View]) -> _Groups:
    terms, (output,) = op.axes.inputs, op.axes.outputs
    a, b = (
        {name for name, size in zip(term, view.shape, strict=True) if not is_one(size)}
        for term, view in zip(terms, views, strict=True)
    )
    pairs = "".join(name for name in output if name in a and name in b)
    only = ["".join(name for name in output if name in own and name not in other) for own, other in ((a, b), (b, a))]
    inner = "".join(name for name in terms[0] if name in a and name in b and name not in output)
    last = next((name for name in reversed(output) if name in a or name in b), "")
    left = 1 if last and last in only[0] else 0
    return _Groups(pairs, only[left], only[1 - left], inner, left, 1 - left)


def _of_state(op: EinSum, site: Site, groups: _Groups, chain: Chain, views: Sequence[View]) -> StateProduct | None:
    """The product as one of rows and a matrix of the model, where it is: columns are the last axis of the result."""
    (output,) = op.axes.outputs
    array, left, right = site.array(groups.right), views[groups.left], views[groups.right]
    term, state = op.axes.inputs[groups.right], op.axes.inputs[groups.left]
    if (
        array is None
        or groups.pairs
        or len(groups.inner) != 1
        or len(groups.columns) != 1
        or output[-1:] != groups.columns
        or sorted(term) != sorted(groups.inner + output[-1])
    ):
        return None
    strides = dict(zip(state, left.strides, strict=True))
    rows = tuple(strides[name] if name in groups.rows else 0 for name in output[:-1])
    matrix = array if term[0] == groups.inner else array.T
    return StateProduct(left, rows, strides[groups.inner], matrix, right.element, chain)


@frozen
class _Cut:
    """The loops of a product. Their strides are those of the factors, of further operands, and of the result."""

    rows: list[Loop]
    columns: list[Loop]
    pairs: list[Loop]
    depth: Loop


@frozen
class _Panels:
    """Packed right matrices: where they are, how many numbers each takes, and of which type."""

    address: Address
    each: Dim
    element: ElementType


@frozen
class _Product:
    """One product that is about to become steps. ``shape``: the sizes of the axes of the result.

    ``grouping``: how products are summed by neighbours.
    """

    site: Site
    op: EinSum
    groups: _Groups
    chain: Chain
    shape: dict[str, Dim]
    grouping: Grouping | None

    def lower(self, views: Sequence[View]) -> str | None:
        """Add the steps, or say why there are none."""
        groups, lowering = self.groups, self.site.lowering
        left, right = views[groups.left], views[groups.right]
        output = self.op.axes.outputs[0]
        sizes = {
            **self.shape,
            **{n: s for n, s in zip(self.op.axes.inputs[0], views[0].shape, strict=True) if n in groups.inner},
        }
        left_at, right_at = self._strides(left, groups.left), self._strides(right, groups.right)
        inner = collapsed(
            [sizes[n] for n in groups.inner], [[at[n] for n in groups.inner] for at in (left_at, right_at)]
        )
        if len(inner) > 1:
            return "the summed axes do not lie beside each other in both factors"
        depth = inner[0] if inner else Loop(1, (1, 1))
        result = View.contiguous(
            lowering.new(self.chain.outlet).storage, self.chain.expression.result, tuple(self.shape[n] for n in output)
        )
        operands = [dict(zip(output, view.strides, strict=True)) for view in self.chain.operands]
        result_at = dict(zip(output, result.strides, strict=True))
        places = [left_at, right_at, *operands, result_at]
        columns = self._loops(groups.columns, places)
        rows = self._loops(groups.rows, places)
        if columns and columns[-1].strides[-1] != 1:
            return "the columns of the result do not lie beside each other"
        cut = _Cut(rows, columns, self._loops(groups.pairs, places), depth)
        tile = tile_for(
            self.site.isa,
            self.chain.expression.inputs[0],
            columns[-1].size if columns else 1,
            whole=self.grouping is not None,
        )
        return self._add(tile, (left, right, result), cut)

    def _strides(self, view: View, slot: int) -> dict[str, Dim]:
        found: dict[str, Dim] = dict.fromkeys(self.op.axes.outputs[0], 0)
        term = zip(self.op.axes.inputs[slot], view.shape, view.strides, strict=True)
        return found | {name: 0 if is_one(size) else stride for name, size, stride in term}

    def _loops(self, names: str, places: Sequence[dict[str, Dim]]) -> list[Loop]:
        return collapsed([self.shape[n] for n in names], [[at[n] for n in names] for at in places])

    def _add(self, tile: Tile, views: tuple[View, View, View], cut: _Cut) -> str | None:
        (left, right, result), depth, columns = views, cut.depth, cut.columns
        nothing = Loop(1, (0,) * (3 + len(self.chain.operands)))
        row, column = cut.rows[-1] if cut.rows else nothing, columns[-1] if columns else nothing
        loops = [*cut.pairs, *columns[:-1], *cut.rows[:-1]]
        repeated = [loop for loop in loops if loop.strides[1] != 0]
        pair = collapsed([loop.size for loop in repeated], [[loop.strides[1] for loop in repeated]])
        if len(pair) > 1:
            return "the right factors of the pairs do not follow each other in memory"
        along = tuple(stride != 0 for stride in column.strides[2:-1])
        if any(stride not in {0, 1} for stride in column.strides[2:-1]):
            return "an operand behind the product does not lie along the columns"
        panels = self._panels(tile, right, column, depth, pair[0] if pair else Loop(1, (0,)))
        rows, count = cut_rows(tile, row.size), ceil_div(column.size, tile.columns)
        piece = piece_of(rows, depth.size, count, left.element.bytes) if self._sums_as_results() else None
        plan = MatMulPlan(
            rows.tile,
            rows.rests,
            left.element,
            panels.element,
            self.chain.expression,
            along,
            len(loops),
            packs=self._packs(rows, left, row, depth, column),
            in_lines=depth.strides[0] == 1,
            grouping=self.grouping,
            together=self._together(left, depth),
            rolled=any(type(step.op) not in CHEAP for step in self.chain.expression.steps),
            masks=self.site.isa.masks_bits <= _ANY_ELEMENT,
            fetches=self.site.array(self.groups.right) is not None and rows.count != 1,
            pieces=piece is not None,
        )
        count = product([loop.size for loop in loops]) * count
        lines, size = self._lines(piece or depth.size), max(plan.sums.bytes, GROUPED.bytes)
        tiles = tiles_per_task(rows, lines, count, size)
        arguments: list[Argument] = [
            row.size,
            column.size,
            depth.size,
            rows.whole,
            tiles,
            *([] if piece is None else [piece]),
            left.address,
            row.strides[0],
            depth.strides[0],
            panels.address,
        ]
        for view, stride in zip(self.chain.operands, row.strides[2:-1], strict=True):
            arguments += [view.address, stride]
        arguments += [result.address, row.strides[-1]]
        for loop, at in zip(loops, self._panel_strides(loops, panels.each), strict=True):
            arguments += [loop.size, loop.strides[0], at, *loop.strides[2:]]
        tasks = count * ceil_div(rows.count, tiles)
        work = product([loop.size for loop in (*loops, row, column, depth)])
        height, length = (rows.tile.pitch, lines) if plan.turns else (rows.tile.rows, lines + 2 * LINE // size)
        packed = (tiles + len(rows.rests)) * height * length * size
        scratch = packed if plan.packs else 0
        self.site.add(NativeStep(plan, tuple(arguments), tasks, self.chain.nodes, (result.storage,), scratch, work))
        return None

    def _sums_as_results(self) -> bool:
        """Whether sums that are not done yet can lie in the result."""
        expression = self.chain.expression
        return self.grouping is None and expression.result == expression.inputs[0] == expression.inputs[0].computed

    def _packs(self, rows: RowCut, left: View, row: Loop, depth: Loop, column: Loop) -> bool:
        """Whether blocks of the left matrix are packed: where they are read more than once, and not as well in place.

        ``rows``: how its rows are cut.
        """
        if self.grouping is not None:
            whole = isinstance(depth.size, int) and not depth.size % self.grouping.size and not self.grouping.flips
            in_place = reads_in_place(rows.tile.rows, row.strides[0], depth.strides[0], left.element.bytes)
            return not (whole and in_place and self._together(left, depth))
        if isinstance(column.size, int) and column.size <= rows.tile.columns:
            return False
        plain = left.element == left.element.computed == self.chain.expression.inputs[0]
        in_place = reads_in_place(rows.tile.rows, row.strides[0], depth.strides[0], left.element.bytes)
        return not (plain and in_place) and not is_one(row.size)

    def _panels(self, tile: Tile, right: View, column: Loop, depth: Loop, pair: Loop) -> _Panels:
        """The packed right matrices. Constants are packed now."""
        lines, grouping = self._lines(depth.size), self.grouping
        each = ceil_div(column.size, tile.columns) * tile.columns * lines
        element, count = right.element if grouping is None else GROUPED, pair.size
        if self.site.array(self.groups.right) is not None and all(isinstance(one, int) for one in (each, count)):
            matrices = self._matrices(
                right, (count, depth.size, column.size), (pair.strides[0], depth.strides[1], column.strides[1])
            )
            view = self.site.lowering.made(
                (count, ceil_div(column.size, tile.columns), lines, tile.columns),
                element,
                lambda array: in_panels(array, tile.columns, grouping),
                matrices,
            )
            return _Panels(view.address, each, element)
        storage = self.site.lowering.room(count * each * element.bytes)
        plan = PackPlan(tile, right.element, column.strides[1] == 1, grouping)
        arguments: list[Argument] = [
            column.size,
            depth.size,
            right.address,
            depth.strides[1],
            column.strides[1],
            pair.strides[0],
        ]
        arguments += [Address(storage)]
        tasks = count * ceil_div(column.size, tile.columns)
        work = count * column.size * depth.size
        self.site.lowering.steps.append(NativeStep(plan, tuple(arguments), tasks, (), (storage,), work=work))
        return _Panels(Address(storage), each, element)

    def _lines(self, depth: Dim) -> Dim:
        """How many lines a panel has."""
        grouping = self.grouping
        return depth if grouping is None else ceil_div(depth, grouping.size) + int(grouping.flips)

    def _together(self, left: View, depth: Loop) -> bool:
        """Whether the neighbours of a left group lie in memory as they are multiplied."""
        return self.grouping is not None and depth.strides[0] == 1 and left.element.bits == self.grouping.left.bits

    def _matrices(self, right: View, shape: tuple[Any, ...], strides: tuple[Any, ...]) -> Array:
        """The right factors [pair, depth, column] where they are a constant of the model, or a copy of it."""
        array = self.site.lowering.draft.constants[right.storage.number]
        assert isinstance(array, np.ndarray)  # it is there before the program is
        array = np.ascontiguousarray(array)
        return as_strided(array, shape, [one * array.itemsize for one in strides], writeable=False)

    def _panel_strides(self, loops: Sequence[Loop], each: Dim) -> list[Dim]:
        """How far apart the packed matrices are along each loop; 0 where it goes over one and the same."""
        found: list[Dim] = []
        step: Dim = each
        for loop in reversed(loops):
            repeats = loop.strides[1] == 0
            found.append(0 if repeats else step)
            if not repeats:
                step = step * loop.size
        return found[::-1]
