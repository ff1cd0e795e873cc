"""Attention and rotary positions as ONNX Runtime has them (domain ``com.microsoft``).

Axes are named as in `tract_onnx.ops.heads`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim, exact_div, is_symbolic
from tract_core.errors import CorruptModel, FactError, Unsupported
from tract_core.frontend.precision import rounded_once
from tract_core.model.conditions import may_equal
from tract_core.ops.einsum import wire_matmul
from tract_core.ops.wired import Wired
from tract_core.plugins.tables import Rows
from tract_onnx.node import OnnxNode
from tract_onnx.ops.heads import (
    Scores,
    attend,
    count_of_heads,
    counted,
    joined_heads,
    rotate,
    rows_of,
    scale_of,
    split_heads,
)
from tract_onnx.registry import MICROSOFT_DOMAIN, onnx_op
from tract_onnx.wiring import Wiring

ROWS = Rows()


@onnx_op(ROWS, "RotaryEmbedding", domain=MICROSOFT_DOMAIN)
def rotary_embedding(node: OnnxNode, wire: Wiring) -> Wired:
    """Pairs of elements of each head turned by angles that depend on the position"""
    if node.flag("is_packed_batching"):
        raise Unsupported("RotaryEmbedding of a packed batch", hint="export with is_packed_batching=0")
    x, positions, cos, sin = (wire.tensor(slot) for slot in range(4))
    is_split = x.rank == 4
    heads = x if is_split else split_heads(x, _rotary_heads(node, x, cos))
    positions = positions.cast(DatumType.I64)
    if positions.rank == 1:
        # One number: the position of the first element, in every row of the batch.
        positions = positions[:, None] + counted(wire, heads.shape[2])
    cos, sin = (rows_of(cache, positions) for cache in (cos, sin))
    result = rotate(heads, cos, sin, interleaved=node.flag("interleaved"))
    return result if is_split else joined_heads(result)


def _rotary_heads(node: OnnxNode, x: Wired, cos: Wired) -> int:
    """The attribute, or as many heads as have just the elements that are turned."""
    if count := node.integer("num_heads", 0):
        return count
    count = exact_div(x.shape[2], 2 * cos.shape[1])
    if count is None or is_symbolic(count):
        raise CorruptModel("RotaryEmbedding wants an attribute 'num_heads' where only part of a head is turned")
    return int(count)


@onnx_op(ROWS, "MultiHeadAttention", domain=MICROSOFT_DOMAIN)
@rounded_once()
def multi_head_attention(node: OnnxNode, wire: Wiring) -> Sequence[Wired | None]:
    """Attention with as many heads of keys as of queries, and past keys and values in front of the new ones"""
    if node.wants_output(3) or wire.optional_input(9) is not None or wire.optional_input(8) is not None:
        raise Unsupported("MultiHeadAttention with shared buffers, beams, or the scores as an output")
    q, k, v = _projections(wire, count_of_heads(node, "num_heads"))
    past: Dim = 0
    past_k, past_v = wire.optional_tensor(6), wire.optional_tensor(7)
    if past_k is not None and past_v is not None:
        past = past_k.shape[2]
        k, v = past_k.concat([k], 2), past_v.concat([v], 2)
    biases = [_five_axes(bias)] if (bias := wire.optional_tensor(5)) is not None else []
    if (mask := wire.optional_tensor(4)) is not None:
        biases.append(_padding_bias(node, wire, mask, q, k))
    causal = [_seen(wire, q, k, past)] if node.flag("unidirectional") else []
    result = attend(q[:, :, None], k, v, Scores(scale_of(node, q), biases=biases, allowed=causal))
    return joined_heads(result.squeeze([2])), k, v


@onnx_op(ROWS, "Attention", domain=MICROSOFT_DOMAIN)
@rounded_once()
def attention(node: OnnxNode, wire: Wiring) -> Sequence[Wired | None]:
    """Attention of a tensor to itself, which is multiplied with weights for queries, keys and values side by side"""
    if node.flag("do_rotary") or node.flag("past_present_share_buffer") or wire.optional_input(6) is not None:
        raise Unsupported("Attention with rotary positions, or with a past in a buffer of fixed size")
    heads = count_of_heads(node, "num_heads")
    q, k, v = (split_heads(part, heads) for part in _projected(node, wire))
    present, past = None, wire.optional_tensor(4)
    length: Dim = 0
    if past is not None:
        length = past.shape[3]
        k, v = past[0].concat([k], 2), past[1].concat([v], 2)
    if node.wants_output(1):
        present = k[None].concat([v[None]], 0)
    biases = [_five_axes(bias)] if (bias := wire.optional_tensor(5)) is not None else []
    if (mask := wire.optional_tensor(3)) is not None:
        biases.append(_padding_bias(node, wire, mask, q, k))
    causal = [_seen(wire, q, k, length)] if node.flag("unidirectional") else []
    result = attend(q[:, :, None], k, v, Scores(scale_of(node, q), biases=biases, allowed=causal))
    return joined_heads(result.squeeze([2])), present


def _projected(node: OnnxNode, wire: Wiring) -> list[Wired]:
    """Queries, keys and values [b, s, hidden], from the weights [input, hidden of all three]."""
    x, weights, bias = wire.tensor(0), wire.tensor(1), wire.optional_tensor(2)
    if x.rank != 3 or weights.rank != 2:
        raise FactError(f"Attention wants a tensor of three axes and a matrix, found {x.fact} and {weights.fact}")
    whole = x.through(wire_matmul, weights.outlet)
    if bias is not None:
        wire.require_shape("bias", bias.outlet, weights.shape[1:])
        whole = whole + bias
    third = exact_div(weights.shape[1], 3)
    sizes: Sequence[Dim] = node.integers("qkv_hidden_sizes", ())
    if not sizes and third is not None:
        sizes = (third, third, third)
    if len(sizes) != 3 or not may_equal(sum(sizes), weights.shape[1]):
        raise CorruptModel(f"queries, keys and values of sizes {list(sizes)[:9]} are not in weights {weights.fact}")
    ends = sizes[0], sizes[0] + sizes[1]
    return [whole.part(2, 0, ends[0]), whole.part(2, *ends), whole.part(2, ends[1], weights.shape[1])]


def _projections(wire: Wiring, heads: int) -> Sequence[Wired]:
    """Queries, keys and values as [b, n, s, h], from any of the layouts, with their bias."""
    q, k, v, bias = wire.tensor(0), *(wire.optional_tensor(slot) for slot in (1, 2, 3))
    if k is None:
        parts = _unpacked(q, 3)
    elif v is None:
        parts = [split_heads(q, heads), *_unpacked(k, 2)]
    else:
        parts = [x if x.rank == 4 else split_heads(x, heads) for x in (q, k, v)]
    if bias is None:
        return parts
    # Keys and values that come with four axes were projected elsewhere, bias and all.
    count = 1 if k is not None and k.rank == 4 else 3
    return [*_biased(parts[:count], bias), *parts[count:]]


def _unpacked(x: Wired, count: int) -> list[Wired]:
    """The parts of [b, s, n, count, h], each as [b, n, s, h]."""
    if x.rank != 5:
        raise FactError(f"{count} packed tensors want five axes, found {x.fact}")
    return [part.transpose([0, 2, 1, 3]) for part in [x[..., i, :] for i in range(count)]]


def _biased(parts: Sequence[Wired], bias: Wired) -> list[Wired]:
    """Each part plus its own piece of a list that holds one number per head and element of all of them."""
    found: list[Wired] = []
    start: Dim = 0
    for part in parts:
        _, heads, _, size = part.shape
        found.append(part + bias.part(0, start, start + heads * size).reshape((heads, 1, size)))
        start = start + heads * size
    return found


def _five_axes(x: Wired) -> Wired:
    """[b, n, s, t] as [b, n, 1, s, t]."""
    if x.rank != 4:
        raise FactError(f"the bias of attention wants four axes, found {x.fact}")
    return x[:, :, None]


def _padding_bias(node: OnnxNode, wire: Wiring, mask: Wired, q: Wired, k: Wired) -> Wired:
    """What is added to the scores of keys that are padding, by the length of each row, or by a mask."""
    rank = mask.rank
    if rank not in {1, 2, 3}:
        raise Unsupported(f"{node.op_type} with a mask of {rank} axes")
    if rank == 1:
        if not may_equal(mask.shape[0], q.shape[0]):
            raise Unsupported(f"{node.op_type} with a mask that describes packed rows")
        allowed = counted(wire, k.shape[2])[None] < mask.cast(DatumType.I64)[:, None]
    else:
        allowed = mask > 0
    allowed = allowed.unsqueeze([1, 2, 3] if rank < 3 else [1, 2])
    zero, far = (np.full((1,) * 5, value, np.float32) for value in (0, node.number("mask_filter_value", -10000.0)))
    return allowed.where(allowed.operand(zero), allowed.operand(far))


def _seen(wire: Wiring, q: Wired, k: Wired, past: Dim) -> Wired:
    """Whether a query may see a key: those up to its own position, which comes after the past ones."""
    here = counted(wire, q.shape[2]) + past
    there = counted(wire, k.shape[2])
    return (there[None] <= here[:, None])[None, None, None]
