"""Pools over images (batch, height, width, channels): the mean, the largest element or the norm of each window."""

from __future__ import annotations

from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import PoolSpec
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.activation import activated
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.spatial import pool_spec
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


def _windows(node: TfliteNode) -> PoolSpec:
    return pool_spec(node, (node.integer("filter_height", 0), node.integer("filter_width", 0)))


@tflite_op(ROWS, "AVERAGE_POOL_2D")
def average_pool(node: TfliteNode, wire: Wiring) -> Wired:
    """The mean, in which padding does not count"""
    return activated(wire.tensor(0).op(SumPool(_windows(node))), node)


@tflite_op(ROWS, "MAX_POOL_2D")
def max_pool(node: TfliteNode, wire: Wiring) -> Wired:
    """The largest element"""
    return activated(wire.tensor(0).op(MaxPool(_windows(node))), node)


@tflite_op(ROWS, "L2_POOL_2D")
def l2_pool(node: TfliteNode, wire: Wiring) -> Wired:
    """The root of the mean of the squares, in which padding does not count"""
    return activated(wire.tensor(0).square().op(SumPool(_windows(node))).sqrt(), node)
