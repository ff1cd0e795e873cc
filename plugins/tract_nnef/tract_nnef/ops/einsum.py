"""Matrix products, and sums of products over named axes."""

from __future__ import annotations

from tract_core.data import DatumType
from tract_core.errors import CorruptModel
from tract_core.model.axes import AxesMapping
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.einsum import EinSum, accumulator, matmul_axes
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, STANDARD, fragments, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.expressions import type_name
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    STANDARD,
    "matmul(A: tensor<scalar>, B: tensor<scalar>, transposeA: logical = false, transposeB: logical = false)"
    " -> (C: tensor<scalar>)",
)
def read_matmul(call: Call) -> OutletId:
    """Products of matrices, each either way around; axes before these two stretch from size 1.

    Raises CorruptModel for operands of different ranks, and for inner sizes that differ.
    """
    a = call.tensor("A")
    b = call.tensor("B", call.dtype(a))
    rank = call.rank(a)
    if rank != call.rank(b) or rank < 2:
        raise CorruptModel(f"matmul: {call.fact(a)} and {call.fact(b)}, wanted two tensors of one rank, 2 or more")
    flags = call.flag("transposeA"), call.flag("transposeB")
    inner = call.shape(a)[rank - 2 if flags[0] else rank - 1], call.shape(b)[rank - 1 if flags[1] else rank - 2]
    with call.model.noting_conditions(f"node {call.node!r} (matmul)"):
        if not may_equal(*inner):
            raise CorruptModel(
                f"matmul: the inner sizes of {call.fact(a)} and {call.fact(b)} are {inner[0]} and {inner[1]}"
            )
    return call.op(EinSum(_matmul_axes(rank, *flags), _accumulator(call.dtype(a).storage)), a, b)


def _matmul_axes(rank: int, transpose_a: bool, transpose_b: bool) -> AxesMapping:
    axes = matmul_axes(rank, rank)
    for slot, swapped in enumerate((transpose_a, transpose_b)):
        if swapped:
            term = axes.inputs[slot]
            axes = axes.with_input(slot, term[:-2] + term[:-3:-1])
    return axes


def _accumulator(kind: DatumType) -> DatumType:
    """Integers that are not quantised wrap around in their own type, as in the tract engines."""
    return kind if kind.is_integer() else accumulator(kind)


fragments(
    ROWS,
    STANDARD,
    """
fragment linear(input: tensor<scalar>, filter: tensor<scalar>, bias: tensor<scalar> = 0.0) -> (output: tensor<scalar>)
{
    output = matmul(input, filter, transposeB = true) + bias;
}
""",
)


@reads(
    ROWS,
    CORE,
    "tract_core_einsum(inputs: tensor<scalar>[], expr: string, acc: string, output: string = '')"
    " -> (y: tensor<scalar>)",
)
def read_einsum(call: Call) -> OutletId:
    """The sum of products of an expression such as ``mk,kn->mn``."""
    op = EinSum(AxesMapping.parse(call.text("expr")), call.element_type("acc"))
    return call.op(op, *call.tensors("inputs"))


@ROWS.row(NNEF_WRITE, EinSum)
def write_einsum(op: EinSum, node: Spelling) -> Invocation | None:
    """As a product of matrices where reading that gives the same operator, else by its expression."""
    if op.q_output is not None:
        return None
    flags = _as_matmul(op.axes)
    kind = node.input_fact(0).datum_type
    if flags is not None and op.acc is _accumulator(kind.storage) and not kind.is_quantized():
        return node.invoke("matmul", *node.inputs, transposeA=flags[0], transposeB=flags[1])
    acc = type_name(op.acc)
    return node.invoke("tract_core_einsum", list(node.inputs), expr=str(op.axes), acc=acc, output="", registry=CORE)


def _as_matmul(axes: AxesMapping) -> tuple[bool, bool] | None:
    """Which matrices are the other way around; ``None`` where it is no product of matrices with these names."""
    rank = len(axes.outputs[0])
    choices = ((False, False), (False, True), (True, False), (True, True))
    return next((flags for flags in choices if rank >= 2 and _matmul_axes(rank, *flags) == axes), None)
