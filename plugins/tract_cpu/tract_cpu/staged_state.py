"""The state of a model that is native code but for sizes that are read in the middle of its runs.

A turn is one native call for each stage. What is read between two of them is compared with what was read in turns
before: where it is the same, the run goes on with memory and tables that are there, and nothing is checked again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tract_llvm.program.storages import Kind
from tract_llvm.program.views import View, seen

from tract_core.dims import evaluate
from tract_cpu.native_state import OwnMemory, readable

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array
    from tract_cpu.details import StageReading
    from tract_cpu.execution import Execution
    from tract_cpu.plan import CpuPlan
    from tract_cpu.state import CpuState

_NOTHING: Final[Any] = np.empty(0)
"""What is passed in the place of outputs whose sizes are not known yet."""


class StagedState(OwnMemory):
    """The state of a model that runs in stages."""

    __slots__ = ("_host",)

    def __init__(self, plan: CpuPlan) -> None:
        super().__init__(plan)
        self._host: CpuState | None = None

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
    ) -> list[Array]:
        """One turn. ``out``: arrays to fill. ``symbols``: the values of the symbols of the models around this one.

        Raises InputError when the arrays do not fit, RunError, with the node's name, for sizes that cannot be.
        """
        if symbols is not None:  # the limits of a run around this one count
            self.look_closer()
            return self._with_host().run(inputs, out, symbols=symbols)
        plan = self._plan
        inputs = [one if one.__class__ is np.ndarray else readable(one) for one in inputs]
        execution = self._execution = self._ready_for(inputs)
        if out is not None:
            plan.turn.outputs.check(out, execution.symbols)
        arrays, stage = [*inputs, *[_NOTHING] * plan.ready.outputs], execution
        self._stage(stage, arrays)
        for reading in plan.readings:
            stage = self._after(stage, reading, arrays)
            self._stage(stage, arrays)
        outputs = arrays[len(inputs) :]
        return outputs if out is None else plan.turn.outputs.fill(out, outputs)

    def _ready_for(self, inputs: Sequence[Array]) -> Execution:
        """Memory and tables for the first stage: those that there are, or new ones, once the sizes were checked."""
        plan, shapes = self._plan, [array.shape for array in inputs]
        execution = self._execution or plan.idle_execution()
        known = execution is not None and shapes == execution.shapes
        if execution is not None and known and [array.dtype for array in inputs] == plan.input_types:
            return execution
        bound = plan.turn.bind(inputs)
        if execution is None or execution.symbols != bound:
            self._execution = execution = None
            plan.turn.check(bound)
            execution = plan.new_execution(bound)
        if self._memory is not None:
            self._memory.pass_to(execution)
        execution.shapes = shapes
        return execution

    def _stage(self, execution: Execution, arrays: list[Array]) -> None:
        """Run the native steps of a stage. ``arrays``: inputs and outputs, to which those are added that it fills."""
        plan = self._plan
        for number, output in execution.outputs.items():
            arrays[number - plan.ready.outputs] = output.array()
        if execution.first == execution.steps:
            return
        execution.begin()
        plan.call_all(execution, arrays)
        if plan.may_refuse and (refused := execution.refused()) is not None:
            self.look_closer()  # the host may change what is kept
            count = len(arrays) - plan.ready.outputs
            self._with_host().go_on_after(refused, execution, arrays[:count], arrays[count:])

    def _after(self, execution: Execution, reading: StageReading, arrays: Sequence[Array]) -> Execution:
        """What the run goes on with behind a stage."""
        found = [
            arrays[place] if place is not None else self._looked_at(execution, view, arrays)
            for view, place in zip(reading.step.inputs, reading.whole, strict=True)
        ]
        key = tuple([array.tobytes() for array in found])
        return execution.later.get(key) or self._later(execution, reading, found, key)

    def _later(
        self, execution: Execution, reading: StageReading, found: Sequence[Array], key: tuple[bytes, ...]
    ) -> Execution:
        """The same for sizes that came up for the first time: they are checked. Raises RunError."""
        plan, node, values = self._plan, reading.step.node, dict(execution.values)
        with plan.turn.going() as budget:
            budget.room.taken += execution.bytes_so_far
            reading.read(found, values)
            if node.binds:
                plan.turn.check_after(node, values)
            assert self._execution is not None  # the run began with it
            return plan.later_execution(self._execution, execution, key, values)

    def _looked_at(self, execution: Execution, view: View, arrays: Sequence[Array]) -> Array:
        """A tensor that is read; where its memory stays in one place, it is looked up once."""
        found = execution.looked_at.get(id(view))
        if found is None:
            memory, begin = self._memory_of(execution, view, arrays)
            found = seen(view, memory, execution.values, begin)
            if view.storage.kind in _LASTING:
                execution.looked_at[id(view)] = found
        return found

    def _memory_of(self, execution: Execution, view: View, arrays: Sequence[Array]) -> tuple[Any, int]:
        """The memory of a storage, and from which byte on it lies there."""
        storage, plan = view.storage, self._plan
        if storage.kind is Kind.ARENA:
            arena = plan.layout.arena.value
            memory, begin = execution.arena.slot(arena.slot_of[storage.number])
            return memory, begin + evaluate(arena.offset_of[storage.number], execution.values)
        if storage.kind is Kind.KEPT:
            assert self._memory is not None  # somebody keeps something
            return self._memory.tensor(storage.number)
        if storage.kind is Kind.CONSTANT:
            return plan.layout.constants[storage.number], 0
        return arrays[plan.layout.number(storage)], 0

    def _with_host(self) -> CpuState:
        """The same state for turns in which the host has a part."""
        if self._host is None:
            self._host = self._plan.with_host(self._memory)
        return self._host


_LASTING: Final = frozenset({Kind.ARENA, Kind.CONSTANT})
"""Memory that lies at the same place in all turns of an execution."""
