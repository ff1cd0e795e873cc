"""Operators that combine tensors element by element, broadcast as NumPy does."""

from __future__ import annotations

from functools import reduce
from math import pi
from typing import Final

from tract_core.frontend.precision import rounded_once
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.ops import binary as core
from tract_core.ops.elementwise import Atan
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.elementwise import wire_log1p
from tract_tensorflow.graphdef.registry import TENSORFLOW, TensorflowFn, tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()

_SAME: Final[dict[str, TypedOp]] = {
    "Add": core.Add(),
    "AddV2": core.Add(),
    "BitwiseAnd": core.BitAnd(),
    "BitwiseOr": core.BitOr(),
    "BitwiseXor": core.BitXor(),
    "Div": core.Div(),
    "Equal": core.Eq(),
    "FloorMod": core.FloorRem(),
    "Greater": core.Gt(),
    "GreaterEqual": core.Ge(),
    "LeftShift": core.ShiftLeft(),
    "Less": core.Lt(),
    "LessEqual": core.Le(),
    "LogicalAnd": core.And(),
    "LogicalOr": core.Or(),
    "Maximum": core.Max(),
    "Minimum": core.Min(),
    "Mod": core.Rem(),
    "Mul": core.Mul(),
    "NotEqual": core.Ne(),
    "Pow": core.Pow(),
    "RealDiv": core.Div(),
    "RightShift": core.ShiftRight(),
    "Sub": core.Sub(),
    "TruncateDiv": core.Div(),
    "TruncateMod": core.Rem(),
}
"""Operators of TensorFlow that are one core operator."""


def _same(op: TypedOp) -> TensorflowFn:
    def wire_same(node: GraphNode, wire: GraphWiring) -> OutletId:
        return wire.binary(op, wire.input(0), wire.input(1))

    return wire_same


for _name, _op in _SAME.items():
    ROWS.add(TENSORFLOW, _name, _same(_op))


@tf_op(ROWS, "AccumulateNV2", "AddN")
@rounded_once()
def total(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The sum of the inputs"""
    return reduce(lambda a, b: wire.binary(core.Add(), a, b), wire.all_inputs())


@tf_op(ROWS, "FloorDiv")
def floor_div(node: GraphNode, wire: GraphWiring) -> Wired:
    """A / b, rounded towards minus infinity"""
    a, b = wire.tensor(0), wire.tensor(1)
    if a.dtype.is_float():
        return (a / b).floor()
    rest = a.with_outlet(wire.binary(core.FloorRem(), a.outlet, b.outlet))
    return a / b if wire.dims(a.outlet) is not None else (a - rest) / b


@tf_op(ROWS, "SquaredDifference")
@rounded_once()
def squared_difference(node: GraphNode, wire: GraphWiring) -> Wired:
    """(a - b) * (a - b)"""
    return (wire.tensor(0) - wire.tensor(1)).square()


@tf_op(ROWS, "DivNoNan")
def div_no_nan(node: GraphNode, wire: GraphWiring) -> Wired:
    """A / b, 0 where b is 0"""
    a, b = wire.tensor(0), wire.tensor(1)
    is_zero = b.eq(0)
    return is_zero.where(0, a / is_zero.where(1, b))


@tf_op(ROWS, "MulNoNan")
def mul_no_nan(node: GraphNode, wire: GraphWiring) -> Wired:
    """A * b, 0 where b is 0, whatever a is"""
    a, b = wire.tensor(0), wire.tensor(1)
    return b.eq(0).where(0, a * b)


@tf_op(ROWS, "Xdivy")
def xdivy(node: GraphNode, wire: GraphWiring) -> Wired:
    """X / y, 0 where x is 0"""
    x, y = wire.tensor(0), wire.tensor(1)
    return x.eq(0).where(0, x / y)


@tf_op(ROWS, "Xlogy")
@rounded_once()
def xlogy(node: GraphNode, wire: GraphWiring) -> Wired:
    """X * log(y), 0 where x is 0"""
    x, y = wire.tensor(0), wire.tensor(1)
    return x.eq(0).where(0, x * y.log())


@tf_op(ROWS, "Xlog1py")
@rounded_once()
def xlog1py(node: GraphNode, wire: GraphWiring) -> Wired:
    """X * log(1 + y), 0 where x is 0"""
    x, y = wire.tensor(0), wire.tensor(1)
    return x.eq(0).where(0, x * wire_log1p(y))


@tf_op(ROWS, "Atan2")
@rounded_once()
def atan2(node: GraphNode, wire: GraphWiring) -> Wired:
    """The angle of the point (x, y), from -pi to pi"""
    y, x = wire.tensor(0), wire.tensor(1)
    angle = (y / x).op(Atan())
    turned = (x < 0).where((y < 0).where(angle - pi, angle + pi), angle)
    upright = y.eq(0).where(0, (y < 0).where(y * 0 - pi / 2, pi / 2))
    return x.eq(0).where(upright, turned)


@tf_op(ROWS, "ApproximateEqual")
def approximate_equal(node: GraphNode, wire: GraphWiring) -> Wired:
    """Whether the two differ by less than a tolerance"""
    return abs(wire.tensor(0) - wire.tensor(1)) < node.number("tolerance", 1e-5)


@tf_op(ROWS, "SelectV2")
def select(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The second input where the first is true, else the third"""
    return wire.select(wire.input(0), wire.input(1), wire.input(2))


@tf_op(ROWS, "Select")
def select_rows(node: GraphNode, wire: GraphWiring) -> OutletId:
    """As SelectV2, without broadcasting; a list of conditions is one for each row"""
    condition, a = wire.input(0), wire.input(1)
    missing = range(wire.rank(condition), wire.rank(a))
    if wire.rank(condition) == 1 and missing:
        condition = wire.unsqueeze(condition, list(missing))
    return wire.select(condition, a, wire.input(2))
