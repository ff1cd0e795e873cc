"""Pools of quantised images: data (batch, height, width, channels)."""

from __future__ import annotations

from math import prod

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import is_symbolic
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import quantized_op
from tract_tensorflow.tflite.spatial import pool_spec
from tract_tensorflow.tflite.steps import activation_ends, require_same_steps
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@quantized_op(ROWS, "MAX_POOL_2D")
def max_pool_2d(node: TfliteNode, wire: Wiring) -> Wired:
    """The largest integer of each window"""
    require_same_steps(node, 1)
    low, high = activation_ends(node)
    kernel = node.integer("filter_height", 0), node.integer("filter_width", 0)
    return wire.tensor(0).op(MaxPool(pool_spec(node, kernel))).maximum(low).minimum(high)


@quantized_op(ROWS, "AVERAGE_POOL_2D")
def average_pool_2d(node: TfliteNode, wire: Wiring) -> Wired:
    """The mean of each window without what lies around the image, halves away from zero"""
    require_same_steps(node, 1)
    low, high = activation_ends(node)
    x = wire.tensor(0)
    kernel = node.integer("filter_height", 0), node.integer("filter_width", 0)
    op = SumPool(pool_spec(node, kernel), normalize=False)
    sums, counts = x.cast(DatumType.I32).op(op), _counts(op, x)
    half = counts / 2
    mean = (sums + (sums > 0).where(half, -half)) / counts
    return mean.maximum(low).minimum(high).cast(x.dtype)


def _counts(op: SumPool, x: Wired) -> Wired:
    """How many elements of the image lie in each window."""
    plans = op.pool.plan(op, x.shape)
    if all(plan.before == 0 and plan.after == 0 for plan in plans):
        return x.operand(np.full([1] * x.rank, prod(op.pool.kernel_shape), np.int32))
    _, height, width, _ = x.shape
    if is_symbolic(height) or is_symbolic(width):
        ones = x.operand(np.ones([1] * 4, np.int32)).broadcast((1, height, width, 1))
    else:
        ones = x.operand(np.ones((1, int(height), int(width), 1), np.int32))
    return ones.op(op)
