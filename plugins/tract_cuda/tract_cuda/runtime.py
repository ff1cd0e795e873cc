"""The runtime ``cuda``: what can be chosen, and how a model is made ready."""

from __future__ import annotations

from dataclasses import field
from typing import ClassVar, Final

from tract_core.errors import RunError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel
from tract_core.runtime.plan import refuse_missing
from tract_cuda.driver.device import MULTIPROCESSORS, Device, capability_of, device_of, memory_of
from tract_cuda.driver.library import DriverError, native
from tract_cuda.language.arch import ARCHS, Arch, arch_for, arch_named
from tract_cuda.lowering import Target
from tract_cuda.plan import CudaPlan

LEAST_BYTES: Final = 512 << 20
"""What the driver takes of a device for itself, and room for small models."""


@frozen
class CudaRuntime:
    """Compiles models for a GPU that CUDA's driver knows."""

    name: ClassVar[str] = "cuda"
    device: int = field(default=0, metadata={"doc": "which GPU, by its number"})
    arch: str = field(
        default="",
        metadata={"doc": f"the architecture ({', '.join(one.name for one in ARCHS)}); empty for that of the GPU"},
    )
    tf32: bool = field(default=False, metadata={"doc": "whether products of f32 may be computed with 10 bits"})

    def __post_init__(self) -> None:
        if self.device < 0:
            raise ValueError(f"device is {self.device}, wanted 0 or more")
        if self.arch and arch_named(self.arch) is None:
            raise ValueError(f"arch is {self.arch!r}, wanted one of {', '.join(one.name for one in ARCHS)}, or none")

    def why_unusable(self) -> str | None:
        """``None`` where there are a driver and the GPU, else what is missing."""
        try:
            driver = native()
            count = driver.number("cuDeviceGetCount")
            if self.device >= count:
                return f"there is no GPU {self.device}: there are {count}, counted from 0"
            handle = driver.number("cuDeviceGet", self.device)
            return _why_too_old(capability_of(driver, handle)) or _why_too_small(memory_of(driver, handle))
        except DriverError as error:
            return error.problem if error.hint is None else f"{error.problem}: {error.hint}"
        except RunError as error:
            return error.problem

    def prepare(self, model: TypedModel) -> CudaPlan:
        """Compile a model. Raises Unsupported, naming every operator that has neither a kernel nor NumPy meaning."""
        refuse_missing(model)
        device = device_of(self.device)
        return CudaPlan(model, device, Target(self._arch(device), device.attribute(MULTIPROCESSORS), tf32=self.tf32))

    def _arch(self, device: Device) -> Arch:
        found = arch_named(self.arch) if self.arch else arch_for(device.capability)
        if found is None:
            raise Unsupported(_why_too_old(device.capability) or "there are no kernels for this GPU")
        return found


def _why_too_small(size: int) -> str | None:
    if size >= LEAST_BYTES:
        return None
    return f"the GPU has {size >> 20} MiB of memory, {LEAST_BYTES >> 20} or more are wanted"


def _why_too_old(capability: int) -> str | None:
    least = min(one.capability for one in ARCHS)
    if capability >= least:
        return None
    return f"the GPU has compute capability {capability / 10}, {least / 10} or newer is wanted"
