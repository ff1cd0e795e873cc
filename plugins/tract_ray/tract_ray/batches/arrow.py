"""Tables of Arrow, as ``batch_format="pyarrow"`` of Ray has them: numbers in and out are not copied."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.errors import Unsupported
from tract_core.importing import imported
from tract_ray.batches.arrays import without_values
from tract_ray.batches.arrow_columns import column_of
from tract_ray.dead_letters import DeadLetters, letters_of_table

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array
    from tract_ray.columns import BatchColumn

_pa: Final[Any] = imported("pyarrow")


class ArrowBatch:
    """A table. Where a column is in several pieces, they are put into one, which copies it."""

    def __init__(self, table: Any) -> None:
        self._table = table
        self.names: list[str] = table.column_names
        self.rows: int = table.num_rows

    def column(self, name: str) -> BatchColumn:
        """A view on its memory, where it is of numbers or of tensors of one shape."""
        return column_of(_one_piece(self._table.column(name)))

    def rows_of(self, kept: Sequence[str], outputs: Mapping[str, Array], good: Array | None) -> Any:
        """Outputs become columns of numbers, or of tensors (``arrow.fixed_shape_tensor``), in place."""
        table = self._table.select(list(kept))
        table = table if good is None else table.take(_pa.array(good))
        return _with_columns(table, {name: arrow_array(one, name) for name, one in outputs.items()})

    def with_nulls(self, kept: Sequence[str], outputs: Mapping[str, Array], error: str, bad: Mapping[int, str]) -> Any:
        """Outputs of bad rows are null, tensors NaN; the reasons of good ones are null."""
        null = np.zeros(self.rows, np.bool_)
        null[list(bad)] = True
        columns = {name: arrow_array(one, name, null if bad else None) for name, one in outputs.items()}
        why = _pa.array([bad.get(row) for row in range(self.rows)], _pa.string())
        return _with_columns(self._table.select(list(kept)), columns | {error: why})

    def letters(self, kept: Sequence[str], rows: Sequence[int], error: str, bad: Mapping[int, str]) -> DeadLetters:
        """Parquet, with the types of the table."""
        table = self._table.select(list(kept)).take(_pa.array(list(rows)))
        why = _pa.array([bad[row] for row in rows], _pa.string())
        return letters_of_table(_with_columns(table, {_free(error, kept): why}))


class RecordsBatch(ArrowBatch):
    """A record batch, as Spark's ``mapInArrow`` has it: what comes back is one, too."""

    def __init__(self, batch: Any) -> None:
        super().__init__(_pa.Table.from_batches([batch]))

    def rows_of(self, kept: Sequence[str], outputs: Mapping[str, Array], good: Array | None) -> Any:
        """The same as one piece."""
        return _one_batch(super().rows_of(kept, outputs, good))

    def with_nulls(self, kept: Sequence[str], outputs: Mapping[str, Array], error: str, bad: Mapping[int, str]) -> Any:
        """The same as one piece."""
        return _one_batch(super().with_nulls(kept, outputs, error, bad))


def arrow_array(array: Array, name: str, null: Array | None = None) -> Any:
    """An array as a column: of numbers, or of tensors of one shape. ``null``: which rows have no value.

    Tensors of such rows are NaN, or 0 where the type has none: Ray Data takes no null among tensors.
    Raises Unsupported for an element type that Arrow has not.
    """
    if array.dtype.kind == "V" or (array.dtype.kind == "f" and array.dtype.itemsize == 1):
        hint = "have the model cast its output, or take NumPy batches"
        raise Unsupported(f"Arrow has no {array.dtype.name}", where=f"output {name!r}", hint=hint)
    if array.ndim == 1:
        return _pa.array(array, mask=null)
    if null is not None:
        array = without_values(array, np.flatnonzero(null).tolist())
    flat = _pa.array(array.reshape(-1))  # in place, as outputs lie in one piece
    rows = _pa.FixedSizeListArray.from_arrays(flat, prod(array.shape[1:]))
    if not _is_tensor_type(flat.type):
        return rows
    return _pa.ExtensionArray.from_storage(_pa.fixed_shape_tensor(flat.type, array.shape[1:]), rows)


def _is_tensor_type(kind: Any) -> bool:
    """Whether tensors of these elements can be made NumPy arrays again; texts and bits stay lists."""
    return _pa.types.is_integer(kind) or _pa.types.is_floating(kind)


def _with_columns(table: Any, columns: Mapping[str, Any]) -> Any:
    for name, one in columns.items():
        table = table.append_column(name, one)
    return table


def _one_piece(column: Any) -> Any:
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks()


def _one_batch(table: Any) -> Any:
    return _pa.RecordBatch.from_arrays([_one_piece(one) for one in table.columns], schema=table.schema)


def _free(name: str, names: Sequence[str]) -> str:
    """A name that no other column has."""
    return name if name not in names else _free(f"{name}_", names)
