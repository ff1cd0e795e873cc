"""Matrix products, and sums of products over named axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_core.data import DatumType
from tract_core.errors import CorruptModel, Unwritable
from tract_core.model.axes import AxesMapping, letters
from tract_core.model.conditions import may_equal
from tract_core.model.graph import OutletId
from tract_core.ops.einsum import QUANTIZED_INPUTS, EinSum, accumulator, matmul_axes
from tract_core.ops.wiring import wire_cast, wire_unsqueeze
from tract_core.plugins.tables import Rows
from tract_nnef.ops.quantized import declared, factors, output_type, parameter, parameters_of, product_type
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, STANDARD, fragments, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.expressions import type_name
from tract_nnef.writing.for_others import is_computed_by_others
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_PARAMETERS: Final = QUANTIZED_INPUTS[2:]
"""What of a quantised sum of products stands in arguments of its own: a bias, zero points and scales."""


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
    a, b = factors(call, "A", "B")
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
    axes = _matmul_axes(rank, *flags)
    if call.dtype(a).is_quantized():
        return _quantized_product(call, axes, a, b)
    return call.op(EinSum(axes, _accumulator(call.dtype(a).storage)), a, b)


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


def _quantized_product(call: Call, axes: AxesMapping, a: OutletId, b: OutletId) -> OutletId:
    to = product_type(call, a, b)
    mapping = AxesMapping((*axes.inputs, *[""] * len(_PARAMETERS)), axes.outputs)
    parameters = parameters_of(call, call.dtype(a), call.dtype(b), to)
    return call.op(EinSum(mapping, DatumType.I32, to), a, b, call.constant(0, DatumType.I32), *parameters)


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
    "tract_core_einsum(inputs: tensor<scalar>[], expr: string, acc: string, output: string = '', sums: string = '')"
    " -> (y: tensor<scalar>)",
)
def read_einsum(call: Call) -> OutletId:
    """The sum of products of an expression such as ``mk,kn->mn``, in the type ``acc``, which the inputs are brought to.

    ``sums``: the type in which products are summed, where it is another; the tract engines pass that over. An axis that
    only the result has is of size 1.
    """
    inputs, acc = call.inputs("inputs"), call.element_type("acc")
    if not acc.is_integer():
        inputs = [wire_cast(call.model, call.unique("input"), one, acc) for one in inputs]
    sums = call.element_type("sums") if call.text("sums") else acc
    axes = AxesMapping.parse(call.text("expr"))
    found = [place for place, name in enumerate(axes.outputs[0]) if not any(name in term for term in axes.inputs)]
    output = "".join(name for place, name in enumerate(axes.outputs[0]) if place not in found)
    y = call.op(EinSum(AxesMapping(axes.inputs, (output,)), sums), *inputs)
    return wire_unsqueeze(call.model, call.unique("added"), y, found) if found else y


@reads(
    ROWS,
    CORE,
    "tract_core_einsum_q(inputs: tensor<scalar>[], expr: string, acc: string, output: string = '',"
    f" {declared(_PARAMETERS)}) -> (y: tensor<scalar>)",
)
def read_einsum_q(call: Call) -> OutletId:
    """The same of two quantised tensors; the expression has the axes of the bias and of all parameters too."""
    inputs = call.inputs("inputs")
    if len(inputs) != 2:
        raise CorruptModel(f"tract_core_einsum_q: {len(inputs)} inputs, wanted 2")
    op = EinSum(AxesMapping.parse(call.text("expr")), call.element_type("acc"), output_type(call, "output"))
    return call.op(op, *inputs, *_parameters(call, *inputs))


def _parameters(call: Call, a: OutletId, b: OutletId) -> list[OutletId]:
    return [parameter(call, name, {"a0": a, "b0": b}.get(name)) for name in _PARAMETERS]


@reads(ROWS, CORE, "tract_core_matmul(A: tensor<scalar>, B: tensor<scalar>, axes: integer[]) -> (y: tensor<scalar>)")
def read_old_matmul(call: Call) -> OutletId:
    """A product along axes that are given by number: of rows and sums in A, of sums and columns in B, of both in C."""
    a, b = call.input("A"), call.input("B")
    return call.op(EinSum(_old_axes(call, a, b), _accumulator(call.dtype(a).storage)), a, b)


@reads(
    ROWS,
    CORE,
    "tract_core_qmatmul(A: tensor<scalar>, B: tensor<scalar>, bias: tensor<scalar> = 0, axes: integer[] = [],"
    f" {declared(_PARAMETERS[1:])}, output_type: string = '') -> (y: tensor<scalar>)",
)
def read_old_qmatmul(call: Call) -> OutletId:
    """The same of quantised matrices; a bias of several numbers has one for each column."""
    a, b = call.input("A"), call.input("B")
    axes = _old_axes(call, a, b)
    rest = _parameters(call, a, b)
    columns = axes.outputs[0][call.integers("axes")[5]]
    terms = [columns if call.rank(one) == 1 else "" for one in rest[:1]] + [""] * 6
    scalars = [rest[0] if terms[0] else call.without_axes(rest[0]), *map(call.without_axes, rest[1:])]
    op = EinSum(AxesMapping((*axes.inputs, *terms), axes.outputs), DatumType.I32, output_type(call, "output_type"))
    return call.op(op, a, b, *scalars)


def _old_axes(call: Call, a: OutletId, b: OutletId) -> AxesMapping:
    """The axes of a product that numbers name. All others are shared, in their order. Raises CorruptModel."""
    numbers = call.integers("axes")
    ranks = call.rank(a), call.rank(b)
    rank = max(ranks)
    if len(numbers) != 6 or len(set(ranks)) > 1 or rank < 2:
        raise CorruptModel(
            f"{call.name}: axes {list(numbers)} of {call.fact(a)} and {call.fact(b)}, wanted 6 of one rank"
        )
    pairs = [numbers[:2], numbers[2:4], numbers[4:]]
    for pair in pairs:
        if len({call.check_axis(axis, rank) for axis in pair}) < 2:
            raise CorruptModel(f"{call.name}: axes {list(numbers)} name one axis of a tensor twice")
    names = iter(letters())
    m, k, n = (next(names) for _ in range(3))
    shared = [next(names) for _ in range(rank - 2)]
    terms = ("".join(_placed(shared, pair, own)) for pair, own in zip(pairs, (m + k, k + n, m + n), strict=True))
    first, second, output = terms
    return AxesMapping((first, second), (output,))


def _placed(shared: Sequence[str], places: Sequence[int], names: str) -> list[str]:
    """The names of a tensor's axes, of which two have their places, and the others follow in order."""
    own, rest = dict(zip(places, names, strict=True)), iter(shared)
    return [own[axis] if axis in own else next(rest) for axis in range(len(shared) + 2)]


