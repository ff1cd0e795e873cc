"""Columns put back into the image of which they are blocks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.dims import Dim, product
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Mul
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_torch.registry import aten
from tract_torch.wiring.call import Call

ROWS = Rows()


def window_places(wire: NodeWiring, count: Dim, length: int, step: int, apart: int = 1) -> OutletId:
    """Where ``count`` windows of ``length`` elements read, if they begin ``step`` elements apart: (count, length)."""
    number = wire.through(wire_range, wire.const(0), wire.const(count), wire.const(1))
    starts = wire.binary(Mul(), number, wire.const(step))
    return wire.binary(Add(), wire.unsqueeze(starts, [1]), wire.const(np.arange(length) * apart))


@aten(ROWS, "aten.col2im")
def col2im(call: Call, wire: NodeWiring) -> OutletId:
    """Blocks (channels times places of a block, blocks), added up at the places where they lie in an image"""
    x = call.input("self")
    items = [] if wire.rank(x) == 2 else [wire.shape(x)[0]]
    kernel, apart, pads, strides = (call.each(name, 2) for name in ("kernel_size", "dilation", "padding", "stride"))
    padded = [size + 2 * pad for size, pad in zip(call.dims("output_size"), pads, strict=True)]
    lines: list[OutletId] = []
    counts: list[Dim] = []
    for size, length, gap, step in zip(padded, kernel, apart, strides, strict=True):
        counts.append((size - gap * (length - 1) - 1) // step + 1)
        lines.append(window_places(wire, counts[-1], length, step, gap))
    down = wire.unsqueeze(wire.binary(Mul(), wire.transpose(lines[0], [1, 0]), wire.const(padded[1])), [1, 3])
    places = wire.binary(Add(), down, wire.unsqueeze(wire.transpose(lines[1], [1, 0]), [0, 2]))
    shape = (*items, call.shape()[-3])
    columns = wire.reshape(x, (*shape, product((*kernel, *counts))))
    found = overlap_add(wire, columns, wire.reshape(places, (product((*kernel, *counts)),)), product(padded))
    found = wire.reshape(found, (*shape, *padded))
    for axis, (pad, size) in enumerate(zip(pads, padded, strict=True), len(shape)):
        found = found if not pad else wire.op(Slice(axis, pad, size - pad), found)
    return found


def overlap_add(wire: NodeWiring, x: OutletId, places: OutletId, size: Dim) -> OutletId:
    """The elements on the last axis of ``x``, added up at their ``places`` of an axis of ``size``."""
    shape: Sequence[Dim] = wire.shape(x)
    zeros = wire.broadcast(wire.scalar(0, x), (*shape[:-1], size))
    every = wire.broadcast(wire.unsqueeze(places, range(len(shape) - 1)), shape)
    return wire.op(ScatterElements(len(shape) - 1, "add"), zeros, every, x)
