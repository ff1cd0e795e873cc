"""Object files of models, in the memory of this process, called as a program in C would."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from ctypes import CFUNCTYPE, c_int32, c_int64, c_void_p
from typing import Any

import numpy as np
from tract_cpu.ahead.object_file import CompiledModel, compile_model
from tract_cpu.ahead.targets import ObjectTarget, target_named
from tract_cpu.aligned import ALIGNMENT, aligned
from tract_llvm.objects.target import llvm, machine_for

from tract_core.dims import evaluate
from tract_core.model.typed import TypedModel

UNFIT = 2
"""What runs give whose sizes cannot be."""

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


class _Linked:
    """The functions of an object, and ``more``, which are there as long as this is."""

    def __init__(self, found: CompiledModel, target: ObjectTarget, *more: str) -> None:
        self._name, self._linker = (
            found.name,
            llvm.create_lljit_compiler(machine_for(target.isa, target.triple), use_jit_link=True),
        )
        library = llvm.JITLibraryBuilder().add_object_img(found.code).add_current_process()
        for one in ("start", "run", *more):
            library = library.export_symbol(f"{found.name}_{one}")
        self._tracker = library.link(self._linker, found.name)

    def address(self, of: str) -> int:
        return self._tracker[f"{self._name}_{of}"]

    def function(self, of: str, gives: Any, *takes: Any) -> Callable[..., Any]:
        return CFUNCTYPE(gives, *takes)(self.address(of))


def linked_by_llvm(found: CompiledModel, target: ObjectTarget, *more: str) -> LinkedObject:
    """An object for this machine. ``more``: what further functions do."""
    linked, arrays = _Linked(found, target, *more), [c_void_p] * len(found.arrays)
    start, run = linked.function("start", None, c_void_p), linked.function("run", c_int32, c_void_p, *arrays)
    made = LinkedObject(found, start, run)
    made.addresses |= {one: linked.address(one) for one in more}
    made.held = linked
    return made


class OpenObject:
    """One object whose sizes are open, with memory that is as large as the largest run so far wanted."""

    def __init__(self, model: TypedModel, target: str = "native") -> None:
        chosen = target_named(target)
        self.found = compile_model(model, chosen, "model")
        self._linked = _Linked(self.found, chosen, "memory", "shapes")
        sizes, arrays = [c_int64] * len(self.found.sizes), [c_void_p] * len(self.found.arrays)
        self.bytes = self._linked.function("memory", c_int64, *sizes)
        """How many a run works in, by its sizes."""
        self._shapes = self._linked.function("shapes", c_int32, *sizes, c_void_p)
        self._start = self._linked.function("start", None, c_void_p)
        self._run = self._linked.function("run", c_int32, c_void_p, *sizes, *arrays)
        self.memory = aligned(np.empty, [0], np.uint8)

    def run(self, sizes: Mapping[str, int], *inputs: np.ndarray) -> list[np.ndarray] | int:
        """The outputs; what it gives where it could not be run. It is run where sizes cannot be, too."""
        values = [sizes[name] for name in self.found.sizes]
        wanted, given = self.bytes(*values), [np.ascontiguousarray(one) for one in inputs]
        outputs = self.outputs(sizes) if wanted else None
        if self.memory.size < max(wanted, self.found.memory):
            self.memory = aligned(np.empty, [max(wanted, self.found.memory)], np.uint8)
            self.memory[:] = FILLED
            self._start(self.memory.ctypes.data)
        arrays = [one.ctypes.data for one in given] + [one.ctypes.data for one in outputs or []]
        arrays += [0] * (len(self.found.arrays) - len(arrays))
        refused = self._run(self.memory.ctypes.data, *values, *arrays)
        assert (refused == UNFIT) == (wanted == 0) == (outputs is None)
        return refused or outputs or []

    def outputs(self, sizes: Mapping[str, int]) -> list[np.ndarray] | None:
        """Arrays for what a run gives; ``None`` where sizes cannot be these."""
        facts = [fact for _, fact in self.found.arrays]
        shapes = np.empty(sum(len(fact.shape) for fact in facts), np.int64)
        if self._shapes(*(sizes[name] for name in self.found.sizes), shapes.ctypes.data):
            return None
        left = iter(shapes.tolist())
        sizes_of = [[next(left) for _ in fact.shape] for fact in facts]
        given = self.found.inputs
        return [np.empty(one, fact.datum_type.storage.numpy) for one, fact in zip(sizes_of, facts, strict=True)][given:]


def outputs_of(
    found: CompiledModel, sizes: Mapping[str, int] | None = None, *, everything: bool = False
) -> list[np.ndarray]:
    """Arrays for what an object gives; ``everything``: for what it is given, too, before them."""
    return [_like(fact, sizes or {}) for _, fact in found.arrays[0 if everything else found.inputs :]]


def _like(fact: Any, sizes: Mapping[str, int]) -> np.ndarray:
    shape = [evaluate(size, sizes) for size in fact.shape]
    return np.empty(shape, fact.datum_type.storage.numpy)


def same(found: Sequence[np.ndarray] | int | None, wanted: Sequence[np.ndarray]) -> None:
    """They are the same to the bit."""
    assert isinstance(found, Sequence)
    for one, other in zip(found, wanted, strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        assert one.tobytes() == np.ascontiguousarray(other).tobytes()
