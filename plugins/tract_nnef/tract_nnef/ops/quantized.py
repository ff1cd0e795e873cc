"""What products of quantised tensors have in common: the types, zero points and scales that files give them."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType, DType, QuantizedType
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_nnef.reading.call import Call


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
        return call.tensor(name, DatumType.F32)
    return call.tensor(name, DatumType.I32 if of is None else call.dtype(of).storage)


def both_quantized(call: Call, a: OutletId, b: OutletId) -> bool:
    """Whether two tensors are quantised. Raises CorruptModel where one is, and the other is not."""
    found = {call.dtype(one).is_quantized() for one in (a, b)}
    if len(found) > 1:
        raise CorruptModel(f"{call.name}: {call.fact(a)} and {call.fact(b)}, wanted both quantised, or none")
    return found == {True}


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
