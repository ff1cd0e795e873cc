"""Quantised tensors: integers that stand for real numbers, as ``graph.quant`` says of their names.

The operators of the core compute with real numbers, or with integers; so a quantised tensor is made of real ones by a
cast, which rounds, and becomes real again by its parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tract_core.data import DatumType, QuantizedType
from tract_core.errors import CorruptModel, TractError, Unsupported
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Mul, Sub
from tract_core.ops.cast import AsQuantized, Cast
from tract_core.ops.expect import element
from tract_core.ops.wiring import wire_binary, wire_cast, wire_one
from tract_nnef.reading.names import Spellings, names_in
from tract_nnef.reading.remarks import RemarkKind, Remarks
from tract_nnef.syntax import ast
from tract_nnef.syntax.parser import parse_quantization


def quantized_types(text: str) -> Mapping[str, QuantizedType]:
    """What a ``graph.quant`` says of tensors, by their names.

    Ranges become a scale, and a zero point that is rounded to an integer; that they may leave out the lowest integer
    (``symmetric``) is not heeded beyond that. Raises CorruptModel for a line that makes no sense, Unsupported for
    another number of bits, and for operators whose integers do not stand for numbers at equal distances.
    """
    found: dict[str, QuantizedType] = {}
    for line in parse_quantization(text):
        try:
            if line.tensor in found:
                raise CorruptModel(f"{line.tensor!r} is there twice")
            found[line.tensor] = _quantized_type(line.invocation)
        except TractError as error:
            raise error.at(f"line {line.line}") from None
    return found


def as_assigned(
    quantized: Mapping[str, QuantizedType], body: Sequence[ast.Assignment], remarks: Remarks
) -> dict[str, QuantizedType]:
    """The same by the names that a body assigns, where these are spelled in another way."""
    found = dict(quantized)
    assigned = {name for one in body for name in names_in(one.targets)} if found else set[str]()
    spellings = Spellings(assigned)
    for name in quantized.keys() - assigned:
        alike = spellings.alike(name)
        if alike is not None and alike not in found:
            remarks.note(RemarkKind.SPELLING, name, alike)
            found[alike] = found[name]
    return found


def _quantized_type(one: ast.Invocation) -> QuantizedType:
    meaning = _MEANING.get(one.name)
    if meaning is None:
        raise Unsupported(f"{one.name} says how a tensor is quantised; known are {', '.join(_MEANING)}")
    names, function = meaning
    given: dict[str, Any] = {"signed": True, "symmetric": False}
    for place, argument in enumerate(one.arguments):
        name = argument.name or (names[place] if place < len(names) else "")
        value = argument.value.value if isinstance(argument.value, ast.Literal) else None
        flag = name in ("signed", "symmetric")
        if name not in names or isinstance(value, str | None) or isinstance(value, bool) is not flag:
            raise CorruptModel(f"{one.name} has an argument {name!r} that it does not take, wanted {', '.join(names)}")
        given[name] = value
    missing = [name for name in names if name not in given]
    if missing:
        raise CorruptModel(f"{one.name} wants {missing[0]!r}, which is not given")
    return function(given)


def _by_zero_point(given: Mapping[str, Any]) -> QuantizedType:
    if not isinstance(given["zero_point"], int):
        raise CorruptModel(f"the zero point is {given['zero_point']}, wanted an integer")
    return QuantizedType(_storage(given), given["zero_point"], float(given["scale"]))


def _by_range(given: Mapping[str, Any]) -> QuantizedType:
    """The integers are spread over the range evenly, the lowest one at its start."""
    low, high, storage = float(given["min"]), float(given["max"]), _storage(given)
    steps = (1 << given["bits"]) - 1 - (given["signed"] and given["symmetric"])
    lowest = (1 << given["bits"] - 1) - given["symmetric"] if given["signed"] else 0
    if not low < high < float("inf"):
        raise CorruptModel(f"the range is {low} to {high}, wanted a lower and a higher number")
    scale = (high - low) / steps
    return QuantizedType(storage, -lowest - round(low / scale), scale)


def _unsigned_by_range(given: Mapping[str, Any]) -> QuantizedType:
    return _by_range({**given, "signed": False})


def _storage(given: Mapping[str, Any]) -> DatumType:
    found = _STORAGES.get((given["bits"], given["signed"]))
    if found is None:
        sign = "signed" if given["signed"] else "unsigned"
        raise Unsupported(f"{given['bits']} bits, {sign}: quantised values have 8 bits, or 32 with a sign")
    return found


_STORAGES: Final[Mapping[tuple[object, object], DatumType]] = {
    (8, True): DatumType.I8,
    (8, False): DatumType.U8,
    (32, True): DatumType.I32,
}
"""By bits, and whether they are signed."""


_KIND: Final = ("bits", "signed", "symmetric")

_MEANING: Final[Mapping[str, tuple[tuple[str, ...], Callable[[Mapping[str, Any]], QuantizedType]]]] = {
    "zero_point_linear_quantize": (("zero_point", "scale", *_KIND), _by_zero_point),
    "min_max_linear_quantize": (("min", "max", *_KIND), _by_range),
    "linear_quantize": (("min", "max", "bits"), _unsigned_by_range),
}
"""By operator: its parameters in their order, and the type that they make."""


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
        return wire_one(model, model.unique_name(f"{name}.quantized"), AsQuantized(kind), x)
    if isinstance(found, QuantizedType):
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
