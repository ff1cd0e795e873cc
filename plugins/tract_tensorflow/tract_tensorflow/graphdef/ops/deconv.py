"""Deconvolutions, which TensorFlow knows as the gradients of convolutions."""

from __future__ import annotations

import numpy as np

from tract_core.dims import Dim, dim_max
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.model.graph import OutletId
from tract_core.ops.conv import KernelFormat
from tract_core.ops.deconv import Deconv
from tract_core.ops.pool_spec import Explicit, PoolSpec, Valid
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.ops.spatial import data_format, kernel_sizes, window
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "Conv2DBackpropInput", "Conv3DBackpropInputV2")
def deconv(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The sizes of the result, a kernel (places, outputs, channels), and data (batch, places, channels)"""
    sizes, kernel, x = wire.input(0), wire.input(1), wire.input(2)
    layout = data_format(node, "NHWC" if node.op_type.startswith("Conv2D") else "NDHWC")
    rank = wire.rank(x)
    if wire.rank(kernel) != rank:
        raise FactError(f"a kernel of as many axes as the data is wanted, found {wire.fact(kernel)} for {wire.fact(x)}")
    wanted = wire.dims(sizes)
    if wanted is None:
        raise Unsupported(
            f"{wire.model.outlet_name(sizes)!r} computes the sizes of the result, wanted numbers or sizes of inputs",
            hint="give sizes to the inputs that they depend on",
        )
    first = layout.h_axis
    if len(wanted) == rank:
        wanted = wanted[first : first + rank - 2]
    if len(wanted) != rank - 2:
        raise CorruptModel(f"{len(wanted)} sizes are given for {rank - 2} axes of {wire.fact(x)}")
    plain = window(node, kernel_sizes(wire, kernel), layout)
    cuts = [_cut(plain, axis, size, wire.shape(x)[first + axis]) for axis, size in enumerate(wanted)]
    before, after = tuple(one for one, _ in cuts), tuple(other for _, other in cuts)
    pool = PoolSpec(
        layout, plain.kernel_shape, Explicit(before, after), dilations=plain.dilations, strides=plain.strides
    )
    kernel = wire.transpose(kernel, (*range(rank - 2), rank - 1, rank - 2))
    bias = wire.const(np.zeros((), wire.dtype(x).numpy))
    return wire.op(Deconv(pool, KernelFormat.HWIO), x, kernel, bias)


def _cut(pool: PoolSpec, axis: int, target: Dim, size: Dim) -> tuple[Dim, Dim]:
    """What is cut off at both ends of an axis, so that ``target`` elements are left of what ``size`` write.

    Where more is wanted than is written, zeros follow behind it.
    """
    one = pool.windows[axis]
    total = (size - 1) * one.stride + one.field - target
    if isinstance(pool.padding, Explicit):
        before = pool.padding.before[axis]
    else:
        before = 0 if isinstance(pool.padding, Valid) else dim_max(total, 0) // 2
    return before, total - before
