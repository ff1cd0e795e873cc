"""Arrays that lie on a GPU: those of other libraries are read and filled where they are.

``run(inputs, out=...)`` takes them among the inputs, and as what is filled, wherever a whole model runs on the device:
nothing of them comes to the host. They come in by DLPack, or by the CUDA array interface, without gaps, in row-major
order; our stream, not the host, waits for that of their owner. When ``run`` returns, all is done, so that any stream
may read the outputs. What cannot be: outputs that nobody gave memory for are on the host, as a `Tensor` is. Of a model
that leaves a node to the host, all is there: it takes a `DeviceArray`, which NumPy can copy, but none of others, and
fills none. A `DeviceArray` goes out by the CUDA array interface, which PyTorch (``torch.as_tensor``) and CuPy read.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, Final

import numpy as np

from tract_core.api.dlpack import BFLOAT, DlTensor, tensor_in
from tract_core.data import DatumType
from tract_core.errors import InputError
from tract_core.plugins.keys import Array
from tract_cuda.driver.device import Device, Stream, device_of

_CUDA: Final = 2
"""What DLPack calls a GPU of CUDA."""

_CODES: Final = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
"""Kinds of elements as DLPack has them, and as NumPy has them."""


class DeviceArray:
    """Memory of a GPU as an array, without gaps. ``owner``: whose memory it is, which stays as long as this does."""

    def __init__(self, device: Device, address: int, shape: Sequence[int], dtype: np.dtype[Any], owner: Any) -> None:
        self.device, self.address, self.shape, self.dtype = device, address, tuple(shape), dtype
        self._owner = owner

    @property
    def nbytes(self) -> int:
        """How many bytes it takes."""
        return prod(self.shape) * self.dtype.itemsize

    @property
    def stand_in(self) -> Array:
        """An array of its type and shape, without its elements, that takes no memory."""
        return np.broadcast_to(np.zeros((), self.dtype), self.shape)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        """For libraries that read it. All that was to be written is written."""
        return {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (self.address, False),
            "version": 3,
            "strides": None,
            "stream": None,
        }

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("what lies on a GPU is copied to be seen by NumPy")
        found: Array = np.empty(self.shape, self.dtype)
        if found.nbytes:
            self.device.read(found, self.address)
        return found if dtype is None else found.astype(dtype)


def empty(shape: Sequence[int], dtype: Any, device: int = 0) -> DeviceArray:
    """New memory of a GPU. Raises DriverError where there is not enough."""
    return _new(device_of(device), shape, np.dtype(dtype))


def put(array: Any, device: int = 0) -> DeviceArray:
    """A copy of an array on a GPU. Raises DriverError where there is not enough memory."""
    given: Array = np.ascontiguousarray(array).reshape(np.shape(array))
    found = _new(device_of(device), given.shape, given.dtype)
    if given.nbytes:
        found.device.write(found.address, given)
    return found


def _new(device: Device, shape: Sequence[int], dtype: np.dtype[Any]) -> DeviceArray:
    memory = device.allocate(prod(shape) * dtype.itemsize)
    return DeviceArray(device, memory.address, shape, dtype, memory)


def seen(value: Any, stream: Stream) -> DeviceArray | None:
    """An array on the device of a stream, which waits for what its owner has put into his; ``None`` for any other.

    Raises InputError where it lies on another device, or is not row-major without gaps.
    """
    if isinstance(value, np.ndarray):
        return None
    if isinstance(value, DeviceArray):
        _check_device(value.device.number, stream)
        return value
    if hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == _CUDA:
        return _of_dlpack(value, stream)
    told = getattr(value, "__cuda_array_interface__", None)
    return None if told is None else _of_interface(value, told, stream)


def _of_interface(value: Any, told: dict[str, Any], stream: Stream) -> DeviceArray:
    dtype, strides = np.dtype(told["typestr"]), told.get("strides")
    found = DeviceArray(stream.device, told["data"][0] or 0, told["shape"], dtype, value)
    _check_compact(found.shape, None if strides is None else [one // dtype.itemsize for one in strides])
    if found.nbytes:
        _check_device(stream.device.owner(found.address), stream)
    theirs = told.get("stream")
    if theirs is not None:
        stream.wait_for(theirs)
    return found


def _check_device(number: int | None, stream: Stream) -> None:
    """Raises InputError where an array is on another device than the model, or on none that the driver knows."""
    if number != stream.device.number:
        where = "in memory that the driver does not know" if number is None else f"on cuda:{number}"
        hint = f"copy it to {stream.device.name}: .to() of PyTorch, arrays.put; or prepare the model for the other GPU"
        raise InputError(f"an array is {where}, the model on {stream.device.name}", hint=hint)


def _of_dlpack(value: Any, stream: Stream) -> DeviceArray:
    _check_device(value.__dlpack_device__()[1], stream)
    capsule = value.__dlpack__(stream=stream.handle)  # the owner has our stream wait for his
    told = tensor_in(capsule)
    shape = [told.shape[axis] for axis in range(told.rank)]
    _check_compact(shape, [told.strides[axis] for axis in range(told.rank)] if told.strides else None)
    # The capsule is not consumed: it frees what it holds when it goes.
    return DeviceArray(stream.device, (told.data or 0) + told.offset, shape, _dtype_of(told), capsule)


def _dtype_of(told: DlTensor) -> np.dtype[Any]:
    if told.lanes == 1 and (told.code, told.bits) == (BFLOAT, 16):
        return DatumType.BF16.numpy
    kind = _CODES.get(told.code)
    if kind is None or told.lanes != 1 or told.bits < 8:
        raise InputError(f"an array has elements of code {told.code} and {told.bits} bits, which no model takes")
    return np.dtype("?" if kind == "b" else f"{kind}{told.bits // 8}")


def _check_compact(shape: Sequence[int], strides: Sequence[int] | None) -> None:
    """Raises InputError where elements, counted by ``strides``, do not lie row by row without gaps."""
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides or ()), strict=False):
        if size != 1 and stride != step and 0 not in shape:
            hint = "make it so where it is: .contiguous() of PyTorch, cupy.ascontiguousarray"
            raise InputError("an array on the GPU has gaps, or is not row-major", hint=hint)
        step *= size
