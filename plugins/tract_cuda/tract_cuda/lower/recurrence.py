"""Loops whose state is multiplied with weights, as recurrent networks are: one kernel for all iterations.

That is where the weights have room in the shared memory of a block, and all else that the body does is computed of
single elements.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NoReturn

import numpy as np
from tract_llvm.elements.expressions import ELEMENTS
from tract_llvm.fuse.nest import Nest, Number, Unknown
from tract_llvm.language.types import F32, element_type, numpy_type
from tract_llvm.nests.recurrent import state_of
from tract_llvm.program.views import View

from tract_core.compile.gates import COUNTS
from tract_core.data import Constant
from tract_core.dims import Dim, ceil_div, is_one
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.axis import AddAxis, AxisOp, MoveAxis, RmAxis
from tract_core.ops.einsum import EinSum
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.ops.slice import Slice
from tract_cuda.kernels.recurrence import RecurrencePlan, Source, StateOf, SumOf, TensorOf
from tract_cuda.language.arch import MOST_THREADS
from tract_cuda.lower.axis import with_ones
from tract_cuda.lowering import Site
from tract_cuda.maps import assumed
from tract_cuda.program import Given

_MOST_PARTS: Final = 8
"""Lanes that sum for one unit, at most."""

_MOST_ROWS: Final = 4
"""Rows of the batch that a block has, at most: so often are weights used that were read once."""


@frozen
class LoopSlices:
    """Where a tensor of [rows, columns] lies that an iteration reads or writes: ``step`` elements further each time."""

    view: View
    step: Dim


class RecurrentCell:
    """A body of a loop, as what it computes of one unit of one row.

    ``inputs``: what it sees of the inputs that are no states; ``states``: the slots of the inputs that are.
    """

    def __init__(self, site: Site, body: TypedModel, inputs: Mapping[int, LoopSlices], states: Sequence[int]) -> None:
        """Raises Unknown where it is no such body."""
        self._lowering, self._body, self._inputs = site.lowering, body, inputs
        self._states = {body.inputs[slot]: number for number, slot in enumerate(states)}
        shapes = {tuple(body.outlet_fact(one).shape) for one in self._states}
        elements = {element_type(body.outlet_fact(one).datum_type.storage) for one in self._states}
        (shape,) = shapes if len(shapes) == 1 and elements == {F32} else (tuple[Dim, ...](),)
        if len(shape) != 2 or not isinstance(shape[1], int) or shape[1] < 1:
            raise Unknown
        self.rows, self.hidden = shape[0], shape[1]
        self.nest = Nest(site.lowering.model.registry, shape)
        self._constants: dict[OutletId, LoopSlices] = {}
        self.weights: list[View] = []
        """Those of each sum, [units, depth]."""
        self.multiplied: set[int] = set()
        """The numbers of the states that are multiplied with them."""

    def output(self, outlet: OutletId) -> int:
        """The value of an output of the body, whose axes of size 1 count for nothing."""
        while isinstance(self._body.nodes[outlet.node].op, AddAxis):
            (outlet,) = self._body.nodes[outlet.node].inputs
        fact = self._body.outlet_fact(outlet)
        if tuple(fact.shape) != self.nest.shape or element_type(fact.datum_type.storage) is None:
            raise Unknown
        return self._value(outlet, 0)

    def matrix(self, outlet: OutletId, target: View) -> View:
        """Where an output is wanted, without these axes."""
        while isinstance(op := self._body.nodes[outlet.node].op, AddAxis):
            target = with_ones(RmAxis(op.axis), target)
            (outlet,) = self._body.nodes[outlet.node].inputs
        return target

    def _value(self, outlet: OutletId, gate: int) -> int:
        """The element of a unit, in a gate, by its number in the nest. Raises Unknown."""
        if outlet in self._states:
            return self.nest.load(StateOf(self._states[outlet]), F32)
        found = self._tensor(outlet)
        if found is not None:
            return self.nest.load(LoopSlices(self._gate(found.view, gate), found.step), found.view.element)
        node, shape = self._body.nodes[outlet.node], tuple(self._body.outlet_fact(outlet).shape)
        if len(shape) != 2 or (shape[1] != self.hidden and isinstance(node.op, LstmEpilogue | GruEpilogue)):
            raise Unknown
        if isinstance(node.op, Slice):
            start = node.op.start
            if node.op.axis != 1 or not isinstance(start, int) or start % self.hidden:
                raise Unknown
            return self._value(node.inputs[0], gate + start // self.hidden)
        if isinstance(node.op, EinSum):
            return self.nest.load(SumOf(self._sum(node, node.op, gate)), F32)
        if isinstance(node.op, LstmEpilogue | GruEpilogue):
            pairs = zip(node.inputs, COUNTS[type(node.op)], strict=True)
            gates = [self._value(one, number) for one, count in pairs for number in range(count)]
            return state_of(node.op, self.nest, gates, F32)[outlet.slot]
        return self._element(node, outlet, gate)

    def _element(self, node: TypedNode, outlet: OutletId, gate: int) -> int:
        result = element_type(self._body.outlet_fact(outlet).datum_type.storage)
        if self.nest.registry[ELEMENTS].find(type(node.op)) is None or result is None:
            raise Unknown
        shape = tuple(self._body.outlet_fact(outlet).shape)
        for one in node.inputs:
            other = tuple(self._body.outlet_fact(one).shape)
            if self._tensor(one) is None and other != shape:
                raise Unknown  # it is computed, and stretched then
        return self.nest.apply(node.op, *(self._value(one, gate) for one in node.inputs), result=result)

    def _tensor(self, outlet: OutletId) -> LoopSlices | None:
        """What lies in memory: inputs and constants, looked at in other ways."""
        node = self._body.nodes[outlet.node]
        if outlet in self._body.inputs:
            return self._inputs.get(self._body.inputs.index(outlet))
        if isinstance(node.op, Const) and isinstance(node.op.value, Constant):
            if outlet not in self._constants:
                self._constants[outlet] = LoopSlices(self._lowering.constant(node.op.value.array), 0)
            return self._constants[outlet]
        found = self._tensor(node.inputs[0]) if isinstance(node.op, AxisOp | Slice) else None
        moved = None if found is None else _moved(node.op, found.view)
        return None if found is None or moved is None else LoopSlices(moved, found.step)

    def _gate(self, view: View, gate: int) -> View:
        """The part of a tensor that belongs to a gate, stretched to all rows and units."""
        columns = view.shape[-1] if view.shape else 1
        if is_one(columns):
            return view.stretched((self.rows, self.hidden))
        if not isinstance(columns, int) or columns < (gate + 1) * self.hidden or columns % self.hidden:
            raise Unknown
        return view.part(len(view.shape) - 1, gate * self.hidden, self.hidden).stretched((self.rows, self.hidden))

    def _sum(self, node: TypedNode, op: EinSum, gate: int) -> int:
        """The number of a product of the state, in a gate. Raises Unknown for one of another state, or of none."""
        slot = next((n for n, one in enumerate(node.inputs) if one in self._states), None)
        found = None if slot is None or len(node.inputs) != 2 else self._tensor(node.inputs[1 - slot])
        if slot is None or found is None or found.step != 0 or found.view.element != F32:
            raise Unknown
        state, other, (result,) = op.axes.inputs[slot], op.axes.inputs[1 - slot], op.axes.outputs
        if len(state) != 2 or state[0] != result[0] or sorted(other) != sorted(state[1] + result[1:]):
            raise Unknown
        self.multiplied.add(self._states[node.inputs[slot]])
        lines = found.view.transposed([other.index(result[1]), other.index(state[1])])
        weights = lines.part(0, gate * self.hidden, self.hidden)
        if weights not in self.weights:
            self.weights.append(weights)
        return self.weights.index(weights)


def _unknown() -> NoReturn:
    raise Unknown


def _moved(op: TypedOp, view: View) -> View | None:
    """A tensor, looked at as an operator does that moves axes, or takes a part."""
    if isinstance(op, MoveAxis):
        return view.transposed(op.permutation(len(view.shape)))
    if isinstance(op, AddAxis | RmAxis):
        return with_ones(op, view)
    return view.part(op.axis, op.start, op.end - op.start) if isinstance(op, Slice) else None


@frozen
class Recurrence:
    """A loop as one kernel. ``plan``: which one; ``rows``: of the batch; ``weights``: of each sum, [units, depth].

    ``tensors``, ``outputs``: what is read and written in each iteration, by the names of parameters.
    """

    plan: RecurrencePlan
    rows: Dim
    weights: tuple[View, ...]
    tensors: Mapping[str, LoopSlices]
    outputs: Mapping[str, LoopSlices]

    def launch(self, site: Site, count: Dim, first: Sequence[View], last: Sequence[View]) -> None:
        """Add the launch, for so many iterations. ``first``, ``last``: where states come from, and where they go."""
        given: dict[str, Given] = {"count": count, "size": self.rows}
        for number, view in enumerate(self.weights):
            unit, depth = view.strides
            given |= {f"weights{number}": view, f"weights{number}.unit": unit, f"weights{number}.depth": depth}
        moving = {**self.tensors, **self.outputs}
        for name, views in (("first", first), ("last", last)):
            moving |= {f"{name}{number}": LoopSlices(view, 0) for number, view in enumerate(views)}
        for name, one in moving.items():
            row, unit = one.view.strides
            given |= {name: one.view, f"{name}.row": row, f"{name}.unit": unit, f"{name}.step": one.step}
        writes = [*(one.view for one in self.outputs.values()), *last]
        site.launch(self.plan, [ceil_div(self.rows, self.plan.rows)], given, writes)


def recurrence_of(
    site: Site, cell: RecurrentCell, states: Sequence[OutletId], outputs: Sequence[tuple[OutletId, LoopSlices]]
) -> Recurrence | None:
    """The kernel for a loop; ``None`` where its weights have no room. Raises Unknown where the body is something else.

    ``states``: what the body gives as states; ``outputs``: what else is wanted of it, and where.
    """
    kept, written = [cell.output(one) for one in states], [cell.output(one) for one, _ in outputs]
    nest = cell.nest
    multiplied = cell.multiplied.pop() if len(cell.multiplied) == 1 else _unknown()
    sources, tensors = list[Source](), dict[str, LoopSlices]()
    for one in nest.tensors:
        if isinstance(one, SumOf | StateOf):
            sources.append(one)
            continue
        found = _in_memory(site, one, nest.shape)
        sources.append(TensorOf(len(tensors), found.view.element))
        tensors[f"tensor{len(tensors)}"] = found
    targets = {f"output{n}": replace(one, view=cell.matrix(o, one.view)) for n, (o, one) in enumerate(outputs)}
    plan = RecurrencePlan(
        cell.hidden,
        len(cell.weights),
        _rows_of(cell.rows, site.lowering.target.multiprocessors),
        _parts_of(cell.hidden),
        multiplied,
        tuple(sources),
        tuple(nest.steps),
        tuple(kept),
        tuple((value, one.view.element) for value, one in zip(written, targets.values(), strict=True)),
    )
    if plan.threads > MOST_THREADS or plan.shared_bytes > site.arch.shared_bytes:
        return None
    return Recurrence(plan, cell.rows, tuple(cell.weights), tensors, targets)


def _in_memory(site: Site, tensor: Hashable, shape: Sequence[Dim]) -> LoopSlices:
    """Where a tensor lies that is loaded; a number becomes one."""
    if isinstance(tensor, Number):
        array = np.full((1, 1), tensor.value, numpy_type(tensor.element))
        return LoopSlices(site.lowering.constant(array).stretched(shape), 0)
    assert isinstance(tensor, LoopSlices), "nothing else is loaded"
    return tensor


def _rows_of(batch: Dim, multiprocessors: int) -> int:
    """How many rows a block has: as many as leave a block for each multiprocessor."""
    return min(max(assumed(batch) // multiprocessors, 1), _MOST_ROWS)


def _parts_of(hidden: int) -> int:
    """Lanes for a unit: a power of 2."""
    parts = _MOST_PARTS
    while parts > 1 and hidden * parts > MOST_THREADS:
        parts //= 2
    return parts
