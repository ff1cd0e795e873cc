"""Frames of pandas, as ``batch_format="pandas"`` of Ray, Dask and ``mapInPandas`` of Spark have them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.importing import imported
from tract_ray.batches.arrays import reasons, without_values
from tract_ray.columns import BatchColumn
from tract_ray.dead_letters import DeadLetters, lines_of_rows

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

_pd: Final[Any] = imported("pandas")


class FrameBatch:
    """A frame. Its index stays."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self.names = [str(name) for name in frame.columns]
        self.rows = len(frame)

    def column(self, name: str) -> BatchColumn:
        """Columns of objects are looked at row by row; NaN in a column of floats is a number as others."""
        series = self._series(name)
        if isinstance(series.dtype, np.dtype):
            values = series.to_numpy()
            return BatchColumn(_without_na(values)) if values.dtype.kind == "O" else BatchColumn(values)
        if type(series.array).__name__ == "TensorArray":  # of Ray
            return BatchColumn(np.asarray(series.array.to_numpy()))
        return _of_extension(series)

    def rows_of(self, kept: Sequence[str], outputs: Mapping[str, Array], good: Array | None) -> Any:
        """Outputs of one number a row are columns of numbers, others of arrays."""
        frame = self._frame[[self._label(name) for name in kept]]
        frame = frame.copy(deep=False) if good is None else frame.iloc[good].copy(deep=False)
        return frame.assign(**{name: _series(one, frame.index) for name, one in outputs.items()})

    def with_nulls(self, kept: Sequence[str], outputs: Mapping[str, Array], error: str, bad: Mapping[int, str]) -> Any:
        """NaN for floats, ``pd.NA`` for other numbers, ``None`` for arrays and for the reasons of good rows."""
        frame = self.rows_of(kept, {}, None)
        null = np.isin(np.arange(self.rows), list(bad))
        columns = {name: _series(one, frame.index, null) for name, one in outputs.items()}
        why = _pd.Series(reasons(self.rows, bad, None), index=frame.index, dtype=object)
        return frame.assign(**columns, **{error: why})

    def letters(self, kept: Sequence[str], rows: Sequence[int], error: str, bad: Mapping[int, str]) -> DeadLetters:
        """Lines of JSON."""
        frame = self._frame.iloc[list(rows)]
        columns = {name: frame[self._label(name)].to_numpy(dtype=object) for name in kept}
        return lines_of_rows(columns | {error: np.array([bad[row] for row in rows], object)})

    def _label(self, name: str) -> Any:
        return self._frame.columns[self.names.index(name)]

    def _series(self, name: str) -> Any:
        return self._frame[self._label(name)]


def _of_extension(series: Any) -> BatchColumn:
    """Numbers that may be null, texts, and types of Arrow."""
    null = series.isna().to_numpy()
    kind = getattr(series.dtype, "numpy_dtype", np.dtype(object))
    if not isinstance(kind, np.dtype) or kind.kind not in "biuf":
        return BatchColumn(_without_na(series.to_numpy(dtype=object)))
    return BatchColumn(series.to_numpy(dtype=kind, na_value=0), null if null.any() else None)


def _without_na(values: Array) -> list[Any]:
    return [None if value is _pd.NA or value is None else value for value in values]


def _series(array: Array, index: Any, null: Array | None = None) -> Any:
    """``null``: which rows have no value; where it is given, numbers are of a type that has null."""
    if array.ndim > 1:
        rows = [None if null is not None and null[row] else array[row] for row in range(len(array))]
        return _pd.Series(_objects(rows), index=index, dtype=object)
    if null is None or array.dtype.kind not in "biu":
        return _pd.Series(array if null is None else without_values(array, np.flatnonzero(null).tolist()), index=index)
    kind = _pd.arrays.BooleanArray if array.dtype.kind == "b" else _pd.arrays.IntegerArray
    return _pd.Series(kind(np.array(array), null.copy()), index=index)


def _objects(rows: Sequence[Any]) -> Array:
    result = np.empty(len(rows), object)
    for row, value in enumerate(rows):
        result[row] = value
    return result
