"""Pack the matrices of a model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import TransformError
from tract_core.model.axes import AxesMapping
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import Rewriter
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.einsum import EinSum
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array
from tract_q4.q4 import NUMBERS, UnpackQ4, pack


@dataclass(frozen=True, slots=True)
class PackQ4:
    """Keep the weights of matrix products in blocks of four bits (Q4_0), which rounds them."""

    name: ClassVar[str] = "pack_q4"
    elements: int = field(default=1024, metadata={"doc": "weights of fewer elements stay as they are"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with packed weights, wherever the axis that is summed over is made of whole blocks.

        Bodies stay as they are. Raises TransformError for a number of elements below 1.
        """
        if self.elements < 1:
            raise TransformError(f"pack_q4: 'elements' is {self.elements}, wanted 1 or more")
        result = model.clone()
        Rewriter().with_rule_for(self.name, EinSum, self._pack).rewrite(result)
        return result

    def _pack(self, model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
        """EinSum(x, weights) -> EinSum(x, UnpackQ4(packed weights)), the axis that is summed over last"""
        for slot, outlet in enumerate(node.inputs if op.q_output is None else ()):
            weights = model.constant(outlet)
            if weights is None or weights.size < self.elements or not _can_be_packed(weights):
                continue
            term = op.axes.inputs[slot]
            summed = [axis for axis, name in enumerate(term) if name not in op.axes.outputs[0]]
            last = next((axis for axis in summed if weights.shape[axis] % NUMBERS == 0), None)
            if last is not None:
                return _packed(model, node, op, slot, last)
        return None


def _packed(model: TypedModel, node: TypedNode, op: EinSum, slot: int, last: int) -> ModelPatch:
    weights, term = model.constant(node.inputs[slot]), op.axes.inputs[slot]
    assert weights is not None  # the rule has looked at it
    terms = [*op.axes.inputs]
    terms[slot] = term[:last] + term[last + 1 :] + term[last]
    patch = ModelPatch(model)
    inputs = [patch.tap(outlet) for outlet in node.inputs]
    name = model.outlet_name(node.inputs[slot])
    packed = patch.model.add_const(f"{name}.packed", pack(np.moveaxis(weights, last, -1)))
    inputs[slot] = wire_one(patch.model, f"{name}.unpacked", UnpackQ4(), packed)
    mapping = AxesMapping(tuple(terms), op.axes.outputs)
    patch.shunt(node.outlets()[0], wire_one(patch.model, node.name, replace(op, axes=mapping), *inputs))
    return patch


def _can_be_packed(weights: Array) -> bool:
    """Whether these are floats of which f16 holds the scales."""
    if weights.dtype != DatumType.F32.numpy:
        return False
    return bool(np.abs(weights).max() <= 8 * float(np.finfo(np.float16).max))  # which is false for not-a-number
