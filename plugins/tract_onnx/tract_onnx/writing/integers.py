"""Integers that were bytes before they were converted, and from which a zero point was taken."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Sub
from tract_core.ops.cast import Cast
from tract_onnx.writing.spelling import Spelling

BYTES: Final = (DatumType.I8, DatumType.U8)
"""Their types."""


def bytes_of(node: Spelling, slot: int) -> tuple[str, str, int] | None:
    """The bytes, their zero point, and how many of these there are, of what is converted and moved."""
    model, moved = node.model, node.node.inputs[slot]
    maker, known = model.nodes[moved.node], model.outlet_fact(moved).constant
    plain = _converted(model, moved)
    if plain is None and known is not None:
        return _constant_bytes(node, known)
    if plain is not None:
        return node.name_of(plain), node.constant(0, model.outlet_fact(plain).datum_type), 1
    values = _converted(model, maker.inputs[0]) if isinstance(maker.op, Sub) else None
    if values is None:
        return None
    shape, zeros = model.outlet_fact(maker.inputs[1]).shape, _before(model, maker.inputs[1])
    count, kind = shape.volume, model.outlet_fact(values).datum_type
    if model.outlet_fact(zeros).datum_type is not kind or not isinstance(count, int) or count not in (1, shape[0]):
        return None
    name = node.name_of(zeros)
    is_number = not model.outlet_fact(zeros).rank
    return node.name_of(values), name if is_number else node.reshaped(name, [count] if count != 1 else []), count


def _constant_bytes(node: Spelling, value: np.ndarray) -> tuple[str, str, int] | None:
    """Integers as bytes and a zero point, where they do not lie too far apart."""
    low, high = int(value.min(initial=0)), int(value.max(initial=0))
    if low >= -128 and high <= 127:
        return node.constant(value.astype(np.int8)), node.constant(0, DatumType.I8), 1
    if high - low > 255:
        return None
    return node.constant((value - low).astype(np.uint8)), node.constant(-low, DatumType.U8), 1


def _converted(model: TypedModel, outlet: OutletId) -> OutletId | None:
    """The bytes that a tensor is, or that become it."""
    if model.outlet_fact(outlet).datum_type in BYTES:
        return outlet
    maker = model.nodes[outlet.node]
    before = maker.inputs[0] if isinstance(maker.op, Cast) else None
    return before if before is not None and model.outlet_fact(before).datum_type in BYTES else None


def _before(model: TypedModel, outlet: OutletId) -> OutletId:
    """What was there before it was converted, and got axes of size 1."""
    while isinstance((maker := model.nodes[outlet.node]).op, (Cast, AddAxis)):
        outlet = maker.inputs[0]
    return outlet
