"""Blocks of an image as columns, columns put back into the image, and windows as an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tract_core.dims import Dim, exact_div, product
from tract_core.model.graph import OutletId
from tract_core.ops.binary import Add, Mul
from tract_core.ops.gather import Gather
from tract_core.ops.node_wiring import NodeWiring
from tract_core.ops.scatter import ScatterElements
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_range
from tract_core.plugins.tables import Rows
from tract_torch.call import Call
from tract_torch.registry import aten

ROWS = Rows()


@aten(ROWS, "aten.unfold", "aten.unfold_copy")
def unfold(call: Call, wire: NodeWiring) -> OutletId:
    """Windows on one axis, ``step`` apart: the axis counts them, a new last one what is in them"""
    x, length = call.tensor("self"), int(call.value("size"))
    if not wire.rank(x):
        return wire.reshape(x, (length,))
    axis = wire.axis(int(call.value("dimension")), wire.rank(x))
    places = window_places(wire, call.shape()[axis], length, int(call.value("step")))
    order = [*range(axis + 1), *range(axis + 2, wire.rank(x) + 1), axis + 1]
    return wire.transpose(wire.op(Gather(axis), x, places), order)


def window_places(wire: NodeWiring, count: Dim, length: int, step: int, apart: int = 1) -> OutletId:
    """Where ``count`` windows of ``length`` elements read, if they begin ``step`` elements apart: (count, length)."""
    number = wire.through(wire_range, wire.const(0), wire.const(count), wire.const(1))
    starts = wire.binary(Mul(), number, wire.const(step))
    return wire.binary(Add(), wire.unsqueeze(starts, [1]), wire.const(np.arange(length) * apart))


@aten(ROWS, "aten.col2im")
def col2im(call: Call, wire: NodeWiring) -> OutletId:
    """Blocks (channels times places of a block, blocks), added up at the places where they lie in an image"""
    x = call.tensor("self")
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


@aten(ROWS, "aten.native_channel_shuffle", "aten.channel_shuffle")
def channel_shuffle(call: Call, wire: NodeWiring) -> OutletId:
    """The channels of groups, one of each group in turn"""
    x, groups = call.tensor("self"), call.dim("groups")
    items, channels, *places = wire.shape(x)
    split = wire.reshape(x, (items, groups, exact_div(channels, groups) or 0, *places))
    turned = wire.transpose(split, [0, 2, 1, *range(3, 3 + len(places))])
    return wire.reshape(turned, (items, channels, *places))
