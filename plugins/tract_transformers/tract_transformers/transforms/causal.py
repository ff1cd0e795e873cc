"""Attention over a past, found in a model by its structure: what a token sees, and by which scores.

What counts is that tokens see the positions up to their own, of which some may be behind a window; whether the model
says so by adding minus infinity or by choosing it, on which axes, and how scores are scaled before, is up to it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count

from tract_core.compile.attention import Sizes, sizes_of_axes
from tract_core.dims import Dim, is_one
from tract_core.frozen import frozen
from tract_core.model.fact import ShapeFact
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel, TypedNode
from tract_core.ops.binary import Mul
from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.concat import TypedConcat
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import Tanh
from tract_core.ops.slice import Slice
from tract_core.ops.softmax import Softmax
from tract_transformers.transforms.masks import Masks

Terms = tuple[str, str, str, str, str]
"""The names of the axes of queries, keys, values, scores and the result."""


@frozen
class KeptTensor:
    """A tensor of the past: its ``source``, and the ``whole`` with the ``new`` positions behind it, along ``axis``."""

    source: OutletId
    new: OutletId
    whole: OutletId
    axis: int


@frozen
class Causal:
    """Attention that was found. ``queries``, and the tensors of the past with keys and values.

    ``result``: what comes out. ``terms``: the axes of all of them; ``head``, ``shared``, ``query``, ``depth``,
    ``width``: of these, the heads of keys, the queries that share one, tokens, and the numbers of a key and a value;
    empty where there is one. ``scale``, ``cap``, ``window``: as in `PagedAttention`. ``sinks``: with axes as scores.
    """

    queries: OutletId
    keys: KeptTensor
    values: KeptTensor
    result: OutletId
    terms: Terms
    head: str
    shared: str
    query: str
    depth: str
    width: str
    scale: float
    cap: float | None
    window: int | None
    sinks: OutletId | None


def kept_tensors(model: TypedModel) -> Iterator[KeptTensor]:
    """The inputs of a model behind which new positions are put, so that the whole is an output."""
    for source in model.inputs:
        readers = {one.node for one in model.outlet(source).successors}
        node = model.nodes[readers.pop()] if len(readers) == 1 else None
        if node is None or not isinstance(node.op, TypedConcat) or len(node.inputs) != 2 or node.inputs[0] != source:
            continue
        if OutletId(node.id) in model.outputs and source != node.inputs[1]:
            yield KeptTensor(source, node.inputs[1], OutletId(node.id), node.op.axis)


class Finder:
    """Looks for attention over a past of so many positions. ``masks``: of the model."""

    def __init__(self, model: TypedModel, kept: Sequence[KeptTensor], past: Dim) -> None:
        self._model = model
        self._kept = {one.whole: one for one in kept}
        self.masks = Masks(model, past)

    def attention(self, soft: TypedNode) -> Causal | None:
        """The attention whose softmax a node is, if it is one."""
        shares, scores, sinks = self._without_sinks(soft)
        mix = self._only_reader(shares)
        if not isinstance(soft.op, Softmax) or len(soft.op.axes) != 1 or mix is None or not _is_plain(mix):
            return None
        masked = self.masks.unmasked(scores)
        scored = None if masked is None else self._unscaled(masked[0])
        if masked is None or scored is None:
            return None
        product, scale, cap = scored
        found = self._factors(product, mix, shares)
        if found is None:
            return None
        terms, queries, keys, values = found
        roles = self._roles(terms, (queries, keys, values), soft.op.axes[0])
        result = OutletId(mix.id)
        if roles and sinks and not self._is_of_heads(sinks, terms[3], roles):
            return None
        return roles and Causal(queries, keys, values, result, terms, *roles, scale, cap, masked[1], sinks)

    def _without_sinks(self, soft: TypedNode) -> tuple[OutletId, OutletId, OutletId | None]:
        """The shares and the scores of positions, and what stands behind these: a score of looking at nothing."""
        shares, joined = OutletId(soft.id), self._model.producer(soft.inputs[0])
        part = self._only_reader(shares)
        if part is None or not self._is_cut(soft, joined, part):
            return shares, soft.inputs[0], None
        return OutletId(part.id), joined.inputs[0], self._unstretched(joined.inputs[1])

    def _is_cut(self, soft: TypedNode, joined: TypedNode, part: TypedNode) -> bool:
        """Whether a softmax is of two tensors side by side, and of the second one nothing is left behind it."""
        if not isinstance(joined.op, TypedConcat) or not isinstance(soft.op, Softmax) or len(joined.inputs) != 2:
            return False
        axis = joined.op.axis
        return soft.op.axes == (axis,) and part.op == Slice(axis, 0, self._shape(joined.inputs[0])[axis])

    def _shape(self, outlet: OutletId) -> ShapeFact:
        return self._model.outlet_fact(outlet).shape

    def _is_of_heads(self, sinks: OutletId, scores: str, roles: Roles) -> bool:
        """Whether there is one for each head, and not for each token."""
        long = {name for name, size in zip(scores, self._shape(sinks), strict=False) if not is_one(size)}
        return len(scores) == len(self._shape(sinks)) and long == {name for name in roles[:2] if name}

    def _unstretched(self, outlet: OutletId) -> OutletId:
        node = self._model.producer(outlet)
        return node.inputs[0] if isinstance(node.op, MultiBroadcastTo) else outlet

    def _only_reader(self, outlet: OutletId) -> TypedNode | None:
        readers = {one.node for one in self._model.outlet(outlet).successors}
        alone = len(readers) == 1 and outlet not in self._model.outputs
        return self._model.nodes[readers.pop()] if alone else None

    def _factors(
        self, product: TypedNode, mix: TypedNode, shares: OutletId
    ) -> tuple[Terms, OutletId, KeptTensor, KeptTensor] | None:
        """The axes, queries, keys and values, where the latter two are tensors of the past."""
        kept = [self._kept.get(outlet) for outlet in product.inputs]
        slot = 0 if kept[0] is not None else 1
        place = mix.inputs.index(shares)
        keys, values = kept[slot], self._kept.get(mix.inputs[1 - place])
        terms = _terms(product, mix, slot, place)
        if keys is None or kept[1 - slot] is not None or values is None or terms is None:
            return None
        return terms, product.inputs[1 - slot], keys, values

    # --- scores ---

    def _unscaled(self, outlet: OutletId) -> tuple[TypedNode, float, float | None] | None:
        """The product of which scores are made; by what it is multiplied; what they stay below."""
        node, scale = self._factor(outlet)
        cap = None
        if isinstance(node.op, Tanh):
            cap = scale
            node, scale = self._factor(node.inputs[0])
            scale *= cap
        return (node, scale, cap) if _is_plain(node) and cap != 0 else None

    def _factor(self, outlet: OutletId) -> tuple[TypedNode, float]:
        """The node that is behind products with numbers, and all of them together."""
        node, factor = self._model.producer(outlet), 1.0
        while isinstance(node.op, Mul):
            numbers = [self.masks.number(one) for one in node.inputs]
            others = [one for one, number in zip(node.inputs, numbers, strict=True) if number is None]
            if len(others) != 1:
                break
            factor *= next(number for number in numbers if number is not None)
            node = self._model.producer(others[0])
        return node, factor

    # --- axes ---

    def _roles(self, terms: Terms, tensors: tuple[OutletId, KeptTensor, KeptTensor], soft: int) -> Roles | None:
        """What each axis is; ``None`` where there are others, or where the past does not lie along that of keys."""
        outlets = tensors[0], tensors[1].whole, tensors[2].whole
        sizes = sizes_of_axes(self._model, outlets, terms[:3])
        queries, keys, values, scores, result = terms
        key = scores[soft]
        along = keys[tensors[1].axis] == values[tensors[2].axis] == key
        return _found(terms, sizes, key) if along and key not in queries + result else None


Roles = tuple[str, str, str, str, str]
"""The names of the axes of heads, of queries that share one, of tokens, and of the numbers of a key and a value."""


def _found(terms: Terms, sizes: Sizes, key: str) -> Roles | None:
    """What each axis is, but for that of keys, which plays no other part; ``None`` where there are others."""
    queries, keys, values, scores, _ = terms
    long = {name for name, size in sizes.items() if not is_one(size)}
    alone = [name for name in queries if name in scores and name not in keys + values and name in long]
    groups = (
        [name for name in queries if name in keys and name in values and name in long],
        [name for name in alone if isinstance(sizes[name], int)],
        [name for name in alone if not isinstance(sizes[name], int)],
        [name for name in queries if name in keys and name not in scores and name in long],
        [name for name in values if name not in scores and name in long],
    )
    known = {name for group in groups for name in group} | {key}
    if any(len(group) > 1 for group in groups) or len(groups[2]) != 1 or long - known:
        return None
    head, shared, token, depth, width = ("".join(group) for group in groups)
    return head, shared, token, depth, width


def _is_plain(node: TypedNode) -> bool:
    """Whether it is a product of two, which is not quantised."""
    return isinstance(node.op, EinSum) and node.op.q_output is None and len(node.inputs) == 2


def _terms(product: TypedNode, mix: TypedNode, keys: int, shares: int) -> Terms | None:
    """The axes of queries, keys, values, scores and the result, in one naming; ``None`` for diagonals."""
    assert isinstance(product.op, EinSum)
    assert isinstance(mix.op, EinSum)  # the caller looked
    first, second = product.op.axes, mix.op.axes
    scores = first.outputs[0]
    renamed = dict(zip(second.inputs[shares], scores, strict=True))
    free = map(chr, count(0x100))
    for name in (*second.inputs[1 - shares], *second.outputs[0]):
        if name not in renamed:
            renamed[name] = next(free)
    values, result = (
        "".join(renamed[name] for name in term) for term in (second.inputs[1 - shares], second.outputs[0])
    )
    found = first.inputs[1 - keys], first.inputs[keys], values, scores, result
    return found if all(len(set(term)) == len(term) for term in found) else None
