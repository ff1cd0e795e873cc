"""Object files of models, in the memory of this process, called as a program in C would."""

from __future__ import annotations

from collections.abc import Sequence
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
    """One object with memory of its own."""

    def __init__(self, found: CompiledModel, target: ObjectTarget) -> None:
        self.found, name = found, found.name
        linker = llvm.create_lljit_compiler(machine_for(target.isa, target.triple))
        library = llvm.JITLibraryBuilder().add_object_img(found.code).add_current_process()
        tracker = library.export_symbol(f"{name}_start").export_symbol(f"{name}_run").link(linker, name)
        self._held = linker, tracker
        pointers: list[Any] = [c_void_p] * (1 + len(found.arrays))
        self._start = CFUNCTYPE(None, c_void_p)(tracker[f"{name}_start"])
        self._run = CFUNCTYPE(c_int32, *pointers)(tracker[f"{name}_run"])
        self.memory = aligned(np.empty, [found.memory], np.uint8)
        self.memory[:] = FILLED
        assert self.memory.ctypes.data % ALIGNMENT == 0
        self.start()

    @staticmethod
    def of(model: TypedModel, name: str = "model", target: str = "native") -> LinkedObject:
        """Of a model whose sizes are known."""
        chosen = target_named(target)
        return LinkedObject(compile_model(model, chosen, name), chosen)

    def start(self) -> None:
        """Nothing was run yet."""
        self._start(self.memory.ctypes.data)

    def run(self, *inputs: np.ndarray) -> list[np.ndarray] | None:
        """The outputs; ``None`` where it could not be run."""
        given = [np.ascontiguousarray(one) for one in inputs]
        outputs = [_like(fact) for _, fact in self.found.arrays[self.found.inputs :]]
        arrays: Sequence[np.ndarray] = [*given, *outputs]
        refused = self._run(self.memory.ctypes.data, *(one.ctypes.data for one in arrays))
        return None if refused else outputs


def _like(fact: Any) -> np.ndarray:
    shape = [evaluate(size, {}) for size in fact.shape]
    return np.empty(shape, fact.datum_type.storage.numpy)


def same(found: Sequence[np.ndarray] | None, wanted: Sequence[np.ndarray]) -> None:
    """They are the same to the bit."""
    assert found is not None
    for one, other in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.tobytes() == np.ascontiguousarray(other).tobytes()
