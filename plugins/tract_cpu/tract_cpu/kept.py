"""What nodes keep from turn to turn: memory of a state, which native code reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from tract_llvm.language.types import numpy_type

from tract_core.dims import evaluate
from tract_cpu.native.objects import address_of

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array
    from tract_cpu.execution import Execution
    from tract_cpu.program.kept import Kept


class KeptMemory:
    """What the nodes of one running model keep. Used by one thread at a time.

    A node that has not run yet has no memory: that gets its sizes from the first turn. One that was thawed, or whose
    sizes change, has a snapshot until then.
    """

    def __init__(self, kept: Sequence[Kept], first: int) -> None:
        """``first``: the number of the first storage among those whose addresses are passed."""
        self._kept = {one.node: one for one in kept}
        self._first = first
        self._tensors: dict[int, list[Array]] = {}
        self._snapshots: dict[int, Any] = {}

    def pass_to(self, execution: Execution) -> None:
        """Have native code use this memory.

        Raises RunError where the state has other sizes than this turn wants.
        """
        for node, one in self._kept.items():
            shapes = [tuple(evaluate(dim, execution.symbols) for dim in shape) for _, shape in one.tensors]
            tensors = self._tensors.get(node)
            if tensors is None or [tensor.shape for tensor in tensors] != shapes:
                tensors = self._laid(one, shapes)
            addresses = [address_of(tensor) for tensor in tensors]
            number = self._first + one.first
            starts = one.keeping.starts(tensors)
            execution.passed[number : number + len(tensors)] = [a + b for a, b in zip(addresses, starts, strict=True)]

    def tensors(self) -> list[Array]:
        """All of this memory."""
        return [tensor for tensors in self._tensors.values() for tensor in tensors]

    def _laid(self, one: Kept, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        """Memory of these sizes, with what was kept so far."""
        tensors = [
            np.zeros(shape, numpy_type(element)) for (element, _), shape in zip(one.tensors, shapes, strict=True)
        ]
        if self.has(one.node):
            one.keeping.thaw(self.frozen(one.node), tensors)
        self._tensors[one.node] = tensors
        self._snapshots.pop(one.node, None)
        return tensors

    def keeps(self, node: int) -> bool:
        """Whether it is a node whose state is kept here."""
        return node in self._kept

    def has(self, node: int) -> bool:
        """Whether a node keeps anything by now."""
        return node in self._tensors or node in self._snapshots

    def tensor(self, number: int) -> tuple[Array, int]:
        """The tensor in a storage that is kept, and from which byte on native code sees it."""
        one = next(one for one in self._kept.values() if one.first <= number < one.first + len(one.tensors))
        tensors = self._tensors[one.node]
        return tensors[number - one.first], one.keeping.starts(tensors)[number - one.first]

    def may_hold(self, array: Array) -> bool:
        """Whether an array may lie here."""
        return any(np.may_share_memory(array, tensor) for tensors in self._tensors.values() for tensor in tensors)

    def reset(self) -> None:
        """Nothing is kept from the turns so far."""
        self._tensors.clear()
        self._snapshots.clear()

    def freeze(self) -> dict[int, Any]:
        """A snapshot, by the ids of the nodes, of the kind that the operators themselves take."""
        return {node: self.frozen(node) for node in self._kept if self.has(node)}

    def frozen(self, node: int) -> Any:
        """What a node keeps, if it keeps anything by now."""
        if node in self._snapshots:
            return self._snapshots[node]
        return self._kept[node].keeping.frozen(self._tensors[node])

    def thaw(self, frozen: Mapping[int, Any]) -> dict[int, Any]:
        """Go back to a snapshot. Returns what in it is of other nodes."""
        self.reset()
        for node, content in frozen.items():
            if node in self._kept:
                self.keep(node, content)
        return {node: content for node, content in frozen.items() if node not in self._kept}

    def keep(self, node: int, frozen: Any) -> None:
        """Let a node go on from a snapshot in the next turn."""
        self._snapshots[node] = frozen
        self._tensors.pop(node, None)
