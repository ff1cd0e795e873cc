"""Whatever users give as a tensor, as an array that every runtime can read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np

from tract_core.api.tensor import Tensor
from tract_core.api.tensor import array_of_strings as _strings
from tract_core.data import Container, DType, ItemFact, MapType, OptionalType, SequenceType
from tract_core.data.boxes import boxed
from tract_core.errors import FactError, InputError
from tract_core.plugins.keys import Array

_WANTED = "a Tensor, a NumPy array, or anything with __dlpack__ or __array__"


def as_array(value: Any, name: str, kind: DType) -> Array:
    """``value``, an input called ``name`` of type ``kind``, as a read-only array. Nothing is copied without need.

    Raises InputError for what is no tensor, for one that lives on another device, and for other quantisation
    parameters.
    """
    if isinstance(kind, Container):
        return boxed(_contents(value, name, kind))
    if isinstance(value, Tensor):
        return _array_of_tensor(value, name, kind)
    array = cast("Array", value) if isinstance(value, np.ndarray) else _imported(value, name)
    if isinstance(array, np.ma.MaskedArray):
        raise InputError("is a masked array, whose mask would be lost", where=_place(name), hint="give .filled(value)")
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
    return _contents(value, name, kind) if isinstance(kind, Container) else as_array(value, name, kind)


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
    return read_only(tensor.view())


def _imported(value: Any, name: str) -> Array:
    problem: Exception | None = None
    if hasattr(value, "__dlpack__"):
        try:
            return np.from_dlpack(value)
        except Exception as error:
            problem = error
    if hasattr(value, "__array__"):
        try:
            return np.asarray(value)
        except Exception as error:
            problem = problem or error
    found = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
    if problem is not None:
        raise InputError(
            f"a {found} cannot be read as an array: {type(problem).__name__}: {problem}",
            where=_place(name),
            hint="bring it to the CPU, detached, in an element type that NumPy knows",
        ) from problem
    raise InputError(
        f"Inputs must be of type Tensor or numpy.ndarray, got {found}",
        where=_place(name),
        hint=f"give {_WANTED}; for plain numbers: numpy.array(value, dtype=numpy.float32)",
    )


def _place(name: str) -> str:
    return f"input {name!r}"
