"""Add elements before and after axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from typing import Final

import numpy as np

from tract_core.data import Constant, QuantizedType
from tract_core.dims import Dim
from tract_core.errors import CorruptModel
from tract_core.model.graph import OutletId
from tract_core.ops.concat import TypedConcat
from tract_core.ops.downsample import Downsample
from tract_core.ops.expect import element
from tract_core.ops.pad import Pad, PadConstant, PadEdge, PadMode, PadReflect, PadWrap
from tract_core.ops.slice import Slice
from tract_core.ops.wiring_dyn import wire_pad
from tract_core.plugins.tables import Rows
from tract_nnef.reading.call import Call
from tract_nnef.registry import CORE, NNEF_WRITE, PY, STANDARD, reads
from tract_nnef.syntax.ast import Invocation
from tract_nnef.writing.spelling import Spelling

ROWS = Rows()

_MODES: Final[Mapping[str, PadMode]] = {"replicate": PadEdge(), "replicated": PadEdge(), "reflect": PadReflect()}
"""The standard calls the first one ``replicate``, the tract engines ``replicated``."""


@reads(
    ROWS,
    STANDARD,
    "pad(input: tensor<scalar>, padding: (integer, integer)[], border: string = 'constant', value: scalar = 0.0)"
    " -> (output: tensor<scalar>)",
)
def read_pad(call: Call) -> OutletId:
    """Elements added before and after each axis: a value, or those at the border, or mirrored with it or without it."""
    x = call.input("input")
    pads = pairs(call, "padding", call.rank(x))
    border = call.choice("border", ("constant", *_MODES, "reflect-even"))
    if border == "reflect-even":
        for axis, (before, after) in enumerate(pads):
            period = call.shape(x)[axis]
            x = _mirrored(call, x, axis, before, period=period, before=True)
            x = _mirrored(call, x, axis, after, period=period, before=False)
        return x
    mode = _MODES.get(border) or PadConstant(_value(call, x))
    if any(isinstance(size, int) and size < 0 for pair in pads for size in pair):
        return wire_pad(call.model, call.unique("pad"), x, pads, mode)
    return call.op(Pad(tuple(pads), mode), x)


def pairs(call: Call, name: str, count: int) -> Sequence[tuple[Dim, Dim]]:
    """An array of pairs of sizes, such as pads. Raises CorruptModel where there are not as many as wanted."""
    found = call.pairs(name)
    if len(found) != count:
        raise call.misfit(name, f"has {len(found)} elements", f"{count} pairs")
    return found


def _value(call: Call, x: OutletId) -> Constant:
    value, kind = call.number("value"), call.dtype(x)
    given = call.written("value")
    if isinstance(given, int) and not kind.is_float():
        value = given  # larger integers than a float has
    if isinstance(kind, QuantizedType):
        value = kind.zero_point + round(value / kind.scale)
    return Constant(np.asarray(element(value, kind.storage)))


def _mirrored(call: Call, x: OutletId, axis: int, pad: Dim, *, period: Dim, before: bool) -> OutletId:
    """Elements mirrored with the one at the border, over and over where more are wanted than the ``period`` has."""
    if pad != 0 and period == 0:
        raise CorruptModel(f"pad: there is nothing to repeat on axis {axis}, of size 0")
    while pad != 0:
        size, count = call.shape(x)[axis], pad
        if isinstance(pad, int) and isinstance(size, int) and isinstance(period, int):
            count = min(pad, size - size % period)
        near = Slice(axis, 0, count) if before else Slice(axis, size - count, size)
        flipped = call.op(Downsample(axis, -1), call.op(near, x))
        x = call.op(TypedConcat(axis), *((flipped, x) if before else (x, flipped)))
        pad = pad - count
    return x


@ROWS.row(NNEF_WRITE, Pad)
def write_pad(op: Pad, node: Spelling) -> Invocation | None:
    """By its pads; around and around as slices that are joined, where others read it; not by what is no number."""
    pads = [tuple(pair) for pair in op.pads]
    if isinstance(op.mode, PadWrap) and not node.allows(PY):
        return _around(op, node)
    if isinstance(op.mode, PadConstant):
        kind, value = node.input_fact(0).datum_type, op.mode.value.array.item()
        if not (kind.is_float() or kind.is_integer()) or isnan(value):
            return None
        return node.invoke("pad", node.input(0), padding=pads, border="constant", value=value)
    replicated = "replicated" if node.allows(CORE) else "replicate"
    names: Mapping[type, str] = {PadEdge: replicated, PadReflect: "reflect"}
    border = names.get(type(op.mode))
    return None if border is None else node.invoke("pad", node.input(0), padding=pads, border=border, value=0.0)


def _around(op: Pad, node: Spelling) -> Invocation | None:
    """Axis by axis, what is at the other end joined to the tensor. ``None`` where that goes around more than once."""
    found: Invocation | None = None
    holds = node.writer.model.known.less_or_equal
    x = node.input(0)
    padded = [(axis, *pair) for axis, pair in enumerate(op.pads) if pair != (0, 0)]
    for axis, before, after in padded:
        size = node.input_fact(0).shape[axis]
        x = x if found is None else node.let(f"around_{axis}", found)
        parts = [x]
        for place, (count, begin, end) in enumerate(((before, size - before, size), (after, 0, after))):
            if holds(size, 0) or not isinstance(count, int) or (isinstance(size, int) and count > size):
                return None
            if count:
                part = node.invoke("slice", x, axes=[axis], begin=[begin], end=[end])
                parts.insert(place * len(parts), node.let(f"part_{axis}_{place}", part))
        found = node.invoke("concat", parts, axis=axis)
    return found
