"""What convolutions and pools have in common: their attributes, as the core's `PoolSpec`."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import is_symbolic
from tract_core.errors import FactError, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.pool_spec import (
    DataFormat,
    Explicit,
    ExplicitOnnxPool,
    Padding,
    PoolSpec,
    SameLower,
    SameUpper,
    Valid,
)
from tract_onnx.node import OnnxNode
from tract_onnx.wiring import Wiring

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


def pool_spec(node: OnnxNode, kernel_shape: Sequence[int], *, ceil_mode: bool = False) -> PoolSpec:
    """The window that the attributes of a convolution or pool describe."""
    rank = len(kernel_shape)
    return PoolSpec(
        DataFormat.NCHW,
        tuple(kernel_shape),
        padding(node, rank, ceil_mode=ceil_mode),
        dilations=node.each("dilations", rank, 1),
        strides=node.each("strides", rank, 1),
    )


def padding(node: OnnxNode, rank: int, *, ceil_mode: bool = False) -> Padding:
    """The padding that ``auto_pad`` and ``pads`` describe."""
    auto = node.choice("auto_pad", AUTO_PADS, "NOTSET")
    if auto == "SAME_UPPER":
        return SameUpper()
    if auto == "SAME_LOWER":
        return SameLower()
    pads = (0,) * (2 * rank) if auto == "VALID" else node.each("pads", 2 * rank, 0)
    before, after = pads[:rank], pads[rank:]
    if ceil_mode:
        return ExplicitOnnxPool(before, after, ceil_mode=True)
    return Explicit(before, after) if any(pads) else Valid()


def kernel_shape(node: OnnxNode, wire: Wiring, kernel: OutletId) -> tuple[int, ...]:
    """The spatial sizes of a kernel, which must be numbers and agree with the attribute, where there is one."""
    spatial = wire.shape(kernel)[2:]
    if wire.rank(kernel) < 3:
        raise FactError(f"a kernel has two axes for channels and one at least for places, found {wire.fact(kernel)}")
    if any(is_symbolic(size) for size in spatial):
        if node.has("kernel_shape"):
            return node.each("kernel_shape", len(spatial), 1)
        raise Unsupported(f"the size of the kernel {wire.fact(kernel)} must be known when the model is loaded")
    found = tuple(int(size) for size in spatial)
    given = node.integers("kernel_shape", found)
    if given != found:
        raise node.misfit("kernel_shape", f"is {list(given)}", f"{list(found)}, as the kernel has")
    return found
