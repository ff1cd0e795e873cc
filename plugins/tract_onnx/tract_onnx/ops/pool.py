"""Pools: the largest element, the mean or the norm of each window."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tract_core.data import DatumType
from tract_core.dims import Dim, product
from tract_core.errors import FactError, Unsupported
from tract_core.frontend.precision import rounded_once
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Rem
from tract_core.ops.elementwise import Abs, PowConst
from tract_core.ops.pool import MaxPool, SumPool
from tract_core.ops.pool_spec import PoolSpec
from tract_core.ops.reduce import Reduce, Reducer, wire_mean
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.spatial import pool_spec
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


def _pool(node: OnnxNode) -> PoolSpec:
    return pool_spec(node, node.integers("kernel_shape"), ceil_mode=node.flag("ceil_mode"))


@onnx_op(ROWS, "MaxPool")
def max_pool(node: OnnxNode, wire: Wiring) -> Sequence[OutletId]:
    """The largest element of each window, and its place"""
    if not node.wants_output(1):
        return (wire.op(MaxPool(_pool(node)), wire.input(0)),)
    if node.integer("storage_order", 0) != 0:
        raise Unsupported("the indices of MaxPool in column-major order", hint="export with storage_order=0")
    return wire.ops(MaxPool(_pool(node), DatumType.I64), wire.input(0))


@onnx_op(ROWS, "MaxPool", since=8)
def max_pool_8(node: OnnxNode, wire: Wiring) -> Sequence[OutletId | Wired]:
    """The largest element of each window, and its place, counted in either order"""
    x, pool = wire.input(0), _pool(node)
    if not node.wants_output(1):
        return (wire.op(MaxPool(pool), x),)
    values, places = wire.ops(MaxPool(pool, DatumType.I64), x)
    if node.integer("storage_order", 0) == 0:
        return values, places
    return values, _column_major(Wired(wire, places), wire.shape(x)[2:])


def _column_major(places: Wired, sizes: Sequence[Dim]) -> Wired:
    """Places within a channel, counted with the last axis fastest, as those counted with the first axis fastest."""

    def number(dim: Dim) -> Wired:
        return Wired(places.wire, places.wire.const(dim)).unsqueeze(range(places.rank))

    rest = places.op(Rem(), number(product(sizes)))
    result = places - rest
    for axis in reversed(range(len(sizes))):
        size, step = number(sizes[axis]), number(product(sizes[:axis]))
        result = result + rest.op(Rem(), size) * step
        rest = rest / size
    return result


@onnx_op(ROWS, "AveragePool", since=1)
def average_pool(node: OnnxNode, wire: Wiring) -> OutletId:
    """The mean of each window"""
    return wire.op(SumPool(_pool(node), node.flag("count_include_pad")), wire.input(0))


@onnx_op(ROWS, "LpPool")
@rounded_once()
def lp_pool(node: OnnxNode, wire: Wiring) -> OutletId:
    """The norm of each window"""
    x = wire.input(0)
    return _norm(node, wire, x, lambda powers: wire.op(SumPool(_pool(node), normalize=False), powers))


def _spatial_axes(wire: Wiring, x: OutletId) -> tuple[int, ...]:
    if wire.rank(x) < 2:
        raise FactError(f"a batch and channels are wanted before the places, found {wire.fact(x)}")
    return tuple(range(2, wire.rank(x)))


@onnx_op(ROWS, "GlobalAveragePool")
def global_average_pool(node: OnnxNode, wire: Wiring) -> OutletId:
    """The mean over all places"""
    x = wire.input(0)
    return wire.through(wire_mean, x, _spatial_axes(wire, x))


@onnx_op(ROWS, "GlobalMaxPool")
def global_max_pool(node: OnnxNode, wire: Wiring) -> OutletId:
    """The largest element over all places"""
    x = wire.input(0)
    return wire.op(Reduce(_spatial_axes(wire, x), Reducer.MAX), x)


@onnx_op(ROWS, "GlobalLpPool")
@rounded_once()
def global_lp_pool(node: OnnxNode, wire: Wiring) -> OutletId:
    """The norm over all places"""
    x = wire.input(0)
    axes = _spatial_axes(wire, x)
    return _norm(node, wire, x, lambda powers: wire.op(Reduce(axes, Reducer.SUM), powers))


def _norm(node: OnnxNode, wire: Wiring, x: OutletId, add: Callable[[OutletId], OutletId]) -> OutletId:
    """The p-th root of what ``add`` makes of the p-th powers of magnitudes."""
    p = node.number("p", 2.0) if node.version < 2 else node.integer("p", 2)
    if p < 1:
        raise Unsupported(f"{node.op_type} with p={p}, 1 or more is wanted")
    total = add(wire.op(PowConst(float(p)), wire.op(Abs(), x)))
    return total if p == 1 else wire.op(PowConst(1 / p), total)
