"""How much each product loses by itself: beside every product in floats there is the same one on what is rounded.

Both are in one model, whose outputs are sums of squares alone, so that nothing large leaves it.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Sub
from tract_core.ops.elementwise import Square
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.wiring import wire_one
from tract_quantize.calibration.calibrating import Prepare, Say, prepared, print_nothing, turns_of
from tract_quantize.registry import Product
from tract_quantize.samples import Samples
from tract_quantize.transforms.rounding import Rounding


@frozen
class NodeLoss:
    """Of one product, by its ``name`` and that of its ``operator``.

    ``loss``: the norm of what rounding its data and weights changes, over the norm of its result; or what it alone
    costs the outputs, which `Quantizing.costs` measures. ``weights``: how many numbers it multiplies by.
    """

    name: str
    operator: str
    weights: int
    loss: float


def losses_of(
    rounding: Rounding, samples: Samples, prepare: Prepare | None = None, say: Say = print_nothing
) -> list[NodeLoss]:
    """The losses of all products that ``rounding`` is about, the largest first."""
    twins = _Twins(rounding)
    observed = twins.observed()
    if not twins.products:
        return []
    totals = [[0.0, 0.0] for _ in twins.products]
    for turn, sums in enumerate(turns_of((prepare or prepared)(observed), samples)):
        say(f"measuring what nodes lose, sample {turn + 1} of {len(samples)}")
        for place, total in enumerate(totals):
            total[0] += float(sums[2 * place].sum())
            total[1] += float(sums[2 * place + 1].sum())
    found = [twins.loss(node, *total) for node, total in zip(twins.products, totals, strict=True)]
    return in_order(found)


def in_order(losses: Sequence[NodeLoss]) -> list[NodeLoss]:
    """The largest first, those that are no number before them."""
    return sorted(losses, key=lambda one: (one.loss == one.loss, -one.loss, one.name))


class _Twins:
    """The model in which every product stands twice."""

    def __init__(self, rounding: Rounding) -> None:
        self.model, self.rounding = rounding.model, rounding
        self.result = empty_twin(self.model)
        self.products: list[TypedNode] = []
        self._place: dict[OutletId, OutletId] = {}
        self._outputs: list[OutletId] = []

    def observed(self) -> TypedModel:
        """It, with two outputs for each product: the squares of the differences, and those of the results."""
        model = self.model
        for outlet in model.inputs:
            self._place[outlet] = self.result.add_source(model.outlet_name(outlet), model.outlet_fact(outlet))
        ends = [OutletId(node_id) for node_id in self.rounding.products]
        translate(model, self._place, self._wire, [*model.outputs, *ends])
        self.result.set_outputs(self._outputs)
        self.result.prune()
        return self.result.declutter()

    def _wire(self, node: TypedNode, inputs: list[OutletId]) -> Sequence[OutletId]:
        found = self.result.wire_node(node.name, node.op, inputs)
        product = self.rounding.products.get(node.id)
        if product is not None:
            rounded = self._rounded(node, product, inputs)
            self.products.append(node)
            difference = wire_one(self.result, f"{node.name}.difference", Sub(), rounded, found[0])
            self._outputs += [self._squares(f"{node.name}.lost", difference), self._squares(node.name, found[0])]
        return found

    def _rounded(self, node: TypedNode, product: Product, inputs: list[OutletId]) -> OutletId:
        """The product once more, of what is rounded."""
        other = [*inputs]
        other[product.weights] = self.rounding.weights(self.result, node, product)
        data = node.inputs[product.data]
        other[product.data] = self.rounding.data(self.result, data, inputs[product.data])
        return self.result.wire_node(f"{node.name}.rounded", node.op, other)[0]

    def _squares(self, name: str, outlet: OutletId) -> OutletId:
        """The sum of squares of a tensor, with all axes of size 1."""
        squares = wire_one(self.result, f"{name}.squares", Square(), outlet)
        axes = tuple(range(self.result.outlet_fact(outlet).rank))
        return wire_one(self.result, f"{name}.sum", Reduce(axes, Reducer.SUM), squares)

    def loss(self, node: TypedNode, lost: float, whole: float) -> NodeLoss:
        """What is said of a product."""
        weights = self.model.constant(node.inputs[self.rounding.products[node.id].weights])
        size = 0 if weights is None else weights.size
        return NodeLoss(node.name, node.op.name, size, sqrt(lost / whole) if whole else sqrt(lost))
