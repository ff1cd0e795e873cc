"""Attention of new tokens over all that their texts have, which stays in pages from turn to turn.

A page has the keys and values of so many positions of a text. Which page has which positions is told in each turn, so
that texts of any length are computed side by side, share the pages of a common beginning, and go back or on by other
tables, while nothing is copied (Kwon et al., arXiv:2309.06180). Who gives pages away is
`tract_transformers.language_model.pages`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError, RunError
from tract_core.frozen import frozen
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, STATE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

CONTROLS: Final = ("positions", "begins", "pages", "copies", "room")
"""What the inputs behind queries, keys and values are, in order."""

_RANKS: Final = (1, 1, 2, 2, 1)


@frozen
class PagedAttention(TypedOp):
    """Softmax(queries x keys * scale) x values, of each token over the positions of its text up to its own.

    Inputs: queries [T,H,G,D], keys [T,H,D], values [T,H,V] of T tokens, where G heads of queries share one of the H
    heads of keys; and, in i64, ``positions`` [T] of the tokens in their texts; ``begins`` [R+1], where the tokens of
    each of R texts begin, and at the end T; ``pages`` [R,M], the numbers of the pages of each text, of which number m
    has its positions from ``m * page`` on; ``copies`` [C,2], pages that are copied before, from the first number to the
    second one; ``room`` [N], whose size, and nothing else, counts: there is room for N pages. With ``sinks``, there are
    these behind, [H,G] in f32: of each head, the score of looking at nothing. Output: [T,H,G,V].

    ``scale``: of the products. ``cap``: scores stay below it, by a hyperbolic tangent. ``window``: how many positions
    a token sees at most, its own included. ``page``: positions of a page. ``kept``: the type of what is kept; with
    ``i8``, of each position and head the key, and so the value, is integers up to 127 times a scale in f32.

    A fresh state has zeros in its pages. Where N grows, what was kept stays.
    """

    scale: float
    cap: float | None = None
    window: int | None = None
    page: int = 64
    kept: DatumType = DatumType.F32
    sinks: bool = False

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """[T,H,G,V]. Raises FactError for other ranks, types and sizes than those above."""
        queries, keys, values, *controls = arity(self, inputs, 3 + len(CONTROLS) + self.sinks)
        ranks = (queries.rank, keys.rank, values.rank) == (4, 3, 3)
        kinds = {one.datum_type for one in (queries, keys, values)} == {DatumType.F32}
        if not ranks or not kinds:
            found = "; ".join(map(str, (queries, keys, values)))
            raise FactError(f"{self.name} wants queries T,H,G,D, keys T,H,D and values T,H,V in f32, found {found}")
        if self.sinks and (controls[-1].datum_type, controls[-1].shape) != (DatumType.F32, queries.shape[1:3]):
            raise FactError(f"{self.name} wants sinks H,G in f32 for queries {queries}, found {controls[-1]}")
        for name, rank, fact in zip(CONTROLS, _RANKS, controls, strict=False):
            if fact.rank != rank or fact.datum_type is not DatumType.I64:
                raise FactError(f"{self.name} wants {name} of rank {rank} in i64, found {fact}")
        heads, size, width = keys.shape[1], keys.shape[2], values.shape[2]
        sizes = (*queries.shape[1:], width)
        if not all(isinstance(one, int) for one in sizes) or (queries.shape[1], queries.shape[3]) != (heads, size):
            raise FactError(f"{self.name} wants as many heads, of one size: queries {queries}, keys {keys}")
        if values.shape[1] != heads or self.page < 1 or (self.window is not None and self.window < 1):
            raise FactError(f"{self.name}: {values} are no values for keys {keys}, or no page or window has a position")
        return (TypedFact.of(DatumType.F32, (*queries.shape[:3], width)),)


class PagedState:
    """The keys [N,H,D,page] and values [N,H,page,V] of all pages; ``None`` before the first turn.

    Where they are integers, there are scales behind, of keys and of values, [N,H,page] each.
    """

    def __init__(self, op: PagedAttention) -> None:
        self._op = op
        self._kept: tuple[Array, ...] | None = None

    def run(self, session: Session, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """One turn. Raises RunError for pages and positions that do not exist; then, everything is kept as it was."""
        queries, keys, values, *others = inputs
        op, controls = self._op, Controls(*others[: len(CONTROLS)])
        sinks = others[-1] if op.sinks else np.full(queries.shape[1:3], -np.inf, np.float32)
        kept = self._with_room(controls.room, keys, values)
        controls.check(len(queries), op.page)
        for source, target in controls.copies:
            for one in kept:
                one[target] = one[source]
        self._kept = kept
        out = np.zeros((*queries.shape[:3], values.shape[2]), np.float32)
        for text, begin, end in controls.runs():
            table, places = controls.pages[text], controls.positions[begin:end]
            page, inside = table[places // op.page], places % op.page
            new, scales = _as_kept(op, keys[begin:end], values[begin:end])
            kept[0][page, :, :, inside], kept[1][page, :, inside] = new
            for one, scale in zip(kept[2:], scales, strict=True):
                one[page, :, inside] = scale
        for text, begin, end in controls.runs():
            found = self._of_text(controls.pages[text], int(controls.positions[begin:end].max()) + 1)
            out[begin:end] = _attended(op, queries[begin:end], controls.positions[begin:end], found, sinks)
        return (out,)

    def _with_room(self, count: int, keys: Array, values: Array) -> tuple[Array, ...]:
        """What is kept, with room for ``count`` pages. Raises RunError where it is of other sizes, or of more pages."""
        wanted = kept_in_pages(self._op, count, keys.shape[1:], values.shape[1:])
        if self._kept is None:
            return tuple(np.zeros(shape, kind.numpy) for shape, kind in wanted)
        before = self._kept
        if any(one.shape[1:] != shape[1:] or len(one) > count for one, (shape, _) in zip(before, wanted, strict=True)):
            raise RunError(f"{before[0].shape} keys were kept in pages, this turn wants {wanted[0][0]}")
        if len(before[0]) == count:
            return before
        return tuple(np.concatenate([one, np.zeros((count - len(one), *one.shape[1:]), one.dtype)]) for one in before)

    def _of_text(self, table: Array, count: int) -> tuple[Array, Array]:
        """The first ``count`` keys [H,D,count] and values [H,count,V] of a text."""
        assert self._kept is not None  # this turn has room
        used = table[: -(-count // self._op.page)]
        keys, values, *scales = (one[used].astype(np.float32) for one in self._kept)
        if scales:
            keys, values = keys * scales[0][:, :, None], values * scales[1][..., None]
        keys, values = keys.transpose(1, 2, 0, 3), values.transpose(1, 0, 2, 3)
        keys, values = keys.reshape(*keys.shape[:2], -1), values.reshape(len(values), -1, values.shape[-1])
        return keys[..., :count], values[:, :count]

    def freeze(self) -> tuple[Array, ...] | None:
        """Copies of all that is kept."""
        return None if self._kept is None else tuple(one.copy() for one in self._kept)

    def thaw(self, frozen: tuple[Array, ...] | None) -> None:
        """Go back to a snapshot."""
        self._kept = frozen


def kept_in_pages(
    op: PagedAttention, count: Dim, keys: Sequence[Dim], values: Sequence[Dim]
) -> list[tuple[tuple[Dim, ...], DatumType]]:
    """The shapes and types of what ``count`` pages hold, of keys [H,D] and values [H,V] of each position."""
    (heads, depth), width = keys, values[1]
    both = [((count, heads, depth, op.page), op.kept), ((count, heads, op.page, width), op.kept)]
    return both + [((count, heads, op.page), DatumType.F32)] * 2 if op.kept is DatumType.I8 else both


LARGEST: Final = 127
"""The integer that the largest number of a key or a value becomes."""

LEAST: Final = 2.0**-100
"""Where the largest number is below this, all are zeros."""


def _as_kept(op: PagedAttention, *new: Array) -> tuple[list[Array], list[Array]]:
    """New keys and values [n,H,D] as they are kept, and their scales [n,H], if there are such."""
    if op.kept is not DatumType.I8:
        return list(new), []
    found = [in_bytes(one) for one in new]
    return [codes for codes, _ in found], [scales for _, scales in found]


def in_bytes(numbers: Array) -> tuple[Array, Array]:
    """Numbers [...,D] in f32 as integers of 8 bits, and a scale for each D of them [...].

    Those among which one is not finite become zeros, whose scale is not finite either: their product is no number.
    """
    top = np.abs(numbers).max(-1, initial=0)
    usual = np.isfinite(top) & (top >= LEAST)
    inverse = np.divide(np.float32(LARGEST), top, out=np.zeros_like(top), where=usual)
    codes = np.rint(np.where(usual[..., None], numbers, 0) * inverse[..., None])
    return codes.astype(np.int8), np.where(top < LEAST, 0, top * np.float32(1 / LARGEST)).astype(np.float32)


class Controls:
    """What a turn is told of its texts: the inputs of those names, as arrays."""

    def __init__(self, positions: Array, begins: Array, pages: Array, copies: Array, room: Array) -> None:
        self.positions, self.begins, self.pages, self.copies = positions, begins, pages, copies
        self.room = len(room)

    def runs(self) -> list[tuple[int, int, int]]:
        """Each text that has tokens, with the number of the first one, and of the one behind the last."""
        bounds = zip(self.begins[:-1].tolist(), self.begins[1:].tolist(), strict=True)
        return [(text, begin, end) for text, (begin, end) in enumerate(bounds) if begin < end]

    def check(self, count: int, page: int) -> None:
        """Raises RunError unless the texts have ``count`` tokens together, and every position a page that exists."""
        begins = self.begins
        if not len(begins) or begins[0] != 0 or begins[-1] != count or (np.diff(begins) < 0).any():
            raise RunError(f"{count} tokens are not cut into texts at {begins.tolist()[:8]}")
        for what, numbers in (("pages", self.pages), ("copies", self.copies)):
            if ((numbers < 0) | (numbers >= self.room)).any():
                raise RunError(f"{what} {numbers.min()} to {numbers.max()} were named, there is room for {self.room}")
        there = self.pages.shape[1] * page
        if len(begins) - 1 != len(self.pages) or ((self.positions < 0) | (self.positions >= there)).any():
            raise RunError(f"{len(self.pages)} texts have pages for {there} positions, and not for all that are named")


def _attended(op: PagedAttention, queries: Array, positions: Array, kept: tuple[Array, Array], sinks: Array) -> Array:
    """[n,H,G,V] for n tokens of one text: queries [n,H,G,D], keys [H,D,L] and values [H,L,V], sinks [H,G]."""
    keys, values = kept
    scores = np.einsum("nhgd,hdl->nhgl", queries, keys, optimize=True) * np.float32(op.scale)
    if op.cap is not None:
        scores = np.tanh(scores * np.float32(1 / op.cap)) * np.float32(op.cap)
    behind = np.subtract.outer(positions, range(keys.shape[2]))
    seen = behind >= 0
    if op.window is not None:
        seen = seen & (behind < op.window)
    scores = np.where(seen[:, None, None], scores, np.float32(-np.inf))
    nothing = np.broadcast_to(sinks[..., None], (*scores.shape[:-1], 1))
    largest = np.maximum(scores.max(-1, keepdims=True), nothing)
    shares = np.exp(scores - largest)
    shares /= shares.sum(-1, keepdims=True) + np.exp(nothing - largest)
    return np.einsum("nhgl,hlv->nhgv", shares, values, optimize=True)


@ROWS.row(STATE, PagedAttention)
def state(op: PagedAttention, session: Session) -> PagedState:
    """No page has anything."""
    return PagedState(op)


@ROWS.row(COST, PagedAttention)
def cost(op: PagedAttention, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """As if every text filled its pages."""
    (tokens, heads, shared, size), width = inputs[0].shape, inputs[2].shape[2]
    places = inputs[5].shape[1] * op.page
    return {"FMA(f32)": tokens * heads * shared * places * (size + width)}


@ROWS.row(AXES, PagedAttention)
def axes(op: PagedAttention, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """No axis goes its own way."""
    return AxesMapping.disconnected([fact.rank for fact in inputs], [fact.rank for fact in outputs])
