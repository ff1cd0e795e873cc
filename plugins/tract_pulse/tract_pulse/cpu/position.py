"""Where in its stream a pulse is: a number that is kept from turn to turn, and the pulse in memory of its own."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tract_cpu.kernels.kernel import Kernel
from tract_cpu.language.types import INDEX
from tract_cpu.lower.copies import copy_step
from tract_cpu.lower.form import Blocked, Form
from tract_cpu.lower.keeping import Keeping
from tract_cpu.lower.lowering import Site
from tract_cpu.lower.program import NativeStep
from tract_cpu.lower.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import Array


@frozen
class KeptPosition(Keeping):
    """How many positions of the stream came before."""

    def frozen(self, tensors: Sequence[Array]) -> int:
        """The number."""
        return int(tensors[0])

    def thaw(self, frozen: int, tensors: Sequence[Array]) -> None:
        """The number."""
        tensors[0][...] = np.int64(frozen)


def advance(site: Site, position: View, count: Dim) -> None:
    """Have the position go on by so many when the turn is over."""
    site.lowering.at_end(NativeStep(AdvancePlan(), (position.address, count), 1, (), (position.storage,)))


@frozen
class AdvancePlan:
    """Adds to a number."""

    @property
    def name(self) -> str:
        """What profiles call it."""
        return "advance"

    def text(self) -> str:
        """All that it says."""
        return "advance"

    def emit(self, k: Kernel) -> None:
        """The number, and how much is added."""
        position = k.memory(INDEX)
        position[0] = position[0] + k.size()


@frozen
class Tensor:
    """A tensor in memory. ``form``: how its channels are cut, ``None`` where its axes are as its shape says.

    Along the axis of the stream both are the same.
    """

    view: View
    form: Form | None

    def place(self, site: Site, view: View, steps: Sequence[NativeStep]) -> None:
        """Let a view of the same form be the result of a node, which the steps compute."""
        if self.form is None:
            site.lowering.place(site.outlet, view)
        else:
            found = Blocked(self.form, view, ((0, 0),) * len(view.shape))
            site.lowering.blocked[site.outlet] = site.lowering.born_in_blocks[site.outlet] = found
        site.add_all(steps)


def tensor(site: Site, outlet: OutletId, axis: int) -> Tensor:
    """An input, as it is there. ``axis``: that of the stream, whose positions are not cut."""
    lowering = site.lowering
    blocked = None if lowering.is_plain(outlet) else lowering.blocked.get(outlet)
    if blocked is not None and blocked.form.axis != axis:
        return Tensor(blocked.view, blocked.form)
    view = lowering.view(outlet)
    assert view is not None  # nodes with other inputs are left to the host before
    return Tensor(view, None)


def overwritten(site: Site, slot: int, axis: int) -> tuple[Tensor, list[NativeStep]]:
    """An input that the node may write to, and how it comes there: where nobody else sees it, it stays where it is."""
    outlet, lowering = site.node.inputs[slot], site.lowering
    found = tensor(site, outlet, axis)
    if lowering.is_alone(outlet):
        return found, []
    shape = found.view.shape
    size = found.view.element.bytes
    for one in shape:
        size = size * one
    own = View.contiguous(lowering.room(size), found.view.element, shape)
    return Tensor(own, found.form), [copy_step(found.view, own, site.isa, ())]
