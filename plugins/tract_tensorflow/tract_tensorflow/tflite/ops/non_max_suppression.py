"""Boxes that do not overlap much with better ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.gather import Gather
from tract_core.ops.non_max_suppression import NonMaxSuppression
from tract_core.ops.slice import Slice
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring
from tract_tensorflow.tflite_only.non_max_suppression import SoftNonMaxSuppression

ROWS = Rows()

_NEXT_SMALLER = float(np.nextafter(np.float32(1), np.float32(0)))
"""Times this, a number of f32 is the one before it."""


@tflite_op(ROWS, "NON_MAX_SUPPRESSION_V4")
def non_max_suppression_v4(node: TfliteNode, wire: Wiring) -> Sequence[Wired]:
    """The numbers of the boxes that are kept, then zeros up to the most that are wanted; and how many there are"""
    kept = _kept(wire)
    return _filled_up(wire, kept), _count(wire, kept)


@tflite_op(ROWS, "NON_MAX_SUPPRESSION_V5")
def non_max_suppression_v5(node: TfliteNode, wire: Wiring) -> Sequence[Wired | OutletId]:
    """The same, with their scores, which fall with what overlaps where a deviation is given"""
    deviation = wire.number(wire.input(5))
    known = wire.constant(deviation)
    if known is None or known.any():
        numbers = (wire.number(wire.input(slot)) for slot in (3, 4))
        return wire.ops(SoftNonMaxSuppression(_most(wire)), wire.input(0), wire.input(1), *numbers, deviation)
    kept = _kept(wire)
    scores = wire.tensor(1).op(Gather(0), kept)
    return _filled_up(wire, kept), _filled_up(wire, scores), _count(wire, kept)


def _kept(wire: Wiring) -> Wired:
    boxes, scores = wire.unsqueeze(wire.input(0), [0]), wire.unsqueeze(wire.input(1), [0, 1])
    most = wire.i64(wire.number(wire.input(2)))
    # TFLite drops a box whose share is as large as the limit, the core one whose share is larger.
    overlap = (Wired(wire, wire.number(wire.input(3))) * _NEXT_SMALLER).outlet
    least = wire.number(wire.input(4))
    found = wire.op(NonMaxSuppression(False, wire.symbol("boxes")), boxes, scores, most, overlap, least)
    return Wired(wire, found).part(1, 2, 3).squeeze([1]).cast(DatumType.I32)


def _filled_up(wire: Wiring, kept: Wired) -> Wired:
    """As many elements as are wanted at most, the last ones 0."""
    most = _most(wire)
    zeros = kept.like(0).broadcast((most,))
    return kept.concat([zeros], 0).op(Slice(0, 0, most))


def _most(wire: Wiring) -> Dim:
    known = wire.dims(wire.input(2))
    if known is None:
        raise Unsupported(f"the most boxes of {wire.node.op_type} must be known when the model is loaded")
    return known[0]


def _count(wire: Wiring, kept: Wired) -> Wired:
    count: OutletId = wire.const(kept.shape[0])
    return Wired(wire, count).cast(DatumType.I32)
