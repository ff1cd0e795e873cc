"""Inputs and outputs that lie on the device: they are read and filled there, whoever owns them."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from tract_cuda.arrays import DeviceArray, seen
from tract_cuda.driver.device import Device
from tract_cuda.driver.library import Driver
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan
from tract_cuda.testing.virtual import VirtualGpu

from tract_core.errors import InputError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Tanh
from tract_core.ops.gather import Gather


@pytest.fixture
def gpu() -> VirtualGpu:
    return VirtualGpu(seed=2)


@pytest.fixture
def device(gpu: VirtualGpu) -> Device:
    return Device(Driver(gpu), 0)


def there(device: Device, array: Any) -> DeviceArray:
    given = np.ascontiguousarray(array)
    memory = device.allocate(given.nbytes)
    if given.nbytes:
        device.write(memory.address, given)
    return DeviceArray(device, memory.address, given.shape, given.dtype, memory)


class Foreign:
    """An array of another library, with the CUDA array interface."""

    def __init__(self, array: DeviceArray, **changed: Any) -> None:
        self.__cuda_array_interface__ = array.__cuda_array_interface__ | changed
        self.kept = array


def plan_of(model: TypedModel, device: Device) -> CudaPlan:
    arch = arch_named("sm_90")
    assert arch is not None
    return CudaPlan(model, device, Target(arch, 4))


def tanh() -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,3,f32", model.symbols))
    model.set_outputs(model.wire_node("tanh", Tanh(), [x]))
    return model


def rows(count: int) -> np.ndarray:
    return np.linspace(-2, 2, 3 * count, dtype=np.float32).reshape(count, 3)


def test_nothing_comes_to_the_host(gpu: VirtualGpu, device: Device) -> None:
    state = plan_of(tanh(), device).spawn()
    for count in (4, 0, 9, 4):
        x, y = there(device, rows(count)), there(device, np.zeros((count, 3), np.float32))
        found = state.repeat([x], [y])
        assert found is not None
        assert found[0] is y
        np.testing.assert_allclose(np.asarray(y), np.tanh(rows(count)), rtol=1e-6)
    x, y = there(device, rows(4)), there(device, rows(4))
    state.repeat([x], [y])
    gpu.log.clear()
    state.repeat([x], [y])
    assert [name for name in gpu.log if name != "cuCtxSetCurrent"] == ["cuGraphLaunch", "cuStreamSynchronize"]


def test_either_end_may_be_on_the_host(device: Device) -> None:
    plan, x = plan_of(tanh(), device), rows(5)
    found = plan.repeat([there(device, x)])
    assert found is not None
    np.testing.assert_allclose(found[0], np.tanh(x), rtol=1e-6)
    y = there(device, np.zeros_like(x))
    plan.repeat([x], [y])
    np.testing.assert_allclose(np.asarray(y), np.tanh(x), rtol=1e-6)
    z = np.zeros_like(x)
    plan.repeat([y], [z])
    np.testing.assert_allclose(z, np.tanh(np.tanh(x)), rtol=1e-6)
    assert plan.repeat([x]) is None
    assert plan.repeat([x], [z]) is None


def test_other_arrays_at_the_same_sizes(device: Device) -> None:
    state = plan_of(tanh(), device).spawn()
    kept = [there(device, rows(4) * scale) for scale in (1, 2, 3)]
    for x in (*kept, *kept):
        found = state.repeat([x])
        assert found is not None
        np.testing.assert_allclose(found[0], np.tanh(np.asarray(x)), rtol=1e-6)


def test_our_stream_waits_for_that_of_the_owner(device: Device) -> None:
    model = plan_of(tanh(), device)
    for _ in range(6):
        x, theirs = there(device, rows(4)), device.stream()
        theirs.clear(x.address, x.nbytes)
        found = model.repeat([Foreign(x, stream=theirs.handle)])
        assert found is not None
        assert not found[0].any()


class Exporter:
    """An array of another library, by DLPack."""

    def __init__(self, array: DeviceArray, code: int = 2, strides: list[int] | None = None, number: int = 0) -> None:
        self.array, self.number, self.streams = array, number, list[int]()
        rank = len(array.shape)
        self.shape = (ctypes.c_int64 * rank)(*array.shape)
        self.strides = None if strides is None else (ctypes.c_int64 * rank)(*strides)
        pointers = (ctypes.addressof(self.shape), 0 if self.strides is None else ctypes.addressof(self.strides))
        bits, fields = 8 * array.dtype.itemsize, np.zeros(1, DLPACK)
        fields[0] = (array.address - 8, 2, number, rank, code, bits, 1, *pointers, 8, 0, 0)
        self.fields = fields

    def __dlpack_device__(self) -> tuple[int, int]:
        return (2, self.number)

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        self.streams.append(stream or 0)
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        return new(self.fields.ctypes.data, b"dltensor", None)


DLPACK = np.dtype(
    {
        "names": [
            "data",
            "kind",
            "id",
            "rank",
            "code",
            "bits",
            "lanes",
            "shape",
            "strides",
            "offset",
            "ctx",
            "deleter",
        ],
        "formats": ["u8", "i4", "i4", "i4", "u1", "u1", "u2", "u8", "u8", "u8", "u8", "u8"],
        "offsets": [0, 8, 12, 16, 20, 21, 22, 24, 32, 40, 48, 56],
    }
)
"""DLManagedTensor, as https://dmlc.github.io/dlpack/latest/c_api.html has it."""


