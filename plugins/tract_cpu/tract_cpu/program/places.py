"""Storages that lie in others: as a part, or as a part that moves from one iteration of a loop to the next.

Such a storage is one of its own while the program is made. When that is done, every mention of it becomes a place in
the whole, and what moves is noted with the loop that moves it.
"""

from __future__ import annotations

from collections.abc import Mapping

from tract_llvm.program.storages import Address, Storage
from tract_llvm.program.views import View

from tract_core.dims import Dim
from tract_core.frozen import frozen, replaced
from tract_core.model.graph import OutletId
from tract_cpu.program.program import HostStep, NativeStep, ReadStep, Step


@frozen
class Move:
    """How a loop moves a storage: by ``step`` bytes per iteration; ``back``: and by as many back in the next one.

    ``loop``: the number of the loop among those of the program.
    """

    loop: int
    step: Dim
    back: bool = False


@frozen
class TensorPart:
    """Elements of a tensor, the ``whole``, from ``offset`` on, in elements of ``bytes`` each.

    ``move``: how it moves.
    """

    whole: Storage
    offset: Dim
    bytes: int
    move: Move | None = None


@frozen
class Root:
    """Where a storage really lies: from ``offset`` on, in elements of ``bytes``, and how that moves."""

    storage: Storage
    offset: Dim = 0
    bytes: int = 0
    moves: tuple[Move, ...] = ()


class Places:
    """The storages that lie in others."""

    def __init__(self) -> None:
        self.parts: dict[Storage, TensorPart] = {}

    def is_same(self, view: View, place: View) -> bool:
        """Whether a tensor lies where it would have to be copied to, both without gaps."""
        if view.storage not in self.parts or not view.is_contiguous:
            return False
        roots = [self.root(one.storage) for one in (view, place)]
        return self.address(view.address) == self.address(place.address) and roots[0].moves == roots[1].moves

    def root(self, storage: Storage) -> Root:
        """Where a storage really lies."""
        if storage not in self.parts:
            return Root(storage)
        found = Root(storage)
        while found.storage in self.parts:
            part = self.parts[found.storage]
            moves = found.moves if part.move is None else (*found.moves, part.move)
            found = Root(part.whole, found.offset + part.offset, part.bytes, moves)
        return found

    def address(self, address: Address) -> Address:
        """An address, in the whole instead of the part."""
        if address.storage not in self.parts:
            return address
        root = self.root(address.storage)
        return Address(root.storage, address.offset + root.offset * root.bytes)

    def view(self, view: View | None) -> View | None:
        """A tensor, in the whole instead of the part."""
        return view and self.known(view)

    def known(self, view: View) -> View:
        """A tensor that native code can read, in the whole instead of the part."""
        if view.storage not in self.parts:
            return view
        root = self.root(view.storage)
        return replaced(view, storage=root.storage, offset=view.offset + root.offset)

    def views(self, views: Mapping[OutletId, View | None]) -> dict[OutletId, View | None]:
        """Tensors, in wholes instead of parts."""
        return {outlet: self.view(view) for outlet, view in views.items()}

    def step(self, step: Step) -> Step:
        """A step, with places in wholes instead of parts."""
        if isinstance(step, NativeStep):
            arguments = tuple([self.address(one) if isinstance(one, Address) else one for one in step.arguments])
            return replaced(step, arguments=arguments, results=self._roots(step))
        if isinstance(step, ReadStep):
            return replaced(step, inputs=tuple(self.known(view) for view in step.inputs))
        if isinstance(step, HostStep):
            step = replaced(step, inputs=tuple(self.view(view) for view in step.inputs))
        return replaced(step, results=self._roots(step))

    def _roots(self, step: Step) -> tuple[Storage, ...]:
        """Where the results of a step really lie."""
        return tuple(self.root(one).storage for one in step.results)
