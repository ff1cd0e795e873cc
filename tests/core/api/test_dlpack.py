"""Arrays of bf16 go to other libraries and come from them by DLPack, as others do."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tract_core.api.arrays import as_array
from tract_core.api.dlpack import array_of, capsule_of
from tract_core.api.tensor import Tensor
from tract_core.data import DatumType
from tract_core.errors import InputError

NUMBERS = np.array([[0.0, -0.0, np.inf], [np.nan, 1.5, -3e38]], ml_dtypes.bfloat16)
ARRAYS = [NUMBERS, NUMBERS[:0], NUMBERS[1, 1], NUMBERS.T, NUMBERS[:, ::2], NUMBERS.astype("f2"), NUMBERS.view("u2")]


class Foreign:
    """An array of a library that speaks DLPack, of this version, and nothing else."""

    def __init__(self, array: Any, version: tuple[int, int] | None) -> None:
        self.array, self.version = np.asarray(array), version

    def __dlpack__(self, **_: Any) -> Any:
        return capsule_of(self.array, max_version=self.version)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


@pytest.mark.parametrize("version", [None, (1, 0)], ids=str)
@pytest.mark.parametrize("array", ARRAYS, ids=lambda one: f"{one.dtype}{one.shape}")
def test_what_goes_out_comes_back_on_the_same_memory(array: Any, version: tuple[int, int] | None) -> None:
    found = array_of(Foreign(array, version))
    assert (found.dtype, found.shape, found.strides) == (array.dtype, array.shape, np.asarray(array).strides)
    assert found.tobytes() == array.tobytes()
    assert np.shares_memory(found, array) == (array.size > 0 and array.ndim > 0)


def test_a_tensor_gives_a_copy_or_its_own_memory() -> None:
    tensor = Tensor.from_numpy(NUMBERS)
    copied = array_of(tensor)
    assert copied.dtype == NUMBERS.dtype
    assert copied.tobytes() == NUMBERS.tobytes()
    assert not np.shares_memory(copied, tensor.view())

    class Unasked(Foreign):
        def __dlpack__(self, **_: Any) -> Any:
            return tensor.__dlpack__(copy=False, max_version=(1, 0))

    own = array_of(Unasked(NUMBERS, None))
    assert np.shares_memory(own, tensor.view())
    assert not own.flags.writeable


def test_inputs_in_bf16_are_read_where_they_are() -> None:
    given = as_array(Foreign(NUMBERS, None), "x", DatumType.BF16)
    assert given.dtype == NUMBERS.dtype
    assert np.shares_memory(given, NUMBERS)


def test_what_gives_no_capsule_is_refused() -> None:
    class Wrong(Foreign):
        def __dlpack__(self, **_: Any) -> Any:
            return b"dltensor"

    with pytest.raises(InputError, match=r"input 'x': a .*Wrong cannot be read as an array"):
        as_array(Wrong(NUMBERS, None), "x", DatumType.BF16)
