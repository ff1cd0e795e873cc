"""Weights as small integers; the data stays in floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

from tract_core.data import DatumType
from tract_core.errors import TransformError
from tract_core.model.graph import OutletId
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.quantize import DequantizeLinear
from tract_core.plugins.keys import Array
from tract_quantize.naming import check_not_quantized, chosen
from tract_quantize.plan import products_of
from tract_quantize.registry import Product
from tract_quantize.steps import Weights, by_channel, in_blocks
from tract_quantize.transforms.rounding import end, wire_sources, wire_weights

BITS: Final = (4, 8)


@dataclass(frozen=True, slots=True)
class QuantizeWeights:
    """Keep the weights of products as integers of 8 or 4 bits, in blocks along the axis that is summed over.

    Those of convolutions have one scale for each channel instead, and 8 bits.
    """

    name: ClassVar[str] = "quantize_weights"
    bits: int = field(default=8, metadata={"doc": "of each weight: 8 or 4"})
    block: int = field(default=32, metadata={"doc": "weights that share a scale: a power of two, from 16 on"})
    elements: int = field(default=1024, metadata={"doc": "weights of fewer elements stay in floats"})
    exclude: Sequence[str] = field(default=(), metadata={"doc": "names of nodes that stay in floats, with * and ?"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with smaller weights.

        Raises TransformError for parameters that make no sense, for a model that is quantised already, and for names
        that no product has.
        """
        return _Rewriting(model, self.rounding(model)).rewritten()

    def rounding(self, model: TypedModel) -> WeightRounding:
        """What `apply` is going to round. Raises as that does."""
        self._check()
        check_not_quantized(model, self.name)
        found = list(products_of(model))
        excluded = chosen(self.exclude, [node.name for node, _ in found])
        left = dict.fromkeys(sorted(excluded), "it is excluded")
        small = [node.name for node, role in found if not self._is_worth_it(model, node, role)]
        left.update(dict.fromkeys(small, f"it has fewer than {self.elements} weights"))
        kept = {node.id: role for node, role in found if node.name not in left}
        return WeightRounding(model, kept, left, self.bits, self.block)

    def _is_worth_it(self, model: TypedModel, node: TypedNode, role: Product) -> bool:
        weights = model.constant(node.inputs[role.weights])
        return weights is not None and weights.size >= self.elements

    def _check(self) -> None:
        if self.bits not in BITS:
            raise TransformError(f"{self.name}: 'bits' is {self.bits}, wanted 4 or 8")
        if self.block < 16 or self.block & (self.block - 1):
            raise TransformError(f"{self.name}: 'block' is {self.block}, wanted a power of two, from 16 on")


class WeightRounding:
    """What becomes integers."""

    def __init__(
        self, model: TypedModel, products: Mapping[int, Product], left: Mapping[str, str], bits: int, block: int
    ) -> None:
        self._model, self._products, self._left, self._bits, self._block = model, products, left, bits, block

    @property
    def model(self) -> TypedModel:
        """The model that is quantised."""
        return self._model

    @property
    def products(self) -> Mapping[int, Product]:
        """The nodes whose weights become integers, by their ids."""
        return self._products

    @property
    def left(self) -> Mapping[str, str]:
        """What stays in floats, by name, with the reason."""
        return self._left

    def weights(self, result: TypedModel, node: TypedNode, product: Product) -> OutletId:
        """Weights as integers, and what makes numbers of them."""
        outlet = node.inputs[product.weights]
        array = self._model.constant(outlet)
        assert array is not None  # who chose the products looked
        found, op = self._rounded(array, product)
        return wire_weights(result, self._model.outlet_name(outlet), found, op)

    def data(self, result: TypedModel, outlet: OutletId, placed: OutletId) -> OutletId:
        """As it is."""
        return placed

    def _rounded(self, array: Array, product: Product) -> tuple[Weights, DequantizeLinear]:
        if product.summed is None or array.ndim != 2 or product.as_conv:
            return by_channel(array, product.channel, 8), DequantizeLinear(DatumType.F32, product.channel)
        found = in_blocks(array, product.summed, self._bits, self._block)
        return found, DequantizeLinear(DatumType.F32, product.summed, self._block)


class _Rewriting:
    """The model while it is wired anew."""

    def __init__(self, model: TypedModel, rounding: WeightRounding) -> None:
        self.model, self.rounding = model, rounding
        self.result = empty_twin(model)
        self._made: dict[tuple[OutletId, Product], OutletId] = {}
        """Weights that several products share are rounded once."""

    def rewritten(self) -> TypedModel:
        """The other model."""
        place = wire_sources(self.model, self.result)
        translate(self.model, place, self._wire)
        return end(self.model, self.result, place)

    def _wire(self, node: TypedNode, inputs: list[OutletId]) -> Sequence[OutletId]:
        product = self.rounding.products.get(node.id)
        if product is not None:
            key = node.inputs[product.weights], product
            if key not in self._made:
                self._made[key] = self.rounding.weights(self.result, node, product)
            inputs[product.weights] = self._made[key]
        return self.result.wire_node(node.name, node.op, inputs)
