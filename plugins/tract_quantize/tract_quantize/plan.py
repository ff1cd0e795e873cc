"""What becomes of a model, before anything is rewritten: which products, which tensors, and who reads what.

A tensor that is rounded to bytes is a *point*: the data of every product, and the result of a convolution behind its
bias and its bounds, or of a sum of such. A point whose producer computes in integers too is *native*: nobody reads
its floats. Behind it, whatever only moves elements is in the same steps.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.frozen import frozen
from tract_core.model.bodies import OpWithBodies
from tract_core.model.graph import InletId, OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.plugins.keys import Array
from tract_quantize.registry import Bound, Function, Joins, Moves, Product, Shift, role_of
from tract_quantize.steps import Steps

StepsOf = Callable[[OutletId], "Steps | None"]

NO_RANGE: Final = "its data was nothing but zeros"


@frozen
class QuantizationPlan:
    """What is going to be quantised, of one model.

    ``products``: nodes, by their ids. ``points``: tensors that become bytes. ``native``: those of which nobody reads
    the floats. ``left``: products that stay in floats, by name, with the reason.
    """

    products: Mapping[int, Product]
    points: Mapping[OutletId, Steps]
    native: frozenset[OutletId]
    left: Mapping[str, str]

    def reads(self, inlet: InletId, outlet: OutletId) -> bool:
        """Whether an input of a node reads what the bytes of a tensor stand for."""
        product = self.products.get(inlet.node)
        return outlet in self.native or (product is not None and product.data == inlet.slot)


def make_plan(model: TypedModel, steps: StepsOf, excluded: Collection[str] = ()) -> QuantizationPlan:
    """The plan for a model in normal form.

    ``steps``: those of a tensor, asked for `source_of` it; ``None`` where there are none. ``excluded``: names of
    products that stay in floats.
    """
    planning = _Planning(model, steps, excluded)
    for node_id in model.eval_order():
        node = model.nodes[node_id]
        role = role_of(model, node)
        decide = _DECISIONS.get(type(role))
        if decide is not None:
            decide(planning, node, role)
        elif isinstance(node.op, OpWithBodies):
            planning.left[node.name] = "what it runs stays in floats"
    return QuantizationPlan(planning.products, planning.points, frozenset(planning.native), planning.left)


def products_of(model: TypedModel) -> Iterator[tuple[TypedNode, Product]]:
    """The products of a model that could be quantised, in order."""
    for node_id in model.eval_order():
        node = model.nodes[node_id]
        role = role_of(model, node)
        if isinstance(role, Product) and why_not(model, node, role) is None:
            yield node, role


def source_of(model: TypedModel, outlet: OutletId) -> OutletId:
    """The tensor of whose elements, and zeros, one consists: its steps are those of that tensor."""
    node = model.nodes[outlet.node]
    while node.inputs and isinstance(role_of(model, node), Moves):
        outlet = node.inputs[0]
        node = model.nodes[outlet.node]
    return outlet


def why_not(model: TypedModel, node: TypedNode, role: Product) -> str | None:
    """Why a product stays in floats, whatever its data is; ``None`` where it can be quantised."""
    weights, data = model.constant(node.inputs[role.weights]), model.outlet_fact(node.inputs[role.data])
    if weights is None:
        return "its weights are computed"
    if data.datum_type is not DatumType.F32:
        return f"it computes in {data.datum_type.short}, and only f32 is quantised"
    if data.constant is not None or not weights.size:
        return "there is nothing to compute in a run"
    if not np.isfinite(weights).all():
        return "its weights hold infinities, or what is no number"
    if role.bias is not None and model.constant(node.inputs[role.bias]) is None:
        return "its bias is computed"
    return None


def bias_of(model: TypedModel, node: TypedNode, role: Product) -> tuple[TypedNode, int, Array] | None:
    """The bias of a product: the node that adds it, which input it is there, and its elements."""
    reader, slot = (node, role.bias) if role.bias is not None else _added_behind(model, node)
    if reader is None or slot is None:
        return None
    array = model.constant(reader.inputs[slot])
    if array is None or not np.isfinite(array).all():
        return None
    if role.bias is None and any(size > 1 for axis, size in enumerate(array.shape) if axis != role.output):
        return None
    return reader, slot, array


def _added_behind(model: TypedModel, node: TypedNode) -> tuple[TypedNode | None, int | None]:
    reader = model.single_reader(OutletId(node.id))
    role = None if reader is None else role_of(model, reader)
    return (reader, 1 - role.data) if isinstance(role, Shift) else (None, None)


def tail_of(model: TypedModel, node: TypedNode, kinds: tuple[type[Bound | Shift], ...]) -> OutletId:
    """The tensor behind the roles of these kinds that follow a node, as long as nothing else reads what is between."""
    outlet = OutletId(node.id)
    while (reader := model.single_reader(outlet)) is not None:
        role = role_of(model, reader)
        if not isinstance(role, kinds) or reader.inputs[role.data] != outlet:
            break
        outlet = OutletId(reader.id)
    return outlet


class _Planning:
    """A plan while it is made."""

    def __init__(self, model: TypedModel, steps: StepsOf, excluded: Collection[str]) -> None:
        self.model, self.steps, self.excluded = model, steps, excluded
        self.products: dict[int, Product] = {}
        self.points: dict[OutletId, Steps] = {}
        self.native: set[OutletId] = set()
        self.left: dict[str, str] = {}
        self._made: set[OutletId] = set()
        """What is made of single elements of native points, and is none itself yet."""

    def product(self, node: TypedNode, role: Product) -> None:
        """Let the product take bytes, and a convolution give them."""
        why = "it is excluded" if node.name in self.excluded else why_not(self.model, node, role)
        if why is None and not self._point(node.inputs[role.data]):
            why = NO_RANGE
        if why is not None:
            self.left[node.name] = why
            return
        self.products[node.id] = role
        if role.as_conv:
            self._give_bytes(tail_of(self.model, node, (Shift, Bound)))

    def moves(self, node: TypedNode, role: Moves | Function) -> None:
        """What is made of bytes, each of one, can be bytes."""
        if self._is_bytes(node.inputs[0]):
            self._made.add(OutletId(node.id))

    def joins(self, node: TypedNode, role: Joins) -> None:
        """Sums of bytes are bytes, where all that is joined is such."""
        if all(map(self._is_bytes, node.inputs)) and all(list(map(self._point, node.inputs))):
            self._give_bytes(tail_of(self.model, node, (Bound,)))

    def _is_bytes(self, outlet: OutletId) -> bool:
        return outlet in self.native or outlet in self._made

    def _point(self, outlet: OutletId) -> bool:
        """Let a tensor become bytes. Returns whether it can."""
        if outlet not in self.points:
            source = source_of(self.model, outlet)
            steps = self.steps(source)
            if steps is None:
                return False
            for one in (outlet, source) if source in self._made else (outlet,):
                self.points[one] = steps
                if one in self._made:
                    self.native.add(one)
        return True

    def _give_bytes(self, outlet: OutletId) -> None:
        """Let the result of something be bytes, and all read those."""
        if outlet not in self.model.outputs and self._point(outlet):
            self.native.add(outlet)


_DECISIONS: Final[Mapping[type, Callable[[_Planning, TypedNode, Any], None]]] = {
    Product: _Planning.product,
    Moves: _Planning.moves,
    Function: _Planning.moves,
    Joins: _Planning.joins,
}


def watched(model: TypedModel) -> Sequence[OutletId]:
    """The tensors whose ranges a plan may ask for, whatever is excluded."""
    asked: dict[OutletId, None] = {}

    def noted(outlet: OutletId) -> Steps:
        asked.setdefault(outlet)
        return Steps(1.0, 0)

    make_plan(model, noted)
    for node, _ in products_of(model):
        asked.setdefault(tail_of(model, node, (Shift, Bound)))
    return list(asked)
