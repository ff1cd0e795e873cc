"""Tensors in blocks of as many channels as a row of a tile has, for convolutions that are computed in tiles."""

from __future__ import annotations

from tract_llvm.language.tiles import ROWS, STEPS
from tract_llvm.program.storages import NOWHERE
from tract_llvm.program.views import View

from tract_core.dims import ceil_div
from tract_cpu.draft.lowering import Lowering
from tract_cpu.kernels.dots import GROUPED
from tract_cpu.kernels.tiles import TALL
from tract_cpu.place.blocked import bordered
from tract_cpu.program.form import Border, Form


def tiled(lowering: Lowering, blocks: View, form: Form, border: Border, stride: int) -> View:
    """A tensor in blocks of a form, copied into larger ones, with zeros around it.

    ``stride``: how far windows move along the last axis. Channels that the last block lacks may be anything.
    """
    axis, last, size = form.axis, len(blocks.shape) - 1, STEPS * GROUPED.bytes // blocks.element.bytes
    per = size // form.block
    shape = (*blocks.shape[:axis], ceil_div(form.blocks, per), *blocks.shape[axis + 1 : -1], size)
    like = View.contiguous(NOWHERE, blocks.element, shape)
    behind = TALL * ROWS * stride * size * blocks.element.bytes  # the last tile of the last row is a whole one
    target = bordered(lowering, like, border, behind=behind)
    whole, rest = divmod(form.blocks, per)
    for first, count, each in ((0, whole, per), (whole, 1, rest)):
        if not count or not each:
            continue
        out_of = blocks.part(axis, first * per, count * each).split(axis, (count, each))
        order = [one for one in range(last + 2) if one != axis + 1]
        into = target.part(axis, first, count).part(last, 0, each * form.block).split(last, (each, form.block))
        lowering.copy(out_of.transposed([*order[:-1], axis + 1, order[-1]]), into)
    return target
