"""Arrays of bf16 by DLPack, which knows that type where NumPy does not: they go as integers of 16 bits.

That they are bf16 is written into the capsule that is handed over: https://dmlc.github.io/dlpack/latest/c_api.html says
how a ``DLTensor`` is laid out.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any, Final

import ml_dtypes
import numpy as np

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

_UINT: Final = 1
BFLOAT: Final = 4
"""What DLPack calls bf16, where it has 16 bits."""

_BEFORE: Final = {b"dltensor": 0, b"dltensor_versioned": 32}
"""How many bytes are before the tensor, by the name of the capsule: a version, and what frees it."""


class DlTensor(ctypes.Structure):
    """A tensor as DLPack lays it out."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("kind", ctypes.c_int32),
        ("device", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_uint64),
    )


def tensor_in(capsule: Any) -> DlTensor:
    """What a capsule says, as long as it is there. Raises ValueError for what is no capsule of DLPack."""
    python = ctypes.pythonapi
    is_valid, pointer = python.PyCapsule_IsValid, python.PyCapsule_GetPointer
    for function in (is_valid, pointer):
        function.argtypes = ctypes.py_object, ctypes.c_char_p
    pointer.restype = ctypes.c_void_p
    for name, before in _BEFORE.items():
        if is_valid(capsule, name):
            return DlTensor.from_address(pointer(capsule, name) + before)
    raise ValueError("that is no capsule of DLPack")


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
    _rename(capsule, _UINT, BFLOAT)
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
        self.were_bfloats = _rename(capsule, BFLOAT, _UINT)
        return capsule


def _rename(capsule: Any, found: int, wanted: int) -> bool:
    """Call elements of 16 bits another kind, where they are of the kind ``found``. Returns whether they were."""
    told = tensor_in(capsule)
    if (told.code, told.bits) != (found, 16):
        return False
    told.code = wanted
    return True
