"""What operators on attention heads have in common: heads apart and together, scores, rotated positions.

Axes are named as in the equations: ``b`` batch, ``n`` heads (of keys), ``g`` heads of queries for each of keys,
``s`` positions of queries, ``t`` positions of keys, ``h`` elements of a head.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from functools import reduce

import numpy as np

from tract_core.dims import Dim, exact_div, is_symbolic
from tract_core.errors import FactError, Unsupported
from tract_core.frontend.precision import widened
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.ops.einsum import EinSum, accumulator
from tract_core.ops.gather import Gather
from tract_core.ops.softmax import Softmax
from tract_core.ops.wired import Wired
from tract_core.ops.wiring_dyn import wire_range
from tract_onnx.node import OnnxNode
from tract_onnx.wiring import Wiring


@frozen
class Scores:
    """What happens to the products of queries and keys.

    ``scale``: what they are multiplied by; ``softcap``: bounds them smoothly (0: not at all); ``biases``: what is
    added; ``allowed``: booleans that say which keys a query may see. Both have five axes, [b, n, g, s, t], or size 1 in
    their place. ``sink``: the score of a key that is not there, of shape [n, g, 1, 1].
    """

    scale: float
    softcap: float = 0.0
    biases: Sequence[Wired] = field(default_factory=tuple)
    allowed: Sequence[Wired] = field(default_factory=tuple)
    sink: Wired | None = None


def attend(q: Wired, k: Wired, v: Wired, scores: Scores) -> Wired:
    """The values [b, n, t, h], weighted by how well keys [b, n, t, h] fit queries [b, n, g, s, h]: [b, n, g, s, h]."""
    kind = q.dtype
    q, k, v = (wide(x) for x in (q, k, v))
    found = _einsum("bngsh,bnth->bngst", q * scores.scale, k)
    if scores.softcap:
        found = (found * (1 / scores.softcap)).tanh() * scores.softcap
    for bias in scores.biases:
        found = found + bias.cast(found.dtype)
    if scores.allowed:
        found = reduce(lambda one, other: one & other, scores.allowed).where(found, -np.inf)
    return _einsum("bngst,bnth->bngsh", _softmax(found, scores.sink), v).cast(kind)


def wide(x: Wired) -> Wired:
    """A tensor in f32, where it holds narrower floats."""
    return x.with_outlet(widened(x.wire, x.outlet))


def _softmax(scores: Wired, sink: Wired | None) -> Wired:
    if sink is None:
        return scores.op(Softmax((4,)))
    size = scores.shape[4]
    sink = sink.cast(scores.dtype)[None].broadcast((*scores.shape[:4], 1))
    return scores.concat([sink], 4).op(Softmax((4,))).part(4, 0, size)


def _einsum(axes: str, a: Wired, b: Wired) -> Wired:
    return a.op(EinSum(AxesMapping.parse(axes), accumulator(a.dtype)), b)


def split_heads(x: Wired, heads: int) -> Wired:
    """[b, s, n * h] as [b, n, s, h]."""
    batch, length, hidden = x.shape
    size = exact_div(hidden, heads)
    if size is None:
        raise FactError(f"{hidden} elements are not a multiple of {heads} heads, in {x.fact}")
    return x.reshape((batch, length, heads, size)).transpose([0, 2, 1, 3])


def joined_heads(x: Wired) -> Wired:
    """[b, n, s, h] as [b, s, n * h]."""
    batch, heads, length, size = x.shape
    return x.transpose([0, 2, 1, 3]).reshape((batch, length, heads * size))


def count_of_heads(node: OnnxNode, name: str) -> int:
    """An attribute that says how many heads there are. Raises CorruptModel for less than one."""
    count = node.integer(name)
    if count < 1:
        raise node.misfit(name, f"is {count}", "a number of heads")
    return count


def scale_of(node: OnnxNode, q: Wired) -> float:
    """The attribute, or one over the root of the size of a head, which is the last axis."""
    if given := node.number("scale", 0.0):
        return given
    size = q.shape[-1]
    if is_symbolic(size):
        raise Unsupported(f"the size of a head must be known when the model is loaded, found {q.fact}")
    return float(size) ** -0.5


def counted(wire: Wiring, end: Dim | Wired, start: Dim = 0) -> Wired:
    """``start``, ``start + 1`` and so on, up to and without ``end``, as i64."""
    last = end.outlet if isinstance(end, Wired) else wire.const(end)
    one = wire.const(np.array(1, np.int64))
    return Wired(wire, wire.through(wire_range, wire.const(start), last, one))


def rotate(x: Wired, cos: Wired, sin: Wired, *, interleaved: bool) -> Wired:
    """Pairs of elements of [b, n, s, h] turned by angles [b or 1, s, half]; elements after the pairs stay.

    A pair is two neighbours, if ``interleaved``, else an element of the first half and its counterpart in the second.
    """
    half, size = cos.shape[-1], x.shape[-1]
    if is_symbolic(half) or is_symbolic(size) or 2 * int(half) > int(size):
        raise FactError(f"angles {cos.fact} do not fit heads {x.fact}")
    half, kind, x = int(half), x.dtype, wide(x)
    cos, sin = (angle[:, None].cast(x.dtype) for angle in (cos, sin))
    turned = x[..., : 2 * half]
    axis = 4 if interleaved else 3
    pairs = turned.reshape((*turned.shape[:3], half, 2) if interleaved else (*turned.shape[:3], 2, half))
    first, second = (pairs.part(axis, i, i + 1).squeeze([axis]) for i in (0, 1))
    parts = [(first * cos - second * sin).unsqueeze([axis]), (first * sin + second * cos).unsqueeze([axis])]
    result = parts[0].concat(parts[1:], axis).reshape(turned.shape)
    if 2 * half != size:
        result = result.concat([x[..., 2 * half :]], 3)
    return result.cast(kind)


def rows_of(cache: Wired, positions: Wired) -> Wired:
    """The rows of a cache [positions, half] at positions [b or 1, s]."""
    return cache.op(Gather(0), positions)
