"""Products and convolutions of StableHLO.

Source: the specification of StableHLO.
"""

from __future__ import annotations

import numpy as np

from tract_core.errors import CorruptModel, Unsupported
from tract_core.model.axes import AxesMapping, letters
from tract_core.ops.conv import Conv, KernelFormat
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.pool_spec import DataFormat, Explicit, PoolSpec
from tract_core.ops.slice import wire_slice
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.kernels import known_sizes
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.ops.dilate import spread
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "STABLEHLO_DOT_GENERAL")
def dot_general(node: TfliteNode, wire: Wiring) -> Wired:
    """Products summed over some axes, for each place on those of batches; these come first, then those left of both"""
    a, b = wire.tensor(0), wire.tensor(1)
    batches = [node.axes(f"{side}_batching_dimensions", x.rank, ()) for side, x in (("lhs", a), ("rhs", b))]
    summed = [node.axes(f"{side}_contracting_dimensions", x.rank, ()) for side, x in (("lhs", a), ("rhs", b))]
    if len(batches[0]) != len(batches[1]) or len(summed[0]) != len(summed[1]):
        raise CorruptModel(f"STABLEHLO_DOT_GENERAL pairs axes {batches} and {summed} of {a.fact} and {b.fact}")
    names_of_axes = iter(letters())
    pairs = [next(names_of_axes) for _ in (*batches[0], *summed[0])]
    names: list[list[str]] = []
    for x, *axes in ((a, batches[0], summed[0]), (b, batches[1], summed[1])):
        named = dict(zip((*axes[0], *axes[1]), pairs, strict=True))
        names.append([named.get(axis) or next(names_of_axes) for axis in range(x.rank)])
    first = pairs[: len(batches[0])]
    output = [*first, *(name for own in names for name in own if name not in pairs)]
    kind = node.output().kind or a.dtype
    axes_mapping = AxesMapping(("".join(names[0]), "".join(names[1])), ("".join(output),))
    return a.op(EinSum(axes_mapping, accumulator(a.dtype)), b).cast(kind)


@tflite_op(ROWS, "STABLEHLO_CONVOLUTION")
def convolution(node: TfliteNode, wire: Wiring) -> Wired:
    """A convolution whose axes lie in any order"""
    x, kernel = _moved(node, wire.tensor(0), "input_batch", "input_feature", "input_spatial"), wire.tensor(1)
    places = "kernel_output_feature", "kernel_input_feature", "kernel_spatial"
    kernel = _moved(node, kernel, *places)
    count = x.rank - 2
    if node.integer("batch_group_count", 1) != 1 or count < 1:
        raise Unsupported(f"STABLEHLO_CONVOLUTION of {x.fact} with groups of the batch")
    ones = (1,) * count
    names = ("window_strides", "lhs_dilation", "rhs_dilation")
    strides, between, dilations = (node.integers(name, ones) or ones for name in names)
    pads = node.integers("padding", ()) or (0,) * (2 * count)
    if {len(strides), len(between), len(dilations)} != {count} or len(pads) != 2 * count:
        raise CorruptModel(f"STABLEHLO_CONVOLUTION of {x.fact} has {len(strides)} strides and {len(pads)} pads")
    if min((*strides, *between, *dilations)) < 1:
        raise CorruptModel(f"STABLEHLO_CONVOLUTION has strides {strides}, dilations {between} and {dilations}")
    for axis, is_reversed in enumerate(node.integers("window_reversal", ())):
        if is_reversed:
            kernel = kernel.through(wire_slice, axis + 2, start=None, end=None, step=-1)
    x = spread(x, (1, 1, *between), wire.const(np.zeros((), x.dtype.numpy)))
    spec = PoolSpec(
        DataFormat.NCHW, known_sizes(kernel, x.rank)[2:], Explicit(pads[::2], pads[1::2]), dilations, strides
    )
    op = Conv(spec, KernelFormat.OIHW, node.integer("feature_group_count", 1))
    found = x.op(op, kernel, kernel.like(0).reshape(()))
    order = _places(node, x.rank, "output_batch", "output_feature", "output_spatial")
    return found.transpose([order.index(axis) for axis in range(x.rank)])


def _places(node: TfliteNode, rank: int, batch: str, feature: str, spatial: str) -> list[int]:
    """Which axes are those of the batch, of the channels and of places. Raises CorruptModel."""
    found = [node.integer(f"{name}_dimension", 0) for name in (batch, feature)]
    found += node.integers(f"{spatial}_dimensions", ())
    if sorted(found) != list(range(rank)):
        raise CorruptModel(f"STABLEHLO_CONVOLUTION names the axes {found} of {rank}")
    return found


def _moved(node: TfliteNode, x: Wired, batch: str, feature: str, spatial: str) -> Wired:
    return x.transpose(_places(node, x.rank, batch, feature, spatial))
