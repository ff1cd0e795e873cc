"""What expressions of a document stand for, and what a tensor, a size or a number may be made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias, TypeGuard, cast

import numpy as np

from tract_core.data import DatumType, DType, SymbolicArray, value_of
from tract_core.dims import Dim, TDim, parse_dim, symbols_of
from tract_core.errors import CorruptModel, DimError, FactError
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_nnef.reading.known import known_value
from tract_nnef.syntax import ast

MOST_WRITTEN: Final = 1 << 16
"""Elements of a constant that can be given where numbers are wanted."""

Value: TypeAlias = "OutletId | Dim | float | bool | str | list[Value] | tuple[Value, ...]"
"""A tensor, a number (a size, where it may have symbols in it), a truth value, a text, or several of these."""


class Misfit(CorruptModel):
    """A value is something else than what is wanted."""

    found = wanted = ""


def misfit(found: str, wanted: str) -> Misfit:
    """The error of a value that is ``found``."""
    error = Misfit(f"{wanted} is wanted, found {found}")
    error.found, error.wanted = found, wanted
    return error


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
    integers i64, or u64 where one is too large for that. Raises CorruptModel for arrays that are not rectangular, and
    for elements of different kinds.
    """
    found = _types(value)
    if TDim in found:
        return _symbolic(value)
    if OutletId in found:
        return None
    natural = _kind_of(value, found)
    if kind is None and found == {int} and _most(value) > _MOST_I64:
        kind = DatumType.U64
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


def _most(value: Value) -> int:
    """The largest of integers."""
    if isinstance(value, (list, tuple)):
        return max(map(_most, value), default=0)
    return cast("int", value)


def _all_whole(value: Value) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_all_whole, value))
    return not isinstance(value, float) or value.is_integer()


def _kind_of(value: Value, found: set[type]) -> DatumType:
    """The element type of what is written with elements of these types; numbers are floats if one of them is."""
    if len(found) > 1 and found != {int, float}:
        raise CorruptModel(f"{shown(value)} has elements of different kinds")
    return DatumType.F32 if float in found or not found else _NATURAL.get(next(iter(found)), DatumType.I64)


_MOST_I64: Final = 2**63 - 1
_NATURAL: Final = {bool: DatumType.BOOL, str: DatumType.STRING}


def is_array(value: Value) -> TypeGuard[list[Value] | tuple[Value, ...]]:
    """Whether a value is an array or a tuple; a tensor, whose identifier is one in Python, is none."""
    return isinstance(value, (list, tuple)) and not isinstance(value, OutletId)


def written(value: Value, model: TypedModel) -> Value:
    """A value with the constants in it written out: one element as itself, several as an array of arrays.

    A tensor that is computed stays one. Raises CorruptModel for a constant of more elements than anybody writes out.
    """
    if isinstance(value, OutletId):
        return _written_out(value, model)
    if is_array(value):
        return [written(one, model) for one in value]
    return value


def _written_out(outlet: OutletId, model: TypedModel) -> Value:
    kind, found = model.outlet_fact(outlet).datum_type, known_value(model, outlet)
    if found is None or kind.is_quantized() or kind.is_complex():
        return outlet
    if found.array.size > MOST_WRITTEN:
        problem = f"{model.outlet_name(outlet)!r} has {found.array.size} elements, wanted at most {MOST_WRITTEN}"
        raise CorruptModel(problem)
    return found.array.astype(np.float64 if kind.is_float() else object).tolist()


def single(value: Value) -> Value:
    """What an array of one holds, also of arrays of one; anything else as it is."""
    while is_array(value) and len(value) == 1:
        value = value[0]
    return value


def size(value: Value, model: TypedModel) -> Dim:
    """A size: a number, a symbol, or what is computed of these; also as a constant, an array of one, or a whole float.

    Raises CorruptModel for anything else.
    """
    found = single(written(value, model))
    if isinstance(found, float) and found.is_integer():
        return int(found)
    if isinstance(found, (int, TDim)) and not isinstance(found, bool):
        return found
    raise misfit(_named(found, model), "a size")


