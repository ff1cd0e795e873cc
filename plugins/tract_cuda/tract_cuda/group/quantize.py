"""Numbers into small integers and back, and the chain behind."""

from __future__ import annotations

from typing import Final

from tract_llvm.elements.expressions import Apply, Expression
from tract_llvm.elements.quantize import dequantize, quantize
from tract_llvm.fuse.chain import Chain
from tract_llvm.language.types import element_type

from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.quantize import DequantizeLinear, QuantizeLinear
from tract_core.plugins.tables import Rows
from tract_cuda.group.grouping import CudaGrouper
from tract_cuda.group.groups import Scaled
from tract_cuda.table import STARTS

ROWS = Rows()

_WIDEST: Final = 32
"""Bits of the widest integers that f64 holds exactly, with room for a zero point."""


@ROWS.row(STARTS, QuantizeLinear, DequantizeLinear)
def group_linear(op: QuantizeLinear | DequantizeLinear, grouping: CudaGrouper, node: TypedNode) -> Scaled | None:
    """The chain that begins with the operator."""
    start = converting(op, grouping.model, node)
    if start is None:
        return None
    chain = grouping.extended(start)
    return Scaled(chain.nodes, chain)


def converting(op: QuantizeLinear | DequantizeLinear, model: TypedModel, node: TypedNode) -> Chain | None:
    """The operator on elements of its inputs; ``None`` where kernels cannot compute it on their types."""
    outlet = OutletId(node.id)
    kinds = [element_type(model.outlet_fact(one).datum_type.storage) for one in (*node.inputs, outlet)]
    known = tuple(one for one in kinds if one is not None)
    if len(known) < len(kinds) or any(known[n].kind in "iu" and known[n].bits > _WIDEST for n in (0, 2, 3)):
        return None
    step = Apply(op, (0, 1, 2), known[3], quantize if isinstance(op, QuantizeLinear) else dequantize)
    return Chain(Expression(known[:3], (step,)), tuple(node.inputs), outlet, (node.id,), own=3)
