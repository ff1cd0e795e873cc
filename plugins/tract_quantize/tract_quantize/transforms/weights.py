"""Weights as small integers; the data stays in floats."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.errors import TransformError
from tract_core.model.graph import OutletId
from tract_core.model.translate import empty_twin, translate
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.quantize import DequantizeLinear
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array
from tract_quantize.naming import check_not_quantized, chosen
from tract_quantize.plan import products_of
from tract_quantize.registry import Product
from tract_quantize.steps import Weights, by_channel, in_blocks

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

        Raises TransformError for parameters that make no sense and for a model that is quantised already, InputError for
        names that no product has.
        """
        self._check()
        check_not_quantized(model, self.name)
        return _Rewriting(model, self, self.products(model)).rewritten()

    def products(self, model: TypedModel) -> dict[int, Product]:
        """The nodes whose weights become integers, by their ids. Raises InputError for names that no product has."""
        found = list(products_of(model))
        excluded = chosen(self.exclude, [node.name for node, _ in found])
        return {node.id: role for node, role in found if node.name not in excluded and self._is_worth_it(model, node, role)}

    def _is_worth_it(self, model: TypedModel, node: TypedNode, role: Product) -> bool:
        weights = model.constant(node.inputs[role.weights])
        return weights is not None and weights.size >= self.elements

    def _check(self) -> None:
        if self.bits not in BITS:
            raise TransformError(f"{self.name}: 'bits' is {self.bits}, wanted 4 or 8")
        if self.block < 16 or self.block & (self.block - 1):
            raise TransformError(f"{self.name}: 'block' is {self.block}, wanted a power of two, from 16 on")


class _Rewriting:
    """The model while it is wired anew."""

    def __init__(self, model: TypedModel, how: QuantizeWeights, products: dict[int, Product]) -> None:
        self.model, self.how, self.products = model, how, products
        self.result = empty_twin(model)
        self._made: dict[tuple[OutletId, int | None, int], OutletId] = {}

    def rewritten(self) -> TypedModel:
        """The other model."""
        model, result = self.model, self.result
        place = {
            outlet: result.add_source(model.outlet_name(outlet), model.outlet_fact(outlet)) for outlet in model.inputs
        }
        translate(model, place, self._wire)
        result.set_outputs([place[outlet] for outlet in model.outputs])
        for outlet in model.outputs:
            result.outlet_labels[place[outlet]] = model.outlet_name(outlet)
        result.prune()
        return result

    def _wire(self, node: TypedNode, inputs: list[OutletId]) -> Sequence[OutletId]:
        product = self.products.get(node.id)
        if product is not None:
            outlet = node.inputs[product.weights]
            key = outlet, product.summed, product.channel
            if key not in self._made:
                self._made[key] = self._numbers(outlet, product)
            inputs[product.weights] = self._made[key]
        return self.result.wire_node(node.name, node.op, inputs)

    def _numbers(self, outlet: OutletId, product: Product) -> OutletId:
        """Weights as integers, and what makes numbers of them."""
        array, name = self.model.constant(outlet), self.model.outlet_name(outlet)
        assert array is not None  # who chose the products looked
        found, op = self._rounded(array, product)
        zeros = np.zeros(found.scale.shape, found.integers.dtype)
        parts = {"integers": found.integers, "scales": found.scale, "zeros": zeros}
        inputs = [self.result.add_const(f"{name}.{label}", Constant(one)) for label, one in parts.items()]
        return wire_one(self.result, f"{name}.numbers", op, *inputs)

    def _rounded(self, array: Array, product: Product) -> tuple[Weights, DequantizeLinear]:
        if product.summed is None or array.ndim != 2:
            return by_channel(array, product.channel, 8), DequantizeLinear(DatumType.F32, product.channel)
        found = in_blocks(array, product.summed, self.how.bits, self.how.block)
        return found, DequantizeLinear(DatumType.F32, product.summed, self.how.block)
