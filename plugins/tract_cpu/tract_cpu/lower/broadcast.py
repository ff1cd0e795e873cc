"""Stretched axes: their stride is 0."""

from __future__ import annotations

from dataclasses import replace

from tract_llvm.fuse.known import LATE

from tract_core.ops.broadcast import MultiBroadcastTo
from tract_core.ops.broadcast_dyn import DynBroadcast, stretched
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_cpu.draft.lowering import Site
from tract_cpu.program.reads import READS, Reading, Reads, Shape
from tract_cpu.table import MOVES

ROWS = Rows()


@ROWS.row(MOVES, MultiBroadcastTo)
def lower_broadcast(op: MultiBroadcastTo, site: Site) -> str | None:
    """A view."""
    (x,) = site.known_inputs()
    site.place(x.stretched(tuple(site.node.facts[0].shape)))
    return None


def _stretched(op: DynBroadcast, shapes: list[Shape], wanted: Array) -> Reading:
    before = shapes[0]
    sizes = stretched(before, wanted)
    stays = [int(size == now) for size, now in zip(before, sizes[len(sizes) - len(before) :], strict=True)]
    return Reading([sizes], stays)


ROWS.add(READS, DynBroadcast, Reads((1,), _stretched))


@ROWS.row(MOVES, DynBroadcast)
def lower_dyn_broadcast(op: DynBroadcast, site: Site) -> str | None:
    """A view. For each axis of the input, a number says whether it stays as it is."""
    x, _ = site.known_inputs()
    stays = site.numbers(len(x.shape))
    if stays is None:
        return LATE
    strides = [stride * one for stride, one in zip(x.strides, stays, strict=True)]
    strides = [0] * (len(op.sizes) - len(strides)) + strides
    site.place(replace(x, shape=tuple(op.sizes), strides=tuple(strides)))
    return None
