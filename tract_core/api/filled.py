"""Arrays of a caller that a run fills: whether they can be written to, and whether they overlap with other arrays.

Their number, types and shapes are compared with the outputs by `tract_core.runtime.outputs`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from copy import deepcopy
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from tract_core.api.arrays import read_only
from tract_core.data.boxes import tensors_in
from tract_core.errors import InputError

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array


def arrays_to_fill(given: Sequence[Any], names: Sequence[str]) -> list[Array]:
    """One array per output, on the memory of those that were given. ``names``: those of the outputs.

    Raises InputError for what is no array of NumPy, for one that is read-only, not contiguous, unaligned or in another
    byte order, and for two that share memory.
    """
    arrays = [_writable(value, name) for value, name in zip(given, names, strict=True)]
    for slot, array in enumerate(arrays):
        for other, earlier in enumerate(arrays[:slot]):
            if np.may_share_memory(array, earlier):
                raise _error(names[slot], f"shares memory with that for {names[other]!r}", "give each output its own")
    return arrays


def without_overlap(inputs: Sequence[Array], filled: Sequence[Array]) -> list[Array]:
    """The inputs, each copied that shares memory with an array that is filled, so that it is read as it was given."""
    return [read_only(deepcopy(array)) if _overlaps(array, filled) else array for array in inputs]


def _overlaps(array: Array, filled: Sequence[Array]) -> bool:
    return any(np.may_share_memory(one, other) for one in tensors_in(array) for other in filled)


def _is_masked(value: object) -> bool:
    # Who has a masked array has imported its module, which takes as long as a third of NumPy.
    return "numpy.ma" in sys.modules and isinstance(value, cast("Any", np).ma.MaskedArray)


def _writable(value: Any, name: str) -> Array:
    if not isinstance(value, np.ndarray) or _is_masked(cast("object", value)):
        hint = "give an array of NumPy; that of a tensor of PyTorch, tensor.numpy(), has the same memory"
        raise _error(name, f"is a {type(cast('object', value)).__name__}, which a run cannot fill", hint)
    array = np.asarray(cast("Array", value))
    flags = array.flags
    if not flags.writeable:
        raise _error(name, "is read-only", "give one of your own: numpy.empty(shape, dtype)")
    if not (flags.c_contiguous and flags.aligned and array.dtype.isnative):
        hint = "numpy.empty(shape, dtype) makes one that is; copy from it where you want the output"
        raise _error(name, "is not contiguous, aligned and in native byte order", hint)
    return array


def _error(name: str, problem: str, hint: str) -> InputError:
    return InputError(f"the array {problem}", where=f"array for output {name!r}", hint=hint)
