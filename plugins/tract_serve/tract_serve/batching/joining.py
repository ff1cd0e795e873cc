"""Several requests as one run: their rows laid one behind the other, and the outputs taken apart again."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Protocol

import numpy as np

from tract_serve.batching.rows import RowAxes

Array = np.ndarray[Any, Any]


class Joining(Protocol):
    """How requests are joined."""

    def key(self, inputs: Sequence[Array]) -> Hashable:
        """Requests with one key can be joined. ``None`` for one that cannot be joined with any."""
        ...

    def rows(self, inputs: Sequence[Array]) -> int:
        """How many rows a request has that can be joined."""
        ...

    def joined(self, requests: Sequence[Sequence[Array]]) -> list[Array]:
        """The inputs of one run."""
        ...

    def apart(self, outputs: Sequence[Array], requests: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """The outputs of each request."""
        ...


class RowsJoined:
    """Requests whose inputs differ in nothing but the number of rows."""

    def __init__(self, rows: RowAxes) -> None:
        self._inputs, self._outputs = rows.inputs, rows.outputs

    @property
    def row_axes(self) -> tuple[int, ...]:
        """The axis of rows of each input."""
        return self._inputs

    def key(self, inputs: Sequence[Array]) -> Hashable:
        """The sizes of the other axes; ``None`` where the inputs have different numbers of rows."""
        shapes = [array.shape for array in inputs]
        count = {shape[axis] for shape, axis in zip(shapes, self._inputs, strict=True)}
        if len(count) != 1 or count == {0}:
            return None
        return tuple(shape[:axis] + shape[axis + 1 :] for shape, axis in zip(shapes, self._inputs, strict=True))

    def rows(self, inputs: Sequence[Array]) -> int:
        """How many there are."""
        return inputs[0].shape[self._inputs[0]]

    def joined(self, requests: Sequence[Sequence[Array]]) -> list[Array]:
        """Each input of all requests, along its axis of rows."""
        return [np.concatenate([one[slot] for one in requests], axis) for slot, axis in enumerate(self._inputs)]

    def apart(self, outputs: Sequence[Array], requests: Sequence[Sequence[Array]]) -> list[list[Array]]:
        """Parts of the outputs, which are not copied."""
        found: list[list[Array]] = []
        begin = 0
        for request in requests:
            end = begin + self.rows(request)
            parts = zip(outputs, self._outputs, strict=True)
            found.append([array[(slice(None),) * axis + (slice(begin, end),)] for array, axis in parts])
            begin = end
        return found
