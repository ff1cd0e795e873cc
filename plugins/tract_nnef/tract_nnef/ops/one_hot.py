"""Ones at the places that integers name."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.one_hot import OneHot
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.expressions import type_name
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
    x = call.whole("input")
    return call.op(OneHot(call.axis("axis", call.rank(x) + 1), call.dim("dim"), off, on), x)


@ROWS.row(NNEF_WRITE, OneHot)
def write_one_hot(op: OneHot, node: Spelling) -> Invocation | None:
    """With its values, which are f32 in every file; those of another type are converted, where nothing else says it."""
    kind = op.off.datum_type
    held = [Constant(value.array.astype(np.float32)) for value in (op.off, op.on)]
    if kind is not DatumType.F32:
        exact = all(one.array.item() == two.array.item() for one, two in zip(held, (op.off, op.on), strict=True))
        if node.allows(PY) or not exact:
            return None
    values = {"value_off": node.constant("off", held[0]), "value_on": node.constant("on", held[1])}
    found = node.invoke("tract_core_one_hot", node.input(0), axis=op.axis, dim=op.dim, **values, registry=CORE)
    if found is None or kind is DatumType.F32:
        return found
    return node.invoke("tract_core_cast", found, to=type_name(kind), registry=CORE)
