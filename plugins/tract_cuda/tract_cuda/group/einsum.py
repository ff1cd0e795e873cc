"""Sums of products with what is computed of each sum."""

from __future__ import annotations

from tract_llvm.elements.expressions import Expression
from tract_llvm.fuse.chain import Chain
from tract_llvm.language.types import ElementType, element_type

from tract_core.compile.products import is_product_of_two, moves_only
from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.einsum import EinSum
from tract_core.ops.expect import wide
from tract_core.plugins.tables import Rows
from tract_cuda.group.attention import Attention, attention_of, waits
from tract_cuda.group.grouping import CudaGrouper
from tract_cuda.group.groups import Products
from tract_cuda.table import STARTS

ROWS = Rows()


@ROWS.row(STARTS, EinSum)
def group_product(op: EinSum, grouping: CudaGrouper, node: TypedNode) -> Products | Attention | None:
    """A product of two, with the chain behind it; or with all of an attention."""
    start = product_of(op, grouping.model, node)
    if start is None or waits(grouping, node):
        return None
    chain = grouping.extended(start)
    return attention_of(grouping, node, chain) or Products(chain.nodes, chain)


def product_of(op: EinSum, model: TypedModel, node: TypedNode) -> Chain | None:
    """The sum alone, in the type of the operator; ``None`` where it is no product of two that kernels sum."""
    facts, outlet = model.input_facts(node), OutletId(node.id)
    if op.q_output is not None or not is_product_of_two(op, facts) or moves_only(op, facts, model.outlet_fact(outlet)):
        return None
    element = element_type(model.outlet_fact(outlet).datum_type.storage)
    if element is None or sums_of(op) is None:
        return None
    return Chain(Expression((element,)), (), outlet, (node.id,))


def sums_of(op: EinSum) -> ElementType | None:
    """In which type products are summed; ``None`` where kernels cannot."""
    found = element_type(DatumType.from_numpy(wide(op.acc.numpy)))
    return None if found is None or found.is_carried else found
