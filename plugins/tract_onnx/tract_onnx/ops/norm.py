"""Normalisations."""

from __future__ import annotations

from collections.abc import Sequence

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import Unsupported
from tract_core.frontend.precision import rounded_once
from tract_core.model.graph import OutletId
from tract_core.ops.lrn import Lrn
from tract_core.ops.norm import (
    RmsNorm,
    wire_group_norm,
    wire_instance_norm,
    wire_layer_norm,
)
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "InstanceNormalization")
def instance_norm(node: OnnxNode, wire: Wiring) -> OutletId:
    """Each channel of each item standardised over its places"""
    x, scale, bias = (wire.input(slot) for slot in range(3))
    return wire.through(wire_instance_norm, x, scale=scale, bias=bias, eps=node.number("epsilon", 1e-5))


@onnx_op(ROWS, "LayerNormalization")
def layer_norm(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | Wired]:
    """Standardised over all axes from ``axis`` on; also the mean, and one over the standard deviation

    The standard has it from version 17 on; ONNX Runtime's optimiser writes it into files of every version.
    """
    x, scale, bias = wire.input(0), wire.input(1), wire.optional_input(2)
    axis, eps = node.axis("axis", wire.rank(x), -1), node.number("epsilon", 1e-5)
    result = wire.through(wire_layer_norm, x, axis, eps=eps, scale=scale, bias=bias)
    if not (node.wants_output(1) or node.wants_output(2)):
        return (result,)
    return result, *_statistics(Wired(wire, x), tuple(range(axis, wire.rank(x))), eps)


def _statistics(x: Wired, axes: tuple[int, ...], eps: float) -> tuple[Wired, Wired]:
    x = x.cast(DatumType.F64 if x.dtype is DatumType.F64 else DatumType.F32)
    mean = x.mean(axes)
    return mean, ((x - mean).mean_of_squares(axes) + eps).rsqrt()


@onnx_op(ROWS, "RMSNormalization", since=23)
def rms_norm(node: OnnxNode, wire: Wiring) -> Wired:
    """X / sqrt(mean(x*x) + epsilon) * scale, the mean taken over all axes from ``axis`` on"""
    x, scale = wire.tensor(0), wire.tensor(1)
    rank, kind, eps = x.rank, x.dtype, node.number("epsilon", 1e-5)
    axis = node.axis("axis", rank, -1)
    wire.require_shape("scale", scale.outlet, x.shape, stretches=True)
    wide = x.cast(DatumType.F32) if kind.itemsize < 4 else x
    if axis == rank - 1:
        result = wide.op(RmsNorm(axis, eps))
    else:
        result = wide * (wide.mean_of_squares(range(axis, rank)) + eps).rsqrt()
    return (result * scale.cast(result.dtype)).cast(kind)


@onnx_op(ROWS, "GroupNormalization", since=18)
def group_norm_18(node: OnnxNode, wire: Wiring) -> OutletId:
    """Each group of channels of each item standardised; scale and bias are per group"""
    x, groups = wire.input(0), node.integer("num_groups")
    per_group = wire.shape(x)[1] // max(groups, 1)
    scale, bias = (_per_channel(wire, wire.input(slot), groups, per_group) for slot in (1, 2))
    return wire.through(wire_group_norm, x, groups, scale=scale, bias=bias, eps=node.number("epsilon", 1e-5))


def _per_channel(wire: Wiring, x: OutletId, groups: int, per_group: Dim) -> OutletId:
    wire.require_shape("scale or bias", x, (groups,))
    stretched = wire.broadcast(wire.unsqueeze(x, [1]), (groups, per_group))
    return wire.reshape(stretched, (groups * per_group,))


@onnx_op(ROWS, "GroupNormalization", since=21)
def group_norm_21(node: OnnxNode, wire: Wiring) -> OutletId:
    """Each group of channels of each item standardised; scale and bias are per channel"""
    x, scale, bias = (wire.input(slot) for slot in range(3))
    groups, eps = node.integer("num_groups"), node.number("epsilon", 1e-5)
    return wire.through(wire_group_norm, x, groups, scale=scale, bias=bias, eps=eps)


@onnx_op(ROWS, "LRN")
def lrn(node: OnnxNode, wire: Wiring) -> OutletId:
    """Divided by a power of the energy of the neighbouring channels"""
    alpha, beta, bias = node.number("alpha", 1e-4), node.number("beta", 0.75), node.number("bias", 1.0)
    return wire.op(Lrn(node.integer("size"), alpha, beta, bias), wire.input(0))


@onnx_op(ROWS, "LpNormalization")
@rounded_once()
def lp_norm(node: OnnxNode, wire: Wiring) -> Wired:
    """X divided by its norm along one axis; 0 where that is 0"""
    x = wire.tensor(0)
    axis = node.axis("axis", x.rank, -1)
    p = node.integer("p", 2)
    if p not in (1, 2):
        raise Unsupported(f"LpNormalization with p={p}, only 1 and 2 are defined")
    # Divided by the largest first, nothing overflows or vanishes: the norm is at least 1, unless all elements are 0.
    largest = abs(x).max([axis])
    one = largest.like(1)
    x = x / largest.eq(0).where(one, largest)
    norm = abs(x).sum([axis]) if p == 1 else x.square().sum([axis]).sqrt()
    return x / norm.maximum(one)


@onnx_op(ROWS, "MeanVarianceNormalization", since=9)
@rounded_once()
def mean_variance_norm(node: OnnxNode, wire: Wiring) -> Wired:
    """(x - mean) / (standard deviation + 1e-9) over some axes"""
    x = wire.tensor(0)
    axes = sorted(node.axes("axes", x.rank, (0, 2, 3)))
    centred = x - x.mean(axes)
    return centred / (centred.mean_of_squares(axes).sqrt() + 1e-9)
