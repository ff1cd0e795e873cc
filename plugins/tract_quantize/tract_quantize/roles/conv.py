"""Convolutions."""

from __future__ import annotations

from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.conv import Conv
from tract_core.plugins.tables import Rows
from tract_quantize.registry import ROLES, Product, Role

ROWS = Rows()


@ROWS.row(ROLES, Conv)
def conv(op: Conv, model: TypedModel, node: TypedNode) -> Role | None:
    """A product, depthwise ones and those along one axis too"""
    if op.q_output is not None:
        return None
    rank = model.outlet_fact(node.inputs[0]).rank
    channel, output = op.kernel_format.o_axis(rank), op.pool.data_format.c_axis(rank)
    return Product(data=0, weights=1, channel=channel, output=output, bias=2, as_conv=True)
