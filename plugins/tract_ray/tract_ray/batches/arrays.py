"""Dictionaries of NumPy arrays, as ``batch_format="numpy"`` of Ray has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tract_core.errors import InputError
from tract_ray.columns import BatchColumn, rows_with
from tract_ray.dead_letters import DeadLetters, lines_of_rows

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


class ArrayBatch:
    """A dictionary of arrays; a list counts as one of objects."""

    def __init__(self, batch: Mapping[str, Any]) -> None:
        """Raises InputError for columns of several lengths."""
        self._columns = {name: _array(values, name) for name, values in batch.items()}
        self.names = list(self._columns)
        lengths = {len(values) for values in self._columns.values()}
        if len(lengths) > 1:
            raise InputError(f"columns of a batch have as many rows as each other; got {sorted(lengths)}")
        self.rows = lengths.pop() if lengths else 0

    def column(self, name: str) -> BatchColumn:
        """Masked values are null."""
        values = self._columns[name]
        if not hasattr(values, "mask"):
            return BatchColumn(values)
        return BatchColumn(values.data, rows_with(np.ma.getmaskarray(values), self.rows))

    def rows_of(self, kept: Sequence[str], outputs: Mapping[str, Array], good: Array | None) -> dict[str, Array]:
        """All rows are given as they are."""
        columns = {name: self._columns[name] for name in kept}
        return {name: one if good is None else one[good] for name, one in columns.items()} | dict(outputs)

    def with_nulls(
        self, kept: Sequence[str], outputs: Mapping[str, Array], error: str, bad: Mapping[int, str]
    ) -> dict[str, Array]:
        """NaN for floats, 0 for what has none; the reason is empty for good rows."""
        emptied = {name: without_values(one, list(bad)) for name, one in outputs.items()}
        return self.rows_of(kept, emptied, None) | {error: reasons(self.rows, bad, "")}

    def letters(self, kept: Sequence[str], rows: Sequence[int], error: str, bad: Mapping[int, str]) -> DeadLetters:
        """Lines of JSON."""
        columns = {name: self._columns[name][list(rows)] for name in kept}
        return lines_of_rows(columns | {error: np.array([bad[row] for row in rows], object)})


def without_values(array: Array, rows: Sequence[int]) -> Array:
    """The same with NaN, or 0 where the type has none, in these rows; a copy where there are any."""
    if not rows:
        return array
    result = np.array(array)
    result[list(rows)] = np.nan if array.dtype.kind in "fcV" else None if array.dtype.kind == "O" else 0
    return result


def reasons(rows: int, bad: Mapping[int, str], good: str | None) -> Array:
    """A column of texts: why rows are bad, ``good`` for the others."""
    result = np.full(rows, good, object)
    for row, why in bad.items():
        result[row] = why
    return result


def _array(values: Any, name: str) -> Any:
    if isinstance(values, np.ndarray):
        if not values.ndim:
            raise InputError("a column has an axis of rows, and this is one number", where=f"column {name!r}")
        return cast("Any", values)
    if not isinstance(values, (list, tuple)):
        found = type(values).__name__
        raise InputError(f"columns are NumPy arrays; got {found}", where=f"column {name!r}", hint="numpy.asarray(...)")
    rows = cast("Sequence[Any]", values)
    result = np.empty(len(rows), object)
    for row, value in enumerate(rows):
        result[row] = value
    return result
