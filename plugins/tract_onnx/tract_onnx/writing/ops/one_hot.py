"""One element of an axis unlike the others."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.ops.one_hot import DynOneHot, OneHot
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, OneHot)
@ROWS.row(ONNX_WRITE, DynOneHot)
def one_hot(op: OneHot | DynOneHot, node: Spelling) -> str:
    """OneHot; ONNX Runtime has none for booleans, so these are numbers first"""
    kind = op.on.datum_type
    values = np.stack([op.off.array, op.on.array])
    held = node.held(Constant(values.astype(np.float32) if kind is DatumType.BOOL else values))
    scalar = node.ints([])
    size = node.input(1) if isinstance(op, DynOneHot) else node.add("Reshape", node.sizes([op.dim]), scalar)
    made = node.add("OneHot", node.input(), size, held, axis=op.axis)
    return node.cast(made, kind) if kind is DatumType.BOOL else made
