"""Operators on one tensor, element by element, and those that are a few of them together."""

from __future__ import annotations

from typing import Final

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import elementwise as core
from tract_core.ops.activation import Activation, wire_activation
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import TENSORFLOW, TensorflowFn, tf_op
from tract_tensorflow.graphdef.wiring import Wiring

ROWS = Rows()

_SAME: Final[dict[str, TypedOp]] = {
    "Abs": core.Abs(),
    "Acos": core.Acos(),
    "Acosh": core.Acosh(),
    "Asin": core.Asin(),
    "Asinh": core.Asinh(),
    "Atan": core.Atan(),
    "Atanh": core.Atanh(),
    "Ceil": core.Ceil(),
    "Cos": core.Cos(),
    "Cosh": core.Cosh(),
    "Erf": core.Erf(),
    "Exp": core.Exp(),
    "Floor": core.Floor(),
    "Inv": core.Recip(),
    "Invert": core.BitNot(),
    "IsInf": core.IsInf(),
    "IsNan": core.IsNan(),
    "Log": core.Ln(),
    "LogicalNot": core.Not(),
    "Neg": core.Neg(),
    "Reciprocal": core.Recip(),
    "Rint": core.RoundHalfToEven(),
    "Rsqrt": core.Rsqrt(),
    "Sigmoid": core.Sigmoid(),
    "Sign": core.Sign(),
    "Sin": core.Sin(),
    "Sinh": core.Sinh(),
    "Sqrt": core.Sqrt(),
    "Square": core.Square(),
    "Tan": core.Tan(),
    "Tanh": core.Tanh(),
}
"""Operators of TensorFlow that are one core operator, without attributes."""


def _same(op: TypedOp) -> TensorflowFn:
    def wire_same(node: GraphNode, wire: Wiring) -> OutletId:
        return wire.op(op, wire.input(0))

    return wire_same


for _name, _op in _SAME.items():
    ROWS.add(TENSORFLOW, _name, _same(_op))

