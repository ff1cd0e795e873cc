"""Attention: the loops around, and the launch of its kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Final

from tract_llvm.language.types import BF16, F16
from tract_llvm.program.loops import StridedLoop, collapsed
from tract_llvm.program.views import View

from tract_core.compile.attention import sizes_of_axes
from tract_core.dims import Dim, ceil_div, is_one, product
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.tables import Rows
from tract_cuda.group.attention import Attention
from tract_cuda.kernels.attention import FACTORS, AttentionPlan, AttentionTile
from tract_cuda.kernels.attention_mma import HIGH, AttentionMmaPlan
from tract_cuda.language.matrices import HALVES
from tract_cuda.lowering import Site
from tract_cuda.maps import assumed, vector_width
from tract_cuda.table import KINDS

ROWS = Rows()

TILES: Final = (AttentionTile(64, 64, 8, 4), AttentionTile(32, 64, 4, 4), AttentionTile(16, 64, 2, 4))
"""From the largest, which reads least for each score, to the smallest, of which there are most blocks."""

MMA_WARPS: Final = (4, 2, 1)
"""On tensor cores: how many a block has, each with queries of its own, from the largest."""

MMA_KEYS: Final = 64
"""On tensor cores: how many keys a tile has."""

Strides = dict[str, Dim]


@ROWS.row(KINDS, Attention)
def lower_attention(site: Site) -> str | None:
    """An attention that was found, as one launch."""
    found, lowering = site.group, site.lowering
    assert isinstance(found, Attention), "as the table says"
    sizes = sizes_of_axes(lowering.model, found.factors, found.terms[:3])
    names = [name for name in found.terms[3] if name not in {found.query, found.key}]
    shape = tuple(lowering.model.outlet_fact(found.chain.outlet).shape)
    operands = [lowering.view(one).stretched(shape) for one in found.chain.operands]
    views = [*map(lowering.view, found.factors), *operands, lowering.new(OutletId(found.nodes[-1]))]
    terms = [*found.terms[:3], *(found.terms[3] for _ in operands), found.terms[4]]
    at = [_strides(view, term) for view, term in zip(views, terms, strict=True)]
    loops = collapsed([sizes.get(name, 1) for name in names], [[one.get(name, 0) for name in names] for one in at])
    placed = _Placed(found, views, at, loops, sizes)
    plan, queries = placed.plan(lowering.target.multiprocessors)
    grid = [product([loop.size for loop in loops]) * ceil_div(sizes[found.query], queries)]
    lowering.launch(plan, grid, placed.arguments(), [views[-1]], found.nodes)
    return None


def _strides(view: View, term: Sequence[str]) -> Strides:
    named = zip(term, view.shape, view.strides, strict=True)
    return {name: 0 if is_one(size) else stride for name, size, stride in named}


@frozen
class _Placed:
    """An attention whose tensors are placed: factors, operands of the scores, and the result, in this order.

    ``at``: how far apart neighbours along each axis are, for each tensor. ``loops``: around.
    """

    found: Attention
    views: Sequence[View]
    at: Sequence[Strides]
    loops: Sequence[StridedLoop]
    sizes: Mapping[str, Dim]

    def plan(self, multiprocessors: int) -> tuple[AttentionPlan | AttentionMmaPlan, int]:
        """The kernel with the largest tile of which there are enough blocks, and how many queries a block has."""
        found, element = self.found, self.views[0].element
        depth, width = (self.sizes[name] for name in (found.depth, found.width))
        assert isinstance(depth, int) and isinstance(width, int), "others are not grouped"  # noqa: PT018
        expression, powers, rank = found.chain.expression, found.powers, len(self.loops)
        wide = self._wide((depth, width))
        if element in {F16, BF16} and wide == HALVES and depth % 16 == 0 and width % 16 == 0:
            warps = self._largest(MMA_WARPS, HIGH, multiprocessors)
            kinds = (element, depth, width, rank, expression, powers, self.views[-1].element)
            return AttentionMmaPlan(warps, MMA_KEYS, *kinds), warps * HIGH
        tiles = [one for one in TILES if one.down <= 32 // element.computed.bytes]
        high = self._largest([one.queries for one in tiles], 1, multiprocessors)
        tile = next(one for one in tiles if one.queries == high)
        kinds = (element, depth, width, wide, rank, expression, powers, self.views[-1].element)
        return AttentionPlan(tile, *kinds), tile.queries

    def _largest(self, numbers: Sequence[int], each: int, multiprocessors: int) -> int:
        *around, queries = map(assumed, [*(loop.size for loop in self.loops), self.sizes[self.found.query]])
        enough = (one for one in numbers if prod(around) * -(-queries // (one * each)) >= multiprocessors)
        return next(enough, numbers[-1])

    def _wide(self, lengths: tuple[int, int]) -> int:
        """How many numbers of a row are read at once, of all factors and the result."""
        found = self.found
        inner = (found.depth, found.depth, found.width, found.width)
        tensors = list(zip([*self.views[:3], self.views[-1]], [*self.at[:3], self.at[-1]], inner, strict=True))
        if any(at.get(name) != 1 for _, at, name in tensors):
            return 1
        steps = [stride for _, at, name in tensors for axis, stride in at.items() if axis != name]
        steps += [*lengths, *(view.offset for view, _, _ in tensors)]
        return vector_width([self.views[0].element], steps)

    def arguments(self) -> dict[str, View | Dim]:
        """What the kernel is called with."""
        found = self.found
        given: dict[str, View | Dim] = {f"around{number}": loop.size for number, loop in enumerate(self.loops)}
        given |= {"queries": self.sizes[found.query], "keys": self.sizes[found.key]}
        operands = [(f"operand{n}", found.query, found.key) for n in range(len(found.chain.operands))]
        rows = zip(FACTORS, (found.query, found.key, found.key), (found.depth, found.depth, found.width), strict=True)
        named = [*rows, *operands, ("result", found.query, found.width)]
        for number, (name, row, step) in enumerate(named):
            given |= {name: self.views[number], f"{name}.row": self.at[number].get(row, 0)}
            given |= {f"{name}.{n}": loop.strides[number] for n, loop in enumerate(self.loops)}
            given[f"{name}.step"] = self.at[number].get(step, 0)
        return given
