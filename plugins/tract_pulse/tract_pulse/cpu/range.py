"""Numbers at equal distances, that go on from pulse to pulse."""

from __future__ import annotations

from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.signature import Memory, Signature, Size
from tract_cpu.program.arguments import arguments
from tract_cpu.program.program import NativeStep
from tract_cpu.table import CPU
from tract_llvm.language.types import INDEX, ElementType

from tract_core.frozen import frozen
from tract_core.plugins.tables import Rows
from tract_pulse.cpu.position import KeptPosition, advance
from tract_pulse.ops.range import PulseRange

ROWS = Rows()


@ROWS.row(CPU, PulseRange)
def lower_pulse_range(op: PulseRange, site: Site) -> str | None:
    """One kernel, which begins where the pulse before ended."""
    why = site.lowering.why_not_kept(site.node.facts)
    if why is not None:
        return why
    start, step = site.known_inputs()
    (position,) = site.lowering.keep(site.node.node, KeptPosition(), [(INDEX, ())])
    result = site.lowering.new(site.outlet)
    plan = PulseRangePlan(result.element)
    given = arguments(
        plan,
        length=op.length,
        position=position.address,
        start=start.address,
        step=step.address,
        result=result.address,
    )
    site.add_all([NativeStep(plan, given, 1, (), (result.storage,), work=op.length)])
    advance(site, position, op.length)
    return None


@frozen
class PulseRangePlan:
    """``element``: the type of the numbers."""

    element: ElementType

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "pulse_range"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        bounds = Memory("position", INDEX), Memory("start", self.element), Memory("step", self.element)
        return Signature.of(Size("length"), *bounds, Memory("result", self.element))

    def emit(self, k: Kernel) -> None:
        """result[i] = start + (position + i) * step"""
        taken = self.signature.taken(k)
        length, position = taken.size("length"), taken.memory("position")[0]
        start, step = taken.memory("start")[0], taken.memory("step")[0]
        result = taken.memory("result")
        with k.loop("place", length) as place:
            result[place] = k.convert(place + position, self.element.computed) * step + start
