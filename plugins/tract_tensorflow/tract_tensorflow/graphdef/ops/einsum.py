"""Matrix products, and sums of products in general."""

from __future__ import annotations

from tract_core.errors import FactError
from tract_core.frontend.equation import parse_equation
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add
from tract_core.ops.einsum import EinSum, accumulator, wire_matmul
from tract_core.plugins.tables import Rows
from tract_tensorflow.graphdef.node import GraphNode
from tract_tensorflow.graphdef.registry import tf_op
from tract_tensorflow.graphdef.wiring import GraphWiring

ROWS = Rows()


@tf_op(ROWS, "MatMul")
def matmul(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The product of two matrices, each transposed where an attribute says so"""
    a, b = wire.input(0), wire.input(1)
    if wire.rank(a) != 2 or wire.rank(b) != 2:
        raise FactError(f"MatMul wants matrices, found {wire.fact(a)} and {wire.fact(b)}")
    return _product(wire, _turned(wire, a, node.flag("transpose_a")), _turned(wire, b, node.flag("transpose_b")))


@tf_op(ROWS, "BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The products of the matrices in the last two axes; other axes are broadcast"""
    a, b = wire.input(0), wire.input(1)
    if wire.rank(a) < 2 or wire.rank(b) < 2:
        raise FactError(f"{node.op_type} wants matrices, found {wire.fact(a)} and {wire.fact(b)}")
    if node.has("Tout"):
        kind = node.element_type("Tout")
        a, b = wire.cast(a, kind), wire.cast(b, kind)
    return _product(wire, _turned(wire, a, node.flag("adj_x")), _turned(wire, b, node.flag("adj_y")))


def _product(wire: GraphWiring, a: OutletId, b: OutletId) -> OutletId:
    return wire.cast(wire.through(wire_matmul, a, b), wire.dtype(a))


def _turned(wire: GraphWiring, x: OutletId, is_turned: bool) -> OutletId:
    """The matrices in the last two axes, transposed where that is asked for."""
    rank = wire.rank(x)
    return wire.transpose(x, (*range(rank - 2), rank - 1, rank - 2)) if is_turned else x


@tf_op(ROWS, "Einsum")
def einsum(node: GraphNode, wire: GraphWiring) -> OutletId:
    """The sum of products that an expression like ``"ij,jk->ik"`` names"""
    inputs = wire.all_inputs()
    axes = parse_equation(node.text("equation"), [wire.rank(x) for x in inputs])
    kind = wire.dtype(inputs[0])
    return wire.cast(wire.op(EinSum(axes, accumulator(kind)), *inputs), kind)


@tf_op(ROWS, "BiasAdd", "BiasAddV1")
def bias_add(node: GraphNode, wire: GraphWiring) -> OutletId:
    """X with one number for each channel added"""
    x, bias = wire.input(0), wire.input(1)
    rank = wire.rank(x)
    channels_first = node.text("data_format", "NHWC").startswith("NC")
    axis = 1 if channels_first else rank - 1
    if rank < 2 or wire.rank(bias) != 1:
        raise FactError(f"BiasAdd wants a list of one number for each channel, found {wire.fact(bias)}")
    wire.require_shape("bias", bias, (wire.shape(x)[axis],))
    return wire.binary(Add(), x, wire.unsqueeze(bias, range(1, rank - axis)) if axis < rank - 1 else bias)
