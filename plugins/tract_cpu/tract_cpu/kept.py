"""What loops keep from turn to turn: memory of a state, which native code reads and writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tract_core.dims import evaluate
from tract_core.ops.scan import FrozenScan, check_state
from tract_core.plugins.keys import Array
from tract_cpu.execution import Execution
from tract_cpu.language.types import numpy_type
from tract_cpu.lower.program import Kept
from tract_cpu.native.objects import address_of


class Memory:
    """What the loops of one running model keep. Used by one thread at a time."""

    def __init__(self, loops: Sequence[Kept], first: int) -> None:
        """``first``: the number of the first storage among those whose addresses are passed."""
        self._loops = {one.node: one for one in loops}
        self._first = first
        self._begun = {node: np.zeros((), np.bool_) for node in self._loops}
        self._tensors: dict[int, list[Array]] = {}

    def pass_to(self, execution: Execution) -> None:
        """Have native code use this memory. Raises RunError where the state has other sizes than this turn wants."""
        for node, loop in self._loops.items():
            kinds = [
                (tuple(evaluate(dim, execution.symbols) for dim in shape), numpy_type(element))
                for element, shape in loop.tensors
            ]
            tensors = self._tensors.get(node, [])
            if [tensor.shape for tensor in tensors] != [shape for shape, _ in kinds]:
                if self._begun[node]:
                    check_state([tensor.shape for tensor in tensors], [shape for shape, _ in kinds])
                self._tensors[node] = tensors = [np.zeros(shape, dtype) for shape, dtype in kinds]
            arrays = [self._begun[node], *tensors]
            number = self._first + loop.first
            execution.passed[number : number + len(arrays)] = [address_of(array) for array in arrays]

    def keeps(self, node: int) -> bool:
        """Whether it is a loop whose state is kept here."""
        return node in self._loops

    def reset(self) -> None:
        """Nothing is kept from the turns so far."""
        for begun in self._begun.values():
            begun[...] = False

    def freeze(self) -> dict[int, Any]:
        """A snapshot, by the ids of the loops, of the kind that the operators themselves take."""
        return {node: self.frozen(node) for node in self._loops if self._begun[node]}

    def frozen(self, node: int) -> FrozenScan:
        """What a loop keeps."""
        loop = self._loops[node]
        if not self._begun[node]:
            return FrozenScan(0, None, {})
        count, state = self._tensors[node][: loop.counts], self._tensors[node][loop.counts :]
        position = int(count[0]) if count else 0
        return FrozenScan(position, tuple(tensor.copy() for tensor in state) or None, {})

    def thaw(self, frozen: Mapping[int, Any]) -> dict[int, Any]:
        """Go back to a snapshot. Returns what in it is of other nodes."""
        self.reset()
        for node, content in frozen.items():
            if node in self._loops:
                self.keep(node, content)
        return {node: content for node, content in frozen.items() if node not in self._loops}

    def keep(self, node: int, frozen: FrozenScan) -> None:
        """Let a loop go on from what it kept."""
        loop = self._loops[node]
        count = [np.array(frozen.position)] if loop.counts else []
        tensors = [*count, *(np.array(tensor, order="C") for tensor in frozen.state or ())]
        self._begun[node][...] = begun = len(tensors) == len(loop.tensors)  # else there is no state yet
        if begun:
            self._tensors[node] = tensors
