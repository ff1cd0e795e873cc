"""Models whose program is executed by the emulator, launch by launch, each storage in memory of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np
from tract_cuda.compile import Planned, compiled
from tract_cuda.kernels.kernel import KernelPlan
from tract_cuda.language.arch import arch_named
from tract_cuda.lowering import Target
from tract_cuda.program import CudaProgram, Download, Hosted, Launch, Repeat, Upload
from tract_cuda.ptx import Ptx, written
from tract_cuda.testing.emulator import Emulator, Range, aligned
from tract_llvm.language.types import numpy_type
from tract_llvm.program.storages import Address, Kind, Storage
from tract_llvm.program.views import View

from tract_core.dims import evaluate
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.typed import TypedModel

ORDERS = (0, 7)
SM_80 = arch_named("sm_80")
assert SM_80 is not None


def one_node(op: TypedOp, *facts: str) -> TypedModel:
    """A model of one operator."""
    model = TypedModel()
    inputs = [model.add_source(f"x{n}", parse_typed_fact(fact, model.symbols)) for n, fact in enumerate(facts)]
    model.set_outputs(model.wire_node("y", op, inputs))
    return model


def text(shape: Sequence[int], dtype: str) -> str:
    """A fact."""
    return ",".join([*map(str, shape), dtype])


def program_of(model: TypedModel, multiprocessors: int = 132) -> CudaProgram:
    """The program of a model, no node of which is left to the host."""
    return _compiled(model, multiprocessors).program


def _compiled(model: TypedModel, multiprocessors: int = 132) -> Planned:
    found = compiled(model, Target(SM_80, multiprocessors))
    assert not [step for step in found.program.steps if isinstance(step, Hosted)]
    return found


def kernels_of(model: TypedModel, multiprocessors: int = 132) -> list[Any]:
    """The plans of all launches."""
    return [step.kernel for step in program_of(model, multiprocessors).steps if isinstance(step, Launch)]


def run(
    model: TypedModel, *inputs: np.ndarray, symbols: Mapping[str, int] | None = None, wide: bool = False
) -> list[np.ndarray]:
    """The outputs of a model. The threads of each kernel go in several orders, which changes no bit."""
    found = _compiled(model)
    return Execution(found.program, symbols or {}, wide).run(found.model, inputs)


class Execution:
    """One run of a program, for sizes that are known."""

    def __init__(self, program: CudaProgram, symbols: Mapping[str, int], wide: bool = False) -> None:
        self.program, self.symbols, self.wide = program, symbols, wide
        self._memory: dict[Storage, np.ndarray] = {}

    def run(self, model: TypedModel, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """The outputs."""
        values = dict(zip(model.inputs, inputs, strict=True))
        for step in self.program.steps:
            if isinstance(step, Upload):
                self._seen(step.view)[...] = values[step.outlet]
            elif isinstance(step, Download):
                values[step.outlet] = self._seen(step.view).copy()
            elif isinstance(step, Launch | Repeat):
                self._work(step)
        return [values[outlet] for outlet in model.outputs]

    def _work(self, step: Launch | Repeat) -> None:
        if isinstance(step, Launch):
            self._launch(step)
            return
        around = self.symbols
        for iteration in range(evaluate(step.count, around)):
            self.symbols = {**around, step.index: iteration}
            for one in step.steps:
                self._work(one)
        self.symbols = around

    def put(self, storage: Storage, array: np.ndarray) -> None:
        """Have a storage hold the elements of an array."""
        self._of(storage)[...] = np.ascontiguousarray(array).reshape(-1).view(np.uint8)

    def get(self, storage: Storage, like: np.ndarray) -> np.ndarray:
        """What a storage holds, as an array."""
        return self._of(storage).view(like.dtype).reshape(like.shape).copy()

    def _seen(self, view: View) -> np.ndarray:
        shape = tuple(evaluate(size, self.symbols) for size in view.shape)
        dtype = np.dtype(numpy_type(view.element))
        begin = evaluate(view.address.offset, self.symbols)
        return self._of(view.storage)[begin : begin + prod(shape) * dtype.itemsize].view(dtype).reshape(shape)

    def _of(self, storage: Storage) -> np.ndarray:
        if storage not in self._memory:
            if storage.kind is Kind.CONSTANT:
                array = np.ascontiguousarray(self.program.constants[storage.number])
                self._memory[storage] = aligned(array.reshape(-1).view(np.uint8))
            else:
                size = evaluate(self.program.arena[storage.number], self.symbols)
                self._memory[storage] = aligned(np.full(size, 0xAB, np.uint8))
        return self._memory[storage]

    def _launch(self, step: Launch) -> None:
        grid = [evaluate(size, self.symbols) for size in step.grid]
        if 0 in grid:
            return
        storages = {one.storage for one in step.arguments if isinstance(one, Address)}
        before = {one: self._of(one).copy() for one in storages}
        results: list[list[bytes]] = []
        for order in ORDERS:
            for storage, array in before.items():
                self._of(storage)[...] = array
            self._once(step, grid, [self._of(one) for one in storages], order)
            results.append([self._of(one).tobytes() for one in storages])
        assert all(one == results[0] for one in results), f"{step.kernel.name} depends on the order of threads"

    def _once(self, step: Launch, grid: Sequence[int], arrays: Sequence[np.ndarray], order: int) -> None:
        ptx, emulator = _kernel(step.kernel, self.wide)
        passed = [
            self._of(one.storage).ctypes.data + evaluate(one.offset, self.symbols)
            if isinstance(one, Address)
            else evaluate(one, self.symbols)
            for one in step.arguments
        ]
        memory = [Range(one.ctypes.data, one.nbytes) for one in arrays]
        emulator.launch(ptx.name, grid, (ptx.threads,), ptx.shared_bytes, passed, memory=memory, order=order)


@cache
def _kernel(plan: KernelPlan, wide: bool) -> tuple[Ptx, Emulator]:
    ptx = written(plan, SM_80, wide=wide)
    return ptx, Emulator(ptx.text)


def launched(
    launch: Launch, *arrays: np.ndarray, symbols: Mapping[str, int] | None = None, wide: bool = False
) -> list[np.ndarray]:
    """The storages of the arena, with these contents, behind one launch."""
    program = CudaProgram((launch,), tuple(one.nbytes for one in arrays), (), ())
    execution = Execution(program, symbols or {}, wide)
    for number, array in enumerate(arrays):
        execution.put(Storage(Kind.ARENA, number), array)
    execution.run(TypedModel(), ())
    return [execution.get(Storage(Kind.ARENA, number), array) for number, array in enumerate(arrays)]
