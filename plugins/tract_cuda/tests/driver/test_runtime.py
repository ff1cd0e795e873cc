"""What the runtime says of a machine, and what can be chosen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tract_cuda.driver import library
from tract_cuda.driver.library import Driver
from tract_cuda.runtime import CudaRuntime
from tract_cuda.testing import virtual
from tract_cuda.testing.virtual import VirtualGpu


@pytest.fixture(autouse=True)
def _no_driver_is_known() -> Iterator[None]:  # pyright: ignore[reportUnusedFunction]: pytest uses it
    library.native.cache_clear()
    yield
    library.native.cache_clear()


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv(library.VARIABLE, "tract_cuda.testing.virtual:VirtualGpu")
    return monkeypatch


def test_a_machine_without_a_driver_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(library.VARIABLE, "libnone.so")
    assert (CudaRuntime().why_unusable() or "").startswith("there is no driver of CUDA here: libnone.so")


def test_a_driver_that_is_too_old_says_which_is_wanted(named: pytest.MonkeyPatch) -> None:
    named.setattr(virtual, "OLDEST", 11080)
    assert CudaRuntime().why_unusable() == "the driver is for CUDA 11.8, 12.0 or newer is wanted"


def test_a_device_that_is_not_there(named: pytest.MonkeyPatch) -> None:
    assert CudaRuntime().why_unusable() is None
    assert CudaRuntime(device=1).why_unusable() == "there is no GPU 1: there are 1, counted from 0"


def test_a_device_that_is_too_old(named: pytest.MonkeyPatch) -> None:
    named.setattr(virtual, "ATTRIBUTES", {**virtual.ATTRIBUTES, 75: 7, 76: 5})
    assert CudaRuntime().why_unusable() == "the GPU has compute capability 7.5, 8.0 or newer is wanted"


def test_a_device_that_is_too_small(named: pytest.MonkeyPatch) -> None:
    named.setattr("tract_cuda.runtime.native", lambda: Driver(VirtualGpu(memory=100 << 20)))
    assert CudaRuntime().why_unusable() == "the GPU has 100 MiB of memory, 512 or more are wanted"


def test_looking_opens_no_device(named: pytest.MonkeyPatch) -> None:
    gpu = VirtualGpu()
    named.setattr("tract_cuda.runtime.native", lambda: Driver(gpu))
    assert CudaRuntime().why_unusable() is None
    assert "cuDevicePrimaryCtxRetain" not in gpu.log


@pytest.mark.parametrize(
    ("options", "problem"),
    [({"device": -1}, "device is -1, wanted 0 or more"), ({"arch": "sm_70"}, "arch is 'sm_70', wanted one of sm_80")],
)
def test_options_that_cannot_be(options: dict[str, object], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        CudaRuntime(**options)  # pyright: ignore[reportArgumentType]: of any type