@ROWS.row(NNEF_WRITE, EinSum)
def write_einsum(op: EinSum, node: Spelling) -> Invocation | None:
    """As a product of matrices where reading that gives the same operator, else by its expression.

    Raises Unwritable for integers that other engines compute no products of, where the archive is for them.
    """
    expression, kind = str(op.axes), node.input_fact(0).datum_type
    kinds = [node.input_fact(slot).datum_type for slot in range(len(node.inputs))]
    if not node.allows(PY) and not is_computed_by_others(op, kinds):
        raise Unwritable(
            f"{op.name} {expression} of {kind.short} is computed by no other engine",
            hint=f"let the model compute it in i32 or floats, or allow the registry {PY}",
        )
    if op.q_output is not None:
        a, b, *rest = node.inputs
        said = {"expr": expression, "acc": type_name(op.acc), "output": type_name(op.q_output)}
        parameters = dict(zip(_PARAMETERS, rest, strict=True))
        return node.invoke("tract_core_einsum_q", [a, b], **said, **parameters, registry=CORE)
    flags = as_matmul(op.axes)
    if flags is not None and op.acc is _accumulator(kind.storage) and not kind.is_quantized():
        return node.invoke("matmul", *node.inputs, transposeA=flags[0], transposeB=flags[1])
    result = node.output_fact().datum_type
    sums = None if op.acc == result else type_name(op.acc)
    said = {"expr": expression, "acc": type_name(result), "output": "", "sums": sums}
    return node.invoke("tract_core_einsum", list(node.inputs), **said, registry=CORE)


def as_matmul(axes: AxesMapping) -> tuple[bool, bool] | None:
    """Which matrices are the other way around; ``None`` where it is no product of matrices with these names."""
    rank = len(axes.outputs[0])
    choices = ((False, False), (False, True), (True, False), (True, True))
    return next((flags for flags in choices if rank >= 2 and _matmul_axes(rank, *flags) == axes), None)
