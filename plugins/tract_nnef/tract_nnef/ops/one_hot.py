"""Ones at the places that integers name."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.one_hot import OneHot
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    CORE,
    "tract_core_one_hot(input: tensor<integer>, axis: integer, dim: integer, value_off: scalar = 0.0,"
    " value_on: scalar = 1.0) -> (output: tensor<scalar>)",
)
def read_one_hot(call: Call) -> OutletId:
    """On a new axis, as f32."""
    off, on = (Constant(np.array(call.number(name), np.float32)) for name in ("value_off", "value_on"))
    return call.op(OneHot(call.integer("axis"), call.dim("dim"), off, on), call.whole("input"))


@ROWS.row(NNEF_WRITE, OneHot)
def write_one_hot(op: OneHot, node: Spelling) -> Invocation | None:
    """With its values, which are f32 in every file."""
    if op.off.datum_type is not DatumType.F32:
        return None
    values = {"value_off": node.constant("off", op.off), "value_on": node.constant("on", op.on)}
    return node.invoke("tract_core_one_hot", node.input(0), axis=op.axis, dim=op.dim, **values, registry=CORE)
