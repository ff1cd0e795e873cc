"""Numbers drawn at random."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.random import Distribution, RandomLike
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_fill
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

_KINDS: Final = {
    "RandomStandardNormal": Distribution.NORMAL,
    "RandomUniform": Distribution.UNIFORM,
    "TruncatedNormal": Distribution.NORMAL,
}


@tf_op(ROWS, *_KINDS)
def random_tensor(node: GraphNode, wire: GraphWiring) -> Wired:
    """In the shape that the input holds: from 0 to 1, or around 0 with a deviation of 1, TruncatedNormal up to 2"""
    drawn = Wired(wire, _drawn(node, wire, _KINDS[node.op_type], node.element_type("dtype")))
    return drawn.maximum(-2).minimum(2) if node.op_type == "TruncatedNormal" else drawn


@tf_op(ROWS, "RandomUniformInt")
def random_integers(node: GraphNode, wire: GraphWiring) -> Wired:
    """Integers from the second input up to and without the third"""
    drawn = Wired(wire, _drawn(node, wire, Distribution.UNIFORM, DatumType.F64))
    low, high = (Wired(wire, wire.number(wire.input(slot))) for slot in (1, 2))
    span = (high - low).cast(DatumType.F64)
    return low + (drawn * span).floor().minimum(span - 1).cast(low.dtype)


def _drawn(node: GraphNode, wire: GraphWiring, kind: Distribution, to: DatumType) -> OutletId:
    """From 0 to 1, or around 0 with a deviation of 1."""
    like = wire.through(wire_fill, wire.sizes(wire.input(0)), Constant(np.zeros((), to.numpy)))
    seed, second = node.integer("seed", 0), node.integer("seed2", 0)
    seeded = abs(seed * 1_000_003 + second) if seed or second else None
    return wire.op(RandomLike(kind, 0.0, 1.0, to, seeded), like)
