"""Parts of transformers that are made of operators of the core. They are read; what they are made of is written.

Attention is written as one operator only where a model holds it as one.
"""

from __future__ import annotations

from math import sqrt

import numpy as np

from tract_core.data import Constant, DatumType, DType
from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.model.axes import AxesMapping
from tract_core.model.graph import OutletId
from tract_core.ops.axis import AddAxis
from tract_core.ops.binary import Add, Ge, Mul
from tract_core.ops.cast import Cast
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Neg
from tract_core.ops.iff import Iff
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import Softmax
from tract_core.ops.wiring import wire_ranks, wire_reshape
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
def read_apply_rope(call: Call) -> OutletId:
    """``input * cos + rotated * sin``, where the second half of the last axis, negated, comes before the first.

    Raises CorruptModel where the last axis has no halves.
    """
    x, cos, sin = wire_ranks(call.model, call.unique("rank"), [call.tensor(name) for name in ("input", "cos", "sin")])
    last = call.rank(x) - 1
    size = call.shape(x)[last] if last >= 0 else 1
    if not isinstance(size, int) or size % 2:
        raise CorruptModel(f"{call.name}: the last axis of {call.fact(x)} has no halves")
    back = call.op(Neg(), call.op(Slice(last, size // 2, size), x))
    rotated = call.op(TypedConcat(last), back, call.op(Slice(last, 0, size // 2), x))
    return call.op(Add(), call.op(Mul(), x, cos), call.op(Mul(), rotated, sin))


@reads(
    ROWS,
    TRANSFORMERS,
    "tract_transformers_scaled_masked_softmax(input: tensor<scalar>, mask: tensor<?>, scale: scalar,"
    " post_softmax_mask: logical = false) -> (output: tensor<scalar>)",
)
def read_scaled_masked_softmax(call: Call) -> OutletId:
    """Along the last axis. What a mask of booleans leaves out is 0, in rows that it leaves out whole too if asked."""
    x, mask = wire_ranks(call.model, call.unique("rank"), [call.tensor("input"), call.tensor("mask")])
    found = _softmax(call, _scaled(call, x, call.number("scale")), mask)
    if not call.flag("post_softmax_mask"):
        return found
    if not call.dtype(mask).is_bool():
        raise CorruptModel(f"{call.name}: a mask that counts after the softmax is of booleans, found {call.fact(mask)}")
    return call.op(Iff(), mask, found, _number(call, 0.0, found))


@reads(
    ROWS,
    TRANSFORMERS,
    "tract_transformers_sdpa(q: tensor<scalar>, k: tensor<scalar>, v: tensor<scalar>, mask: tensor<?> = false,"
    " scale: scalar = false, datum_type: string = '', acc_datum_type: string = 'f32', is_causal: logical = false)"
    " -> (output: tensor<scalar>)",
)
def read_sdpa(call: Call) -> OutletId:
    """``softmax(q k scale + mask) v``, with a scale of 1 / sqrt(size of the last axis) where none is given.

    Tensors are [batch, sequence, size] or [batch, heads, sequence, size]; each head of k and v is for as many heads of
    q as there are more. A mask of booleans leaves out, one of numbers is added. With ``is_causal`` an element of q sees
    the elements of k up to its own place, where the sequences end together. Raises CorruptModel.
    """
    q, k, v = (call.tensor(name) for name in ("q", "k", "v"))
    rank, causal = call.rank(q), call.flag("is_causal")
    if rank not in (3, 4) or rank != call.rank(k) or rank != call.rank(v):
        found = ", ".join(str(call.fact(x)) for x in (q, k, v))
        raise CorruptModel(f"{call.name}: wanted q, k and v of one rank, 3 or 4, found {found}")
    if causal and call.given("mask"):
        raise CorruptModel(f"{call.name}: it cannot have a mask and be causal too")
    acc, shape = call.element_type("acc_datum_type"), call.shape(q)
    inner: DType = call.dtype(q)
    if rank == 4:
        q, k, v = _grouped(call, q, k, v)
    size = shape[rank - 1]
    if not call.given("scale") and not isinstance(size, int):
        raise CorruptModel(f"{call.name}: no 'scale' is given, and the last axis of q is {size}")
    scale = call.number("scale") if call.given("scale") else 1 / sqrt(int(size))
    scores = _product(call, "bsd,btd->bst" if rank == 3 else "bhgsd,bhtd->bhgst", acc, q, k)
    scores = _scaled(call, scores, scale)
    mask = _causal(call, scores) if causal else _mask(call, rank, scores, shape)
    found = _softmax(call, scores, mask) if mask is not None else call.op(Softmax((call.rank(scores) - 1,)), scores)
    found = _product(call, "bst,btd->bsd" if rank == 3 else "bhgst,bhtd->bhgsd", acc, found, v)
    if rank == 4:
        found = wire_reshape(call.model, call.unique("heads"), found, (*shape[:3], call.shape(found)[4]))
    wanted = call.element_type("datum_type") if call.text("datum_type") else inner
    return found if call.dtype(found) == wanted else call.op(Cast(wanted), found)


def _grouped(call: Call, q: OutletId, k: OutletId, v: OutletId) -> tuple[OutletId, OutletId, OutletId]:
    """``q`` with an axis for the heads that share one of ``k``, behind that of the heads."""
    batch, heads, length, size = call.shape(q)
    shared = call.shape(k)[1]
    if heads == shared:
        groups: Dim = 1
    elif isinstance(heads, int) and isinstance(shared, int) and shared and heads % shared == 0:
        groups = heads // shared
    else:
        raise CorruptModel(f"{call.name}: {heads} heads of q cannot share {shared} heads of k")
    return wire_reshape(call.model, call.unique("groups"), q, (batch, shared, groups, length, size)), k, v


def _product(call: Call, expression: str, acc: DatumType, a: OutletId, b: OutletId) -> OutletId:
    return call.op(EinSum(AxesMapping.parse(expression), acc), a, b)


def _mask(call: Call, rank: int, scores: OutletId, shape: tuple[Dim, ...]) -> OutletId | None:
    """The mask, if there is one, with the axes of the scores."""
    mask = call.optional_tensor("mask")
    if mask is None:
        return None
    if call.rank(mask) > rank:
        raise CorruptModel(f"{call.name}: the mask {call.fact(mask)} has more axes than q")
    for _ in range(rank - call.rank(mask)):
        mask = call.op(AddAxis(0), mask)
    if rank == 3:
        return mask
    batch, heads, *rest = call.shape(mask)
    grouped = call.shape(scores)[1:3]
    heads = (1, 1) if heads == 1 else grouped
    return wire_reshape(call.model, call.unique("mask"), mask, (batch, *heads, *rest))


def _causal(call: Call, scores: OutletId) -> OutletId:
    """Booleans: which elements of k each one of q sees."""
    rows, columns = call.shape(scores)[-2:]
    place = _places(call, "rows", columns - rows, columns)
    seen = _places(call, "columns", 0, columns)
    mask = call.op(Ge(), call.op(AddAxis(1), place), call.op(AddAxis(0), seen))
    for _ in range(call.rank(scores) - 2):
        mask = call.op(AddAxis(0), mask)
    return mask


def _places(call: Call, what: str, start: Dim, end: Dim) -> OutletId:
    bounds = (call.model.add_const(call.unique(f"{what}.bound"), bound) for bound in (start, end, 1))
    return wire_range(call.model, call.unique(what), *bounds)


def _softmax(call: Call, x: OutletId, mask: OutletId) -> OutletId:
    """Along the last axis, of what a mask leaves."""
    if call.dtype(mask).is_bool():
        x = call.op(Iff(), mask, x, _number(call, -np.inf, x))
    else:
        mask = mask if call.dtype(mask) == call.dtype(x) else call.op(Cast(call.dtype(x)), mask)
        x = call.op(Add(), x, mask)
    return call.op(Softmax((call.rank(x) - 1,)), x)


def _scaled(call: Call, x: OutletId, scale: float) -> OutletId:
    return call.op(Mul(), x, _number(call, scale, x))


def _number(call: Call, value: float, like: OutletId) -> OutletId:
    """A constant of the type of a tensor, with as many axes."""
    return call.constant_array(np.full([1] * call.rank(like), value, call.dtype(like).numpy))


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
