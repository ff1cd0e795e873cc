"""Normalisation by means that forget exponentially."""

from __future__ import annotations

from typing import Final

from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_nnef.nnef_only.exp_norm import ExpMeanNorm, ExpUnitNorm
from tract_nnef.reading.call import Call
from tract_nnef.registry import EXTRA, NNEF_WRITE, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_COMMON: Final = (
    "input: tensor<scalar>, state: tensor<scalar>, axis: integer, alpha: scalar, skip: integer = 0,"
    " stateless: logical = false"
)


@reads(
    ROWS,
    EXTRA,
    f"tract_extra_exp_unit_norm({_COMMON}, complex: logical = false, epsilon: scalar = 1e-14)"
    " -> (output: tensor<scalar>)",
)
def read_exp_unit_norm(call: Call) -> OutletId:
    """By the mean of magnitudes."""
    x = call.input("input")
    op = ExpUnitNorm(*_common(call, call.rank(x)), call.flag("complex"), call.number("epsilon"))
    return call.op(op, x, call.input("state"))


@reads(ROWS, EXTRA, f"tract_extra_exp_mean_norm({_COMMON}, scaling_factor: scalar = 1.0) -> (output: tensor<scalar>)")
def read_exp_mean_norm(call: Call) -> OutletId:
    """By the mean itself."""
    x = call.input("input")
    op = ExpMeanNorm(*_common(call, call.rank(x)), call.number("scaling_factor"))
    return call.op(op, x, call.input("state"))


def _common(call: Call, rank: int) -> tuple[int, float, int, bool]:
    return call.axis("axis", rank), call.number("alpha"), call.integer("skip"), call.flag("stateless")


@ROWS.row(NNEF_WRITE, ExpUnitNorm)
def write_exp_unit_norm(op: ExpUnitNorm, node: Spelling) -> Invocation | None:
    """With all that it knows."""
    own = {"complex": op.complex, "epsilon": op.epsilon}
    return node.invoke("tract_extra_exp_unit_norm", *node.inputs, **_named(op), **own, registry=EXTRA)


@ROWS.row(NNEF_WRITE, ExpMeanNorm)
def write_exp_mean_norm(op: ExpMeanNorm, node: Spelling) -> Invocation | None:
    """With all that it knows."""
    own = {"scaling_factor": op.scaling_factor}
    return node.invoke("tract_extra_exp_mean_norm", *node.inputs, **_named(op), **own, registry=EXTRA)


def _named(op: ExpUnitNorm | ExpMeanNorm) -> dict[str, object]:
    return {"axis": op.axis, "alpha": op.alpha, "skip": op.skip, "stateless": op.stateless}
