"""TRANSPOSE_CONV: a deconvolution whose output has the sizes that its first input says."""

from __future__ import annotations

from tract_core.dims import Dim, ceil_div, dim_max, is_symbolic
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.ops.conv import KernelFormat
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.wired import Wired
from tract_tensorflow.tflite.wiring import Wiring


def transposed(wire: Wiring, x: Wired, kernel: Wired, bias: Wired | None) -> Wired:
    """Data (batch, height, width, inputs) by a kernel (outputs, height, width, inputs) of the same type.

    The padding is that of the convolution which makes the data's sizes of the output's. Raises FactError.
    """
    node, sizes = wire.node, wire.dims(wire.input(0))
    if sizes is None:
        raise Unsupported("the sizes of the output of TRANSPOSE_CONV are computed, wanted known ones")
    if len(sizes) != 4 or x.rank != 4 or kernel.rank != 4 or any(map(is_symbolic, kernel.shape)):
        raise FactError(f"TRANSPOSE_CONV of {x.fact} with {kernel.fact} to the sizes {list(sizes)}")
    strides = node.integer("stride_h", 0), node.integer("stride_w", 0)
    if min(strides) < 1:
        raise CorruptModel(f"strides are {list(strides)}, wanted 1 or more")
    window = int(kernel.shape[1]), int(kernel.shape[2])
    is_same = node.choice("padding", ("SAME", "VALID"), "SAME") == "SAME"
    before, after = list[Dim](), list[Dim]()
    for size, stride, reach, output in zip(x.shape[1:3], strides, window, sizes[1:3], strict=True):
        total = dim_max(0, (ceil_div(output, stride) - 1) * stride + reach - output) if is_same else 0
        before.append(total // 2)
        after.append((size - 1) * stride + reach - output - total // 2)
    pool = PoolSpec(DataFormat.NHWC, window, Explicit(tuple(before), tuple(after)), (1, 1), strides)
    start = kernel.like(0).reshape(()) if bias is None else bias
    return x.op(Deconv(pool, KernelFormat.OHWI), kernel, start)
