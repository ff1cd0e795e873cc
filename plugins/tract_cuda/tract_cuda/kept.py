"""What nodes keep from turn to turn: memory of a state on the device, and numbers that the host counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from tract_llvm.language.types import numpy_type
from tract_llvm.program.storages import Kind, Storage

from tract_core.dims import evaluate
from tract_core.plugins.keys import Array
from tract_cuda.driver.device import Device, Memory
from tract_cuda.program import KeptTensors


class KeptOnDevice:
    """What the nodes of one running model keep. Used by one thread at a time, who waits for the stream before.

    A node that has not run yet has no memory: that gets its sizes from the first turn. One that was thawed, or whose
    sizes change, has a snapshot until then.
    """

    def __init__(self, device: Device, kept: Sequence[KeptTensors]) -> None:
        self._device, self._kept = device, {one.node: one for one in kept}
        self._memory: dict[int, list[Memory]] = {}
        self._shapes: dict[int, list[tuple[int, ...]]] = {}
        self._snapshots: dict[int, Any] = {}
        self.counts: dict[str, int] = {}
        """The values of the symbols of what is counted."""
        self.reset()

    def prepare(self, symbols: Mapping[str, int]) -> bool:
        """Have memory for a turn with these values of symbols. Returns whether any lies where it did not.

        Raises RunError where the state has other sizes than this turn wants.
        """
        moved = False
        for node, one in self._kept.items():
            shapes = [tuple(evaluate(dim, symbols) for dim in shape) for _, shape in one.tensors]
            if self._shapes.get(node) != shapes or node in self._snapshots:
                moved = self._lay(one, shapes) or moved
        return moved

    def addresses(self) -> dict[Storage, int]:
        """Where all of it lies."""
        return {
            Storage(Kind.KEPT, one.first + place): memory.address
            for node, one in self._kept.items()
            for place, memory in enumerate(self._memory[node])
        }

    def finish(self, symbols: Mapping[str, int]) -> None:
        """A turn is over, in which symbols had these values."""
        known = {**symbols, **self.counts}
        for one in self._kept.values():
            self.counts |= {name: evaluate(then, known) for name, then in one.counts}

    def reset(self) -> None:
        """Nothing is kept from the turns so far."""
        self._shapes.clear()
        self._snapshots.clear()
        self.counts = {name: 0 for one in self._kept.values() for name, _ in one.counts}

    def freeze(self) -> dict[int, Any]:
        """A snapshot, by the ids of the nodes, of the kind that the operators themselves take."""
        return {node: self._frozen(node) for node in self._kept if self._has(node)}

    def thaw(self, frozen: Mapping[int, Any]) -> dict[int, Any]:
        """Go back to a snapshot. Returns what in it is of other nodes."""
        self.reset()
        self._snapshots = {node: content for node, content in frozen.items() if node in self._kept}
        return {node: content for node, content in frozen.items() if node not in self._kept}

    def _has(self, node: int) -> bool:
        return node in self._shapes or node in self._snapshots

    def _frozen(self, node: int) -> Any:
        if node in self._snapshots:
            return self._snapshots[node]
        one = self._kept[node]
        arrays = self._zeros(one, self._shapes[node])
        for array, memory in zip(arrays, self._memory[node], strict=True):
            if array.nbytes:
                self._device.read(array, memory.address)
        return one.keeping.frozen([*(np.array(self.counts[name]) for name, _ in one.counts), *arrays])

    def _lay(self, one: KeptTensors, shapes: list[tuple[int, ...]]) -> bool:
        """Memory of these sizes, with what was kept so far. Returns whether it is new."""
        arrays, counts = self._zeros(one, shapes), [np.zeros((), np.int64) for _ in one.counts]
        if self._has(one.node):
            one.keeping.thaw(self._frozen(one.node), [*counts, *arrays])
        sizes = [array.nbytes for array in arrays]
        before = self._memory.get(one.node)
        moved = before is None or sizes != [memory.size for memory in before]
        if moved:
            self._memory[one.node] = [self._device.allocate(size) for size in sizes]
        for memory, array in zip(self._memory[one.node], arrays, strict=True):
            if array.nbytes:
                self._device.write(memory.address, array)
        self._shapes[one.node] = shapes
        self._snapshots.pop(one.node, None)
        self.counts |= {name: int(count) for (name, _), count in zip(one.counts, counts, strict=True)}
        return moved

    def _zeros(self, one: KeptTensors, shapes: Sequence[tuple[int, ...]]) -> list[Array]:
        return [np.zeros(shape, numpy_type(kind)) for (kind, _), shape in zip(one.tensors, shapes, strict=True)]
