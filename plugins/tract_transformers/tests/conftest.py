"""What the tests of this distribution share."""

import sys
from functools import cache
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))  # for the helpers beside the tests

from gpus import METAL, ON_GPUS


@cache
def _gpu():
    from tract_cuda.driver.device import Device
    from tract_cuda.driver.library import Driver
    from tract_cuda.testing.virtual import VirtualGpu

    driver = Driver(VirtualGpu())
    return driver, Device(driver, 0)


@pytest.fixture
def virtual_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime ``cuda`` finds the virtual GPU, whatever else is there, and looks at its programs."""
    from tract_cuda import runtime

    monkeypatch.setenv("TRACT_CHECK_PROGRAMS", "1")
    monkeypatch.setattr(runtime, "native", lambda: _gpu()[0])
    monkeypatch.setattr(runtime, "device_of", lambda _: _gpu()[1])


@pytest.fixture
def mlx_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The runtime ``metal``, where it is there, compiles nothing: for the processor, that takes a second for each."""
    if METAL in ON_GPUS:
        from tract_metal.device import MetalDevice

        monkeypatch.setattr(MetalDevice, "named", staticmethod(lambda name: MetalDevice(name, compiles=False)))
