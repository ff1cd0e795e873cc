"""Tables of texts and numbers by keys, filled before the first run. Keys and values come behind the other inputs."""

from __future__ import annotations

import numpy as np

from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.table_wiring import wire_look_up
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "HASHTABLE_FIND")
def hashtable_find(node: TfliteNode, wire: Wiring) -> OutletId:
    """The value behind each element; a default for what is no key. Of equal keys the first counts"""
    keys, values = (wire.known(wire.input(slot), "what a table holds").reshape(-1) for slot in (3, 4))
    if len(keys) != len(values):
        raise CorruptModel(f"{len(keys)} keys of a table do not go with {len(values)} values")
    return wire_look_up(wire, wire.input(1), wire.number(wire.input(2)), keys[::-1], values[::-1])


@tflite_op(ROWS, "HASHTABLE_SIZE")
def hashtable_size(node: TfliteNode, wire: Wiring) -> Wired:
    """How many keys there are that differ, [1]"""
    keys = wire.known(wire.input(1), "the keys of a table")
    return wire.tensor(1).operand(np.array([len(set(keys.reshape(-1).tolist()))], np.int64))
