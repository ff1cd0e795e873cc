"""Windows over images, as convolutions and pools say them: batch, height, width, channels."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.errors import CorruptModel
from tract_core.ops.pool_spec import DataFormat, Padding, PoolSpec, SameUpper, Valid
from tract_tensorflow.tflite.node import TfliteNode


def padding(node: TfliteNode) -> Padding:
    """What is put around the data."""
    return SameUpper() if node.choice("padding", ("SAME", "VALID"), "SAME") == "SAME" else Valid()


def pool_spec(node: TfliteNode, kernel: Sequence[int], *, dilated: bool = False) -> PoolSpec:
    """The windows of an operator on places; ``dilated``: whether it says how far apart their elements are."""
    axes = "dhw"[-len(kernel) :]
    strides = tuple(node.integer(f"stride_{axis}", 0) for axis in axes)
    dilations = tuple(node.integer(f"dilation_{axis}_factor", 1) if dilated else 1 for axis in axes)
    for what, values in (("stride", strides), ("dilation", dilations), ("kernel", tuple(kernel))):
        if min(values) < 1:
            raise CorruptModel(f"a {what} is {list(values)}, wanted 1 or more")
    return PoolSpec(DataFormat.NHWC, tuple(kernel), padding(node), dilations, strides)
