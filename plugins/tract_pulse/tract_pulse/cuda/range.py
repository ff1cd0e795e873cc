"""Numbers at equal distances, that go on from pulse to pulse."""

from __future__ import annotations

from collections.abc import Sequence

from tract_cuda.kernels.positions import THREADS
from tract_cuda.language.kernel import Kernel, Parameter
from tract_cuda.lowering import Site
from tract_cuda.table import CUDA
from tract_llvm.language.types import I64, ElementType

from tract_core.dims import ceil_div
from tract_core.frozen import frozen
from tract_core.plugins.tables import Rows
from tract_pulse.cuda.position import advance, kept_position
from tract_pulse.ops.range import PulseRange

ROWS = Rows()


@ROWS.row(CUDA, PulseRange)
def lower_pulse_range(op: PulseRange, site: Site) -> str | None:
    """One kernel, which begins where the pulse before ended."""
    why = site.lowering.why_not_kept(site.node.facts)
    if why is not None:
        return why
    start, step = site.inputs()
    (result,) = site.results()
    position = kept_position(site)
    given = {"length": op.length, "position": position, "start": start, "step": step, "result": result}
    site.launch(StreamRangePlan(result.element), [ceil_div(op.length, THREADS)], given, [result])
    advance(site, position, op.length)
    return None


@frozen
class StreamRangePlan:
    """One thread for one number, of a type."""

    element: ElementType

    name = "stream_range"
    threads = THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """How many numbers there are, the position, the first number of the stream, the distance, and the result."""
        numbers = (Parameter(name, self.element) for name in ("start", "step", "result"))
        return (Parameter("length"), Parameter("position", I64), *numbers)

    def emit(self, k: Kernel) -> None:
        """result[i] = start + (position + i) * step"""
        number = k.block() * THREADS + k.thread()
        with k.when(number < k.size("length")):
            place = k.convert(k.convert(number, I64) + k.memory("position")[0], self.element.computed)
            k.memory("result")[number] = place * k.memory("step")[0] + k.memory("start")[0]
