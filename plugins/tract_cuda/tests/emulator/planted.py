"""Models whose kernels are executed as they are, or one of them with a fault planted in its PTX."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from math import prod
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "kernels"))  # models that the emulator executes

import numpy as np
from executed import SM_80, program_of
from tract_cuda.program import CudaProgram, Download, Launch, Upload
from tract_cuda.ptx import Ptx, written
from tract_cuda.testing.emulator import EmulationError, Emulator, Range, aligned
from tract_llvm.language.types import numpy_type
from tract_llvm.program.storages import Address, Kind, Storage
from tract_llvm.program.views import View

import tract_core as tract
from tract_core.dims import evaluate
from tract_core.frozen import frozen
from tract_core.model.typed import TypedModel

GARBAGE = 0xAB
STATUS_BYTES = 4


@frozen
class Subject:
    """A kernel in a model. ``kernel``: the name of its plan; ``make``: the model; ``inputs``: what it is run on.

    ``tolerance``: how far elements may be from those of the reference, absolutely and relatively. ``symbols``: sizes
    that the model leaves open.
    """

    kernel: str
    make: Callable[[], TypedModel]
    inputs: tuple[np.ndarray, ...]
    tolerance: float = 0.0
    symbols: tuple[tuple[str, int], ...] = ()


class Memory:
    """A storage: only what was written to it may be read, and launches write what they say that they write."""

    def __init__(self, size: int) -> None:
        self.bytes = aligned(np.full(size, GARBAGE, np.uint8))
        self.written = np.zeros(size, np.uint8)

    def put(self, begin: int, content: np.ndarray) -> None:
        """Have it hold an array from a byte on."""
        raw = np.ascontiguousarray(content).reshape(-1).view(np.uint8)
        self.bytes[begin : begin + raw.size], self.written[begin : begin + raw.size] = raw, 1

    def range(self, *, writable: bool) -> Range:
        """As the emulator takes it."""
        return Range(self.bytes.ctypes.data, self.bytes.nbytes, writable, self.written, raced=writable)


class Execution:
    """One run of a program: each storage in memory of its own, each launch in one order of threads."""

    def __init__(
        self, program: CudaProgram, symbols: Mapping[str, int], changed: Mapping[Any, str], order: int
    ) -> None:
        self._program, self._symbols, self._changed, self._order = program, symbols, changed, order
        self._memory: dict[Storage, Memory] = {}

    def run(self, model: TypedModel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs. Raises EmulationError."""
        values = dict(zip(model.inputs, inputs, strict=True))
        for step in self._program.steps:
            if isinstance(step, Upload):
                self._of(step.view.storage).put(self._value(step.view.offset), values[step.outlet])
            elif isinstance(step, Download):
                values[step.outlet] = self._seen(step.view)
            elif isinstance(step, Launch):
                self._launch(step)
        return [values[outlet] for outlet in model.outputs]

    def refused(self) -> bool:
        """Whether a kernel said that it cannot do its work."""
        status = self._memory.get(Storage(Kind.STATUS, 0))
        return status is not None and bool(status.bytes.any())

    def _value(self, size: Any) -> int:
        return int(evaluate(size, self._symbols))

    def _seen(self, view: View) -> np.ndarray:
        shape, dtype = tuple(map(self._value, view.shape)), np.dtype(numpy_type(view.element))
        begin = self._value(view.address.offset)
        memory = self._of(view.storage)
        part = slice(begin, begin + prod(shape) * dtype.itemsize)
        if not memory.written[part].all():
            raise EmulationError("not all of a result is written")
        return memory.bytes[part].view(dtype).reshape(shape).copy()

    def _of(self, storage: Storage) -> Memory:
        if storage not in self._memory:
            self._memory[storage] = self._made(storage)
        return self._memory[storage]

    def _made(self, storage: Storage) -> Memory:
        if storage.kind is Kind.ARENA:
            return Memory(self._value(self._program.arena[storage.number]))
        if storage.kind is Kind.CONSTANT:
            content = self._program.constants[storage.number]
        else:
            kept = storage.kind is Kind.KEPT
            size = self._value(self._program.kept_bytes(storage.number)) if kept else STATUS_BYTES
            content = np.zeros(size, np.uint8)
        found = Memory(np.ascontiguousarray(content).nbytes)
        found.put(0, content)
        return found

    def _launch(self, step: Launch) -> None:
        grid = [self._value(size) for size in step.grid]
        if 0 in grid:
            return
        ptx, emulator = kernel_of(step.kernel)
        if step.kernel in self._changed:
            emulator = Emulator(self._changed[step.kernel])
        passed = [
            self._of(one.storage).bytes.ctypes.data + self._value(one.offset)
            if isinstance(one, Address)
            else self._value(one)
            for one in step.arguments
        ]
        storages = {one.storage for one in step.arguments if isinstance(one, Address)}
        memory = [self._of(one).range(writable=one in step.writes or one.kind is Kind.STATUS) for one in storages]
        emulator.launch(ptx.name, grid, (ptx.threads,), ptx.shared_bytes, passed, memory=memory, order=self._order)


@cache
def kernel_of(plan: Any) -> tuple[Ptx, Emulator]:
    """A kernel as it is."""
    ptx = written(plan, SM_80)
    return ptx, Emulator(ptx.text)


class Case:
    """A subject, compiled once."""

    def __init__(self, subject: Subject) -> None:
        self.subject = subject
        self.model = subject.make()
        self.program = program_of(self.model)

    @cached_property
    def plan(self) -> Any:
        """That of the first launch of the kernel."""
        return next(one.kernel for one in self._launches() if one.kernel.name == self.subject.kernel)

    @cached_property
    def wanted(self) -> list[np.ndarray]:
        """What the reference gives."""
        return (
            tract.runtime_for_name("reference")
            .prepare(tract.Model.from_typed(self.model))
            .run(list(self.subject.inputs))
        )

    @property
    def text(self) -> str:
        """The PTX of the kernel."""
        return kernel_of(self.plan)[0].text

    def verdict(self, text: str, order: int) -> str:
        """What is found where the kernel has this text: the error, or that the result is wrong; else nothing."""
        execution = Execution(self.program, dict(self.subject.symbols), {self.plan: text}, order)
        try:
            found = execution.run(self.model, self.subject.inputs)
        except EmulationError as error:
            return str(error)
        if execution.refused():
            return "the kernel refuses"
        return "" if all(map(self._near, found, self.wanted)) else "wrong"

    def _near(self, found: np.ndarray, wanted: np.ndarray) -> bool:
        if found.dtype != wanted.dtype or found.shape != wanted.shape:
            return False
        if not self.subject.tolerance:
            return bool(np.array_equal(found, wanted))
        near = self.subject.tolerance
        return np.allclose(found.astype("f8"), wanted.astype("f8"), rtol=near, atol=near, equal_nan=True)

    def _launches(self) -> list[Launch]:
        return [step for step in self.program.steps if isinstance(step, Launch)]
