"""Values as people and programs read them: in one line, as JSON, and in .npz files."""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

import numpy as np

from tract_core.data import DatumType
from tract_core.data.boxes import from_tensor, to_tensor
from tract_core.errors import InputError
from tract_core.saving import whole_file
from tract_core.texts import printable

Array = np.ndarray[Any, Any]

FIRST: Final = 8
"""How many elements a line shows."""


def summary(array: Array) -> str:
    """Type, shape and the first elements, in one line."""
    value = from_tensor(array)
    if not isinstance(value, np.ndarray):
        return _container(value)
    flat = array.reshape(-1)[:FIRST]
    values = " ".join(
        f"{element:.6g}" if array.dtype.kind == "f" else printable(str(element)) for element in flat.tolist()
    )
    return f"{fact_of(array)}  {values}{' ...' if array.size > FIRST else ''}"


def fact_of(array: Array) -> str:
    """Type and shape: ``2,3,f32``; ``sequence``, ``map`` or ``nothing`` for what is no tensor."""
    value = from_tensor(array)
    if not isinstance(value, np.ndarray):
        return "sequence" if isinstance(value, list) else "map" if isinstance(value, dict) else "nothing"
    return ",".join([*map(str, array.shape), DatumType.from_numpy(array.dtype).short])


def _container(value: Any) -> str:
    if value is None:
        return "nothing"
    items = list(_items(value))
    shown = "; ".join(f"{printable(str(key))}: {summary(to_tensor(item))}" for key, item in items[:3])
    return f"{fact_of(to_tensor(value))} of {len(items)}  {shown}{' ...' if len(items) > 3 else ''}"


def _items(value: Any) -> Iterable[tuple[Any, Any]]:
    if isinstance(value, dict):
        return cast("dict[Any, Any]", value).items()
    return enumerate(cast("list[Any]", value))


def plain(value: Any) -> Any:
    """A value as JSON has it: lists and numbers; what is no number, as text: ``"nan"``, ``"inf"``, ``"1+2j"``."""
    if isinstance(value, np.ndarray):
        array = cast("Array", value)
        held: Any = from_tensor(array)
        return _elements(array) if held is array else plain(held)
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in _items(value)}
    if isinstance(value, list):
        return [plain(item) for _, item in _items(value)]
    return cast("object", value.item()) if isinstance(value, np.generic) else value


def _elements(array: Array) -> Any:
    if array.dtype.kind in "biuU":
        return array.tolist()
    if array.dtype.kind in "cO":
        return array.astype(str).tolist()
    wide = array.astype(np.float64)
    finite = np.isfinite(wide)
    return wide.tolist() if finite.all() else np.where(finite, wide.astype(object), wide.astype(str)).tolist()


def holds_arrays_only(array: Array) -> bool:
    """Whether an .npz file can hold it."""
    return isinstance(from_tensor(array), np.ndarray)


def save_npz(path: str, arrays: Mapping[str, Array]) -> None:
    """Write an .npz file, see `whole_file`. Raises InputError when that fails, and for what is no tensor."""
    wrong = [name for name, array in arrays.items() if not holds_arrays_only(array)]
    if wrong:
        raise InputError(f"an .npz file holds tensors only; {', '.join(wrong)} is none", where=path)
    # Not by numpy.savez, which takes the names of its own arguments for itself.
    with whole_file(path) as file, zipfile.ZipFile(file, "w") as bundle:
        for name, array in arrays.items():
            with bundle.open(f"{name}.npy", "w", force_zip64=True) as entry:
                np.lib.format.write_array(entry, _without_objects(name, array, path), allow_pickle=False)


def _without_objects(name: str, array: Array, path: str) -> Array:
    """The array without Python objects, which nobody would read back: texts as NumPy has them."""
    if array.dtype.kind != "O":
        return array
    texts = [text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text for text in array.flat]
    if any(text.endswith("\0") for text in texts):
        raise InputError(f"{name!r} has a text with a zero at its end, which an .npz file cannot hold", where=path)
    return np.array(texts, dtype=str).reshape(array.shape)
