"""Parts of transformers that are made of operators of the core. They are read; what they are made of is written.

Attention is written as one operator only where a model holds it as one.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_nnef.nnef_only.sdpa import Sdpa
from tract_nnef.reading.call import Call
from tract_nnef.registry import NNEF_WRITE, TRANSFORMERS, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()


@reads(
    ROWS,
    TRANSFORMERS,
    "tract_transformers_apply_rope(input: tensor<scalar>, cos: tensor<scalar>, sin: tensor<scalar>)"
    " -> (output: tensor<scalar>)",
)
def read_apply_rope(call: Call) -> Wired:
    """``input * cos + rotated * sin``, where the second half of the last axis, negated, comes before the first.

    Raises CorruptModel where the last axis has no halves.
    """
    x, cos, sin = (Wired(call.wire, one) for one in call.wire.ranks(*map(call.input, ("input", "cos", "sin"))))
    size = x.shape[-1] if x.rank else 1
    if not isinstance(size, int) or size % 2:
        raise CorruptModel(f"{call.name}: the last axis of {x.fact} has no halves")
    rotated = (-x[..., size // 2 :]).concat([x[..., : size // 2]], -1)
    return x * cos + rotated * sin


@reads(
    ROWS,
    TRANSFORMERS,
    "tract_transformers_scaled_masked_softmax(input: tensor<scalar>, mask: tensor<?>, scale: scalar,"
    " post_softmax_mask: logical = false) -> (output: tensor<scalar>)",
)
def read_scaled_masked_softmax(call: Call) -> Wired:
    """Along the last axis. What a mask of booleans leaves out is 0, in rows that it leaves out whole too if asked."""
    x, mask = (Wired(call.wire, one) for one in call.wire.ranks(call.input("input"), call.input("mask")))
    found = _softmax(x * call.number("scale"), mask)
    if not call.flag("post_softmax_mask"):
        return found
    if not mask.dtype.is_bool():
        raise CorruptModel(f"{call.name}: a mask that counts after the softmax is of booleans, found {mask.fact}")
    return mask.where(found, 0)


@reads(
    ROWS,
    TRANSFORMERS,
    "tract_transformers_sdpa(q: tensor<scalar>, k: tensor<scalar>, v: tensor<scalar>, mask: tensor<?> = false,"
    " scale: scalar = false, datum_type: string = '', acc_datum_type: string = 'f32', is_causal: logical = false)"
    " -> (output: tensor<scalar>)",
)
def read_sdpa(call: Call) -> Wired:
    """``softmax(q k scale + mask) v``, with a scale of 1 / sqrt(size of the last axis) where none is given.

    Tensors are [batch, sequence, size] or [batch, heads, sequence, size]; each head of k and v is for as many heads of
    q as there are more. A mask of booleans leaves out, one of numbers is added. With ``is_causal`` an element of q sees
    the elements of k up to its own place, where the sequences end together. Raises CorruptModel.
    """
    q, k, v = (call.tensor(name) for name in ("q", "k", "v"))
    rank, causal = q.rank, call.flag("is_causal")
    if rank not in (3, 4) or rank != k.rank or rank != v.rank:
        found = ", ".join(str(x.fact) for x in (q, k, v))
        raise CorruptModel(f"{call.name}: wanted q, k and v of one rank, 3 or 4, found {found}")
    if causal and call.has("mask"):
        raise CorruptModel(f"{call.name}: it cannot have a mask and be causal too")
    acc, shape, inner = call.element_type("acc_datum_type"), q.shape, q.dtype
    q = _grouped(call, q, k) if rank == 4 else q
    size = shape[rank - 1]
    if not call.has("scale") and not isinstance(size, int):
        raise CorruptModel(f"{call.name}: no 'scale' is given, and the last axis of q is {size}")
    scale = call.number("scale") if call.has("scale") else 1 / sqrt(int(size))
    scores = _product("bsd,btd->bst" if rank == 3 else "bhgsd,bhtd->bhgst", acc, q, k) * scale
    mask = _causal(scores) if causal else _mask(call, rank, scores)
    found = _softmax(scores, mask) if mask is not None else scores.op(Softmax((scores.rank - 1,)))
    found = _product("bst,btd->bsd" if rank == 3 else "bhgst,bhtd->bhgsd", acc, found, v)
    if rank == 4:
        found = found.reshape((*shape[:3], found.shape[4]))
    return found.cast(call.element_type("datum_type") if call.text("datum_type") else inner)


def _grouped(call: Call, q: Wired, k: Wired) -> Wired:
    """``q`` with an axis for the heads that share one of ``k``, behind that of the heads."""
    batch, heads, length, size = q.shape
    shared = k.shape[1]
    if heads == shared:
        groups: Dim = 1
    elif isinstance(heads, int) and isinstance(shared, int) and shared and heads % shared == 0:
        groups = heads // shared
    else:
        raise CorruptModel(f"{call.name}: {heads} heads of q cannot share {shared} heads of k")
    return q.reshape((batch, shared, groups, length, size))


def _product(expression: str, acc: DatumType, a: Wired, b: Wired) -> Wired:
    return a.op(EinSum(AxesMapping.parse(expression), acc), b)


def _mask(call: Call, rank: int, scores: Wired) -> Wired | None:
    """The mask, if there is one, with the axes of the scores."""
    if not call.has("mask"):
        return None
    mask = call.tensor("mask")
    if mask.rank > rank:
        raise CorruptModel(f"{call.name}: the mask {mask.fact} has more axes than q")
    for _ in range(rank - mask.rank):
        mask = mask[None]
    if rank == 3:
        return mask
    batch, heads, *rest = mask.shape
    return mask.reshape((batch, *((1, 1) if heads == 1 else scores.shape[1:3]), *rest))


def _causal(scores: Wired) -> Wired:
    """Booleans: which elements of k each one of q sees."""
    rows, columns = scores.shape[-2:]
    mask = _places(scores, columns - rows, columns)[:, None] >= _places(scores, 0, columns)[None]
    for _ in range(scores.rank - 2):
        mask = mask[None]
    return mask


def _places(like: Wired, start: Dim, end: Dim) -> Wired:
    bounds = (like.wire.const(bound) for bound in (start, end, 1))
    return like.with_outlet(like.wire.through(wire_range, *bounds))


def _softmax(x: Wired, mask: Wired) -> Wired:
    """Along the last axis, of what a mask leaves."""
    left = mask.where(x, -np.inf) if mask.dtype.is_bool() else x + mask.cast(x.dtype)
    return left.op(Softmax((x.rank - 1,)))


@ROWS.row(NNEF_WRITE, Sdpa)
def write_sdpa(op: Sdpa, node: Spelling) -> Invocation | None:
    """By its own name, with a mask of floats: tract 0.23.9 takes no other one."""
    mask = node.input(3) if len(node.node.inputs) == 4 else None
    if mask is not None and node.input_fact(3).datum_type.is_bool() and node.allows(TRANSFORMERS):
        rank, kind = node.input_fact(3).rank, node.input_fact(0).datum_type.numpy
        kept, left_out = (
            node.constant(what, Constant(np.full([1] * rank, value, kind)))
            for what, value in (("kept", 0.0), ("left_out", -np.inf))
        )
        mask = node.let("mask", node.invoke("select", mask, kept, left_out))
    return node.invoke(
        "tract_transformers_sdpa",
        *(node.input(slot) for slot in range(3)),
        mask=mask,
        scale=op.scale,
        datum_type=node.output_fact().datum_type.short,
        acc_datum_type=op.acc.short,
        is_causal=op.causal,
        registry=TRANSFORMERS,
    )
