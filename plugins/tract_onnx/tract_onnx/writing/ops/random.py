"""Numbers drawn at random."""

from __future__ import annotations

from typing import Any

from tract_core.ops.random import Distribution, Dropout, Multinomial, RandomLike, RandomTensor
from tract_core.plugins.tables import Rows
from tract_onnx.writing.elements import code_of
from tract_onnx.writing.spelling import Spelling
from tract_onnx.writing.table import ONNX_WRITE

ROWS = Rows()


@ROWS.row(ONNX_WRITE, RandomLike)
def random_like(op: RandomLike, node: Spelling) -> str:
    """RandomUniformLike, RandomNormalLike"""
    return node.add(f"{_name(op)}Like", node.input(), **_told(op))


@ROWS.row(ONNX_WRITE, RandomTensor)
def random_tensor(op: RandomTensor, node: Spelling) -> str:
    """RandomUniform, RandomNormal; of sizes that are symbols, like a tensor of that shape"""
    if all(isinstance(size, int) for size in op.shape):
        return node.add(_name(op), shape=list(op.shape), **_told(op))
    like = node.add("Expand", node.constant(0, op.to), node.sizes(op.shape))
    return node.add(f"{_name(op)}Like", like, **_told(op))


@ROWS.row(ONNX_WRITE, Multinomial)
def multinomial(op: Multinomial, node: Spelling) -> str:
    """Multinomial"""
    return node.add("Multinomial", node.input(), sample_size=op.count, dtype=code_of(op.to), **_seed(op.seed))


@ROWS.row(ONNX_WRITE, Dropout)
def dropout(op: Dropout, node: Spelling) -> tuple[str, ...]:
    """Dropout"""
    told = {} if op.seed is None else {"seed": op.seed}
    return node.several("Dropout", 2, *node.inputs, **told)


def _name(op: RandomLike | RandomTensor) -> str:
    return "RandomUniform" if op.distribution is Distribution.UNIFORM else "RandomNormal"


def _told(op: RandomLike | RandomTensor) -> dict[str, Any]:
    ends = ("low", "high") if op.distribution is Distribution.UNIFORM else ("mean", "scale")
    return {"dtype": code_of(op.to), ends[0]: op.a, ends[1]: op.b, **_seed(op.seed)}


def _seed(seed: int | None) -> dict[str, float]:
    return {} if seed is None else {"seed": float(seed)}
