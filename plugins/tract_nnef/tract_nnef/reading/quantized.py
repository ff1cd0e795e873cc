"""Quantised tensors: integers that stand for real numbers, as ``graph.quant`` says of their names.

The operators of the core compute with real numbers, or with integers; so a quantised tensor is made of real ones by a
cast, which rounds, and becomes real again by its parameters.
"""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType, QuantizedType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul, Sub
from tract_core.ops.cast import Cast
from tract_core.ops.expect import element
from tract_core.ops.wiring import wire_binary, wire_cast, wire_one


def wire_real(model: TypedModel, name: str, x: OutletId) -> OutletId:
    """The numbers that a quantised tensor stands for, in f32; of one that is not quantised, the tensor itself."""
    kind = model.outlet_fact(x).datum_type
    if not isinstance(kind, QuantizedType):
        return x
    stored = wire_one(model, model.unique_name(f"{name}.stored"), Cast(kind.storage), x)
    return _meaning(model, name, stored, kind, DatumType.F32)


def wire_quantized(model: TypedModel, name: str, x: OutletId, kind: QuantizedType) -> OutletId:
    """A tensor in a quantised type: real numbers are rounded to it, quantised ones are rounded anew.

    Integers of its storage type are those that are stored. Raises CorruptModel for anything else.
    """
    found = model.outlet_fact(x).datum_type
    if found == kind.storage:
        x = _meaning(model, name, x, kind, DatumType.F64 if kind.storage is DatumType.I32 else DatumType.F32)
    elif isinstance(found, QuantizedType):
        x = wire_real(model, name, x)
    elif not found.is_float():
        raise CorruptModel(f"{name!r} is {found.short}, and graph.quant says {kind}, which is made of real numbers")
    return wire_one(model, model.unique_name(f"{name}.quantized"), Cast(kind), x)


def _meaning(model: TypedModel, name: str, stored: OutletId, kind: QuantizedType, to: DatumType) -> OutletId:
    """``(stored - zero_point) * scale``. Differences of bytes are exact in f32, and those of i32 in f64."""
    name = model.unique_name(f"{name}.real")
    exact = DatumType.F64 if kind.storage is DatumType.I32 else to
    x = wire_cast(model, name, stored, exact)
    if kind.zero_point:
        x = _with_number(model, f"{name}.from_zero", Sub(), x, kind.zero_point)
    return wire_cast(model, name, _with_number(model, name, Mul(), x, kind.scale), to)


def _with_number(model: TypedModel, name: str, op: Sub | Mul, x: OutletId, number: float) -> OutletId:
    held = np.asarray(element(number, model.outlet_fact(x).datum_type))
    return wire_binary(model, model.unique_name(name), op, x, model.add_const(model.unique_name(f"{name}.by"), held))
