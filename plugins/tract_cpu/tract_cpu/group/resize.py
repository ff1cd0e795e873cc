"""Resized axes, and the chain behind: in blocks of channels where these stay as they are."""

from __future__ import annotations

from collections.abc import Sequence

from tract_llvm.elements.expressions import Expression
from tract_llvm.fuse.known import LATE
from tract_llvm.program.resized import axes_of, why_unfit

from tract_core.ops.resize import Coordinates, DynResize, Resize
from tract_core.plugins.tables import Rows
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start

ROWS = Rows()


@ROWS.row(GROUPS, Resize)
def group_resize(op: Resize, start: Start) -> CpuGroup:
    """A view where nothing is resized."""
    found = axes_of(op, start.facts()[0], start.node.facts[0])
    why = why_unfit(op, found)
    if why is not None:
        return start.host(why)
    crops = op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE
    return _group(start, [one.place for one in found if crops or one.moves])


@ROWS.row(GROUPS, DynResize)
def group_dyn_resize(op: DynResize, start: Start) -> CpuGroup:
    """As the run says."""
    if op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE:
        return start.host("native code wants to know what is cropped")
    return start.host(LATE) if start.known.reads(start.node) is None else _group(start, op.axes)


def _group(start: Start, places: Sequence[int]) -> CpuGroup:
    """``places``: the axes that are resized."""
    element = start.known.element_at(start.node.inputs[0])
    if not places or element is None:
        return start.alone()
    form = start.only_blocked(0)
    form = form if form is not None and form.axis not in places else None
    return start.epilogue(Expression((element,)), list(start.read(form, [0])), form)
