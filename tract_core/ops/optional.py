"""Optionals: values that may be missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from tract_core.data import Constant, DatumType, ItemFact, OptionalType
from tract_core.data.boxes import boxed, from_tensor, to_tensor
from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import Op, TypedOp
from tract_core.model.typed import TypedModel
from tract_core.ops.expect import arity
from tract_core.ops.sequence import announced, item_of, item_shape
from tract_core.ops.wiring import wire_one
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()


@frozen
class OptionalNone(TypedOp):
    """No value, where there could be one like ``item``."""

    item: ItemFact
    pure: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """An optional that is known to be empty."""
        arity(self, inputs, 0)
        return (TypedFact.of(OptionalType(self.item, present=False), ()),)


@frozen
class OptionalConstruct(TypedOp):
    """The input, as an optional that holds it."""

    pure: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """An optional that is known not to be empty."""
        (x,) = arity(self, inputs, 1)
        return (TypedFact.of(OptionalType(item_of(x), present=True), ()),)


@frozen
class OptionalHasElement(TypedOp):
    """Whether an optional holds a value."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """One boolean, whose value is known where the answer is."""
        (x,) = arity(self, inputs, 1)
        present = optional_type(self, x).present
        if present is None:
            return (TypedFact.of(DatumType.BOOL, ()),)
        return (TypedFact.of_value(Constant(np.array(present))),)


@frozen
class OptionalGetElement(TypedOp):
    """What an optional holds, which must not be empty.

    ``shape``: its sizes, symbols where only the run can tell; `wire_get_element` makes them.
    """

    shape: tuple[Dim, ...]
    announces: ClassVar[tuple[str, ...]] = ("shape",)
    judges: ClassVar[tuple[int, ...]] = (0,)
    makes_outputs: ClassVar[bool] = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """A value in ``shape``. Raises FactError when that contradicts what is known of the optional."""
        (x,) = arity(self, inputs, 1)
        return (announced(self, optional_type(self, x).item, self.shape),)


def optional_type(op: Op, fact: TypedFact) -> OptionalType:
    """The type of an optional. Raises FactError for anything else."""
    if not isinstance(fact.datum_type, OptionalType) or fact.rank != 0:
        raise FactError(f"{op.name} wants an optional, found {fact}")
    return fact.datum_type


def wire_get_element(model: TypedModel, name: str, optional: OutletId) -> OutletId:
    """What an optional holds. Raises Unsupported when its rank is not known."""
    kind = optional_type(OptionalGetElement(()), model.outlet_fact(optional))
    shape = item_shape(model, name, kind.item, optional)
    return wire_one(model, name, OptionalGetElement(shape), optional)


@ROWS.row(REFERENCE, OptionalNone)
def none(op: OptionalNone) -> Array:
    """None"""
    return boxed(None)


@ROWS.row(REFERENCE, OptionalConstruct)
def construct(op: OptionalConstruct, x: Array) -> Array:
    """The value itself"""
    return boxed(from_tensor(x))


@ROWS.row(REFERENCE, OptionalHasElement)
def has_element(op: OptionalHasElement, x: Array) -> Array:
    """Not None"""
    return np.array(x.item() is not None)


@ROWS.row(REFERENCE, OptionalGetElement)
def get_element(op: OptionalGetElement, x: Array) -> Array:
    """The value itself"""
    held = x.item()
    if held is None:
        raise RunError("the optional is empty", hint="ask OptionalHasElement first, or give the input a value")
    return to_tensor(held)


_ALL = (OptionalNone, OptionalConstruct, OptionalHasElement, OptionalGetElement)


@ROWS.row(COST, *_ALL)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention: nothing is computed."""
    return {}


@ROWS.row(AXES, *_ALL)
def axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said: what an optional holds has its axes inside."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
