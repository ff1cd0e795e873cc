"""Tensors before and behind the signal of a stream, written where they stand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tract_cuda.kernels.positions import THREADS, counted, place, position, strided
from tract_cuda.language.kernel import Kernel, Parameter
from tract_cuda.lowering import Site
from tract_cuda.positions import loops_over, numbers_of
from tract_cuda.program import EventualSize, Given
from tract_cuda.table import CUDA
from tract_llvm.language.types import I64, ElementType
from tract_llvm.program.views import View

from tract_core.dims import Dim, ceil_div, product
from tract_core.frozen import frozen
from tract_core.plugins.tables import Rows
from tract_pulse.cuda.position import advance, from_here, kept_position
from tract_pulse.ops.concat import PulseConcat

ROWS = Rows()


@ROWS.row(CUDA, PulseConcat)
def lower_pulse_concat(op: PulseConcat, site: Site) -> str | None:
    """A copy of the pulse, over which each of the other tensors is written, as far as it stands in this pulse."""
    facts = [site.lowering.model.outlet_fact(outlet) for outlet in site.node.inputs]
    why = site.lowering.why_not_kept(facts)
    if why is not None:
        return why
    inputs, (result,) = site.inputs(), site.results()
    site.lowering.copy(inputs[op.stream], result, site.group.nodes)
    where, sizes = kept_position(site), [piece.shape[op.axis] for piece in inputs]
    at: Dim = op.begin
    for size in sizes[: op.stream]:
        at = at - size
    for slot, piece in enumerate(inputs):
        if slot == op.stream:
            at = op.end
            continue
        given: dict[str, Given] = {"at": at if slot < op.stream else EventualSize(at), "position": where}
        _add(site, op, (piece, result), given)
        at = at + sizes[slot]
    advance(site, where, result.shape[op.axis])
    return None


def _add(site: Site, op: PulseConcat, pair: tuple[View, View], given: Mapping[str, Given]) -> None:
    """The kernel for one of the tensors, and the result. ``given``: where it stands, and where the pulse begins."""
    piece, result = pair
    tensors = {"piece": piece, "result": result.part(op.axis, 0, piece.shape[op.axis])}
    loops, (along,) = loops_over(piece.shape, [one.strides for one in tensors.values()], [op.axis])
    every: dict[str, Given] = {**given, **numbers_of(loops, tensors), "room": result.shape[op.axis]}
    plan = LaidPlan(piece.element, len(loops), along)
    site.launch(plan, [ceil_div(product(piece.shape), THREADS)], every, [result])


@frozen
class LaidPlan:
    """One thread for one element of a tensor that stands in the stream.

    ``rank``: how many loops there are, one of them ``along`` the stream.
    """

    element: ElementType
    rank: int
    along: int

    name = "laid"
    threads = THREADS

    @property
    def parameters(self) -> Sequence[Parameter]:
        """The loops, the tensor, the pulse; where it stands, where the pulse begins, and how many positions it has."""
        tensors = (*strided("piece", self.element, self.rank), *strided("result", self.element, self.rank))
        return (*counted(self.rank), *tensors, Parameter("at"), Parameter("position", I64), Parameter("room"))

    def emit(self, k: Kernel) -> None:
        """result[.., at - position + i, ..] = piece[.., i, ..]"""
        with position(k, self.rank) as here:
            source = place(k, "piece", here)
            spot = k.convert(here[self.along], I64) + from_here(k, "at")
            with k.when((spot >= 0) & (spot < k.convert(k.size("room"), I64))):
                here[self.along] = k.convert(spot, k.positions)
                k.memory("result")[place(k, "result", here)] = k.memory("piece")[source]
