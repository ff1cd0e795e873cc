"""Tensors in blocks of channels that a `Pad` reads are computed where its result is, so that nothing is copied."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from tract_llvm.language.types import ElementType, numpy_type
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.model.graph import OutletId
from tract_core.ops.pad import Pad, PadConstant
from tract_cpu.draft.lowering import Lowering
from tract_cpu.place.blocked import bordered, element_view, in_blocks, to_blocks
from tract_cpu.program.form import Blocked, Border, Form


def inside_of(lowering: Lowering, outlet: OutletId, form: Form, padded: OutletId) -> Blocked:
    """Memory for a tensor inside of what a `Pad` makes of it."""
    op = lowering.model.nodes[padded.node].op
    assert isinstance(op, Pad)  # as the layout says
    inside, lowering.padded[padded] = _padded(lowering, op, form, element_view(lowering, outlet, form))
    return Blocked(form, inside, _nothing(len(op.pads)))


def padded_blocks(lowering: Lowering, op: Pad, x: OutletId, result: OutletId, form: Form) -> Blocked:
    """The result of a `Pad` in blocks."""
    if result not in lowering.padded:
        blocked = in_blocks(lowering, x, form)
        view = blocked.view if blocked is not None else to_blocks(lowering, x, form, _nothing(len(op.pads)))
        inside, lowering.padded[result] = _padded(lowering, op, form, view)
        lowering.copy(view, inside)
    return lowering.padded[result]


def fill_of(op: Pad, element: ElementType) -> int:
    """The bits of what a `Pad` with one value adds, in a type."""
    assert isinstance(op.mode, PadConstant)  # it was looked at when groups were decided on, or the layout
    value = op.mode.value.array.astype(numpy_type(element))
    return int(value.view(np.dtype(f"u{value.itemsize}")))


def _padded(lowering: Lowering, op: Pad, form: Form, like: View) -> tuple[View, Blocked]:
    """Memory that is filled around the place of a tensor like a view: that place, and all of it."""
    border: Border = (*op.pads, (0, 0))
    inside = bordered(lowering, like, border, fill_of(op, like.element))
    shape, offset = list[Dim](), inside.offset
    for size, stride, (before, after) in zip(inside.shape, inside.strides, border, strict=True):
        shape.append(size + before + after)
        offset = offset - stride * before
    return inside, Blocked(form, replace(inside, shape=tuple(shape), offset=offset), _nothing(len(op.pads)))


def _nothing(rank: int) -> Border:
    """No zeros around the axes of a tensor in blocks."""
    return ((0, 0),) * (rank + 1)