def sizes(value: Value, model: TypedModel) -> tuple[Dim, ...]:
    """An array of sizes, each as `size` takes it; also a constant, and a single size, as some exporters write it.

    Raises CorruptModel for anything else.
    """
    found = written(value, model)
    while is_array(found) and len(found) == 1 and is_array(found[0]):
        found = found[0]
    if is_array(found):
        return tuple([size(one, model) for one in found])
    if isinstance(found, (bool, str, OutletId)):
        raise misfit(_named(found, model), "an array of sizes")
    return (size(found, model),)


def _named(value: Value, model: TypedModel) -> str:
    """What messages call a value; a tensor that is computed is called by its name."""
    return f"the computed tensor {model.outlet_name(value)!r}" if isinstance(value, OutletId) else shown(value)


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
    parts = [sizes(part, model) for part in items(written(value, model))]
    wrong = next((part for part in parts if len(part) != 2), None)
    if wrong is not None:
        raise misfit(shown(wrong), "a pair")
    return tuple((before, after) for before, after in parts)


def _without_symbols(found: Dim) -> int:
    if isinstance(found, int):
        return found
    raise misfit(f"{found}, which has symbols in it", "a number")


def number(value: Value, model: TypedModel) -> float:
    """A number, also as a constant or an array of one. Raises CorruptModel for anything else."""
    found = single(written(value, model))
    if isinstance(found, (int, float)) and not isinstance(found, bool):
        return float(found)
    raise misfit(_named(found, model), "a number")


def numbers(value: Value, model: TypedModel) -> tuple[float, ...]:
    """An array of such numbers; a single one is one too."""
    found = written(value, model)
    return tuple(number(one, model) for one in (found if is_array(found) else [found]))


def flag(value: Value, model: TypedModel) -> bool:
    """A truth value; 0 and 1 are such too. Raises CorruptModel for anything else."""
    found = single(written(value, model))
    if isinstance(found, (bool, int, float)) and found in (0, 1):
        return bool(found)
    raise misfit(_named(found, model), "true or false")


def text(value: Value, model: TypedModel) -> str:
    """A text. Raises CorruptModel for anything else."""
    found = single(written(value, model))
    if isinstance(found, str):
        return found
    raise misfit(_named(found, model), "a text")


def texts(value: Value, model: TypedModel) -> tuple[str, ...]:
    """An array of texts. Raises CorruptModel for anything else."""
    return tuple(text(one, model) for one in items(value))


def element_type(value: Value, model: TypedModel) -> DatumType:
    """An element type by its name. Sizes, ``tdim``, are i64 here. Raises CorruptModel for anything else."""
    try:
        found = DatumType.parse(text(value, model))
    except FactError as error:
        raise CorruptModel(error.problem) from None
    return DatumType.I64 if found is DatumType.TDIM else found


def as_declared(value: Value, kind: ast.Type, model: TypedModel) -> Value:
    """A value as what a parameter is declared to be, where it can be that; else as it is."""
    try:
        if isinstance(kind, ast.ArrayOf) and isinstance(kind.item, ast.Primitive):
            return list(sizes(value, model)) if kind.item.name == "integer" else value
        read = _READ.get(kind.name) if isinstance(kind, ast.Primitive) else None
        return value if read is None else read(value, model)
    except CorruptModel:
        return value


_READ: Final[Mapping[str, Callable[[Value, TypedModel], Value]]] = {
    "integer": size,
    "scalar": number,
    "logical": flag,
    "string": text,
}
"""How values of these types are read."""


def items(value: Value) -> Sequence[Value]:
    """The parts of an array or a tuple. Raises CorruptModel for anything else."""
    if not is_array(value):
        raise misfit(shown(value), "an array")
    return value