def test_arrays_by_dlpack(device: Device) -> None:
    x, state = there(device, rows(4)), plan_of(tanh(), device).spawn()
    for one in (Exporter(x), Exporter(x, strides=[3, 1])):
        found = state.repeat([one])
        assert found is not None
        np.testing.assert_allclose(found[0], np.tanh(rows(4)), rtol=1e-6)
        assert len(one.streams) == 1
        assert one.streams[0] > 0


def test_elements_of_two_bytes_that_numpy_does_not_know(device: Device) -> None:
    x = there(device, np.zeros(4, np.uint16))
    found = seen(Exporter(x, code=4), device.stream())
    assert found is not None
    assert found.dtype.name == "bfloat16"


@pytest.mark.parametrize("strides", [[1, 4], [6, 1]])
def test_arrays_with_gaps_are_refused(device: Device, strides: list[int]) -> None:
    plan, x = plan_of(tanh(), device), there(device, rows(4))
    for one in (Exporter(x, strides=strides), Foreign(x, strides=tuple(4 * one for one in strides))):
        with pytest.raises(InputError, match="has gaps, or is not row-major"):
            plan.repeat([one])


def test_arrays_that_do_not_fit_are_refused(device: Device) -> None:
    plan, x = plan_of(tanh(), device), there(device, rows(4))
    with pytest.raises(InputError, match="is on cuda:3, the model on cuda:0"):
        plan.repeat([Exporter(x, number=3)])
    with pytest.raises(InputError, match="elements of code 9 and 32 bits"):
        plan.repeat([Exporter(x, code=9)])
    with pytest.raises(InputError, match="f64"):
        plan.repeat([there(device, rows(4).astype(np.float64))])
    with pytest.raises(InputError, match=r"the array has shape \[5,3\]"):
        plan.repeat([x], [there(device, rows(5))])
    with pytest.raises(InputError, match="shares memory"):
        plan.repeat([x], [x])


def test_what_a_kernel_refuses_is_told(device: Device) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("4,3,f32", model.symbols))
    picked = model.add_source("picked", parse_typed_fact("2,i64", model.symbols))
    model.set_outputs(model.wire_node("rows", Gather(0), [x, picked]))
    state, given = plan_of(model, device).spawn(), there(device, rows(4))
    found = state.repeat([given, np.array([-1, 2])])
    assert found is not None
    assert found[0].tolist() == rows(4)[[-1, 2]].tolist()
    with pytest.raises(RunError, match="node 'rows'"):
        state.repeat([given, there(device, np.array([0, 4]))])


def test_numpy_copies_what_lies_there(device: Device) -> None:
    x = there(device, rows(4))
    assert np.asarray(x).tolist() == rows(4).tolist()
    assert np.asarray(x, np.float64).dtype == np.float64
    with pytest.raises(ValueError, match="is copied"):
        np.array(x, copy=False)
    assert np.asarray(there(device, rows(0))).shape == (0, 3)
