"""Deconvolutions, which TFLite calls transposed convolutions. The shape of the result is their first input."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.dims import Dim, ceil_div, dim_max
from tract_core.errors import CorruptModel, Unsupported
from tract_core.ops.conv import KernelFormat
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import Explicit, PoolSpec, Valid, Window
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.kernels import known_sizes
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.spatial import pool_spec
from tract_tensorflow.tflite.weights import float_weights
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "TRANSPOSE_CONV")
def transpose_conv(node: TfliteNode, wire: Wiring) -> Wired:
    """A kernel (outputs, height, width, channels), images, and a bias"""
    kernel = wire.tensor(1)
    sizes = known_sizes(kernel, 4)[1:3]
    weights = kernel if kernel.dtype.is_float() else float_weights(wire, 1, kernel, 0, 0)
    return _written(wire, weights, transposed(wire, sizes, KernelFormat.OHWI))


@tflite_op(ROWS, "CONV_3D_TRANSPOSE")
def conv_3d_transpose(node: TfliteNode, wire: Wiring) -> Wired:
    """A kernel (depth, height, width, outputs, channels), volumes, and a bias"""
    kernel = wire.tensor(1)
    sizes = known_sizes(kernel, 5)[:3]
    return _written(wire, kernel.transpose((0, 1, 2, 4, 3)), transposed(wire, sizes, KernelFormat.HWIO))


def _written(wire: Wiring, kernel: Wired, op: Deconv) -> Wired:
    bias = wire.optional_tensor(3)
    start = kernel.like(0).reshape(()) if bias is None else bias
    return activated(wire.tensor(2).op(op, kernel, start), wire.node)


def transposed(wire: Wiring, kernel: Sequence[int], layout: KernelFormat) -> Deconv:
    """The deconvolution of an operator. ``kernel``: its sizes, outermost first. Raises ModelError."""
    x, wanted = wire.tensor(2), wire.dims(wire.input(0))
    if wanted is None:
        raise Unsupported(f"the shape of {wire.node.op_type} must be known when the model is loaded")
    if len(wanted) != len(kernel) + 2 or x.rank != len(wanted):
        raise CorruptModel(f"{wire.node.op_type} of {x.fact} is given a shape of {len(wanted)} sizes")
    spec = pool_spec(wire.node, kernel, dilated=len(kernel) == 3)
    wire.require_shape("data", x.outlet, (wanted[0], *x.shape[1:]))
    cuts = [
        _cut(size, target, Window(count, dilation, stride), same=not isinstance(spec.padding, Valid))
        for size, target, count, dilation, stride in zip(
            x.shape[1:-1], wanted[1:-1], kernel, spec.dilations, spec.strides, strict=True
        )
    ]
    ends = Explicit(tuple(before for before, _ in cuts), tuple(after for _, after in cuts))
    return Deconv(PoolSpec(spec.data_format, spec.kernel_shape, ends, spec.dilations, spec.strides), layout)


def _cut(size: Dim, target: Dim, window: Window, *, same: bool) -> tuple[Dim, Dim]:
    """What is cut off at both ends from what is written, so that the target is left.

    Before it, half of the padding that the convolution would have whose transpose this is.
    """
    written = (size - 1) * window.stride + window.field
    before: Dim = 0
    if same:
        before = dim_max(0, (ceil_div(target, window.stride) - 1) * window.stride + window.field - target) // 2
    return before, written - before - target
