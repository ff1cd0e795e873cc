"""Tables of texts and numbers by keys, filled before the first run. Keys and values come behind the other inputs."""

from __future__ import annotations

import numpy as np

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.ops.gather import Gather
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.tflite.node import TfliteNode
from tract_tensorflow.tflite.registry import tflite_op
from tract_tensorflow.tflite.wiring import Wiring

ROWS = Rows()


@tflite_op(ROWS, "HASHTABLE_FIND")
def hashtable_find(node: TfliteNode, wire: Wiring) -> Wired:
    """The value behind each element; a default for what is no key. Of equal keys the first counts"""
    x, default, keys, values = (wire.tensor(slot) for slot in range(1, 5))
    flat = keys.reshape((keys.shape.volume,))
    if flat.dtype != x.dtype or values.dtype != default.dtype:
        raise FactError(f"a table of {keys.fact} and {values.fact} is asked for {x.fact}, or {default.fact}")
    is_it = x.unsqueeze([x.rank]).eq(flat.unsqueeze(range(x.rank)))
    last = x.rank
    is_there = is_it.op(Reduce((last,), Reducer.ANY)).squeeze([last])
    place = is_it.cast(DatumType.I32).argmax([last]).squeeze([last])
    found = values.reshape((values.shape.volume,)).op(Gather(0), place)
    return is_there.where(found, default.reshape((1,) * found.rank))


@tflite_op(ROWS, "HASHTABLE_SIZE")
def hashtable_size(node: TfliteNode, wire: Wiring) -> Wired:
    """How many keys there are that differ, [1]"""
    keys = wire.known(wire.input(1), "the keys of a table")
    return wire.tensor(1).operand(np.array([len(set(keys.reshape(-1).tolist()))], np.int64))
