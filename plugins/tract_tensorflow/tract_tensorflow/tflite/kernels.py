"""Kernels of convolutions of images, as TFLite lays them out, and how they slide."""

from __future__ import annotations

from tract_core.dims import is_symbolic
from tract_core.errors import FactError
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.wired import Wired
from tract_tensorflow.tflite.spatial import pool_spec
from tract_tensorflow.tflite.wiring import Wiring


def grouped_kernel(wire: Wiring) -> tuple[Conv, Wired]:
    """The convolution of CONV_2D, and its kernel (outputs, height, width, channels of a group). Raises FactError."""
    x, kernel = _images(wire), wire.tensor(1)
    _, height, width, per_group = known_sizes(kernel, 4)
    channels = x.shape[-1] if x.rank else 1
    if per_group < 1 or (isinstance(channels, int) and channels % per_group):
        raise FactError(f"{channels} channels cannot be cut into groups of {per_group}, which the kernel wants")
    group = 1 if is_symbolic(channels) else int(channels) // per_group
    return Conv(pool_spec(wire.node, (height, width), dilated=True), KernelFormat.OHWI, group), kernel


def depthwise_kernel(wire: Wiring) -> tuple[Conv, Wired]:
    """The convolution of DEPTHWISE_CONV_2D, and its kernel as (height, width, 1, outputs). Raises FactError."""
    x, kernel = _images(wire), wire.tensor(1)
    one, height, width, outputs = known_sizes(kernel, 4)
    channels = x.shape[-1] if x.rank else 1
    if one != 1 or is_symbolic(channels) or int(channels) < 1 or outputs % int(channels):
        raise FactError(f"a depthwise convolution of {x.fact} has the kernel {kernel.fact}")
    turned = kernel.squeeze([0]).unsqueeze([2])
    return Conv(pool_spec(wire.node, (height, width), dilated=True), KernelFormat.HWIO, int(channels)), turned


def known_sizes(kernel: Wired, rank: int) -> tuple[int, ...]:
    """The sizes of a kernel of so many axes. Raises FactError for another one."""
    shape = kernel.shape
    if len(shape) != rank or any(is_symbolic(size) for size in shape):
        raise FactError(f"the kernel is {kernel.fact}, wanted {rank} axes of known sizes")
    return tuple(int(size) for size in shape)


def _images(wire: Wiring) -> Wired:
    x = wire.tensor(0)
    if x.rank != 4:
        raise FactError(f"a convolution of images is given {x.fact}, wanted four axes")
    return x
