"""What is left of quantised arithmetic when products have taken their integers: operators on elements.

Scale and zero point get the axes of what they belong to, so that kernels take these operators for any others on
elements: they are computed along with what is before and behind them.
"""

from __future__ import annotations

from typing import Final

from tract_core.data import Constant, DatumType
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.patch import ModelPatch
from tract_core.model.rewriter import rewrites
from tract_core.model.typed import TypedModel, TypedNode, evaluate_values
from tract_core.ops.binary import Add, Binary, Mul, Sub
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.wiring import wire_one, wire_unsqueeze
from tract_core.rules.pattern import produced_by
from tract_llvm.llvm_only.on_steps import Dequantize, OfDequantized, Quantize
from tract_llvm.native_form.native_form import reads_blocks

_INTEGERS: Final = (DatumType.U8, DatumType.I8, DatumType.U16, DatumType.I16, DatumType.I32)
"""The types that quantised tensors are stored in here."""


@rewrites(DequantizeLinear)
def unpacked(model: TypedModel, node: TypedNode, op: DequantizeLinear) -> ModelPatch | None:
    """DequantizeLinear of constants, from which no product took the integers, or may read them in blocks -> `Const`"""
    if op.block and all(reads_blocks(model, inlet) for inlet in model.outlet(OutletId(node.id)).successors):
        return None
    values = [model.outlet_fact(outlet).value for outlet in node.inputs]
    arrays = [one for one in values if isinstance(one, Constant)]
    found = evaluate_values(model.registry, op, arrays) if len(arrays) == len(values) else None
    return ModelPatch.replace_op(model, node, Const(found), inputs=()) if isinstance(found, Constant) else None


@rewrites(QuantizeLinear, DequantizeLinear)
def on_elements(model: TypedModel, node: TypedNode, op: QuantizeLinear | DequantizeLinear) -> ModelPatch | None:
    """QuantizeLinear, DequantizeLinear, not in blocks -> Quantize, Dequantize, with parameters of the data's rank"""
    x, scale, zero = model.input_facts(node)
    integers = op.to if isinstance(op, QuantizeLinear) else x.datum_type
    if integers not in _INTEGERS or (op.block and scale.rank) or zero.datum_type not in _INTEGERS:
        return None
    patch = ModelPatch(model)
    own = op.axis if scale.rank else x.rank
    parameters = [_with_axes(patch, f"{node.name}.{slot}", node.inputs[slot], own, x.rank) for slot in (1, 2)]
    row = Quantize if isinstance(op, QuantizeLinear) else Dequantize
    result = wire_one(patch.model, node.name, row(op.to), patch.tap(node.inputs[0]), *parameters)
    patch.shunt(OutletId(node.id), result)
    return patch


def _with_axes(patch: ModelPatch, name: str, outlet: OutletId, own: int, rank: int) -> OutletId:
    """A number, or numbers along one axis, ``own``, in so many axes."""
    value = patch.target.outlet_fact(outlet).value
    if isinstance(value, Constant):
        return patch.model.add_const(name, value.array.reshape([-1 if axis == own else 1 for axis in range(rank)]))
    return wire_unsqueeze(patch.model, name, patch.tap(outlet), [axis for axis in range(rank) if axis != own])


@rewrites(Add, Sub, Mul)
def of_dequantized(model: TypedModel, node: TypedNode, op: Binary) -> ModelPatch | None:
    """Add(Dequantize(x), y) -> one operator that reads the integers, so that nobody need write the numbers"""
    sources = [produced_by(model, outlet, Dequantize) for outlet in node.inputs]
    (fact,) = (outlet.fact for outlet in node.outputs)
    if fact.datum_type is not DatumType.F32 or not any(sources) or type(op) not in (Add, Sub, Mul):
        return None
    patch = ModelPatch(model)
    inputs = [
        patch.tap(one)
        for outlet, source in zip(node.inputs, sources, strict=True)
        for one in (source.inputs if source else [outlet])
    ]
    which = (sources[0] is not None, sources[1] is not None)
    patch.shunt(OutletId(node.id), wire_one(patch.model, node.name, OfDequantized(op, which, fact.datum_type), *inputs))
    return patch


ON_ELEMENTS: Final = (on_elements, of_dequantized)
"""Rules for what other rules have left. What they leave of constants in turn is for `unpacked`, before them."""
