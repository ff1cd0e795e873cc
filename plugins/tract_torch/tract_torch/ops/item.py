"""Numbers out of tensors: ``x.item()``."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tract_core.model.graph import OutletId
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.range import Range
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten._local_scalar_dense")
def item(call: Call, wire: NodeWiring) -> OutletId:
    """The one element of a tensor; an integer of 0 or more may be a size"""
    x = wire.number(call.tensor("self"))
    size: Any = call.node.meta["val"]
    if isinstance(size, torch.SymInt) and size.node.shape_env.bound_sympy(size.node.expr).lower >= 0:
        # As many positions as the number says: so the symbol has its value as soon as the number is known.
        wire.op(Range(call.dim_of(size)), wire.const(np.array(0)), wire.i64(x), wire.const(np.array(1)))
    return x
