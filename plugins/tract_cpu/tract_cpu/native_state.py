"""The state of a model that runs as one native call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tract_core.errors import GraphError
from tract_core.limits import check_run_time
from tract_cpu.native.repeat import Repeat, look_closer

if TYPE_CHECKING:
    from tract_core.plugins.keys import Array
    from tract_cpu.execution import Execution
    from tract_cpu.plan import CpuPlan

_ARRAYS: Final[Any] = (np.ndarray, np.generic)


class OwnMemory:
    """The part of a state that has the memory of its turns, and of what is kept from one to the next."""

    __slots__ = ("_execution", "_memory", "_plan")

    def __init__(self, plan: CpuPlan) -> None:
        self._plan = plan
        self._execution: Execution | None = None
        self._memory = plan.new_memory()

    def reset(self) -> None:
        """Back to a fresh state."""
        self.look_closer()
        if self._memory is not None:
            self._memory.reset()

    def freeze(self) -> dict[int, Any]:
        """What nodes keep, by their ids: a snapshot that can be pickled, and thawed any number of times."""
        return {} if self._memory is None else self._memory.freeze()

    def thaw(self, frozen: dict[int, Any]) -> None:
        """Go back to a snapshot. Raises GraphError where it is of other nodes than these."""
        self.look_closer()
        if frozen if self._memory is None else self._memory.thaw(frozen):
            raise GraphError("the frozen state belongs to another model")

    def look_closer(self) -> None:
        """Have the next turn look at its inputs again, and at where that lies which is kept."""
        if self._execution is not None:
            self._execution.shapes = None

    def __del__(self) -> None:
        if self._execution is not None:
            self._plan.give_back(self._execution)


class NativeState(OwnMemory):
    """The state of a model that is one native call. ``repeat``: a turn like the last one, by `Repeating`."""

    __slots__ = ("repeat",)

    def __init__(self, plan: CpuPlan) -> None:
        super().__init__(plan)
        self.repeat: Repeat = look_closer

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
    ) -> list[Array]:
        """One turn. ``out``: arrays to fill. ``symbols``: the values of the symbols of the models around this one.

        What was checked for arrays of the same types and shapes is not checked again, and the memory that stays is
        where it was. Raises InputError when the arrays do not fit, RunError when a tensor would be too large.
        """
        plan = self._plan
        whole = symbols is None  # operators give their bodies parts of arrays
        inputs = [one if whole and one.__class__ is np.ndarray else readable(one) for one in inputs]
        execution = self._execution or plan.idle_execution()
        shapes = [array.shape for array in inputs]
        known = execution is not None and symbols == execution.given and shapes == execution.shapes
        if execution is None or not known or [array.dtype for array in inputs] != plan.input_types:
            bound = plan.turn.bind(inputs, symbols)
            if execution is None or execution.symbols != bound:
                self._execution = execution = None
                self.repeat = look_closer
                plan.turn.check(bound)
                execution = plan.new_execution(bound)
            if self._memory is not None:
                self._memory.pass_to(execution)
            plan.expect(execution, shapes, symbols)
            known = self._memory is None  # a state with memory gets ready in its second turn, if it has one
        if known and execution.may_repeat and execution.repeat is look_closer:
            plan.get_ready(execution, shapes, [] if self._memory is None else self._memory.tensors())
        self._execution = execution
        self.repeat = execution.repeat
        execution.begin()
        if out is None:
            outputs = [output.array() for output in execution.outputs.values()]
        else:
            plan.turn.outputs.check(out, execution.symbols)
            outputs = list(out)
        if plan.is_timed:
            with plan.turn.going():
                check_run_time()
                self._call(execution, inputs, outputs)
        else:
            self._call(execution, inputs, outputs)
        return outputs

    def _call(self, execution: Execution, inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        plan = self._plan
        plan.call_all(execution, [*inputs, *outputs])
        if plan.may_refuse and (refused := execution.refused()) is not None:
            self._go_on(execution, inputs, outputs, refused)

    def _go_on(self, execution: Execution, inputs: Sequence[Array], outputs: Sequence[Array], refused: int) -> None:
        if self._memory is not None:
            self.look_closer()  # the host may change what is kept
        self._plan.with_host(self._memory).go_on_after(refused, execution, inputs, outputs)

    def look_closer(self) -> None:
        """Have the next turn use other memory than the ones before."""
        self.repeat = look_closer
        super().look_closer()


def readable(array: Any) -> Any:
    """An array, or a single number of NumPy, as native code can read it; what only the host can hold, as it is."""
    if not isinstance(array, _ARRAYS):
        return array
    flags = array.flags
    if array.__class__ is np.ndarray and flags.c_contiguous and flags.aligned:
        return array
    found: Array = np.require(array, requirements=["C", "A"])
    return array if found.dtype.kind == "O" else found
