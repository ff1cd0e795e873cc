"""Normalisation."""

from __future__ import annotations

from typing import Final

from tract_core.model.graph import OutletId
from tract_core.ops.norm import RmsNorm
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, TRANSFORMERS, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_DECLARED: Final = "(input: tensor<scalar>, axis: integer, eps: scalar = 1e-6) -> (output: tensor<scalar>)"


@reads(ROWS, CORE, f"tract_core_rms_norm{_DECLARED}", f"tract_transformers_rms_norm{_DECLARED}")
@reads(ROWS, TRANSFORMERS, f"tract_transformers_rms_norm{_DECLARED}")
def read_rms_norm(call: Call) -> OutletId:
    """By the root of the mean of squares."""
    x = call.tensor("input")
    return call.op(RmsNorm(call.integer("axis"), call.number("eps")), x)


@ROWS.row(NNEF_WRITE, RmsNorm)
def write_rms_norm(op: RmsNorm, node: Spelling) -> Invocation | None:
    """By axis and epsilon."""
    return node.invoke("tract_core_rms_norm", node.input(0), axis=op.axis, eps=op.eps, registry=CORE)
