"""What products of quantised tensors have in common: the types, zero points and scales that files give them."""

from __future__ import annotations

from collections.abc import Sequence
from math import isclose
from typing import Final

from tract_core.data import DatumType, DType, QuantizedType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.wiring import wire_cast
from tract_nnef.reading.call import Call

_CLOSE: Final = 1e-6
"""How far apart two scales may be that are the same: producers round them to f32."""


def declared(names: Sequence[str]) -> str:
    """Parameters of a declaration: zero points are 0 and scales 1 where they are left out."""
    return ", ".join(f"{name}: tensor<scalar> = {1.0 if name.endswith('scale') else 0}" for name in names)


def output_type(call: Call, name: str) -> DType:
    """The type of a result: that of ``graph.quant``, or the one that an argument names, else i32.

    Raises CorruptModel where the two disagree.
    """
    kind = call.element_type(name) if call.text(name) else None
    quantized = call.quantized()
    if quantized is not None and kind not in (None, quantized.storage):
        raise CorruptModel(f"{call.name}: {name!r} is {kind}, and graph.quant says {quantized}")
    return quantized or kind or DatumType.I32


def parameter(call: Call, name: str, of: OutletId | None) -> OutletId:
    """A scale, or a zero point, which where it is written as a number has the type of its tensor, else i32."""
    if name.endswith("scale"):
        return call.input(name, DatumType.F32)
    return call.input(name, DatumType.I32 if of is None else call.dtype(of).storage)


def factors(call: Call, first: str, second: str, bias: str = "") -> tuple[OutletId, OutletId]:
    """The two tensors of a product, both quantised or none.

    A product of quantised tensors adds a bias of integers, in steps of both scales. What has another bias, or one
    quantised factor, is computed with the numbers that these stand for. Raises CorruptModel for a quantised tensor and
    integers that stand for nothing.
    """
    a = call.input(first)
    b = call.input(second, call.dtype(a))
    quantized = [kind for kind in (call.dtype(a), call.dtype(b)) if isinstance(kind, QuantizedType)]
    if not quantized or (len(quantized) == 2 and (not bias or _is_in_steps(call, bias, *quantized))):
        return a, b
    plain = next((kind for kind in (call.dtype(a), call.dtype(b)) if not kind.is_quantized()), DatumType.F32)
    if not plain.is_float():
        raise CorruptModel(f"{call.name}: {call.fact(a)} and {call.fact(b)}, wanted both quantised, or real numbers")
    return as_real(call, a, plain), as_real(call, b, plain)


def as_real(call: Call, x: OutletId, kind: DType) -> OutletId:
    """The numbers that a quantised tensor stands for, in that type; any other tensor as it is."""
    return wire_cast(call.model, call.unique("real"), call.real(x), kind) if call.dtype(x).is_quantized() else x


def _is_in_steps(call: Call, bias: str, a: QuantizedType, b: QuantizedType) -> bool:
    """Whether a bias is made of integers that count in steps of both scales; integers that stand for nothing do."""
    value = call.value(bias)
    if not isinstance(value, OutletId):
        return value == 0
    kind = call.dtype(value)
    if not isinstance(kind, QuantizedType):
        return kind.is_integer()
    return (
        kind.storage is DatumType.I32
        and kind.zero_point == 0
        and isclose(kind.scale, a.scale * b.scale, rel_tol=_CLOSE)
    )


def product_type(call: Call, a: OutletId, b: OutletId) -> QuantizedType:
    """The type of a product of quantised tensors: that of ``graph.quant``, else sums of i32 in steps of both scales."""
    first, second = call.dtype(a), call.dtype(b)
    assert isinstance(first, QuantizedType)
    assert isinstance(second, QuantizedType)
    return call.quantized() or QuantizedType(DatumType.I32, 0, first.scale * second.scale)


def parameters_of(call: Call, *kinds: DType) -> list[OutletId]:
    """Zero point and scale of each of these types, as constants."""
    found: list[OutletId] = []
    for kind in kinds:
        assert isinstance(kind, QuantizedType)
        found += [call.constant(kind.zero_point, kind.storage), call.constant(kind.scale, DatumType.F32)]
    return found
