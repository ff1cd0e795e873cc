"""Products of matrices, and whatever else sums along axes."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.einsum import EinSum
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Product, Role

ROWS = Rows()


@ROWS.row(ROLES, EinSum)
def einsum(op: EinSum, model: TypedModel, node: TypedNode) -> Role | None:
    """A product, where one of two factors is known, and its axes are summed over or those of the result"""
    if op.q_output is not None or len(op.axes.inputs) != 2:
        return None
    known = [slot for slot in (0, 1) if model.constant(node.inputs[slot]) is not None]
    return _product(op, model, node, known[0]) if len(known) == 1 else None


def _product(op: EinSum, model: TypedModel, node: TypedNode, weights: int) -> Role | None:
    term, data, out = op.axes.inputs[weights], op.axes.inputs[1 - weights], op.axes.outputs[0]
    if any(len(set(one)) < len(one) for one in (term, data)) or any(name in data for name in term if name in out):
        return None
    shape = model.outlet_fact(node.inputs[weights]).shape
    summed = [axis for axis, name in enumerate(term) if name not in out]
    kept = [axis for axis, name in enumerate(term) if name in out]
    if not summed or not kept or any(term[axis] not in data for axis in summed):
        return None
    channel = max(kept, key=lambda axis: int(shape[axis]))
    return Product(
        data=1 - weights,
        weights=weights,
        channel=channel,
        output=out.index(term[channel]),
        summed=summed[0] if len(summed) == 1 else None,
        as_conv=_is_pointwise(data, term, out),
    )


def _is_pointwise(data: str, term: str, out: str) -> bool:
    """Whether it is a convolution with a kernel of one place: the second axis of at least three becomes another one."""
    if len(term) != 2 or len(data) < 3 or len(data) != len(out):
        return False
    return data[1] in term and out[1] in term and data[0] + data[2:] == out[0] + out[2:]
