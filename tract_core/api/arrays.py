"""Whatever users give as a tensor, as an array that every runtime can read."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from math import isinf
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tract_core.api.tensor import Tensor
from tract_core.api.tensor import array_of_strings as _strings
from tract_core.data import Container, DatumType, DType, ItemFact, MapType, OptionalType, SequenceType
from tract_core.data.boxes import boxed
from tract_core.errors import FactError, InputError

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

_WANTED: Final = "a Tensor, a NumPy array, or anything with __dlpack__, __array__ or a typed buffer"


def as_array(value: Any, name: str, kind: DType) -> Array:
    """``value``, an input called ``name`` of type ``kind``, as a read-only array. Nothing is copied without need.

    Raises InputError for what is no tensor, for one that lives on another device, and for other quantisation
    parameters.
    """
    if isinstance(kind, Container):
        return boxed(_contents(value, name, kind))
    if isinstance(value, Tensor):
        return _array_of_tensor(value, name, kind)
    array = cast("Array", value) if isinstance(value, np.ndarray) else _imported(value, name, kind)
    if isinstance(array, np.ma.MaskedArray):
        raise InputError("is a masked array, whose mask would be lost", where=_place(name), hint="give .filled(value)")
    if array.dtype.kind == "O" and kind is not DatumType.STRING:
        raise InputError(
            f"an array of Python objects was given, the model wants {kind.short}",
            where=_place(name),
            hint=f"make it an array of numbers: .astype({kind.numpy.name!r})",
        )
    try:
        return read_only(normalised(np.asarray(array), _place(name)))
    except FactError as error:
        raise InputError(error.problem, where=error.where, hint=error.hint) from None


def _contents(value: Any, name: str, kind: DType) -> Any:
    """A container with all tensors in it as arrays; what is none is left as it is, and refused when the model runs."""
    if isinstance(kind, SequenceType) and isinstance(value, (list, tuple)):
        return [_item(one, name, kind.item) for one in cast("Sequence[Any]", value)]
    if isinstance(kind, MapType) and isinstance(value, dict):
        return {key: _item(one, name, kind.item) for key, one in cast("dict[Any, Any]", value).items()}
    if isinstance(kind, OptionalType) and value is not None:
        return _item(value, name, kind.item)
    return value


def _item(value: Any, name: str, item: ItemFact) -> Any:
    kind = item.datum_type
    if isinstance(kind, Container):
        return _contents(value, name, kind)
    return _scalar(value, name, kind) if type(value) in _PLAIN else as_array(value, name, kind)


def _scalar(value: Any, name: str, kind: DType) -> Array:
    """A plain Python value, which has no element type of its own, in the type that is wanted.

    Raises InputError for a value that the type has not; the fraction of a float is rounded to the nearest that it has.
    """
    if _is_of(value, kind):
        with suppress(OverflowError), np.errstate(over="ignore"):
            array: Array = np.array(value, dtype=kind.numpy)
            too_large = int(array) != value if kind.is_integer() else kind.is_float() and np.isinf(array) > isinf(value)
            if not too_large:
                return read_only(array)
    raise InputError(f"{value!r} is no {kind.short}", where=_place(name))


def _is_of(value: Any, kind: DType) -> bool:
    if kind is DatumType.STRING:
        return isinstance(value, (str, bytes))
    if kind.is_bool() or isinstance(value, bool):
        return kind.is_bool() and isinstance(value, bool)
    if kind.is_integer():
        return isinstance(value, int)
    return isinstance(value, (int, float)) or (kind.is_complex() and isinstance(value, complex))


_PLAIN: Final = (bool, int, float, complex, str, bytes)
"""Types of Python values that stand for a tensor without axes inside a sequence, an optional or a map."""


def normalised(array: Array, where: str) -> Array:
    """In native byte order, contiguous and aligned, texts as Python strings; not copied where it is that already."""
    if array.dtype.kind in "OSUT":
        return _strings(array, where)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    return array if array.flags.c_contiguous and array.flags.aligned else array.copy(order="C")


def read_only(array: Array) -> Array:
    """A view through which nobody can write."""
    view = array.view()
    view.flags.writeable = False
    return view


def _array_of_tensor(tensor: Tensor, name: str, kind: DType) -> Array:
    found = tensor.datum_type()
    if found != kind and (found.is_quantized() or kind.is_quantized()) and found != kind.storage:
        raise InputError(
            f"input is {found}, the model wants {kind}",
            where=_place(name),
            hint="convert it with .convert_to(model.input_fact(i).datum_type())",
        )
    view = tensor.view()  # what a runtime gave may lie in memory in any order
    return view if view.flags.c_contiguous and view.flags.aligned else read_only(view.copy(order="C"))


def _imported(value: Any, name: str, kind: DType) -> Array:
    problem: Exception | None = None
    for read in (_from_dlpack, _from_array_like):
        try:
            array = read(value)
        except Exception as error:
            problem = problem or error
            continue
        if array is not None:
            return array
    found = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if problem is not None:
        raise InputError(
            f"a {found} cannot be read as an array: {type(problem).__name__}: {problem}",
            where=_place(name),
            hint="bring it to the CPU, detached, in a type that NumPy knows",
        ) from problem
    if isinstance(value, (str, os.PathLike)):
        raise InputError(
            f"Inputs must be of type Tensor or numpy.ndarray, got {found}",
            where=_place(name),
            hint="read the file first: numpy.load(path), or numpy.asarray(PIL.Image.open(path)) of an image",
        )
    raise InputError(
        f"Inputs must be of type Tensor or numpy.ndarray, got {found}",
        where=_place(name),
        hint=f"give {_WANTED}; for plain numbers: numpy.array(value, dtype={kind.numpy.name!r})",
    )


def _from_dlpack(value: Any) -> Array | None:
    if not hasattr(value, "__dlpack__"):
        return None
    from tract_core.api.dlpack import array_of

    return array_of(value)


def _from_array_like(value: Any) -> Array | None:
    """What NumPy makes of an object that says what its elements are."""
    says = hasattr(value, "__array__") or hasattr(value, "__array_interface__") or _is_buffer(value)
    return np.asarray(value) if says else None


def _is_buffer(value: Any) -> bool:
    if isinstance(value, (bytes, bytearray)):  # bytes of what?
        return False
    try:
        memoryview(value).release()
    except TypeError:
        return False
    return True


def _place(name: str) -> str:
    return f"input {name!r}"
