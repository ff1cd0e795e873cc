"""Operators that files of the first years have, and that were withdrawn before they became part of the standard.

Their definitions are those of onnx 1.2 to 1.4, where they are called experimental.
"""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.frontend.precision import rounded_once
from tract_core.ops.slice import wire_slice
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "Affine")
def affine(node: OnnxNode, wire: Wiring) -> Wired:
    """Alpha * x + beta"""
    return wire.tensor(0) * node.number("alpha", 1.0) + node.number("beta", 0.0)


@onnx_op(ROWS, "Scale")
def scale(node: OnnxNode, wire: Wiring) -> Wired:
    """Scale * x"""
    return wire.tensor(0) * node.number("scale", 1.0)


@onnx_op(ROWS, "ImageScaler")
def image_scaler(node: OnnxNode, wire: Wiring) -> Wired:
    """Scale * x + bias, where each channel has a bias of its own"""
    x, bias = _image(wire), node.float_array("bias")
    return x * node.number("scale", 1.0) + x.operand(bias.reshape(1, -1, 1, 1)).cast(x.dtype)


@onnx_op(ROWS, "Crop")
def crop(node: OnnxNode, wire: Wiring) -> Wired:
    """An image without its borders (left, top, right, bottom), or as much of it as ``scale`` (height, width) says"""
    x = _image(wire)
    left, top, right, bottom = _sizes(node, "border", 4)
    size = _sizes(node, "scale", 2) if node.has("scale") else None
    for axis, before, after in ((2, top, bottom), (3, left, right)):
        end = x.shape[axis] - after if size is None else before + size[axis - 2]
        x = x.through(wire_slice, axis, start=before, end=end)
    return x


def _sizes(node: OnnxNode, name: str, count: int) -> tuple[int, ...]:
    sizes = node.integers(name)
    if len(sizes) != count or min(sizes) < 0:
        raise node.misfit(name, f"is {list(sizes)[:50]}", f"{count} sizes")
    return sizes


@onnx_op(ROWS, "MeanVarianceNormalization")
@rounded_once()
def mean_variance_norm_1(node: OnnxNode, wire: Wiring) -> Wired:
    """X less its mean over all images, by its standard deviation unless told otherwise; channels apart or together"""
    x = _image(wire)
    axes = (0, 1, 2, 3) if node.flag("across_channels") else (0, 2, 3)
    centred = x - x.mean(axes)
    return centred * centred.mean_of_squares(axes).rsqrt() if node.flag("normalize_variance", True) else centred


def _image(wire: Wiring) -> Wired:
    x = wire.tensor(0)
    if x.rank != 4:
        raise FactError(f"an image of 4 axes is wanted (batch, channels, height, width), found {x.fact}")
    return x
