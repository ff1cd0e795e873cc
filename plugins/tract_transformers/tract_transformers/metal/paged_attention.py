"""Attention over pages, which stay on the device from turn to turn."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Final

import mlx.core as mx
import numpy as np
from tract_metal.elements import element_of
from tract_metal.site import Keeping, Site
from tract_metal.table import METAL

from tract_core.data import DatumType
from tract_core.limits import check_room
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_transformers.metal.attend import attended
from tract_transformers.metal.codes import in_bytes
from tract_transformers.metal.places import Places
from tract_transformers.ops.paged_attention import CONTROLS, PagedAttention

ROWS = Rows()


@ROWS.row(METAL, PagedAttention)
def lower_paged_attention(op: PagedAttention, site: Site) -> Keeping | str:
    """Pages are [N,page,H,D] and [N,page,H,V]: what all heads have of a position lies together, and is written so.

    Scales behind, if there are any, are [N,page,H].
    """
    queries, values = (site.facts[slot].shape for slot in (0, 2))
    if op.kept not in _KINDS or 0 in (*queries[1:], values[2]):
        return f"MLX keeps no pages in {op.kept.short}, or heads have no numbers"
    return Keeping(_Pages(op, site).step, _frozen, _thawed)


_KINDS: Final = (DatumType.F32, DatumType.F16, DatumType.BF16, DatumType.I8)


def _frozen(kept: Sequence[Array]) -> tuple[Array, ...]:
    """As `PagedState` has them."""
    keys, values, *scales = kept
    found = keys.transpose(0, 2, 3, 1), values.transpose(0, 2, 1, 3), *(one.transpose(0, 2, 1) for one in scales)
    return tuple(map(np.ascontiguousarray, found))


def _thawed(found: tuple[Array, ...] | None) -> Sequence[Array] | None:
    if found is None:
        return None
    keys, values, *scales = found
    return keys.transpose(0, 3, 1, 2), values.transpose(0, 2, 1, 3), *(one.transpose(0, 2, 1) for one in scales)


class _Pages:
    """One operator, while MLX records it."""

    def __init__(self, op: PagedAttention, site: Site) -> None:
        self._op, self._site = op, site

    def step(
        self, before: Sequence[mx.array] | None, queries: mx.array, keys: mx.array, values: mx.array, *others: mx.array
    ) -> tuple[list[mx.array], list[mx.array]]:
        """One turn: pages are copied, new keys and values put there, then queries meet their pages."""
        places = Places(self._op, queries.shape[0], others[: len(CONTROLS)])
        for wrong in places.wrong():
            self._site.refuse_where(wrong)
        pages = self._with_room(before, places.room, (keys, values))
        if places.copied:
            pages = [_copied(one, places) for one in pages]
        if places.nothing:
            return [mx.zeros((*queries.shape[:3], values.shape[2]), mx.float32)], pages
        new = [keys, values] if self._op.kept is not DatumType.I8 else in_bytes(keys, values)
        pages = [_stored(one, rows, places) for one, rows in zip(pages, new, strict=True)]
        sinks = others[-1] if self._op.sinks else None
        return [attended(self._op, queries, pages, places, sinks)], pages

    def _with_room(
        self, before: Sequence[mx.array] | None, count: int, new: tuple[mx.array, mx.array]
    ) -> list[mx.array]:
        """What is kept, with room for ``count`` pages; what is of other sizes, or of more pages, refuses the turn."""
        wanted = self._wanted(count, new)
        check_room(sum(prod(shape) * kind.size for shape, kind in wanted))
        if before is None:
            return [mx.zeros(shape, kind) for shape, kind in wanted]
        pairs = list(zip(before, wanted, strict=True))
        if any(one.shape[1:] != shape[1:] or one.shape[0] > count for one, (shape, _) in pairs):
            self._site.refuse_where(mx.array(True))
            return [mx.zeros(shape, kind) for shape, kind in wanted]
        if before[0].shape[0] == count:
            return list(before)
        more = (mx.zeros((count - one.shape[0], *one.shape[1:]), one.dtype) for one in before)
        return [mx.concatenate([one, rest]) for one, rest in zip(before, more, strict=True)]

    def _wanted(self, count: int, new: tuple[mx.array, mx.array]) -> list[tuple[tuple[int, ...], mx.Dtype]]:
        """The shapes and types of what so many pages hold."""
        kept = element_of(self._op.kept)
        assert kept is not None, "it was looked at"
        shapes = [(count, self._op.page, *one.shape[1:]) for one in new]
        scales = [(shape[:-1], mx.float32) for shape in shapes] if self._op.kept is DatumType.I8 else []
        return [*((shape, kept) for shape in shapes), *scales]


def _copied(pages: mx.array, places: Places) -> mx.array:
    """Pages [N,...] behind the copies."""
    pages[places.targets] = mx.take(pages, places.sources, axis=0)
    return pages


def _stored(pages: mx.array, new: mx.array, places: Places) -> mx.array:
    """Pages [N,page,...] with what new tokens [T,...] have."""
    rows = mx.reshape(pages, (-1, *new.shape[1:]))
    rows[places.slots] = mx.take(new, places.writers, axis=0).astype(pages.dtype)
    return mx.reshape(rows, pages.shape)
