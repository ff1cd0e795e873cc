"""What callers give, as arrays that fit the inputs of a policy: nothing is converted that they did not ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, cast

import numpy as np

from tract_core.api.arrays import normalised
from tract_core.api.dlpack import array_of
from tract_core.api.tensor import Tensor
from tract_core.errors import InputError, meant
from tract_inferers.errors import names
from tract_inferers.responses import Array
from tract_inferers.slots import Slot, Slots

LARGEST: Final = 2**64 - 1
"""The largest number of an agent."""

_MISSING: Final = object()


def checked_ids(ids: Any) -> list[int]:
    """The agents of a batch, as Python's integers. Raises InputError for what is none, and for one that comes twice."""
    if ids.__class__ is np.ndarray and ids.ndim == 1 and ids.dtype.kind in "iu" and len(ids):
        increasing = np.count_nonzero(ids[1:] > ids[:-1]) == len(ids) - 1
        found: list[int] = ids.tolist()
        if increasing and found[0] >= 0:
            return found
    else:
        found = _listed(ids)
    if len(set(found)) != len(found):
        raise InputError(f"agent {_twice(found)} is there twice", where="ids", hint="run one after the other")
    if found and (min(found) < 0 or max(found) > LARGEST):
        outside = next(one for one in found if not 0 <= one <= LARGEST)
        raise InputError(f"there is an agent {outside}; agents go from 0 to 2**64 - 1", where="ids")
    return found


def in_order(ids: Any) -> Any:
    """``ids``, where they are to tell whose the rows of arrays are. Raises InputError for a set, which has no order."""
    if isinstance(ids, (set, frozenset)):
        raise InputError("a set has no order, so rows could be anybody's", where="ids", hint="give a list or an array")
    return ids


def _listed(ids: Any) -> list[int]:
    if isinstance(ids, np.ndarray):
        array = cast("Array", ids)
        if (
            array.ndim == 1
            and not isinstance(array, np.ma.MaskedArray)
            and (array.dtype.kind in "iu" or not array.size)
        ):
            return array.tolist()
    elif isinstance(ids, Iterable) and not isinstance(ids, (str, bytes)):
        found = list(cast("Iterable[Any]", ids))
        if set(map(type, found)) <= {int}:
            return found
        if all(isinstance(one, (int, np.integer)) and not isinstance(one, bool) for one in found):
            return [int(one) for one in found]
    raise InputError(f"agents are a sequence of integers, got {_described(ids)}", where="ids")


def checked_id(agent: Any) -> int:
    """The number of one agent. Raises InputError for what is none."""
    if isinstance(agent, (int, np.integer)) and not isinstance(agent, bool) and 0 <= agent <= LARGEST:
        return int(cast("int", agent))
    raise InputError(f"an agent is an integer from 0 to 2**64 - 1, got {agent!r:.60}")


def columns(observations: Mapping[str, Any], slots: Slots, rows: int, *, refuse_nan: bool) -> list[Array]:
    """One array per input, of shape ``(rows, *shape)``, contiguous; those of the caller where they are that.

    Raises InputError for names that are unknown or missing, and for arrays that do not fit.
    """
    if observations.__class__ is not dict or len(observations) != len(slots):
        check_names(observations, slots)
    arrays: list[Array] = []
    for slot in slots:
        value = observations.get(slot.name, _MISSING)
        if value.__class__ is not np.ndarray or value.dtype is not slot.dtype or value.shape != (rows, *slot.shape):
            if value is _MISSING:
                check_names(observations, slots)
            value = _column(value, slot, (rows, *slot.shape))
        flags = value.flags
        if not (flags.c_contiguous and flags.aligned):
            value = normalised(value, _place(slot))
        if refuse_nan and _has_nan(value):
            row = int(np.argwhere(np.isnan(value))[0][0])
            raise InputError(f"row {row} has an element that is not a number", where=_place(slot))
        arrays.append(value)
    return arrays


def _column(value: Any, slot: Slot, shape: tuple[int, ...]) -> Array:
    """The values of one input for all agents. Raises InputError where they do not fit."""
    array = _array(value, slot)
    return array if array.dtype == slot.dtype and array.shape == shape else _fitted(array, slot, shape)


def rows_of(agents: list[int], observations: Sequence[Any], slots: Slots, *, refuse_nan: bool) -> list[Array]:
    """One array per input, of shape ``(agents, *shape)``, with the observations of one agent after the other.

    Raises InputError, with the agent, for an observation that does not fit.
    """
    try:
        arrays = [_stacked([one[slot.name] for one in observations], slot) for slot in slots]
        # Each has all names, so that it has no others where all together have as many as that.
        is_right = sum(map(len, observations)) == len(slots) * len(observations)
    except (LookupError, TypeError):
        arrays, is_right = [], False
    if is_right and not any(array is None or (refuse_nan and _has_nan(array)) for array in arrays):
        return cast("list[Array]", arrays)  # where not, the way below says what is wrong, and with whom
    filled = [slot.empty(len(agents)) for slot in slots]
    for row, (agent, one) in enumerate(zip(agents, observations, strict=True)):
        try:
            check_names(one, slots)
            for array, slot in zip(filled, slots, strict=True):
                array[row] = element(one[slot.name], slot, refuse_nan=refuse_nan)
        except InputError as error:
            raise error.at(f"agent {agent}") from None
    return filled


