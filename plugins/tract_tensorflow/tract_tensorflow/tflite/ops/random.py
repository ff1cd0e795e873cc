"""Numbers drawn at random: those of the core, which are others than TFLite draws for the same seed."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.random import Distribution, Multinomial, RandomLike
from tract_core.ops.wiring_dyn import wire_expand
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


def _seed(node: TfliteNode) -> int | None:
    """Both seeds as one; none where both are 0, which asks for other numbers in every run."""
    first, second = node.integer("seed", 0), node.integer("seed2", 0)
    return None if (first, second) == (0, 0) else (first * 1_000_003 + second) % (1 << 63)


def _drawn(wire: Wiring, distribution: Distribution) -> OutletId:
    start = wire.through(wire_expand, wire.const(np.zeros((), np.float32)), wire.sizes(wire.input(0)))
    return wire.op(RandomLike(distribution, 0.0, 1.0, DatumType.F32, _seed(wire.node)), start)


@tflite_op(ROWS, "RANDOM_UNIFORM")
def random_uniform(node: TfliteNode, wire: Wiring) -> OutletId:
    """Between 0 and 1, in the shape that the input holds"""
    return _drawn(wire, Distribution.UNIFORM)


@tflite_op(ROWS, "RANDOM_STANDARD_NORMAL")
def random_normal(node: TfliteNode, wire: Wiring) -> OutletId:
    """Around 0, with a standard deviation of 1, in the shape that the input holds"""
    return _drawn(wire, Distribution.NORMAL)


@tflite_op(ROWS, "MULTINOMIAL")
def multinomial(node: TfliteNode, wire: Wiring) -> OutletId:
    """Places in rows, drawn as often as the exponentials of their elements say"""
    count = wire.known_int(wire.input(1), "the number of places of MULTINOMIAL")
    if count < 0:
        raise Unsupported(f"MULTINOMIAL of {count} places")
    return wire.op(Multinomial(count, node.output().kind or DatumType.I32, _seed(node)), wire.input(0))
