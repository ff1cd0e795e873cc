"""Numbers at equal distances, that go on from pulse to pulse."""

from __future__ import annotations

from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.kernel import Kernel
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
    arguments = (op.length, position.address, start.address, step.address, result.address)
    site.add_all([NativeStep(PulseRangePlan(result.element), arguments, 1, (), (result.storage,), work=op.length)])
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

    def text(self) -> str:
        """All that it says."""
        return f"pulse range {self.element.name}"

    def emit(self, k: Kernel) -> None:
        """result[i] = start + (position + i) * step"""
        length, position = k.size(), k.memory(INDEX)[0]
        start, step = (k.memory(self.element)[0] for _ in range(2))
        result = k.memory(self.element)
        with k.loop("place", length) as place:
            result[place] = k.convert(place + position, self.element.computed) * step + start
