"""Keep the weights of matrix products in blocks of four bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from tract_core.data import DatumType
from tract_core.data.blocks import Q4_0, encode_q4_0
from tract_core.errors import TransformError
from tract_core.model.axes import AxesMapping
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import Rewriter
from tract_core.model.typed import TypedModel
from tract_core.model.typed_graph import TypedNode
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import Array


@dataclass(frozen=True, slots=True)
class BlockQuant:
    """Keep the matrices of matrix products in blocks of four bits (Q4_0), which rounds them."""

    name: ClassVar[str] = "block_quant"
    elements: int = field(default=1, metadata={"doc": "matrices of fewer elements stay as they are"})

    def apply(self, model: TypedModel) -> TypedModel:
        """The model with packed weights, wherever the axis that is summed over is made of whole blocks.

        Bodies stay as they are. Raises TransformError for a number of elements below 1.
        """
        if self.elements < 1:
            raise TransformError(f"block_quant: 'elements' is {self.elements}, wanted 1 or more")
        result = model.clone()
        Rewriter().with_rule_for(self.name, EinSum, self._pack).rewrite(result)
        return result

    def _pack(self, model: TypedModel, node: TypedNode, op: Any) -> ModelPatch | None:
        """EinSum(x, weights) -> EinSum(x, UnpackBlocks(packed weights)), the axis that is summed over last"""
        for slot, outlet in enumerate(node.inputs if op.q_output is None else ()):
            weights = model.constant(outlet)
            if weights is None or weights.size < self.elements or not _can_be_packed(weights):
                continue
            summed = _summed(op.axes, slot)
            if len(summed) == 1 and weights.shape[summed[0]] % Q4_0.length == 0:
                return _packed(model, node, slot, weights, summed[0])
        return None


def _summed(axes: AxesMapping, slot: int) -> Sequence[int]:
    return [axis for axis, name in enumerate(axes.inputs[slot]) if name not in axes.outputs[0]]


def _packed(model: TypedModel, node: TypedNode, slot: int, weights: Array, last: int) -> ModelPatch:
    op: Any = node.op
    term = op.axes.inputs[slot]
    matrix = np.ascontiguousarray(np.moveaxis(weights, last, -1), np.float32)
    blocks = encode_q4_0(matrix).content.reshape(len(matrix), -1, Q4_0.size)
    patch = ModelPatch(model)
    inputs = [patch.tap(outlet) for outlet in node.inputs]
    name = model.outlet_name(node.inputs[slot])
    packed = patch.model.add_const(f"{name}.blocks", blocks)
    unpack = UnpackBlocks(Q4_0.name, DatumType.from_numpy(weights.dtype))
    inputs[slot] = wire_one(patch.model, f"{name}.bq", unpack, packed)
    axes = op.axes.with_input(slot, term[:last] + term[last + 1 :] + term[last])
    patch.shunt(node.outlets()[0], wire_one(patch.model, node.name, replace(op, axes=axes), *inputs))
    return patch


def _can_be_packed(weights: Array) -> bool:
    """Whether these are matrices of floats of which f16 holds the scales."""
    if weights.ndim != 2 or weights.dtype not in (np.float32, np.float16) or not weights.size:
        return False
    return bool(np.abs(weights).max() <= 8 * float(np.finfo(np.float16).max))  # which is false for not-a-number
