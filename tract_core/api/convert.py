"""Conversions between element types, for `Tensor.convert_to`.

Every conversion goes through a type that both sides understand: whole numbers, real numbers, complex numbers, or texts.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tract_core.data import DatumType, DType, QuantizedType, parse_dtype
from tract_core.errors import FactError, TractError
from tract_core.ops.rounding import cut_into, limits

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


def datum_type_like(value: Any) -> DType:
    """A type from itself, its name, or its number in the established binding. Raises FactError for anything else."""
    if isinstance(value, (DatumType, QuantizedType)):
        return value
    if isinstance(value, str):
        return parse_dtype(value)
    try:
        return DatumType(value)
    except ValueError:
        raise FactError(f"{value!r} is no element type", hint="as DatumType.F32, or 'f32'") from None


def convert(array: Array, kind: DType, to: DType) -> Array:
    """A new array with the numbers of ``array``, whose type is ``kind``, in the type ``to``. Raises FactError."""
    wanted = to.numpy
    if kind == to:
        return np.array(array)
    with np.errstate(all="ignore"):
        if isinstance(kind, QuantizedType):
            array = (array.astype(np.float64) - kind.zero_point) * kind.scale
        elif kind in (DatumType.STRING, DatumType.TDIM) and to not in (DatumType.STRING, DatumType.TDIM):
            array = _numbers_from_objects(array, to)
        if isinstance(to, QuantizedType):
            steps = np.rint(_real(array, to) / to.scale) + to.zero_point
            return _whole(steps, to.storage)
        if to is DatumType.STRING:
            return _objects(array, _text)
        if to is DatumType.TDIM:
            return _objects(array, partial(_size, kind=kind))
        if to.is_complex():
            return (array if array.dtype.kind == "c" else _real(array, to)).astype(wanted)
        if to.is_bool():
            return array.astype(np.bool_) if array.dtype.kind == "c" else _plain(array) != 0
        if to.is_integer():
            return _whole(_plain(_refuse_complex(array, to)), to.storage)
        return _real(array, to).astype(wanted)


def _refuse_complex(array: Array, to: DType) -> Array:
    if array.dtype.kind == "c":
        raise FactError(
            f"complex numbers as {to} would lose their imaginary part",
            hint="choose: Tensor.from_numpy(tensor.to_numpy().real), .imag, or numpy.abs of it",
        )
    return array


def _plain(array: Array) -> Array:
    """Elements in a type that NumPy itself brings: what ml-dtypes brings becomes i64 or f64, which hold it exactly."""
    if array.dtype.isbuiltin == 1:
        return array
    kind = DatumType.from_numpy(array.dtype)
    return array.astype(np.float32).astype(np.float64) if kind.is_float() else array.astype(np.int64)


def _real(array: Array, to: DType) -> Array:
    plain = _plain(_refuse_complex(array, to))
    return plain if plain.dtype.kind == "f" else plain.astype(np.float64)


def _whole(array: Array, to: DatumType) -> Array:
    """Numbers in an integer type: floats are cut off and stop at the ends of the range, integers wrap around."""
    if array.dtype.kind == "f":
        return cut_into(array, to)
    if to.numpy.isbuiltin == 1:
        return array.astype(to.numpy)
    low, high = limits(to)
    bits = array.astype(np.int64) & (high - low)
    return (np.where(bits > high, bits - (high - low + 1), bits)).astype(np.int8).astype(to.numpy)


def _numbers_from_objects(array: Array, to: DType) -> Array:
    integers = isinstance(to, DatumType) and to.is_integer()
    numbers = [_number(element, integers) for element in array.reshape(-1).tolist()]
    carrier = np.complex128 if any(isinstance(n, complex) for n in numbers) else None
    result: Array = np.array(numbers, dtype=carrier) if numbers else np.zeros(0)
    if result.dtype.kind == "O":
        raise FactError(f"a number is too large for {to}")
    return result.reshape(array.shape)


def _number(element: Any, integer: bool) -> Any:
    """A text, or a size, as a number."""
    if not isinstance(element, (str, bytes)):
        return int(element)
    text = element.decode("utf-8", "replace") if isinstance(element, bytes) else element
    for read in (int, float, complex):
        try:
            return read(text)
        except ValueError:
            continue
    raise FactError(f"the text {text!r} is no number")


def _objects(array: Array, function: Any) -> Array:
    result: Array = np.empty(array.size, dtype=object)
    source = _plain(array)
    result[:] = [function(element) for element in source.reshape(-1)]
    return result.reshape(array.shape)


def _text(element: Any) -> str:
    return element.decode("utf-8", "replace") if isinstance(element, bytes) else str(element)


def _size(element: Any, kind: DType) -> Any:
    from tract_core.dims import parse_dim

    if isinstance(element, (str, bytes)):
        return parse_dim(_text(element))
    try:
        if int(element) == element:
            return int(element)
    except (TypeError, ValueError, OverflowError, TractError):
        pass
    raise FactError(f"{element} of type {kind} is no size: sizes are whole numbers")
