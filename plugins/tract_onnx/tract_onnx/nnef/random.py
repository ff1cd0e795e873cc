"""Numbers drawn at random."""

from __future__ import annotations

from typing import Final

from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, ONNX, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

from tract_core.data import DatumType
from tract_core.model.graph import OutletId
from tract_core.ops.random import Distribution, Multinomial, RandomTensor
from tract_core.plugins.tables import Rows

ROWS = Rows()

_PLACES: Final = {6: DatumType.I32, 7: DatumType.I64}
"""Element types by their numbers in ONNX."""

_NUMBERS: Final = {kind: number for number, kind in _PLACES.items()}


def _seed(call: Call) -> int | None:
    return int(call.number("seed")) if call.has("seed") else None


@reads(
    ROWS,
    ONNX,
    "tract_onnx_multinomial(input: tensor<scalar>, dtype: integer = 6, sample_size: integer = 1,"
    " seed: integer = false) -> (output: tensor<integer>)",
)
def read_multinomial(call: Call) -> OutletId:
    """Places of each row. Raises CorruptModel for an element type that is neither i32 nor i64."""
    kind = _PLACES.get(call.integer("dtype"))
    if kind is None:
        raise call.misfit("dtype", f"is {call.integer('dtype')}", "6 for i32 or 7 for i64")
    return call.op(Multinomial(call.integer("sample_size"), kind, _seed(call)), call.input("input"))


@ROWS.row(NNEF_WRITE, Multinomial)
def write_multinomial(op: Multinomial, node: Spelling) -> Invocation | None:
    """Where the places are i32 or i64."""
    if op.to not in _NUMBERS:
        return None
    named = {"dtype": _NUMBERS[op.to], "sample_size": op.count, "seed": op.seed}
    return node.invoke("tract_onnx_multinomial", node.input(0), **named, registry=ONNX)


@reads(
    ROWS,
    ONNX,
    "tract_onnx_random(datum_type: string, shape: integer[], dist: string, parameters: scalar[],"
    " seed: integer = false) -> (output: tensor<scalar>)",
)
def read_random(call: Call) -> OutletId:
    """Between two bounds, or around a mean."""
    distribution = call.member("dist", Distribution)
    parameters = call.numbers("parameters")
    if len(parameters) != 2:
        raise call.misfit("parameters", f"has {len(parameters)} entries", "2")
    return call.op(
        RandomTensor(distribution, *parameters, call.element_type("datum_type"), _seed(call), call.dims("shape"))
    )


@ROWS.row(NNEF_WRITE, RandomTensor)
def write_random(op: RandomTensor, node: Spelling) -> Invocation | None:
    """By its distribution."""
    return node.invoke(
        "tract_onnx_random",
        datum_type=op.to.name,
        shape=list(op.shape),
        dist=op.distribution.value,
        parameters=[op.a, op.b],
        seed=op.seed,
        registry=ONNX,
    )
