"""What expressions of a document stand for, and what a tensor, a size or a number may be made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from tract_core.data import DatumType, DType, SymbolicArray, value_of
from tract_core.dims import Dim, TDim, parse_dim, symbols_of
from tract_core.errors import CorruptModel, DimError, FactError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel

Value: TypeAlias = "OutletId | Dim | float | bool | str | list[Value] | tuple[Value, ...]"
"""A tensor, a number (a size, where it may have symbols in it), a truth value, a text, or several of these."""


def shown(value: Value) -> str:
    """What messages call a value."""
    match value:
        case OutletId():
            return "a tensor"
        case bool():
            return f"the truth value {str(value).lower()}"
        case str():
            return f"the text {value[:40]!r}"
        case list():
            return f"an array of {len(value)}"
        case tuple():
            return f"a tuple of {len(value)}"
        case _:
            return f"the number {value}"[:60]


def literal(value: Value, kind: DType | None = None) -> np.ndarray[Any, Any] | SymbolicArray | None:
    """What a constant holds that is written as a value; ``None`` where tensors are in it.

    Numbers of which one has symbols are sizes. ``kind``: the element type, where it is known; else floats are f32, and
    integers i64. Raises CorruptModel for arrays that are not rectangular, and for elements of different kinds.
    """
    found = _types(value)
    if TDim in found:
        return _symbolic(value)
    if OutletId in found:
        return None
    natural = _kind_of(value, found)
    kind = kind or natural
    if kind.is_integer() and natural.is_float() and not _all_whole(value):
        raise CorruptModel(f"{shown(value)} is no tensor of {kind}: it has a fraction")
    try:
        return np.array(value, object if kind is DatumType.STRING else kind.numpy)
    except (ValueError, TypeError, OverflowError) as error:
        raise CorruptModel(f"{shown(value)} is no tensor of {kind}: {error}") from None


def _types(value: Value) -> set[type]:
    """Those of the elements."""
    if isinstance(value, OutletId) or not isinstance(value, (list, tuple)):
        return {type(value)}
    return set[type]().union(*map(_types, value))


def _symbolic(value: Value) -> SymbolicArray:
    try:
        held = value_of(np.array(value, object))
    except (ValueError, DimError) as error:
        raise CorruptModel(f"{shown(value)} is no tensor of sizes: {error}") from None
    assert isinstance(held, SymbolicArray)  # there is a symbol in it
    return held


def _all_whole(value: Value) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_all_whole, value))
    return not isinstance(value, float) or value.is_integer()


def _kind_of(value: Value, found: set[type]) -> DatumType:
    """The element type of what is written with elements of these types; numbers are floats if one of them is."""
    if len(found) > 1 and found != {int, float}:
        raise CorruptModel(f"{shown(value)} has elements of different kinds")
    return DatumType.F32 if float in found or not found else _NATURAL.get(next(iter(found)), DatumType.I64)


_NATURAL: Final = {bool: DatumType.BOOL, str: DatumType.STRING}


def size(value: Value, model: TypedModel | None = None) -> Dim:
    """A size: a number, a symbol, or what is computed of these. Raises CorruptModel for anything else.

    ``model``: where tensors are, of which one that holds a known integer is a size too.
    """
    if isinstance(value, (int, TDim)) and not isinstance(value, bool):
        return value
    if isinstance(value, OutletId) and model is not None:
        dims = model.outlet_fact(value).dims
        if dims is not None and len(dims) == 1:
            return dims[0]
    raise CorruptModel(f"a size is wanted, found {shown(value)}")


def sizes(value: Value, model: TypedModel) -> tuple[Dim, ...]:
    """An array of sizes; a tensor of known integers is one too, and a single number, as some exporters write it.

    Raises CorruptModel for anything else.
    """
    if isinstance(value, OutletId):
        dims = model.outlet_fact(value).dims
        if dims is None:
            raise CorruptModel(f"sizes are wanted, found the computed tensor {model.outlet_name(value)!r}")
        return dims
    if isinstance(value, (list, tuple)):
        return tuple([size(one, model) for one in value])
    if isinstance(value, (bool, float, str)):
        raise CorruptModel(f"an array of sizes is wanted, found {shown(value)}")
    return (value,)


def size_from_text(text: str, model: TypedModel) -> Dim:
    """The size of a text as `tract_core.dims` writes it. Raises CorruptModel for a symbol that is not declared."""
    try:
        found = parse_dim(text)
    except DimError as error:
        raise CorruptModel(error.problem, where=error.where, hint=error.hint) from None
    unknown = sorted(name for name in symbols_of(found) if name not in model.symbols)
    if unknown:
        raise CorruptModel(
            f"the symbol {unknown[0]!r} is not declared", hint="it wants a line 'extension tract_symbol'"
        )
    return found


def integer(value: Value, model: TypedModel) -> int:
    """A number without symbols. Raises CorruptModel for anything else."""
    return _without_symbols(size(value, model))


def integers(value: Value, model: TypedModel) -> tuple[int, ...]:
    """An array of these, as `sizes` takes them."""
    return tuple(map(_without_symbols, sizes(value, model)))


def pairs(value: Value, model: TypedModel) -> tuple[tuple[Dim, Dim], ...]:
    """An array of pairs of sizes. Raises CorruptModel for anything else."""
    parts = [sizes(part, model) for part in items(value)]
    if any(len(part) != 2 for part in parts):
        raise CorruptModel("an array of pairs is wanted")
    return tuple((before, after) for before, after in parts)


def _without_symbols(found: Dim) -> int:
    if isinstance(found, int):
        return found
    raise CorruptModel(f"a number is wanted, found {found}, which has symbols in it")


def number(value: Value, model: TypedModel) -> float:
    """A number, also one of a tensor that holds a single known one. Raises CorruptModel for anything else."""
    if isinstance(value, OutletId):
        found = model.constant(value)
        if found is not None and found.size == 1:
            return float(found.reshape(()))
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        return float(value)
    raise CorruptModel(f"a number is wanted, found {shown(value)}")


def numbers(value: Value, model: TypedModel) -> tuple[float, ...]:
    """An array of such numbers."""
    return tuple(number(one, model) for one in items(value))


def element_type(value: Value) -> DatumType:
    """An element type by its name. Sizes, ``tdim``, are i64 here. Raises CorruptModel for anything else."""
    if not isinstance(value, str):
        raise CorruptModel(f"the name of an element type is wanted, found {shown(value)}")
    try:
        found = DatumType.parse(value)
    except FactError as error:
        raise CorruptModel(error.problem) from None
    return DatumType.I64 if found is DatumType.TDIM else found


def items(value: Value) -> Sequence[Value]:
    """The parts of an array or a tuple. Raises CorruptModel for anything else."""
    if not isinstance(value, (list, tuple)):
        raise CorruptModel(f"an array is wanted, found {shown(value)}")
    return value
