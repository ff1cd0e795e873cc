"""Resized axes, and the chain behind: in blocks of channels where these stay as they are."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Final

from tract_llvm.elements.expressions import Expression
from tract_llvm.fuse.known import LATE

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_core.ops.resize import Coordinates, DynResize, Resize, Scales, nearby_fraction
from tract_core.plugins.tables import Rows
from tract_cpu.group.groups import CpuGroup
from tract_cpu.group.start import GROUPS, Start

ROWS = Rows()


@frozen
class ResizedAxis:
    """One axis that is resized for sure, or may be. ``scale``: output positions per input position, as a fraction.

    ``region``: what is resized of it, where a crop is asked for. ``taps``: how many elements are blended, where that
    was read.
    """

    place: int
    input: Dim
    output: Dim
    scale: tuple[Dim, Dim]
    region: tuple[Fraction, Fraction]
    taps: Dim | None = None

    @property
    def moves(self) -> bool:
        """Whether elements of it may go elsewhere."""
        return self.input != self.output or self.scale[0] != self.scale[1]

    @property
    def is_known(self) -> bool:
        """Whether its sizes are."""
        return all(isinstance(size, int) for size in (self.input, self.output, *self.scale))


@ROWS.row(GROUPS, Resize)
def group_resize(op: Resize, start: Start) -> CpuGroup:
    """A view where nothing is resized."""
    found = axes_of(op, start.facts()[0], start.node.facts[0])
    why = _unfit(op, found)
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


def axes_of(op: Resize, data: TypedFact, result: TypedFact) -> list[ResizedAxis]:
    """The axes in order, with their scales."""
    before, after = data.shape, result.shape
    sizes, output = [before[axis] for axis in op.axes], [after[axis] for axis in op.axes]
    if isinstance(op.target, Scales):
        scales: list[tuple[Dim, Dim]] = [nearby_fraction(value).as_integer_ratio() for value in op.target.values]
    elif all(isinstance(size, int) for size in (*sizes, *output)):
        factors = op.target.factors([int(size) for size in sizes], [int(size) for size in output])
        scales = [factor.as_integer_ratio() for factor in factors]
    else:
        scales = list(zip(output, sizes, strict=True))
    regions = [op.sampling.region(number) for number in range(len(op.axes))]
    return sorted(map(ResizedAxis, op.axes, sizes, output, scales, regions), key=lambda one: one.place)


def _unfit(op: Resize, axes: Sequence[ResizedAxis]) -> str | None:
    if any(one.input == 0 and one.output != 0 for one in axes):
        return "sizes do not fit"
    if op.sampling.coordinates is Coordinates.TF_CROP_AND_RESIZE and not all(_is_simple(one) for one in axes):
        return "native code wants known sizes for regions that are no simple fractions"
    if any(not one.is_known and isinstance(part, int) and part > _LARGEST for one in axes for part in one.scale):
        return "native code wants known sizes for factors that are fractions of so large numbers"
    return None


def _is_simple(axis: ResizedAxis) -> bool:
    """Whether positions times what the region is a fraction of surely fit 64 bits, where they must."""
    return axis.is_known or max(abs(part) for one in axis.region for part in one.as_integer_ratio()) <= _SIMPLE


_SIMPLE: Final = 4096
_LARGEST: Final = 1 << 40
"""What sizes are multiplied with, in 64 bits: enough for all factors that leave something of a tensor."""
