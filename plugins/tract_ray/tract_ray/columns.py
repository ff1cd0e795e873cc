"""From a column to what a model takes: which rows fit, and the rows as one array.

Nothing is copied where all rows have one type and one shape. Nothing is converted: a float64 is no float32 here, as
nobody asked for its digits to be dropped. Plain numbers of Python, which have no type of their own, get the model's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from tract_core.errors import InputError
from tract_core.frozen import frozen
from tract_ray.ports import Port, shown

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

_NULL: Final = "it is null"
_UNEVEN: Final = "its parts have several lengths"


@frozen
class BatchColumn:
    """Values of a batch.

    ``values``: an array whose outermost axis is the rows, where all rows are alike; else a list, with ``None`` for
    null. ``null``: which rows of such an array are null, or hold one; ``None`` where none is.
    """

    values: Array | Sequence[Any]
    null: Array | None = None


def rows_with(mask: Array, rows: int) -> Array:
    """Which of the rows hold an element that the mask, with rows outermost, names."""
    found: Any = mask.reshape(rows, -1).any(axis=1)
    return found


@frozen
class FittedRows:
    """``array``: rows as a model takes them, with anything in the place of bad ones. ``bad``: why, by number of row."""

    array: Array
    bad: Mapping[int, str]


def fitted(column: BatchColumn, port: Port, shape: tuple[int | None, ...]) -> FittedRows:
    """The rows of a column as an input takes them.

    ``shape``: of a row. Raises InputError where sizes are symbolic, and rows of several shapes fit.
    """
    values = column.values
    if not isinstance(values, np.ndarray):
        return _of_list(values, port, shape)
    if values.dtype.kind == "O" and port.dtype.kind != "O":
        return _of_list(list(values), port, shape)
    return _of_array(values, column.null, port, shape)


def _of_array(values: Array, null: Array | None, port: Port, shape: tuple[int | None, ...]) -> FittedRows:
    rows = len(values)
    values = values.astype(object) if port.dtype.kind == "O" and values.dtype.kind in "UT" else values
    wrong = _why_not(np.empty(values.shape[1:], values.dtype), port, shape)
    if wrong is not None:
        return FittedRows(np.zeros((rows, *_known(shape)), port.dtype), dict.fromkeys(range(rows), wrong))
    found = values if _fits(values.shape[1:], shape) else values.reshape(rows, *_known(shape))
    bad: list[int] = [] if null is None else np.flatnonzero(null).tolist()
    bad += _no_texts(values) if port.dtype.kind == "O" else []
    return FittedRows(np.ascontiguousarray(found), dict.fromkeys(sorted(bad), _NULL))


def _no_texts(values: Array) -> list[int]:
    """Rows of objects that hold something else than texts."""
    return [row for row, value in enumerate(values) if not all(isinstance(one, str | bytes) for one in _flat(value))]


def _flat(value: Any) -> list[Any]:
    return cast("Array", value).reshape(-1).tolist() if isinstance(value, np.ndarray) else [value]


def _of_list(values: Sequence[Any], port: Port, shape: tuple[int | None, ...]) -> FittedRows:
    bad: dict[int, str] = {}
    good: dict[int, Array] = {}
    for row, value in enumerate(values):
        found, wrong = _row(value, port, shape)
        if wrong is None:
            good[row] = found
        else:
            bad[row] = wrong
    shapes = {one.shape for one in good.values()}
    if len(shapes) > 1:
        listed = "; ".join(sorted(map(shown, shapes))[:4])
        problem = f"rows of a batch are run together, and have several shapes: {listed}"
        raise InputError(problem, where=f"input {port.name!r}", hint="pad them to one, or give batches of one shape")
    result = np.zeros((len(values), *(shapes.pop() if shapes else _known(shape))), port.dtype)
    for row, one in good.items():
        result[row, ...] = one
    return FittedRows(result, bad)


def _row(value: Any, port: Port, shape: tuple[int | None, ...]) -> tuple[Any, str | None]:
    """A row as an array, or why it is none that fits."""
    if value is None:
        return None, _NULL
    array, wrong = _of_numpy(cast("Array", value), port) if isinstance(value, np.ndarray) else _of_python(value, port)
    if wrong is None:
        wrong = _why_not(array, port, shape)
    if wrong is not None:
        return None, wrong
    return array if _fits(array.shape, shape) else array.reshape(_known(shape)), None


def _of_numpy(array: Array, port: Port) -> tuple[Any, str | None]:
    """An array of Python's objects as one of numbers: of arrays in it, or of plain numbers."""
    if array.dtype.kind != "O" or port.dtype.kind == "O":
        return array, None
    arrays = [cast("Array", one) for one in array if isinstance(one, np.ndarray)]
    within = [_of_numpy(one, port)[0] for one in arrays]
    if len(within) < len(array) or not within:
        return _of_python(array.tolist(), port)
    return (np.stack(within), None) if len({one.shape for one in within}) == 1 else (None, _UNEVEN)


def _of_python(value: Any, port: Port) -> tuple[Any, str | None]:
    """Numbers of Python, in lists or alone, in the type that is wanted; or why they are none."""
    if port.dtype.kind == "O":
        return np.array(value, object), None if isinstance(value, str | bytes | list | tuple) else _described(value)
    try:
        found = np.asarray(value)
    except ValueError:
        return None, _UNEVEN
    if found.dtype.kind not in "bifu":
        return None, _NULL if found.dtype.kind == "O" and None in found.reshape(-1).tolist() else _described(value)
    if isinstance(value, np.generic):
        return found, None
    with np.errstate(over="ignore", invalid="ignore"):
        made = found.astype(port.dtype)
    same_kind = port.dtype.kind in "fV" or (made.dtype.kind == "b") == (found.dtype.kind == "b")
    if not same_kind or (port.dtype.kind in "iub" and not np.array_equal(made, found)):
        return None, f"it holds numbers that {port.dtype.name} has not"
    return made, None


def _described(value: Any) -> str:
    return "it holds what is no number" if isinstance(value, list | tuple) else f"it is a {type(value).__name__}"


def _why_not(row: Array, port: Port, shape: tuple[int | None, ...]) -> str | None:
    """Why an array is no row of an input; ``None`` for one that is."""
    if row.dtype != port.dtype:
        wanted = port.dtype.name if port.dtype.kind != "O" else "texts"
        return f"its elements are {row.dtype.name}, and input {port.name!r} takes {wanted}: convert the column before"
    if _fits(row.shape, shape) or (None not in shape and row.size == prod(_known(shape)) and _is_flat(row, shape)):
        return None
    return f"its shape is {shown(row.shape)}, and input {port.name!r} takes {shown(shape)}"


def _is_flat(row: Array, shape: tuple[int | None, ...]) -> bool:
    """Whether a row may be brought into a shape: it has one axis, or differs by axes of size 1 in front."""
    return row.ndim <= 1 or _without_ones(row.shape) == _without_ones(_known(shape))


def _without_ones(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(size for size in shape if size != 1)


def _fits(found: Sequence[int], shape: Sequence[int | None]) -> bool:
    pairs = zip(found, shape, strict=False)
    return len(found) == len(shape) and all(wanted in {None, size} for size, wanted in pairs)


def _known(shape: Sequence[int | None]) -> tuple[int, ...]:
    """Sizes, 0 for those that nobody knows."""
    return tuple(size or 0 for size in shape)
