"""The bits of elements, read as another element type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

_NARROW: Final = {
    DatumType.U2: 2,
    DatumType.I2: 2,
    DatumType.U4: 4,
    DatumType.I4: 4,
    DatumType.F4E2M1FN: 4,
}
"""Bits of the types that take a whole byte in memory all the same, in its lowest bits."""


def _bits(kind: DatumType) -> int:
    return _NARROW.get(kind, 8 * kind.itemsize)


@frozen
class BitCast(TypedOp):
    """The same bits in the same shape, as elements of the type ``to``, which is as wide."""

    to: DatumType

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's shape. Raises FactError for strings, and for types that are not equally wide."""
        (x,) = arity(self, inputs, 1)
        source = x.datum_type.storage
        if DatumType.STRING in (source, self.to):
            raise FactError(f"BitCast: strings have no bits of their own, found {x} to {self.to.short}")
        if _bits(source) != _bits(self.to):
            raise FactError(
                f"BitCast to {self.to.short}, of {_bits(self.to)} bits, wants elements as wide; found {x}, "
                f"of {_bits(source)} bits"
            )
        return (TypedFact.of(self.to, x.shape),)


@ROWS.row(REFERENCE, BitCast)
def reference(op: BitCast, x: Array) -> Array:
    """numpy.ndarray.view, a narrow type's element being the lowest bits of its byte"""
    source = np.ascontiguousarray(x).reshape(x.shape)
    if op.to in _NARROW:
        source = source.view(np.uint8) & np.uint8((1 << _NARROW[op.to]) - 1)
    if op.to.is_bool():
        return source.view(np.uint8) != 0
    return source.view(op.to.numpy)


@ROWS.row(COST, BitCast)
def cost(op: BitCast, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """Free, by convention."""
    return {}


@ROWS.row(AXES, BitCast)
def axes(op: BitCast, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Every axis stays in place."""
    return AxesMapping.natural([inputs[0].rank], [outputs[0].rank])
