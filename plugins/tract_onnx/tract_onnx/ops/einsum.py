"""Matrix products, and sums of products in general."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import FactError
from tract_core.frontend.equation import parse_equation
from tract_core.frontend.precision import widened
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Mul
from tract_core.ops.einsum import EinSum, accumulator, wire_matmul
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.registry import onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "MatMul")
def matmul(node: OnnxNode, wire: Wiring) -> OutletId:
    """numpy.matmul"""
    a, b = wire.input(0), wire.input(1)
    return wire.cast(wire.through(wire_matmul, a, b), wire.dtype(a))


@onnx_op(ROWS, "Gemm")
def gemm(node: OnnxNode, wire: Wiring) -> OutletId:
    """Alpha * A B + beta * C, with A or B transposed where the attributes say so"""
    return wire_gemm(node, wire)


def wire_gemm(node: OnnxNode, wire: Wiring) -> OutletId:
    """The product that the attributes of Gemm describe. Raises FactError for anything but matrices."""
    a, b, c = wire.input(0), wire.input(1), wire.optional_input(2)
    kind, alpha = wire.dtype(a), node.number("alpha", 1.0)
    if alpha != 1:  # what is made smaller may be no number of a narrow type before that
        a, b = widened(wire, a), widened(wire, b)
    if wire.rank(a) != 2 or wire.rank(b) != 2:
        raise FactError(f"Gemm wants matrices, found {wire.fact(a)} and {wire.fact(b)}")
    left, right = ("km" if node.flag("transA") else "mk"), ("nk" if node.flag("transB") else "kn")
    inner = wire.shape(a)[left.index("k")], wire.shape(b)[right.index("k")]
    if not may_equal(*inner):
        raise FactError(f"a matrix product wants inner sizes that are equal, found {wire.fact(a)} and {wire.fact(b)}")
    product = wire.op(EinSum(AxesMapping((left, right), ("mn",)), accumulator(wire.dtype(a))), a, b)
    result = wire.cast(product, wire.dtype(a))
    beta = 0.0 if c is None else node.number("beta", 1.0)
    if kind.is_integer() and not (alpha.is_integer() and beta.is_integer()):
        result = wire.cast(result, DatumType.F64)
    if alpha != 1:
        result = wire.op(Mul(), result, wire.scalar(alpha, result))
    if c is not None:
        wire.require_shape("third input", c, wire.shape(result), stretches=True)
    if c is not None and beta != 0:
        c = wire.cast(c, wire.dtype(result))
        c = c if beta == 1 else wire.op(Mul(), c, wire.scalar(beta, c))
        result = wire.binary(Add(), result, c)
    return wire.cast(result, kind)


@onnx_op(ROWS, "Einsum", since=12)
def einsum(node: OnnxNode, wire: Wiring) -> OutletId:
    """The sum of products that an expression like ``"ij,jk->ik"`` names"""
    inputs = wire.all_inputs()
    axes = parse_equation(node.text("equation"), [wire.rank(x) for x in inputs])
    kind = wire.dtype(inputs[0])
    return wire.cast(wire.op(EinSum(axes, accumulator(kind)), *inputs), kind)
