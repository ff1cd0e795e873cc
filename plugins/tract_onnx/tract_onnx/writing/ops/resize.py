"""Anything resized by interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from tract_core.ops.resize import AspectPolicy, Coordinates, DynResize, Resize, Sampling, Scales, TargetKind
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, Resize)
def resize(op: Resize, node: Spelling) -> str | None:
    """Resize, with factors or sizes for the axes that are resized"""
    roi = _regions(node, op.sampling)
    if isinstance(op.target, Scales):
        factors = node.constant(np.array(op.target.values, np.float32))
        return _resized(op, node, [roi, factors], AspectPolicy.STRETCH)
    return _resized(op, node, [roi, "", node.sizes(op.target.values)], op.target.policy)


@ROWS.row(ONNX_WRITE, DynResize)
def dyn_resize(op: DynResize, node: Spelling) -> str | None:
    """Resize, with factors or sizes, and regions, of the run"""
    _, target, *regions = node.inputs
    told = {"coordinate_transformation_mode": "tf_crop_and_resize"} if regions else {}
    targets = [target] if op.kind is TargetKind.SCALES else ["", target]
    return _resized(op, node, [*(regions or [""]), *targets], op.policy, told)


def _resized(
    op: Resize | DynResize, node: Spelling, inputs: list[str], policy: AspectPolicy, more: dict[str, Any] | None = None
) -> str | None:
    """``inputs``: behind what is resized. ``more``: attributes that are told otherwise."""
    told = _sampled(node, op.sampling)
    if told is None or node.opset < 18:
        return None
    if policy is not AspectPolicy.STRETCH:
        told["keep_aspect_ratio_policy"] = policy.value
    return node.add("Resize", node.input(), *inputs, **{**told, "axes": list(op.axes), **(more or {})})


def _regions(node: Spelling, sampling: Sampling) -> str:
    """The regions that are resized: the starts of all axes, then their ends."""
    if not sampling.roi:
        return ""
    ends = [float(start) for start, _ in sampling.roi] + [float(end) for _, end in sampling.roi]
    return node.constant(np.array(ends, np.float32))


def _sampled(node: Spelling, sampling: Sampling) -> dict[str, Any] | None:
    if sampling.coordinates is Coordinates.HALF_PIXEL_SYMMETRIC and node.opset < 19:
        return None
    return {
        "mode": sampling.interpolator.value,
        "coordinate_transformation_mode": sampling.coordinates.value,
        "nearest_mode": sampling.nearest_mode.value,
        "cubic_coeff_a": sampling.cubic_coeff_a,
        "exclude_outside": int(sampling.exclude_outside),
        "antialias": int(sampling.antialias),
        "extrapolation_value": sampling.extrapolation_value,
    }
