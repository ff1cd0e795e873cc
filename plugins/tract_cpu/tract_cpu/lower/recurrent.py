"""The gates of recurrent networks: one kernel with the product of the state before them, else one for all gates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tract_llvm.fuse.nest import Nest, Unknown
from tract_llvm.fuse.region import Region
from tract_llvm.language.types import ElementType, numpy_type
from tract_llvm.nests.recurrent import new_state, parts_of
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.storages import NOWHERE
from tract_llvm.program.views import View, contiguous_strides

from tract_core.compile.gates import COUNTS
from tract_core.dims import Dim, ceil_div, is_one, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedNode
from tract_core.ops.recurrent import Epilogue, GruEpilogue, LstmEpilogue
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.aligned import lasting
from tract_cpu.draft.lowering import Lowering, Site
from tract_cpu.kernels.recurrent import GatesPlan
from tract_cpu.kernels.sums import Tile
from tract_cpu.lower.rows import placed_operand, rows_step
from tract_cpu.place.chain import PlacedChain
from tract_cpu.program.arguments import Given, arguments
from tract_cpu.program.program import NativeStep, Step, ViewStep
from tract_cpu.table import CPU

ROWS = Rows()

_MOST_ROWS: Final = 8
"""Rows of a tile: more would be more code, and read no weights less often than the first cache holds them."""

_ANY_ELEMENT: Final = 8
"""Bits of the narrowest elements: what masks them masks everything."""


@ROWS.row(CPU, LstmEpilogue, GruEpilogue)
def lower_epilogue(op: Epilogue, site: Site) -> str | None:
    """The state of an LSTM, both parts, or that of a GRU."""
    nest, result = _nest(site.lowering, tuple(site.node.facts[0].shape)), site.result()
    try:
        values = new_state(op, nest, site.known_inputs(), result)
    except Unknown:
        return "native code does not know these types"
    outlets = [OutletId(site.node.node, slot) for slot in range(len(values))]
    region = Region.of(nest, dict(zip(outlets, values, strict=True)))
    site.add(rows_step(site.lowering, region, [as_view(one, site.lowering, region) for one in region.tensors]))
    return None


def as_view(tensor: object, lowering: Lowering, region: Region) -> View:
    """What a nest loads: a view, or a number, which becomes one."""
    return tensor if isinstance(tensor, View) else placed_operand(lowering, region, tensor)


def _nest(lowering: Lowering, shape: Sequence[Dim]) -> Nest:
    nest = Nest(lowering.model.registry, shape)
    nest.along(())
    return nest


@frozen
class StateProduct:
    """The product of a state and weights, and the chain behind it, on which gates may follow.

    ``left``: the state; ``rows``: how far apart its rows are along each axis of the result but the last one, which is
    that of the columns; ``step``: how far apart the elements are that are summed. ``weights``: [summed, column], of
    ``element``.
    """

    left: View
    rows: tuple[Dim, ...]
    step: Dim
    weights: Array
    element: ElementType
    chain: PlacedChain

    def state(self, rows: Sequence[Dim]) -> View:
        """The state, for each row of the result. ``rows``: how many there are along each axis."""
        return replace(self.left, shape=(*rows, self.weights.shape[0]), strides=(*self.rows, self.step))

    def of(self, state: View) -> StateProduct:
        """The same of a state that lies elsewhere."""
        return replace(self, left=state, rows=state.strides[:-1], step=state.strides[-1])


def gates_step(site: Site, product_of: StateProduct) -> NativeStep:
    """The call that computes a product together with the epilogue that alone reads it, the last node of the group."""
    return _Gates(site.lowering, product_of, site.lowering.model.nodes[site.group.nodes[-1]]).step()


class _Gates:
    """A product with the epilogue behind it, about to become one step."""

    def __init__(self, lowering: Lowering, product_of: StateProduct, node: TypedNode) -> None:
        assert isinstance(node.op, LstmEpilogue | GruEpilogue)  # it was found as one
        self.lowering, self.isa, self.product, self.node, self.op = lowering, lowering.isa, product_of, node, node.op
        self.slot = node.inputs.index(product_of.chain.outlet)
        self.gates = COUNTS[type(node.op)][self.slot]
        self.nest = _nest(lowering, tuple(lowering.model.outlet_fact(OutletId(node.id)).shape))

    def step(self) -> NativeStep:
        """The call. What does not lie as it has to is copied: side by side along the last axis, one loop of rows."""
        chain, hidden = self.product.chain, int(self.nest.shape[-1])
        values = self._values(tuple(self.lowering.model.outlet_fact(chain.outlet).shape))
        region = Region.of(self.nest, {})
        tensors = [as_view(one, self.lowering, region) for one in self.nest.tensors[self.gates :]]
        moving = [self.lowering.near(view) for view in (*chain.operands, *tensors)]
        held = self.lowering.held_apart(self.product.left.element)
        if held != self.product.left.element:
            state = self.product.state(self.nest.shape[:-1])
            self.product = self.product.of(self.lowering.converted(state, held))
        loops = self._rows(moving)
        if len(loops) > 1:
            state = self.product.state(self.nest.shape[:-1])
            self.product = self.product.of(self.lowering.contiguous(state))
            moving = [self.lowering.contiguous(view) for view in moving]
            loops = self._rows(moving)
        return self._call(values, moving, loops[0] if loops else StridedLoop(1, (0,) * (len(moving) + 2)), hidden)

    def _rows(self, moving: Sequence[View]) -> list[StridedLoop]:
        """The loops over rows: of the state, of further tensors, and of the results."""
        plain = contiguous_strides(self.nest.shape)
        lines = [self.product.rows, *(view.strides[:-1] for view in moving), plain[:-1]]
        return collapsed(self.nest.shape[:-1], lines)

    def _values(self, shape: Sequence[Dim]) -> list[int]:
        """The numbers of what is written. The gates that the product gives are the first tensors of the nest."""
        lowering, op, nest = self.lowering, self.op, self.nest
        own = View.contiguous(NOWHERE, self.product.chain.expression.result, shape)
        for part in parts_of(op, own, self.gates):
            nest.load(part.stretched(nest.shape), part.element)
        known = enumerate(self.node.inputs)
        inputs = [own if slot == self.slot else lowering.known_view(outlet) for slot, outlet in known]
        return new_state(op, nest, inputs, lowering.element_at(OutletId(self.node.id)))

    def _call(self, values: Sequence[int], moving: Sequence[View], row: StridedLoop, hidden: int) -> NativeStep:
        """``moving``: operands of the chain, then what the epilogue reads besides, all of one loop over rows."""
        made, chain, nest = self.product, self.product.chain, self.nest
        tensors, operands = moving[len(chain.operands) :], moving[: len(chain.operands)]
        tile = self._tile(row)
        panels = ceil_div(hidden, tile.lanes)
        depth = made.weights.shape[0]
        held = self.lowering.held_apart(made.element)
        weights = self.lowering.made(
            (panels, depth, self.gates, tile.lanes), held, lambda array: _panels(array, tile, held), made.weights
        )
        results = [self.lowering.new(OutletId(self.node.id, slot)) for slot in range(len(values))]
        plan = GatesPlan(
            tile,
            made.left.element,
            held,
            chain.expression,
            tuple(view.strides[-1] == 1 for view in operands),
            tuple(nest.steps),
            tuple((view.element, view.strides[-1] == 1) for view in tensors),
            tuple((value, view.element) for value, view in zip(values, results, strict=True)),
            masks=self.isa.masks_bits <= _ANY_ELEMENT,
        )
        left_row, *strides, result_row = row.strides
        rows: list[Mapping[str, Given]] = [
            {"tensor": view.address, "row": stride} for view, stride in zip(moving, strides, strict=True)
        ]
        given = arguments(
            plan,
            rows=row.size,
            units=hidden,
            depth=depth,
            left=made.left.address,
            left_row=left_row,
            left_step=made.step,
            right=weights.address,
            further=rows[: len(operands)],
            tensors=rows[len(operands) :],
            results=[{"tensor": view.address, "row": result_row} for view in results],
        )
        work = row.size * hidden * (self.gates * depth + len(nest.steps))
        storages = tuple(view.storage for view in results)
        return NativeStep(plan, given, panels, (*chain.nodes, self.node.id), storages, work=work)

    def _tile(self, row: StridedLoop) -> Tile:
        """As many rows as there are registers for sums, beside a vector of each gate and one element of the state."""
        rows = max(1, min(_MOST_ROWS, (self.isa.registers - self.gates - 1) // self.gates))
        lanes = self.isa.lanes(self.product.chain.expression.inputs[0].computed.bits)
        return Tile(1 if is_one(row.size) else rows, self.gates, lanes)


def _panels(weights: Array, tile: Tile, element: ElementType) -> Array:
    """Weights [summed, gate and unit] as [panel, summed, gate, lane], zeros where units are missing."""
    depth, columns = weights.shape
    units = columns // tile.vectors
    panels = -(-units // tile.lanes)
    packed = lasting((panels, depth, tile.vectors, tile.lanes), numpy_type(element))
    gates = weights.reshape(depth, tile.vectors, units)
    for panel in range(panels):
        part = gates[:, :, panel * tile.lanes : (panel + 1) * tile.lanes]
        packed[panel, :, :, : part.shape[2]] = part
    return packed


def written_along(steps: list[Step], source: View, target: View) -> bool:
    """Have a tensor that gates have just become written to a second place too. Returns whether that could be done."""
    place = next((place for place in reversed(range(len(steps))) if not isinstance(steps[place], ViewStep)), None)
    step = None if place is None else steps[place]
    if not isinstance(step, NativeStep) or not isinstance(step.kernel, GatesPlan):
        return False
    plan, first = step.kernel, step.kernel.signature.place("results")
    found = [one for one in range(len(plan.results)) if step.arguments[first + 2 * one] == source.address]
    same = source.element == target.element and product(source.shape) == product(target.shape)
    if not found or not same or not source.is_contiguous or not target.is_contiguous:
        return False
    assert place is not None  # a step is there
    steps[place] = replace(
        step,
        kernel=replace(plan, results=(*plan.results, plan.results[found[0]])),
        arguments=(*step.arguments, target.address, step.arguments[first + 2 * found[0] + 1]),
        results=(*step.results, target.storage),
    )
    return True
