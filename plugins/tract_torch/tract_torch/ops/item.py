"""Numbers out of tensors: ``x.item()``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.fill import DynFill
from tract_core.ops.node_wiring import NodeWiring
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


@aten(ROWS, "aten._local_scalar_dense")
def item(call: Call, wire: NodeWiring) -> OutletId:
    """The one element of a tensor; an integer may be a size

    The size gets its value from an empty tensor of so many rows, as soon as the number is known. Where it is used as a
    size, the run refuses a negative number.
    """
    x = wire.number(call.input("self"))
    size: Any = call.node.meta["val"]
    if isinstance(size, torch.SymInt):
        wire_symbol(wire, call.dim_of(size), x)
    return x


def wire_symbol(wire: NodeWiring, size: Dim, number: OutletId) -> None:
    """Let a symbol be what a tensor of one integer holds, from there on in a run."""
    shape = wire.op(TypedConcat(0), wire.sizes(number), wire.const([0]))
    wire.op(DynFill(Constant(np.array(False)), (size, 0)), shape)
