"""Containers as the arrays that run through a model: an array without axes that holds a Python object.

The object is a list for a sequence, a value or ``None`` for an optional, a dictionary for a map. The values inside are
plain arrays, and containers inside containers are plain Python objects.
"""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral
from typing import Any, cast

import numpy as np

from tract_core.data.containers import Container, DType, ItemFact, MapType, OptionalType, SequenceType
from tract_core.data.datum_type import DatumType
from tract_core.dims import evaluate, symbols_of

Array = np.ndarray[Any, Any]


def boxed(value: object) -> Array:
    """An array without axes that holds ``value`` itself."""
    box: Array = np.empty(1, dtype=object)
    box[0] = value
    return box.reshape(())


def to_tensor(value: Any) -> Array:
    """A value from inside a container as an array that runs through a model."""
    return cast("Array", value) if isinstance(value, np.ndarray) else boxed(value)


def from_tensor(array: Array) -> Any:
    """What an array that runs through a model is inside a container: itself, or the container that it holds."""
    if array.dtype.kind != "O" or array.ndim != 0:
        return array
    held: Any = array.item()  # a tensor of texts holds neither of these
    boxed_value = held is None or isinstance(held, (list, dict, np.ndarray))
    return cast("Any", held) if boxed_value else array


def tensors_in(array: Array) -> list[Array]:
    """The arrays that a container holds, at any depth; an array itself when it is none."""
    held = from_tensor(array)
    if isinstance(held, np.ndarray):
        return [held]
    values = list(cast("dict[Any, Any]", held).values()) if isinstance(held, dict) else held or []
    return [one for value in cast("list[Any]", values) for one in tensors_in(to_tensor(value))]


def misfit(value: Any, kind: DType, known: Mapping[str, int]) -> str | None:
    """How a container differs from its type, in one sentence; ``None`` when it fits.

    ``known``: the values of symbols; a size that mentions another one is not looked at.
    """
    if isinstance(kind, SequenceType):
        if not isinstance(value, list):
            return f"it is a {_name(value)}, a list is wanted for {kind}"
        listed = _listed(cast("object", value))
        return _first_misfit([(f"item {place}", item) for place, item in enumerate(listed)], kind.item, known)
    if isinstance(kind, OptionalType):
        return None if value is None else _first_misfit([("the value", value)], kind.item, known)
    if isinstance(kind, MapType):
        if not isinstance(value, dict):
            return f"it is a {_name(value)}, a dictionary is wanted for {kind}"
        entries = _entries(cast("object", value))
        wanted = (str, bytes) if kind.key is DatumType.STRING else Integral
        for key, _ in entries:
            if not isinstance(key, wanted):
                return f"key {key!r} is of type {_name(key)}, the keys of {kind} are {kind.key.short}"
        return _first_misfit([(f"entry {key!r}", item) for key, item in entries], kind.item, known)
    return None


def _first_misfit(values: list[tuple[str, Any]], item: ItemFact, known: Mapping[str, int]) -> str | None:
    for place, value in values:
        problem = _item_misfit(value, item, known)
        if problem is not None:
            return f"{place}: {problem}"
    return None


def _item_misfit(value: Any, item: ItemFact, known: Mapping[str, int]) -> str | None:
    if isinstance(item.datum_type, Container):
        return misfit(value, item.datum_type, known)
    if not isinstance(value, np.ndarray):
        return f"it is a {_name(value)}, an array is wanted for {item}"
    array = cast("Array", value)
    if DatumType.from_numpy(array.dtype) != item.datum_type.storage:
        return f"it is {DatumType.from_numpy(array.dtype).short}, {item} is wanted"
    if item.shape is None:
        return None
    if array.ndim != len(item.shape):
        return f"it has rank {array.ndim} (shape {array.shape}), {item} is wanted"
    for axis, (dim, size) in enumerate(zip(item.shape, array.shape, strict=True)):
        if dim is not None and symbols_of(dim) <= known.keys() and evaluate(dim, known) != size:
            return f"axis {axis} has size {size}, {item} is wanted"
    return None


def _listed(value: object) -> list[Any]:
    return cast("list[Any]", value)


def _entries(value: object) -> list[tuple[Any, Any]]:
    return list(cast("dict[Any, Any]", value).items())


def _name(value: object) -> str:
    return "nothing (None)" if value is None else type(value).__name__