def _stacked(values: list[Any], slot: Slot) -> Array | None:
    """The values of one input, one after the other; ``None`` where they have to be looked at one by one."""
    if not slot.shape or set(map(type, values)) != {np.ndarray}:
        return None
    array = slot.empty(len(values))
    try:
        if set(map(len, values)) != {slot.shape[0]}:  # the rest of the shapes is compared by NumPy
            return None
        np.concatenate(values, out=array.reshape(-1, *slot.shape[1:]), casting="no")
    except (TypeError, ValueError):
        return None
    return array


def element(value: Any, slot: Slot, *, refuse_nan: bool) -> Array:
    """The value of one input for one agent, of shape ``shape``. Raises InputError where it does not fit.

    All its elements in one axis are taken too, and a plain number where there is one element.
    """
    array = _column(value, slot, slot.shape)
    if refuse_nan and _has_nan(array):
        raise InputError("an element is not a number", where=_place(slot))
    return array


def check_names(observation: Any, slots: Slots) -> None:
    """Raises InputError where the names are not those of the inputs, each once."""
    if not isinstance(observation, Mapping):
        found = type(observation).__name__
        raise InputError(f"an observation is a dictionary from names to arrays, got {found}", hint=_there(slots))
    given = cast("Mapping[Any, Any]", observation)
    wanted = [slot.name for slot in slots]
    unknown = [name for name in given if name not in wanted]
    if unknown:
        near = meant(unknown[0], wanted) if isinstance(unknown[0], str) else []
        hint = f"did you mean {near[0]!r}?" if near else None
        raise InputError(f"there is no input {unknown[0]!r}; inputs: {names(wanted)}", hint=hint)
    missing = [name for name in wanted if name not in given]
    if missing:
        raise InputError(f"input {missing[0]!r} is missing; inputs: {names(wanted)}", hint=_there(slots))


def _there(slots: Slots) -> str:
    return f"give {{{', '.join(f'{slot.name!r}: array({list(slot.shape)}, {slot.dtype.name})' for slot in slots)}}}"


def _described(value: Any) -> str:
    shape: Any = getattr(value, "shape", None)
    return f"{type(value).__name__}{f' of shape {shape} and type {value.dtype}' if shape is not None else ''}"


def _twice(ids: list[int]) -> int:
    seen: set[int] = set()
    return next(one for one in ids if one in seen or seen.add(one))


def _array(value: Any, slot: Slot) -> Array:
    """Whatever is no array of NumPy, as one. Numbers of Python, also in lists, take the type of the input."""
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise InputError("is a masked array, whose mask would be lost", where=_place(slot), hint=".filled(value)")
        return np.asarray(cast("Array", value))
    if isinstance(value, Tensor):
        return value.view()
    if hasattr(value, "__dlpack__") or hasattr(value, "__array__"):
        return _imported(value, slot)
    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"cannot be read as an array: {error}", where=_place(slot)) from None
    if array.dtype == slot.dtype or hasattr(value, "__array_interface__"):
        return array
    plain = _cast(array, slot.dtype)
    if plain is None:
        raise InputError(f"{value!r:.60} is no {slot.dtype.name}", where=_place(slot))
    return plain


def _cast(array: Array, dtype: np.dtype[Any]) -> Array | None:
    """Numbers of Python as elements of that type; ``None`` where it does not have them. Floats are rounded."""
    kinds = (array.dtype.kind, dtype.kind)
    if kinds not in _CASTS and not np.can_cast(array.dtype, dtype, "same_kind"):
        return None
    try:
        with np.errstate(over="raise"):
            cast_array = array.astype(dtype)
    except (TypeError, ValueError, FloatingPointError):
        return None
    return None if kinds[0] in "iu" and not np.array_equal(cast_array.astype(array.dtype), array) else cast_array


_CASTS: Final = frozenset({("i", "u"), ("i", "V"), ("f", "V"), ("i", "f")})
"""Kinds of elements, from which and to which numbers are cast, beside those that NumPy calls of the same kind."""


def _imported(value: Any, slot: Slot) -> Array:
    """The array of another library, on the same memory where that can be read."""
    try:
        return array_of(value) if hasattr(value, "__dlpack__") else np.asarray(value)
    except Exception as error:
        found = f"a {type(value).__module__}.{type(value).__qualname__} cannot be read as an array"
        hint = "bring it to the CPU, detached, in a type that NumPy knows"
        raise InputError(f"{found}: {type(error).__name__}: {error}", where=_place(slot), hint=hint) from error


def _fitted(array: Array, slot: Slot, shape: tuple[int, ...]) -> Array:
    """The array in the shape that is wanted, if it has the elements for it, and the type."""
    if array.dtype.newbyteorder("=") != slot.dtype:
        hint = f"convert it yourself: .astype({slot.dtype.name!r})"
        raise InputError(f"is {array.dtype.name}, the policy wants {slot.dtype.name}", where=_place(slot), hint=hint)
    flat = (*shape[: len(shape) - len(slot.shape)], slot.count)
    if array.shape not in (shape, flat) and not (array.ndim == 0 and flat == (1,)):
        found = f"has shape {list(array.shape)}, wanted {list(shape)}"
        raise InputError(found, where=_place(slot))
    return array.astype(slot.dtype).reshape(shape) if not array.dtype.isnative else array.reshape(shape)


def _has_nan(array: Array) -> bool:
    return array.dtype.kind not in "iub" and bool(np.isnan(array).any())


def _place(slot: Slot) -> str:
    return f"input {slot.name!r}"
