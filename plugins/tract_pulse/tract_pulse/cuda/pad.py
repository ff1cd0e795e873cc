"""Elements before the beginning and behind the end of a stream."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from tract_cuda.kernels.positions import THREADS
from tract_cuda.lowering import Site
from tract_cuda.positions import loops_over, numbers_of
from tract_cuda.program import EventualSize, Given
from tract_cuda.table import CUDA
from tract_llvm.language.types import I64
from tract_llvm.program.keeping import Keeping
from tract_llvm.program.views import View

from tract_core.dims import ceil_div, dim_max, product
from tract_core.frozen import frozen
from tract_core.ops.pad import PadConstant, PadEdge, PadReflect
from tract_core.plugins.keys import Array
from tract_core.plugins.tables import Rows
from tract_pulse.cuda.ends import EndsPlan, LastSlicePlan
from tract_pulse.cuda.position import advance
from tract_pulse.ops.mask import PulseMask
from tract_pulse.ops.pad import FrozenPad, PulsePad

ROWS = Rows()

_WAYS: Final[Mapping[type, str]] = {PadConstant: "value", PadEdge: "edge", PadReflect: "mirror"}
"""What `EndsPlan` calls a mode."""


@frozen
class PadOnDevice(Keeping):
    """How many positions of the stream came before; where that is needed, whether any were signal, and the last one."""

    def frozen(self, tensors: Sequence[Array]) -> FrozenPad:
        """All of it."""
        position, *kept = tensors
        return FrozenPad(int(position), kept[1].copy() if kept and kept[0] else None)

    def thaw(self, frozen: FrozenPad, tensors: Sequence[Array]) -> None:
        """All of it."""
        position, *kept = tensors
        position[...] = np.int64(frozen.position)
        if kept and frozen.last is not None:
            kept[0][...], kept[1][...] = 1, frozen.last


@ROWS.row(CUDA, PulsePad)
def lower_pulse_pad(op: PulsePad, site: Site) -> str | None:
    """One kernel, which writes what the mode says where there is no signal, and reads the pulse elsewhere."""
    why = site.lowering.why_not_kept(site.node.facts)
    if why is not None:
        return why
    (x,) = site.inputs()
    way = _WAYS.get(type(op.mode))
    ways = way if op.before else None, way if op.after != 0 else None
    one = x.part(op.axis, 0, 1)
    tensors = [(I64, ()), (x.element, one.shape)] if ways[1] == "edge" else []
    position, *kept = site.lowering.keep(site.node.node, PadOnDevice(), [(I64, ()), *tensors])
    more: dict[str, View] = {}
    if isinstance(op.mode, PadConstant) and "value" in ways:
        more["value"] = site.lowering.constant(op.mode.value.array)
    if kept:
        more |= dict(zip(("there", "last"), kept, strict=True))
        _keep_last(site, op, position, more)
    add_ends(site, op, position, ways, more)
    advance(site, position, dim_max(x.shape[op.axis] - op.overlap, 0))
    return None


def add_ends(
    site: Site, op: PulsePad | PulseMask, position: View, ways: tuple[str | None, str | None], more: Mapping[str, View]
) -> None:
    """The kernel that writes the result. ``ways``: in front and behind; ``more``: what these ways need."""
    (x,), (result,) = site.inputs(), site.results()
    tensors = {"x": x, "result": result}
    if "last" in more:
        tensors["last"] = more["last"].stretched(x.shape)
    loops, (along,) = loops_over(x.shape, [one.strides for one in tensors.values()], [op.axis])
    given: dict[str, Given] = {**more, **numbers_of(loops, tensors), **_signal(op, position, x)}
    plan = EndsPlan(x.element, len(loops), along, *ways)
    site.launch(plan, [ceil_div(product(x.shape), THREADS)], given, [result])


def _keep_last(site: Site, op: PulsePad, position: View, kept: Mapping[str, View]) -> None:
    """Have the last slice of the signal stay for the next turn."""
    (x,), last = site.inputs(), kept["last"]
    then, there = site.lowering.scratch(x.element, last.shape), site.lowering.scratch(I64, ())
    tensors = {"x": x.part(op.axis, 0, 1), "last": last, "result": then}
    loops, _ = loops_over(last.shape, [one.strides for one in tensors.values()])
    given: dict[str, Given] = {**numbers_of(loops, tensors), **_signal(op, position, x), "size": x.shape[op.axis]}
    given |= {"there": kept["there"], "is": there}
    plan = LastSlicePlan(x.element, len(loops))
    site.launch(plan, [ceil_div(product(last.shape), THREADS)], given, [then, there])
    site.lowering.keep_at_end(then, last)
    site.lowering.keep_at_end(there, kept["there"])


def _signal(op: PulsePad | PulseMask, position: View, x: View) -> dict[str, Given]:
    return {"begin": op.begin, "end": EventualSize(op.end), "position": position, "step": x.strides[op.axis]}
