"""Normalisations."""

from __future__ import annotations

import numpy as np

from tract_core.dims import product
from tract_core.errors import FactError
from tract_core.frontend.precision import rounded_once
from tract_core.model.graph import OutletId
from tract_core.ops.lrn import Lrn
from tract_core.ops.norm import wire_batch_norm
from tract_core.ops.wired import Results, Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.spatial import data_format
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def fused_batch_norm(node: GraphNode, wire: GraphWiring) -> Results:
    """(x - mean) / sqrt(variance + epsilon) * scale + offset, for each channel; in training, of the batch itself"""
    x, scale, offset, mean, variance = (wire.input(slot) for slot in range(5))
    rank, eps = wire.rank(x), node.number("epsilon", 1e-4)
    if rank < 2:
        raise FactError(f"a batch and channels are wanted, found {wire.fact(x)}")
    axis = data_format(node).c_axis(rank)
    given: tuple[Wired | OutletId, Wired | OutletId] = mean, variance
    if node.flag("is_training", True):
        others = [other for other in range(rank) if other != axis]
        data = Wired(wire, x).cast(wire.dtype(scale))
        average = data.mean(others)
        spread = (data - average).mean_of_squares(others)
        mean, variance = average.squeeze(others).outlet, spread.squeeze(others).outlet
        count = data.with_outlet(wire.const(product(data.shape[other] for other in others))).cast(data.dtype)
        given = Wired(wire, mean), Wired(wire, variance) * (count / (count - 1).maximum(1))
    result = wire.through(
        wire_batch_norm, x, scale=scale, bias=offset, mean=mean, variance=variance, eps=eps, axis=axis
    )
    return result, *given, mean, variance, wire.const(np.empty(0, wire.dtype(scale).numpy))


@tf_op(ROWS, "LRN")
def lrn(node: GraphNode, wire: GraphWiring) -> OutletId:
    """Divided by a power of the energy of the neighbouring channels"""
    size = 2 * node.integer("depth_radius", 5) + 1
    alpha, beta, bias = node.number("alpha", 1.0), node.number("beta", 0.5), node.number("bias", 1.0)
    return wire.op(Lrn(size, alpha * size, beta, bias, wire.rank(wire.input(0)) - 1), wire.input(0))


@tf_op(ROWS, "L2Loss")
@rounded_once()
def l2_loss(node: GraphNode, wire: GraphWiring) -> Wired:
    """Half the sum of the squares"""
    x = wire.tensor(0)
    axes = range(x.rank)
    return (x.square().sum(axes) * 0.5).squeeze(axes)
