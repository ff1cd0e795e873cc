"""What is looked at, and not changed."""

from __future__ import annotations

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.data.containers import Container
from tract_core.ops.check import CheckShape, Refuse
from tract_core.plugins.tables import Rows
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, CheckShape)
def check_shape(op: CheckShape, node: Spelling) -> str:
    """The input: whoever runs the file meets another shape behind it"""
    return node.input()


@ROWS.row(ONNX_WRITE, Refuse)
def refuse(op: Refuse, node: Spelling) -> list[str] | None:
    """Gather of a place that is not there, which no engine computes before it comes to it: the run ends"""
    if any(isinstance(fact.datum_type, Container) or fact.datum_type is DatumType.STRING for fact in op.facts):
        return None
    drawn = node.add("RandomUniform", shape=[1], low=2.0, high=3.0)
    nowhere = node.cast(drawn, DatumType.I64)
    results: list[str] = []
    for fact in op.facts:
        kind = DatumType.I64 if fact.datum_type is DatumType.TDIM else fact.datum_type.storage
        zero = node.held(Constant(np.zeros(1, kind.numpy)))
        results.append(node.add("Reshape", node.add("Gather", zero, nowhere, axis=0), node.ints([1] * fact.rank)))
    return results
