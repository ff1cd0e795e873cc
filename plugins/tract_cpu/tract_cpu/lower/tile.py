"""Repeated tensors: one copy, of a tensor that repeats as its strides are 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tract_llvm.fuse.known import LATE
from tract_llvm.program.views import View

from tract_core.dims import Dim, is_one
from tract_core.ops.tile import DynTile, Tile, counts_of
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.copies import copy_step
from tract_cpu.draft.lowering import Site
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, Tile)
def lower_tile(op: Tile, site: Site) -> str | None:
    """A view where nothing is repeated but axes of size 1."""
    (x,) = site.known_inputs()
    _tile(site, x, op.multipliers)
    return None


def _counts(op: DynTile, shapes: list[Shape], multipliers: Array) -> Reading:
    counts = counts_of(multipliers)
    return Reading([[size * count for size, count in zip(shapes[0], counts, strict=True)]], counts)


ROWS.add(READS, DynTile, Reads((1,), _counts))


@ROWS.row(MOVES, DynTile)
def lower_dyn_tile(op: DynTile, site: Site) -> str | None:
    """Repeated as often as the run says."""
    x, _ = site.known_inputs()
    counts = site.numbers(len(x.shape))
    if counts is None:
        return LATE
    _tile(site, x, counts)
    return None


def _tile(site: Site, x: View, multipliers: Sequence[Dim]) -> None:
    if all(is_one(count) or is_one(size) for count, size in zip(multipliers, x.shape, strict=True)):
        site.place(x.stretched(tuple(site.node.facts[0].shape)))
        return
    shape = tuple(one for pair in zip(multipliers, x.shape, strict=True) for one in pair)
    repeated = replace(x, shape=shape, strides=tuple(one for stride in x.strides for one in (0, stride)))
    site.add_all([copy_step(repeated, site.result_in(shape), site.isa, ())])
