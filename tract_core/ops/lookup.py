"""Values looked up by a key: a table with one row per key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Any, Final

import numpy as np

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, MEMORY, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

_NAN: Final = object()
"""What stands for all values that are not a number: they are one key, whatever their bits."""


@frozen
class Lookup(TypedOp):
    """For each element, the element of ``values`` at the place where ``keys`` has it, else ``default``.

    ``keys`` and ``values`` have one axis and one length; a key that is repeated counts where it is last. Floats that
    are not a number are one key. ``default`` has no axes.
    """

    keys: Constant
    values: Constant
    default: Constant

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape in the type of the values. Raises FactError unless it has the type of the keys."""
        (x,) = arity(self, inputs, 1)
        keys, values = self.keys, self.values
        if keys.array.ndim != 1 or keys.array.shape != values.array.shape:
            raise FactError(f"Lookup: {keys.array.shape} keys do not go with {values.array.shape} values")
        if values.datum_type != self.default.datum_type or self.default.array.ndim:
            raise FactError(f"Lookup: the default is {self.default}, wanted one {values.datum_type.short}")
        if x.datum_type != keys.datum_type:
            raise FactError(f"Lookup of {x}, and the keys are {keys.datum_type.short}")
        return (x.with_type(values.datum_type),)


def text_of(element: object) -> str:
    """An element of an array of texts as a ``str``: arrays given by a user may hold bytes."""
    return element.decode("utf-8", "replace") if isinstance(element, bytes) else str(element)


def _as_keys(x: Array) -> list[Any]:
    """The elements as Python objects that compare as keys do."""
    if x.dtype.kind == "O":
        return [text_of(text) for text in x.reshape(-1).tolist()]
    elements: list[Any] = x.reshape(-1).tolist()
    return [_NAN if isinstance(element, float) and isnan(element) else element for element in elements]


def positions(keys: Array, x: Array) -> Array:
    """For each element of ``x``, in one row, where ``keys`` has it last; -1 where it is no key."""
    place = {key: index for index, key in enumerate(_as_keys(keys))}
    return np.array([place.get(key, -1) for key in _as_keys(x)], dtype=np.int64)


@ROWS.row(REFERENCE, Lookup)
def lookup(op: Lookup, x: Array) -> Array:
    """A dictionary, asked for each element"""
    table = np.append(op.values.array, op.default.array)  # the default is last, where -1 leads
    return table[positions(op.keys.array, x)].reshape(x.shape)


@ROWS.row(MEMORY, Lookup)
def memory(op: TypedOp, made: int, x: Array) -> int:
    """Each element as an object of Python, where it is among the keys, and whether it is each of them"""
    return 128 * x.size + 2 * made


@ROWS.row(COST, Lookup)
def cost(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """No arithmetic."""
    return {}


@ROWS.row(AXES, Lookup)
def axes(op: TypedOp, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis of the input stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
