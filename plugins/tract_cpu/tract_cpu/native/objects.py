"""What native code knows of CPython and NumPy, so that it can look at objects, and make some.

That is where an object has its type (CPython's stable ABI), where an array has its fields (`PyArrayObject_fields`), and
which functions are at which places of NumPy's table (both parts of NumPy's ABI). The rest is done by functions of their
C API. `are_known` compares what is read with what Python says; where that differs, or where Python is not CPython with
one lock for all threads, native code takes no objects.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array

HEAD: Final = object.__basicsize__
"""Bytes that every object begins with: how often it is referred to, and its type."""

TYPE: Final = 8
"""Where in an object the address of its type is, in bytes."""

DATA, RANK, SIZES, DTYPE, FLAGS = (HEAD + place for place in (0, 8, 16, 40, 48))
"""Where in an array the addresses of its elements, of its sizes, and of their type are, its rank and its flags."""

WHOLE, WRITABLE = 0x101, 0x400
"""Flags: of an array that is contiguous, last axis innermost, and aligned; of one that may be written to."""

_FUNCTIONS: Final = (
    "PyList_Size",
    "PyTuple_Size",
    "PyList_GetItem",
    "PyTuple_GetItem",
    "PyList_New",
    "PyList_SetItem",
    "Py_IncRef",
    "Py_DecRef",
    "PyErr_Clear",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)
_OF_NUMPY: Final = {"PyArray_EquivTypes": 182, "PyArray_Empty": 184}
"""Functions, with their places in NumPy's table."""

_OBJECTS: Final = {"None": None, "list": list, "tuple": tuple, "ndarray": np.ndarray}

NAMES: Final = (*_FUNCTIONS, *_OF_NUMPY, *_OBJECTS)
"""The functions and the objects that native code uses, in the order of `addresses`."""


def address_of(array: Array) -> int:
    """Where the elements of an array begin."""
    return array.__array_interface__["data"][0]


@cache
def counts_holders() -> bool:
    """Whether this Python knows at any time how many hold an object: CPython, in which threads take turns."""
    if sys.implementation.name != "cpython":
        return False
    if sys.version_info < (3, 13):
        return True
    import sysconfig  # which takes as long to load as ten modules of ours

    return not sysconfig.get_config_var("Py_GIL_DISABLED")


@cache
def are_known() -> bool:
    """Whether objects and arrays of this Python are in memory as they should be."""
    return (
        counts_holders()
        and ctypes.sizeof(ctypes.c_void_p) == 8
        and HEAD == TYPE + 8
        and all(map(_is_known, _samples()))
    )


def _samples() -> list[Array]:
    plain = np.zeros((2, 7), np.float32)
    return [plain, plain[:, 1:], np.zeros((3, 5, 2), np.int16).T, np.zeros((), np.bool_), np.frombuffer(bytes(8))]


def _is_known(array: Array) -> bool:
    type_, data, sizes, dtype = (ctypes.c_int64.from_address(id(array) + at).value for at in (TYPE, DATA, SIZES, DTYPE))
    rank, flags = (ctypes.c_int32.from_address(id(array) + at).value for at in (RANK, FLAGS))
    found = [type_, data, dtype, rank, flags]
    wanted = [id(np.ndarray), address_of(array), id(array.dtype), array.ndim, array.flags.num]
    return (
        found == wanted
        and tuple(ctypes.c_int64.from_address(sizes + 8 * one).value for one in range(rank)) == array.shape
    )


@cache
def addresses() -> Array:
    """Those of `NAMES`, as integers, in memory that stays."""
    api: Any = ctypes.pythonapi
    functions = [ctypes.cast(getattr(api, name), ctypes.c_void_p).value for name in _FUNCTIONS]
    numpys = _functions_of_numpy()
    return np.array(
        [*functions, *(numpys[place] for place in _OF_NUMPY.values()), *map(id, _OBJECTS.values())], np.int64
    )


def _functions_of_numpy() -> Any:
    """The table that every extension which uses NumPy looks for."""
    numpy: Any = np
    find = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    return ctypes.cast(find(numpy._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_int64))


class _Definition(ctypes.Structure):
    """`PyMethodDef`."""

    _fields_ = (("name", ctypes.c_char_p), ("call", ctypes.c_void_p), ("flags", ctypes.c_int), ("doc", ctypes.c_char_p))


_ARGUMENTS: Final = 0x80
"""`METH_FASTCALL`: a function of the object that it belongs to, where its arguments are, and how many there are."""


@cache
def definition(name: str, address: int) -> Any:
    """What CPython keeps of a native function ``name(own, arguments, count)``.

    It stays, as functions that are made of it point to it.
    """
    return _Definition(name.encode(), address, _ARGUMENTS, None)


def function_of(definition: Any, own: object) -> Any:
    """The function, as Python calls it; ``own`` is its first argument, which it holds on to."""
    return _maker()(ctypes.addressof(definition), own, None)


@cache
def _maker() -> Any:
    kind: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p)
    return kind(("PyCFunction_NewEx", ctypes.pythonapi))
