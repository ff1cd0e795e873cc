"""Requests of different lengths as one run: the shorter ones are filled up with zeros, and their outputs cut.

That is right for models that are told how long each row is, by a mask or by a number, and look at nothing behind that.
Whether a model is such is tried.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final

import numpy as np

from tract_core.errors import TractError
from tract_serve.batching.joining import RowsJoined
from tract_serve.batching.rows import RowAxes
from tract_serve.tensors.ports import Port, Signature

Array = np.ndarray[Any, Any]

_SHORT: Final = 3
_LONG: Final = 5
"""Lengths that are tried."""

_TOLERANCE: Final = 1e-4
"""Of the largest number of an output: that results may differ by, where the lengths of a run do."""


class RaggedJoined(RowsJoined):
    """Requests whose inputs differ in the number of rows, and in sizes that are filled up."""

    def __init__(self, rows: RowAxes, signature: Signature, ragged: Sequence[str]) -> None:
        """``ragged``: the names of the inputs whose sizes are filled up along every axis that may be any, but rows."""
        super().__init__(rows)
        self._filled = [
            [n for n, size in enumerate(port.sizes) if size is None and n != axis] if port.name in ragged else []
            for port, axis in zip(signature.inputs, rows.inputs, strict=True)
        ]
        self._cut = [
            self._origins(port, axis, signature) for port, axis in zip(signature.outputs, rows.outputs, strict=True)
        ]

    def key(self, inputs: Sequence[Array]) -> Hashable:
        """The sizes that are not filled up. Lengths within a factor of two go together: no run is mostly zeros."""
        if super().key(inputs) is None:
            return None
        return tuple(
            tuple(0 if n == axis else -size.bit_length() if n in filled else size for n, size in enumerate(array.shape))
            for array, axis, filled in zip(inputs, self._inputs, self._filled, strict=True)
        )

    def joined(self, requests: Sequence[Sequence[Array]]) -> list[Array]:
        """Each input of all requests, along its axis of rows, filled up to the longest."""
        found: list[Array] = []
        for slot, (axis, filled) in enumerate(zip(self._inputs, self._filled, strict=True)):
            arrays = [one[slot] for one in requests]
            shape = np.max([array.shape for array in arrays], axis=0)
            if filled:
                arrays = [_filled_up(array, shape, filled) for array in arrays]
            found.append(np.concatenate(arrays, axis))
        return found

    def apart(self, outputs: Sequence[Array], requests: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Parts of the outputs, each as long as its request."""
        found = super().apart(outputs, requests)
        for parts, request in zip(found, requests, strict=True):
            for slot, origins in enumerate(self._cut):
                whole = [slice(None)] * parts[slot].ndim
                for axis, (source, place) in origins.items():
                    whole[axis] = slice(0, request[source].shape[place])
                parts[slot] = parts[slot][tuple(whole)]
        return found

    def _origins(self, port: Port, rows: int, signature: Signature) -> dict[int, tuple[int, int]]:
        """For each axis of an output that is as long as a ragged input, that input and its axis."""
        found: dict[int, tuple[int, int]] = {}
        for axis, symbol in enumerate(port.symbols):
            for slot, filled in enumerate(self._filled):
                for place in filled:
                    if axis != rows and symbol is not None and signature.inputs[slot].symbols[place] == symbol:
                        found.setdefault(axis, (slot, place))
        return found


def why_not_joined(joining: RaggedJoined, signature: Signature, run: Callable[[Sequence[Array]], list[Array]]) -> str:
    """Why requests of different lengths cannot be joined; empty where they can, as far as trying tells."""
    short, long = (_tried_inputs(signature, joining, length) for length in (_SHORT, _LONG))
    try:
        alone = [run(short), run(long)]
        together = joining.apart(run(joining.joined([short, long])), [short, long])
    except TractError as error:
        return error.problem
    pairs = zip([*alone[0], *alone[1]], [*together[0], *together[1]], strict=True)
    for port, (one, both) in zip(signature.outputs * 2, pairs, strict=True):
        if one.shape != both.shape:
            return f"{port.name} of a request that was filled up has shape {list(both.shape)}, alone {list(one.shape)}"
        if one.dtype.kind != "O" and not _alike(one, both):
            return f"{port.name} of a request that was filled up is not what it is alone: it needs a mask, or lengths"
    return ""


def _tried_inputs(signature: Signature, joining: RaggedJoined, length: int) -> list[Array]:
    """A request: numbers at random; ones where they are whole, as in a mask; its length where rows have one number."""
    random = np.random.default_rng(length)
    found: list[Array] = []
    for port, rows in zip(signature.inputs, joining.row_axes, strict=True):
        shape = [1 if n == rows else length if size is None else size for n, size in enumerate(port.sizes)]
        if port.kind.is_float():
            found.append(random.standard_normal(shape).astype(port.kind.numpy))
        else:
            value = length if port.kind.is_integer() and len(shape) == 1 else 1
            found.append(np.full(shape, value, port.kind.numpy))
    return found


def _alike(one: Array, other: Array) -> bool:
    left, right = one.astype(np.float64), other.astype(np.float64)
    most = np.max(np.abs(left), initial=0.0)
    return bool(np.allclose(left, right, rtol=0, atol=_TOLERANCE * max(float(most), 1e-6), equal_nan=True))


def _filled_up(array: Array, shape: Any, filled: Sequence[int]) -> Array:
    wanted = [shape[n] if n in filled else size for n, size in enumerate(array.shape)]
    if list(array.shape) == wanted:
        return array
    result: Array = np.zeros(wanted, array.dtype)
    if array.dtype.kind == "O":
        result.fill("")
    result[tuple(slice(0, size) for size in array.shape)] = array
    return result
