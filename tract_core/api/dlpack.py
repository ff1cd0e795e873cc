"""Arrays of bf16 by DLPack, which knows that type where NumPy does not: they go as integers of 16 bits.

What the integers are is written into the capsule, which says so in two bytes of the ``DLTensor`` that it holds, as
https://dmlc.github.io/dlpack/latest/c_api.html lays it out.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

_UINT: Final = 1
_BFLOAT: Final = 4

_BEFORE: Final = {b"dltensor": 0, b"dltensor_versioned": 32}
"""How many bytes are before the tensor, by the name of the capsule: a version, and what frees it."""

_DTYPE: Final = 20
"""Behind so many bytes of a tensor, its address, device and rank, are the kind of its elements and their bits."""


def array_of(value: Any) -> Array:
    """The memory of another library's tensor on the CPU, without a copy. Raises what that library and NumPy raise."""
    bits = _Bits(value)
    array = np.from_dlpack(bits)
    return array.view(ml_dtypes.bfloat16) if bits.were_bfloats else array


def capsule_of(array: Array, **options: Any) -> Any:
    """An array for another library. ``options``: as `numpy.ndarray.__dlpack__` has them. Raises what that raises."""
    if array.dtype != ml_dtypes.bfloat16:
        return array.__dlpack__(**options)
    capsule = array.view(np.uint16).__dlpack__(**options)
    _rename(capsule, _UINT, _BFLOAT)
    return capsule


class _Bits:
    """A tensor whose numbers are taken for integers where they are bf16."""

    def __init__(self, value: Any) -> None:
        self._value = value
        self.were_bfloats = False

    def __dlpack_device__(self) -> Any:
        return self._value.__dlpack_device__()

    def __dlpack__(self, **options: Any) -> Any:
        capsule = self._value.__dlpack__(**options)
        self.were_bfloats = _rename(capsule, _BFLOAT, _UINT)
        return capsule


def _rename(capsule: Any, found: int, wanted: int) -> bool:
    """Call elements of 16 bits another kind, where they are of the kind ``found``. Returns whether they were."""
    python = ctypes.pythonapi
    is_valid, pointer = python.PyCapsule_IsValid, python.PyCapsule_GetPointer
    for function in (is_valid, pointer):
        function.argtypes = ctypes.py_object, ctypes.c_char_p
    pointer.restype = ctypes.c_void_p
    for name, before in _BEFORE.items():
        if is_valid(capsule, name):
            dtype = (ctypes.c_uint8 * 2).from_address(pointer(capsule, name) + before + _DTYPE)
            if tuple(dtype) == (found, 16):
                dtype[0] = wanted
                return True
    return False
