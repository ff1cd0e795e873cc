"""Values that are known before the model runs.

A `Constant` holds an array that nobody may write to and that no pass copies; it compares and hashes by content, so that
a frozen operator that holds one stays comparable. A `SymbolicArray` holds an integer array whose elements are sizes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tract_core.data.datum_type import DatumType
from tract_core.dims import Dim, TDim, substitute, symbols_of
from tract_core.errors import DimError


class Constant:
    """A read-only array. Equal content (type, shape and bits) makes equal constants."""

    __slots__ = ("_digest", "array")

    array: np.ndarray[Any, Any]

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        view = np.asarray(array).view()
        view.flags.writeable = False
        self.array = view
        self._digest: bytes | None = None

    @property
    def datum_type(self) -> DatumType:
        """The element type."""
        return DatumType.from_numpy(self.array.dtype)

    @property
    def nbytes(self) -> int:
        """Bytes that the elements take when laid out without gaps."""
        return self.array.size * self.array.itemsize

    @property
    def digest(self) -> bytes:
        """16 bytes that depend on type, shape and every element; computed once, on demand."""
        if self._digest is None:
            self._digest = _digest(self.array)
        return self._digest

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Constant):
            return NotImplemented
        a, b = self.array, other.array
        if a.dtype != b.dtype or a.shape != b.shape:
            return False
        return _same_memory(a, b) or self.digest == other.digest

    def __hash__(self) -> int:
        # Type and shape only: equal constants hash alike, and gigabytes of weights are not read to build a dict.
        return hash((self.array.dtype.str, self.array.shape))

    def __repr__(self) -> str:
        shape = ",".join(map(str, self.array.shape))
        return f"Constant({shape},{self.datum_type})" if self.array.size > 8 else f"Constant({self.array.tolist()})"

    def __reduce__(self) -> tuple[object, ...]:
        return Constant, (np.array(self.array),)

    def __copy__(self) -> Constant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Constant:
        return self  # nobody can change it, and it may be large


def _same_memory(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    return a.strides == b.strides and a.__array_interface__["data"] == b.__array_interface__["data"]


def _digest(array: np.ndarray[Any, Any]) -> bytes:
    from tract_core.digests import blake2b

    state = blake2b(digest_size=16)
    state.update(repr((array.dtype.str, array.dtype.name, array.shape)).encode())
    if array.dtype.kind == "O":
        state.update(repr(array.tolist()).encode())
    else:
        state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.digest()


class SymbolicArray:
    """An array of 64-bit integers whose elements are sizes (`Dim`): a shape, or arithmetic on shapes."""

    __slots__ = ("array",)

    array: np.ndarray[Any, Any]

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        view = np.asarray(array, dtype=object).view()
        view.flags.writeable = False
        self.array = view

    @staticmethod
    def of(dims: tuple[Dim, ...]) -> SymbolicArray:
        """The rank-1 array of these sizes."""
        array = np.empty(len(dims), dtype=object)
        array[:] = dims
        return SymbolicArray(array)

    @property
    def dims(self) -> tuple[Dim, ...]:
        """Every element, in row-major order."""
        return tuple(self.array.reshape(-1).tolist())

    def map(self, function: Callable[[Dim], Dim]) -> SymbolicArray:
        """The array of ``function`` of every element."""
        result: np.ndarray[Any, Any] = np.empty(self.array.size, dtype=object)
        result[:] = [function(dim) for dim in self.dims]
        return SymbolicArray(result.reshape(self.array.shape))

    def substitute(self, values: Mapping[str, Dim]) -> Constant | SymbolicArray:
        """With symbols replaced: a `Constant` of i64 when no symbol is left."""
        return value_of(self.map(lambda dim: substitute(dim, values)).array)

    def symbols(self) -> frozenset[str]:
        """Names of all symbols in it."""
        return frozenset[str]().union(*(symbols_of(dim) for dim in self.dims))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SymbolicArray):
            return NotImplemented
        return self.array.shape == other.array.shape and self.dims == other.dims

    def __hash__(self) -> int:
        return hash((self.array.shape, self.dims))

    def __repr__(self) -> str:
        return f"SymbolicArray({','.join(map(str, self.dims))})"


Value = Constant | SymbolicArray


def value_of(array: np.ndarray[Any, Any]) -> Value:
    """The value of an array of sizes: a `Constant` of i64 when every size is a number, else a `SymbolicArray`.

    Raises DimError for a number of more than 64 bits, and for what is no size.
    """
    if all(isinstance(dim, (int, np.integer)) for dim in array.reshape(-1).tolist()):
        try:
            return Constant(array.astype(np.int64))
        except OverflowError:
            raise DimError(f"{array.tolist()} are no sizes: one has more than 64 bits") from None
    others = {type(dim).__name__ for dim in array.reshape(-1).tolist() if not isinstance(dim, (int, np.integer, TDim))}
    if others:
        raise DimError(f"{array.tolist()} are no sizes: it holds {', '.join(sorted(others))}")
    return SymbolicArray(array)
