"""Convolutions with their bias, and what is computed of each sum."""

from __future__ import annotations

from tract_llvm.elements.expressions import Expression, element_of
from tract_llvm.fuse.chain import Chain
from tract_llvm.language.types import ElementType, element_type

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Add
from tract_core.ops.conv import Conv, sum_type
from tract_core.ops.expect import wide
from tract_core.plugins.tables import Rows
from tract_cuda.group.grouping import CudaGrouper
from tract_cuda.group.groups import Convolved
from tract_cuda.table import STARTS

ROWS = Rows()


@ROWS.row(STARTS, Conv)
def group_conv(op: Conv, grouping: CudaGrouper, node: TypedNode) -> Convolved | None:
    """A convolution, with the chain behind it."""
    start = biased(op, grouping.model, node)
    if start is None:
        return None
    chain = grouping.extended(start)
    return Convolved(chain.nodes, chain)


def biased(op: Conv, model: TypedModel, node: TypedNode) -> Chain | None:
    """The sum of a window plus the bias, rounded to the type of the result; ``None`` where kernels cannot sum it."""
    sums = sums_of(model, node)
    bias, result = (
        element_type(model.outlet_fact(one).datum_type.storage) for one in (node.inputs[2], OutletId(node.id))
    )
    if op.q_output is not None or sums is None or bias is None or result is None:
        return None
    added = element_of(model.registry, Add(), [sums, bias], result)
    if added is None:
        return None
    steps = (added.applied(Add(), (0, 1), result),)
    return Chain(Expression((sums, bias), steps), (node.inputs[2],), OutletId(node.id), (node.id,), own=1)


def sums_of(model: TypedModel, node: TypedNode) -> ElementType | None:
    """In which type products are summed; ``None`` where kernels cannot."""
    kinds = [model.outlet_fact(one).datum_type.storage for one in node.inputs[:2]]
    found = element_type(DatumType.from_numpy(wide(sum_type(*kinds).numpy)))
    return None if found is None or found.is_carried else found
