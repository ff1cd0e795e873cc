"""Streams of which the last positions stay, in memory through which a window moves.

The memory has room for more positions than are seen at a time. What stays is not copied: from turn to turn the window
begins further on. Only where there is no room behind it are the positions that stay brought to the front, which happens
so seldom that no turn copies more than it brings, on the whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tract_cpu.draft.lowering import Site
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.kernels.runs import Run
from tract_cpu.kernels.signature import Memory, Signature, Size
from tract_cpu.program.arguments import arguments
from tract_cpu.program.form import Border, Form
from tract_cpu.program.program import NativeStep, PassedPlace
from tract_llvm.language.types import INDEX, ElementType
from tract_llvm.program.keeping import Keeping

from tract_core.dims import Dim, product
from tract_core.errors import RunError
from tract_core.frozen import frozen
from tract_core.plugins.keys import Array
from tract_pulse.cpu.tensor import PlacedTensor, border_around
from tract_pulse.ops.delay import along


@frozen
class KeptWindow(Keeping):
    """The last ``kept`` positions of a stream along ``axis``, in memory that has more.

    The first tensor says where they begin, the second one is the memory. ``form``: how its channels are cut, if so.
    ``border``: zeros around each position.
    """

    axis: int
    kept: int
    form: Form | None
    border: Border

    def frozen(self, tensors: Sequence[Array]) -> Array:
        """The positions."""
        found = self._places(tensors[1], int(tensors[0]))
        return found.copy() if self.form is None else self.form.plain_array(found)

    def thaw(self, frozen: Array | None, tensors: Sequence[Array]) -> None:
        """The positions, at the begin of the memory; zeros where there were no turns."""
        if frozen is None:
            return
        frozen = frozen if self.form is None else self.form.blocked_array(frozen)
        place = self._places(tensors[1], 0)
        if place.shape != frozen.shape:
            raise RunError(
                f"{frozen.shape} were kept from the pulse before, this one wants {place.shape}",
                hint="spawn a new state, or give tensors of the sizes that this one was used with",
            )
        place[...] = frozen

    def _places(self, memory: Array, begin: int) -> Array:
        """The positions in memory, without the zeros around."""
        ends = zip(memory.shape, self.border, strict=True)
        inside = memory[tuple(slice(int(before), size - int(after)) for size, (before, after) in ends)]
        return inside[along(self.axis, begin, begin + self.kept)]

    def starts(self, tensors: Sequence[Array]) -> Sequence[int]:
        """The memory is seen from the window on."""
        begin, memory = tensors
        return [0, int(begin) * memory.strides[self.axis]]


def window(site: Site, axis: int, kept: int, element: ElementType, form: Form | None) -> PlacedTensor:
    """Memory for the result of a node: ``kept`` positions of what came before, and behind them a pulse of its input.

    Each turn finds the last positions of the turn before in front.
    """
    lowering, shape = site.lowering, list(site.facts()[0].shape)
    pulse, border = shape[axis], ((0, 0),) * len(shape)
    if form is not None:
        shape, border = list(form.shape(shape)), _numbers(border_around(site, form, axis))
    inside = [*shape[:axis], pulse + kept, *shape[axis + 1 :]]
    shape[axis] = capacity = (pulse + kept) * 2
    wide = tuple(before + size + after for size, (before, after) in zip(shape, border, strict=True))
    tensors: list[tuple[ElementType, tuple[Dim, ...]]] = [(INDEX, ()), (element, wide)]
    begin, memory = lowering.keep(site.node.node, KeptWindow(axis, kept, form, border), tensors)
    bits, inner = memory.as_bits().element, product(wide[axis + 1 :])
    plan = MovePlan(bits, Run.of(site.isa, bits))
    given = arguments(
        plan,
        begin=begin.address,
        passed=PassedPlace(memory.storage),
        pulse=pulse,
        kept=kept,
        capacity=capacity,
        inner=inner,
        step=inner * bits.bytes,
        rows=product(wide[:axis]),
    )
    lowering.at_end(NativeStep(plan, given, 1, (), (begin.storage, memory.storage)))
    for place, (size, (before, _)) in enumerate(zip(inside, border, strict=True)):
        memory = memory.part(place, before, size)
    return PlacedTensor(memory, form, border)


def _numbers(border: Border) -> Border:
    """The border, where it is known by now; else none, and who wants one has the tensor copied."""
    known = all(isinstance(end, int) for ends in border for end in ends)
    return border if known else ((0, 0),) * len(border)


_SIZES: Final = ("pulse", "kept", "capacity", "inner", "step", "rows")


@frozen
class MovePlan:
    """A window moves on by a pulse. ``run``: how positions are copied."""

    element: ElementType
    run: Run

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "move_window"

    @property
    def signature(self) -> Signature:
        """What it is called with."""
        return Signature.of(Memory("begin", INDEX), Memory("passed", INDEX), *map(Size, _SIZES))

    def emit(self, k: Kernel) -> None:
        """Where it begins, and where that is passed; sizes in positions; elements and bytes of one; how many rows."""
        taken = self.signature.taken(k)
        begin, passed = taken.memory("begin"), taken.memory("passed")
        pulse, kept, capacity, inner, step, rows = map(taken.size, _SIZES)
        now = begin[0]
        following, address = now + pulse, passed[0]
        with k.either(following + kept + pulse <= capacity) as (on, back):
            with on:
                begin[0] = following
                passed[0] = address + pulse * step
            with back:
                first = address - now * step
                begin[0] = k.index(0)
                passed[0] = first
                memory = k.at(first).of(self.element)
                with k.loop("row", rows) as row:
                    start = memory.at(row * capacity * inner)
                    self.run.copy(k, start.at(following * inner), start, kept * inner)
