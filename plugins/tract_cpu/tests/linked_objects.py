"""Object files of models, in the memory of this process, called as a program in C would."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import CFUNCTYPE, c_int32, c_void_p
from typing import Any

import numpy as np
from tract_cpu.ahead.object_file import CompiledModel, compile_model
from tract_cpu.ahead.targets import ObjectTarget, target_named
from tract_cpu.aligned import ALIGNMENT, aligned
from tract_llvm.objects.target import llvm, machine_for

from tract_core.dims import evaluate
from tract_core.model.typed import TypedModel

FILLED = 0xA5
"""What memory holds that nobody has made ready."""


class LinkedObject:
    """One object with memory of its own. ``start``, ``run``: its functions, as Python calls them."""

    def __init__(self, found: CompiledModel, start: Callable[[int], object], run: Callable[..., int]) -> None:
        self.found, self._start, self._run = found, start, run
        self.memory = aligned(np.empty, [found.memory], np.uint8)
        self.memory[:] = FILLED
        self.addresses: dict[str, int] = {}
        """Of further functions."""
        self.held: object = None
        """What is there as long as this is."""
        assert self.memory.ctypes.data % ALIGNMENT == 0
        self.start()

    @staticmethod
    def of(model: TypedModel, name: str = "model", target: str = "native") -> LinkedObject:
        """Of a model whose sizes are known."""
        chosen = target_named(target)
        return linked_by_llvm(compile_model(model, chosen, name), chosen)

    def start(self) -> None:
        """Nothing was run yet."""
        self._start(self.memory.ctypes.data)

    def run(self, *inputs: np.ndarray) -> list[np.ndarray] | None:
        """The outputs; ``None`` where it could not be run."""
        given = [np.ascontiguousarray(one) for one in inputs]
        outputs = outputs_of(self.found)
        arrays: Sequence[np.ndarray] = [*given, *outputs]
        refused = self._run(self.memory.ctypes.data, *(one.ctypes.data for one in arrays))
        return None if refused else outputs


def linked_by_llvm(found: CompiledModel, target: ObjectTarget, *more: str) -> LinkedObject:
    """An object for this machine. ``more``: what further functions do."""
    name, linker = found.name, llvm.create_lljit_compiler(machine_for(target.isa, target.triple), use_jit_link=True)
    library = llvm.JITLibraryBuilder().add_object_img(found.code).add_current_process()
    for one in ("start", "run", *more):
        library = library.export_symbol(f"{name}_{one}")
    tracker = library.link(linker, name)
    pointers: list[Any] = [c_void_p] * (1 + len(found.arrays))
    start, run = (
        CFUNCTYPE(None, c_void_p)(tracker[f"{name}_start"]),
        CFUNCTYPE(c_int32, *pointers)(tracker[f"{name}_run"]),
    )
    made = LinkedObject(found, start, run)
    made.addresses |= {one: tracker[f"{name}_{one}"] for one in more}
    made.held = linker, tracker
    return made


def outputs_of(found: CompiledModel, *, everything: bool = False) -> list[np.ndarray]:
    """Arrays for what an object gives; ``everything``: for what it is given, too, before them."""
    return [_like(fact) for _, fact in found.arrays[0 if everything else found.inputs :]]


def _like(fact: Any) -> np.ndarray:
    shape = [evaluate(size, {}) for size in fact.shape]
    return np.empty(shape, fact.datum_type.storage.numpy)


def same(found: Sequence[np.ndarray] | None, wanted: Sequence[np.ndarray]) -> None:
    """They are the same to the bit."""
    assert found is not None
    for one, other in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.tobytes() == np.ascontiguousarray(other).tobytes()
