"""Operators that hand on what they get."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp, arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, SYMBOLIC, Array
from tract_core.plugins.tables import Rows

if TYPE_CHECKING:
    from tract_core.model.graph import OutletId
    from tract_core.model.typed import TypedModel

ROWS = Rows()


@frozen
class Identity(TypedOp):
    """The input."""

    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input, with its value."""
        (x,) = arity(self, inputs, 1)
        return (x,)


def origin(model: TypedModel, outlet: OutletId) -> OutletId:
    """The tensor that ``outlet`` is another name of."""
    while isinstance(model.producer(outlet).op, Identity):
        (outlet,) = model.producer(outlet).inputs
    return outlet


@frozen
class PinConst(TypedOp):
    """The input, whose value nothing behind it may rely on: what is computed from it is computed in every run."""

    pure: ClassVar[bool] = False
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The fact of the input, without its value."""
        (x,) = arity(self, inputs, 1)
        return (x.without_value(),)


@ROWS.row(REFERENCE, Identity, PinConst)
@ROWS.row(SYMBOLIC, Identity)
def reference(op: Identity | PinConst, x: Array) -> Array:
    """X"""
    return x


@ROWS.row(COST, Identity, PinConst)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, Identity, PinConst)
def axes(op: Identity | PinConst, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
