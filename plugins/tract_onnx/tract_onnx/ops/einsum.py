"""Matrix products, and sums of products in general."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, FactError
from tract_core.frontend.precision import widened
from tract_core.model.axes import AxesMapping, letters
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


def parse_equation(equation: str, ranks: list[int]) -> AxesMapping:
    """The mapping that an expression names, for inputs of these ranks.

    ``...`` stands for the axes that have no name, aligned at the last; without an output, that is these and the names
    that occur once, in alphabetical order. Raises CorruptModel when the expression does not fit the inputs.
    """
    text = "".join(equation.split())
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks) or any(not _is_term(term) for term in (*terms, right)):
        raise CorruptModel(f"the equation {equation[:200]!r} does not fit {len(ranks)} inputs")
    unnamed = [rank - len(term.replace("...", "")) for term, rank in zip(terms, ranks, strict=True)]
    for term, count, rank in zip(terms, unnamed, ranks, strict=True):
        if count < 0 or (count > 0 and "..." not in term):
            raise CorruptModel(f"the term {term[:80]!r} of {equation[:200]!r} does not fit an input of {rank} axes")
    fresh = (name for name in letters() if name not in text)
    batch = "".join(next(fresh) for _ in range(max(unnamed)))
    inputs = [term.replace("...", batch[len(batch) - count :]) for term, count in zip(terms, unnamed, strict=True)]
    if not arrow:
        names = sorted(set(left) - set(".,"))
        right = "..." + "".join(name for name in names if left.count(name) == 1)
    output = right.replace("...", batch)
    if len(set(output)) < len(output) or not set(output) <= set("".join(inputs)):
        raise CorruptModel(f"the output of {equation[:200]!r} has an axis twice, or one that no input has")
    return AxesMapping(tuple(inputs), (output,))


def _is_term(term: str) -> bool:
    named = term.replace("...", "", 1)
    return named.isascii() and (named == "" or named.isalpha())
