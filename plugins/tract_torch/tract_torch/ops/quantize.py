"""Real numbers as small integers and back, as programs of pt2e quantisation have them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Max, Min
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "quantized_decomposed.quantize_per_tensor", "quantized_decomposed.quantize_per_channel")
def quantize(call: Call, wire: NodeWiring) -> OutletId:
    """round(x / scale) + zero_point, between the bounds; one scale for all, or one per position of an axis"""
    kind = call.element_type("dtype")
    x = call.input("input")
    axis, scale, zero = _parameters(call, wire, x, kind)
    found = wire.op(QuantizeLinear(kind, axis), x, scale, zero)
    ends = np.iinfo(kind.numpy)
    for name, end, op in (("quant_min", ends.min, Max()), ("quant_max", ends.max, Min())):
        bound = call.integer(name)
        if bound != end:
            found = wire.binary(op, found, wire.scalar(bound, found))
    return found


@aten(ROWS, "quantized_decomposed.dequantize_per_tensor", "quantized_decomposed.dequantize_per_channel")
def dequantize(call: Call, wire: NodeWiring) -> OutletId:
    """(x - zero_point) * scale; one scale for all, or one per position of an axis"""
    x = call.input("input")
    kind = wire.dtype(x).storage
    axis, scale, zero = _parameters(call, wire, x, kind)
    return wire.op(DequantizeLinear(call.kind, axis), x, scale, zero)


def _parameters(call: Call, wire: NodeWiring, x: OutletId, kind: DatumType) -> tuple[int, OutletId, OutletId]:
    """The axis along which scale and zero point vary, and both, the zero point in ``kind``."""
    if "per_channel" in call.name:
        scale = wire.cast(call.input("scales"), DatumType.F32)
        zero = call.optional_input("zero_points")
        if zero is None:
            zero = wire.broadcast(wire.const(np.zeros((), kind.numpy)), wire.shape(scale))
        return call.axis("axis", wire.rank(x)), scale, wire.cast(zero, kind)
    scale, zero = call.operand("scale", wire, DatumType.F32), call.operand("zero_point", wire, kind)
    return 0, wire.number(scale), wire.number(zero)


@aten(ROWS, "quantized_decomposed.choose_qparams", "quantized_decomposed.choose_qparams_symmetric")
def choose_parameters(call: Call, wire: NodeWiring) -> Sequence[Wired]:
    """A scale and a zero point that fit the range of a tensor, widened to hold 0"""
    if "symmetric" in call.name:
        raise Unsupported(f"{call.name} is not supported", hint="quantise dynamically with an affine scheme")
    low, high = call.integer("quant_min"), call.integer("quant_max")
    x = call.tensor("input").cast(DatumType.F32)
    axes = range(x.rank)
    smallest, largest = x.min(axes).reshape((1,)).minimum(0), x.max(axes).reshape((1,)).maximum(0)
    scale = ((largest - smallest) / (high - low)).maximum(call.number("eps"))
    point = (low - (smallest / scale).round_half_to_even()).maximum(low).minimum(high)
    return [scale.cast(DatumType.F64), point.cast(DatumType.I64)]
