"""Functions of one number."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.elementwise import (
    ElementWise,
    GeluApproximate,
    GeluExact,
    HardSwish,
    LeakyRelu,
    Sigmoid,
    Silu,
    Tanh,
)
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Function, Role

ROWS = Rows()


@ROWS.row(ROLES, GeluApproximate, GeluExact, HardSwish, LeakyRelu, Sigmoid, Tanh)
def activation(op: ElementWise, model: TypedModel, node: TypedNode) -> Role | None:
    """An activation, whose results are no larger than what it is given, or than 1"""
    return Function()


@ROWS.row(ROLES, Silu)
def silu(op: Silu, model: TypedModel, node: TypedNode) -> Role | None:
    """A number times its sigmoid"""
    return Function(gate=Sigmoid())
