"""What a transform rounds, one product at a time: its data, and its weights, each as integers and back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.wiring import wire_one
from tract_quantize.registry import Product
from tract_quantize.steps import Steps, Weights


class Rounding(Protocol):
    """What is rounded of a model."""

    @property
    def model(self) -> TypedModel:
        """The model whose nodes are meant: the one that is quantised, or one that computes the same."""
        ...

    @property
    def products(self) -> Mapping[int, Product]:
        """The products that it is about, by the ids of their nodes."""
        ...

    @property
    def left(self) -> Mapping[str, str]:
        """Products that stay in floats, by name, with the reason."""
        ...

    def weights(self, result: TypedModel, node: TypedNode, product: Product) -> OutletId:
        """The weights of a product in another model, as integers, and what makes numbers of them."""
        ...

    def data(self, result: TypedModel, outlet: OutletId, placed: OutletId) -> OutletId:
        """The data of a product, ``outlet`` of the model, and ``placed`` of the other one: rounded, if it is to be."""
        ...


def wire_bytes(result: TypedModel, name: str, outlet: OutletId, steps: Steps) -> OutletId:
    """A tensor that is rounded to bytes, as numbers."""
    scale = result.add_const(f"{name}.scale", np.array(steps.scale, np.float32))
    zero = result.add_const(f"{name}.zero", np.array(steps.zero, np.uint8))
    stored = wire_one(result, f"{name}.quantized", QuantizeLinear(DatumType.U8), outlet, scale, zero)
    return wire_one(result, f"{name}.dequantized", DequantizeLinear(DatumType.F32), stored, scale, zero)


def wire_weights(result: TypedModel, name: str, found: Weights, op: DequantizeLinear) -> OutletId:
    """Weights as integers, and what makes numbers of them."""
    zeros = np.zeros(found.scale.shape, found.integers.dtype)
    parts = {"integers": found.integers, "scales": found.scale, "zeros": zeros}
    inputs = [result.add_const(f"{name}.{label}", Constant(one)) for label, one in parts.items()]
    return wire_one(result, f"{name}.numbers", op, *inputs)


def wire_sources(model: TypedModel, result: TypedModel) -> dict[OutletId, OutletId]:
    """The inputs of a model in another one."""
    return {outlet: result.add_source(model.outlet_name(outlet), model.outlet_fact(outlet)) for outlet in model.inputs}


def end(model: TypedModel, result: TypedModel, place: Mapping[OutletId, OutletId]) -> TypedModel:
    """The other model, with the outputs of the first, and without what they do not need."""
    result.set_outputs([place[outlet] for outlet in model.outputs])
    for outlet in model.outputs:
        result.outlet_labels[place[outlet]] = model.outlet_name(outlet)
    result.prune()
    return result
