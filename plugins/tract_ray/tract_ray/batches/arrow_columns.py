"""From columns of Arrow to arrays: views on their memory, where that is in one piece.

Sources: "Arrow Columnar Format" (layouts of arrays), "Canonical Extension Types" (``arrow.fixed_shape_tensor``);
Ray's own tensors are lists with a shape beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.importing import imported
from tract_ray.columns import BatchColumn, rows_with

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

_pa: Final[Any] = imported("pyarrow")


def column_of(array: Any) -> BatchColumn:
    """The values of an array of Arrow."""
    if isinstance(array, _pa.ExtensionArray):
        return _EXTENSIONS.get(array.type.extension_name, _of_storage)(array)
    for is_kind, read in _KINDS:
        if is_kind(array.type):
            return read(array)
    return BatchColumn(array.to_pylist())


def _of_numbers(array: Any) -> BatchColumn:
    if not array.null_count:
        return BatchColumn(array.to_numpy(zero_copy_only=not _pa.types.is_boolean(array.type)))
    null = array.is_null().to_numpy(zero_copy_only=False)
    return BatchColumn(
        array.fill_null(False if _pa.types.is_boolean(array.type) else 0).to_numpy(zero_copy_only=False), null
    )


def _of_texts(array: Any) -> BatchColumn:
    return BatchColumn(array.to_numpy(zero_copy_only=False), _nulls(array))


def _of_lists_of_one_size(array: Any) -> BatchColumn:
    """``array``: lists; where they are null, their elements are there all the same."""
    size = array.type.list_size
    inside = column_of(array.values.slice(array.offset * size, len(array) * size))
    return _in_rows(array, inside, size)


def _of_lists(array: Any) -> BatchColumn:
    offsets = array.offsets.to_numpy()
    lengths = np.diff(offsets)
    inside = column_of(array.values.slice(offsets[0], offsets[-1] - offsets[0]))
    if not array.null_count and len(lengths) and (lengths == lengths[0]).all():
        return _in_rows(array, inside, int(lengths[0]))
    if not isinstance(inside.values, np.ndarray) or inside.null is not None:
        return BatchColumn(array.to_pylist())
    ends = (offsets - offsets[0]).tolist()
    return BatchColumn(_without_null(_pieces(inside.values, ends), _nulls(array)))


def _in_rows(array: Any, inside: BatchColumn, size: int) -> BatchColumn:
    """Elements of lists that are all of one size, as rows."""
    if not isinstance(inside.values, np.ndarray):
        return BatchColumn(array.to_pylist())
    rows = len(array)
    null = _nulls(array)
    if inside.null is not None:
        within = rows_with(inside.null, rows)
        null = within if null is None else null | within
    return BatchColumn(inside.values.reshape(rows, size, *inside.values.shape[1:]), null)


def _pieces(values: Array, ends: Sequence[int]) -> list[Any]:
    return [values[begin:end] for begin, end in pairwise(ends)]


def _without_null(rows: list[Any], null: Array | None) -> list[Any]:
    """The same with ``None`` for each row that is null."""
    if null is None:
        return rows
    return [None if is_null else row for row, is_null in zip(rows, null.tolist(), strict=True)]


def _of_tensors(array: Any) -> BatchColumn:
    """Tensors of one shape, with their axes in the order that the type says."""
    found = _in_shape(column_of(array.storage), tuple(array.type.shape))
    order = array.type.permutation
    if not order or not isinstance(found.values, np.ndarray):
        return found
    return BatchColumn(found.values.transpose(0, *(axis + 1 for axis in order)), found.null)


def _of_tensors_of_ray(array: Any) -> BatchColumn:
    return _in_shape(column_of(array.storage), tuple(array.type.shape))


def _in_shape(flat: BatchColumn, shape: tuple[int, ...]) -> BatchColumn:
    if isinstance(flat.values, np.ndarray):
        return BatchColumn(flat.values.reshape(len(flat.values), *shape), flat.null)
    return BatchColumn([None if row is None else np.asarray(row).reshape(shape) for row in flat.values], flat.null)


def _of_tensors_of_several_shapes(array: Any) -> BatchColumn:
    """A structure of the elements and the shape of each."""
    data, shapes = (column_of(array.storage.field(name)) for name in ("data", "shape"))
    pairs = zip(data.values, shapes.values, strict=True)
    rows = [None if row is None else np.asarray(row).reshape(np.asarray(shape)) for row, shape in pairs]
    return BatchColumn(_without_null(rows, _nulls(array)))


def _of_storage(array: Any) -> BatchColumn:
    return column_of(array.storage)


def _nulls(array: Any) -> Array | None:
    return array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None


_Read = Callable[[Any], BatchColumn]

_KINDS: Final[Sequence[tuple[Callable[[Any], bool], _Read]]] = (
    (_pa.types.is_primitive, _of_numbers),
    (_pa.types.is_fixed_size_list, _of_lists_of_one_size),
    (lambda kind: _pa.types.is_list(kind) or _pa.types.is_large_list(kind), _of_lists),
    (lambda kind: _pa.types.is_string(kind) or _pa.types.is_large_string(kind), _of_texts),
    (_pa.types.is_dictionary, lambda array: column_of(array.dictionary_decode())),
)

_EXTENSIONS: Final[Mapping[str, _Read]] = {
    "arrow.fixed_shape_tensor": _of_tensors,
    "ray.data.arrow_tensor": _of_tensors_of_ray,
    "ray.data.arrow_tensor_v2": _of_tensors_of_ray,
    "ray.data.arrow_variable_shaped_tensor": _of_tensors_of_several_shapes,
}
