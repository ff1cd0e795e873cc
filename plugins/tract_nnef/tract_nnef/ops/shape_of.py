"""Sizes of tensors, as tensors."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, reads

ROWS = Rows()


@reads(ROWS, CORE, "tract_core_shape_of(input: tensor<?>) -> (shape: tensor<integer>)")
def read_shape_of(call: Call) -> OutletId:
    """A constant, with symbols in it where the sizes have some."""
    return call.constant(list(call.shape(call.input("input"))), DatumType.I64)
