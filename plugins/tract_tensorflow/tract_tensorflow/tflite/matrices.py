"""FULLY_CONNECTED's data as rows, and its result in the axes that the operator says."""

from __future__ import annotations

from tract_core.dims import is_symbolic, product
from tract_core.errors import FactError, Unsupported
from tract_core.ops.wired import Wired
from tract_tensorflow.tflite.wiring import Wiring


def rows_of(wire: Wiring) -> Wired:
    """The data as (rows, inputs), where the weights are (outputs, inputs). Raises FactError."""
    x, weights = wire.tensor(0), wire.tensor(1)
    if wire.node.choice("weights_format", ("DEFAULT", "SHUFFLED4x16INT8"), "DEFAULT") != "DEFAULT":
        raise Unsupported("weights in shuffled blocks of 4 by 16 bytes")
    if weights.rank != 2 or is_symbolic(weights.shape[1]) or int(weights.shape[1]) < 1:
        raise FactError(f"the weights are {weights.fact}, wanted (outputs, inputs)")
    inputs = int(weights.shape[1])
    if x.rank == 2 and x.shape[1] == inputs:
        return x
    if x.rank and x.shape[-1] == inputs:
        rows = x.shape[:-1]
        return x.reshape((product(rows), inputs))
    return x.reshape((x.shape.volume // inputs, inputs))


def with_rows(result: Wired, wire: Wiring) -> Wired:
    """(rows, outputs), with the axes of the data before the last where they are kept."""
    x = wire.tensor(0)
    if not wire.node.flag("keep_num_dims"):
        return result
    return result.reshape((*x.shape[:-1], result.shape[1]))
