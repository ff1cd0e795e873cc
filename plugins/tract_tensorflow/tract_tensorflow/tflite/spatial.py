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
    """The windows of an operator on images; ``dilated``: whether it says how far apart their elements are."""
    strides = node.integer("stride_h", 0), node.integer("stride_w", 0)
    dilations = (node.integer("dilation_h_factor", 1), node.integer("dilation_w_factor", 1)) if dilated else (1, 1)
    for what, values in (("stride", strides), ("dilation", dilations), ("kernel", tuple(kernel))):
        if min(values) < 1:
            raise CorruptModel(f"a {what} is {list(values)}, wanted 1 or more")
    return PoolSpec(DataFormat.NHWC, tuple(kernel), padding(node), dilations, strides)
