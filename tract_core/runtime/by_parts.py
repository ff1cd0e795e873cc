"""Operators on elements, computed part after part: what their meanings need besides the outputs is little then."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.limits import check_run_time

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

MOST: Final = 1 << 16
"""Elements of a part: so few stay in the cache from one step of a meaning to the next."""

MOST_BYTES: Final = 80 * MOST
"""What a meaning takes at most for a part, besides its output: no limit counts so little."""


def by_parts(compute: Callable[..., Any], inputs: Sequence[Array]) -> Any:
    """What ``compute`` gives for ``inputs``, of which each element depends on those at its place alone.

    ``inputs``: of one rank; axes of size 1 stretch to meet the others. Raises RunError when the time of the run is up.
    """
    shape = np.broadcast_shapes(*(one.shape for one in inputs))
    if prod(shape) <= MOST:
        return compute(*inputs)
    found: Any = None
    for place in _places(shape):
        check_run_time()
        part = compute(*(_part(one, place) for one in inputs))
        if found is None:
            found = np.empty(shape, part.dtype)
        if part.shape != found[place].shape or part.dtype != found.dtype:
            return compute(*inputs)  # whoever looks at that says what is wrong
        found[place] = part
    return found


def _part(array: Array, place: Sequence[slice]) -> Array:
    part: Array = array[tuple(slice(None) if size == 1 else one for size, one in zip(array.shape, place, strict=True))]
    return part


def _places(shape: Sequence[int]) -> Iterator[tuple[slice, ...]]:
    """Parts of a shape, as large as they may be, in order."""
    size, row = shape[0], prod(shape[1:])
    step = max(MOST // row, 1)
    for first in range(0, size, step):
        place = slice(first, min(first + step, size))
        if row <= MOST:
            yield place, *(slice(0, one) for one in shape[1:])
        else:
            yield from ((place, *inner) for inner in _places(shape[1:]))
