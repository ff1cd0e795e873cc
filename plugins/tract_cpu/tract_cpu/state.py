"""One execution of a compiled model: its arena, the arguments of its kernels, and what its nodes keep between turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from tract_llvm.program.storages import Kind
from tract_llvm.program.views import View, seen

from tract_core.dims import evaluate
from tract_core.errors import RunError
from tract_core.limits import RunBudget, check_run_time
from tract_core.runtime.held import Held, owners_of
from tract_core.runtime.host import HostState
from tract_core.runtime.parts import Part
from tract_cpu.kernels.control import CONTROL
from tract_cpu.native.executor import NEXT
from tract_cpu.native.objects import address_of
from tract_cpu.native_state import readable
from tract_cpu.program.program import HostStep, NativeStep, ReadStep, Step

if TYPE_CHECKING:
    from tract_core.model.graph import OutletId
    from tract_core.model.session import BodyPlan
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.runtime.protocol import Observer
    from tract_cpu.execution import Execution
    from tract_cpu.kept import KeptMemory
    from tract_cpu.plan import CpuPlan


_WRITTEN: Final = frozenset({Kind.ARENA, Kind.OUTPUT, Kind.KEPT})
"""Where steps write tensors."""

_CHANGING: Final = frozenset({Kind.ARENA, Kind.KEPT})
"""Memory whose content is another one soon."""

_LASTING: Final = frozenset({Kind.ARENA, Kind.CONSTANT})
"""Memory that lies at the same place in all turns of an execution."""


class Workplace:
    """What the turns of one state work with, when the host has a part in them.

    ``execution``: for the sizes of the last turn, as far as its inputs told them.
    """

    __slots__ = ("execution", "host")

    def __init__(self, host: HostState) -> None:
        self.host = host
        self.execution: Execution | None = None


class CpuState:
    """The state of a model of which some nodes are left to the host, or at which somebody looks node by node."""

    def __init__(
        self,
        plan: CpuPlan,
        plan_of: Callable[[TypedModel], BodyPlan] | None = None,
        memory: KeptMemory | None = None,
    ) -> None:
        """``plan_of``: who runs the bodies of operators left to the host, if not the plan.

        ``memory``: what native loops keep.
        """
        self.plan = plan
        self._lends = plan_of is None
        self._workplace = plan.idle_workplace() if plan_of is None else Workplace(HostState(plan.model, plan_of))
        self.host = self._workplace.host
        self.memory = memory or plan.new_memory()

    def run(
        self,
        inputs: Sequence[Array],
        out: Sequence[Array] | None = None,
        *,
        symbols: Mapping[str, int] | None = None,
        observe: Observer | None = None,
        only_times: bool = False,
    ) -> list[Array]:
        """One turn. ``out``: arrays to fill. ``symbols``: the values of the symbols of the models around this one.

        ``only_times``: ``observe`` is told of every part, those of native bodies too, and sees no tensors: to copy them
        would count as time of the parts. Raises InputError when the arrays do not fit, RunError, with the node's name,
        when a node fails.
        """
        plan = self.plan
        whole = symbols is None  # operators give their bodies parts of arrays
        inputs = [one if whole and one.__class__ is np.ndarray else readable(one) for one in inputs]
        execution = self._execution_for(inputs, symbols)
        if out is not None:
            plan.turn.outputs.check(out, execution.symbols)
        self.host.begin(execution.symbols)
        execution.begin()
        if self.memory is not None:
            self.memory.pass_to(execution)
        with plan.turn.going(self.host) as budget:
            turn = _Turn(self, execution, inputs, out, observe, budget=budget, only_times=only_times)
            outputs = turn.run()
        return outputs if out is None else plan.turn.outputs.fill(out, outputs)

    def _execution_for(self, inputs: Sequence[Array], symbols: Mapping[str, int] | None) -> Execution:
        """Memory and tables for these inputs: those that there are, or new ones, once the sizes fit."""
        place, plan, shapes = self._workplace, self.plan, [array.shape for array in inputs]
        found = place.execution or plan.idle_execution()
        known = symbols is None and plan.turn.is_told_by_shapes
        if found is not None and known and shapes == found.shapes and _types(inputs) == plan.turn.inputs.types:
            place.execution = found
            return found
        bound = plan.turn.bind(inputs, symbols, self.host)
        if found is None or found.symbols != bound:
            found = place.execution = None
            plan.turn.check(bound)
            found = plan.new_execution(bound)
        found.shapes = shapes if symbols is None else None
        place.execution = found
        return found

    def later(self, before: Execution, symbols: Mapping[str, int]) -> Execution:
        """What the run goes on with, as more sizes are known; as in a turn before, where that was of the same ones."""
        key = tuple(self.plan.own_symbols(before.stage, symbols).items())
        first = self._workplace.execution
        assert first is not None  # the run began with it
        found = before.later.get(key) or self.plan.later_execution(first, before, key, symbols)
        found.begin()
        return found

    def go_on_after(
        self, refused: int, execution: Execution, inputs: Sequence[Array], outputs: Sequence[Array]
    ) -> None:
        """Leave to the host what a kernel refused in a turn, and do the rest of its stage.

        ``outputs``: what the turn fills, as far as it is there.
        """
        self.host.begin(execution.values)
        with self.plan.turn.going() as budget:
            turn = _Turn(self, execution, inputs, outputs, None, budget=budget)
            turn.take_outputs(outputs)
            turn.go_on_after(refused, execution.steps)

    def reset(self) -> None:
        """Back to a fresh state."""
        self.host.reset()
        if self.memory is not None:
            self.memory.reset()

    def freeze(self) -> dict[int, Any]:
        """What each node keeps: a snapshot that can be pickled, sent elsewhere, and thawed any number of times."""
        frozen = self.host.freeze()
        return frozen if self.memory is None else {**frozen, **self.memory.freeze()}

    def thaw(self, frozen: dict[int, Any]) -> None:
        """Go back to a snapshot of a state of the same model."""
        others = frozen if self.memory is None else self.memory.thaw(frozen)
        self.host.thaw(others, self.plan.details.nodes)

    def __del__(self) -> None:
        if self._lends:
            self.plan.give_back_workplace(self._workplace)
        elif self._workplace.execution is not None:
            self.plan.give_back(self._workplace.execution)


def _types(arrays: Sequence[Array]) -> list[np.dtype[Any]]:
    return [array.dtype for array in arrays]


class _Turn:
    """One turn that is not one native call: host steps are in it, or somebody looks on."""

    def __init__(
        self,
        state: CpuState,
        execution: Execution,
        inputs: Sequence[Array],
        out: Sequence[Array] | None,
        observe: Observer | None,
        *,
        budget: RunBudget,
        only_times: bool = False,
    ) -> None:
        """``budget``: of the run.

        ``only_times``: the observer is told of every part, those of bodies too, without tensors.
        """
        self.only_times = only_times
        self.state = state
        self.execution = execution
        self.plan, self._details = state.plan, state.plan.details
        self.observe = observe
        self.symbols = state.host.session.symbols
        """The values of symbols that are known by now, and numbers that were read for steps."""
        self.inputs = inputs
        self.hosted: dict[OutletId, Array] = dict(zip(self._details.model.inputs, inputs, strict=True))
        """Inputs, and what the host gave, by outlet."""
        self.arrays: dict[int, Array] = {}
        """What was passed, by the numbers of its storages (`Layout.number`)."""
        budget.room.taken += execution.bytes_so_far
        self._room, self._held = budget.room, Held(budget.room, self._details.owners, owners_of(inputs))
        for number, array in enumerate(inputs):
            self._pass(number, array)
        self._make_outputs(out)

    def run(self) -> list[Array]:
        """The outputs."""
        if self.observe is not None:
            self._one_by_one()
        else:
            for piece, gone in zip(self._details.pieces, self._details.gone, strict=True):
                check_run_time()
                if isinstance(piece, range):
                    self._native(piece.start, piece.stop)
                else:
                    self._on_host(piece)
                for outlet, number in gone:
                    self._held.let_go(self.hosted.pop(outlet))
                    del self.arrays[number]
        return [
            self._output(outlet, view)
            for outlet, view in zip(self._details.model.outputs, self._details.program.outputs, strict=True)
        ]

    def go_on_after(self, refused: int, last: int) -> None:
        """Leave to the host what a kernel refused, then run the native steps behind it up to ``last``.

        A step without nodes stands before the one that it helps, whose nodes are left to the host; one in a body leaves
        the operator with the body to it. Raises what the node executor raises.
        """
        layout = self.plan.layout
        inlined = self._details.inlined_at(refused)
        if inlined is not None:
            self._by_host((inlined.node,))
            self._native(layout.numbers[inlined.last], last)
            return
        while not self._details.steps[refused].nodes:
            refused += 1
        self._by_host(self._details.steps[refused].nodes)
        self._native(refused + 1, last)

    def _by_host(self, nodes: Sequence[int]) -> None:
        """Leave nodes to the host that were native, and write what the last of them gives where others look for it."""
        memory, host = self.state.memory, self.state.host
        for number in nodes:
            node = self._details.by_number[number]
            inputs = [
                self._input(outlet, self._details.program.views.get(outlet), keeps=False) for outlet in node.inputs
            ]
            keeps = memory is not None and memory.keeps(number)
            if memory is not None and keeps:
                host.state_of(node).thaw(memory.frozen(number))
            results = dict(zip(self._details.model.nodes[number].outlets(), node.run(host, inputs), strict=True))
            if memory is not None and keeps:
                memory.keep(number, host.state_of(node).freeze())
            self.hosted.update(results)
        for outlet in self._details.model.nodes[nodes[-1]].outlets():
            self._write(outlet, self.hosted[outlet])
        for number in nodes:
            for outlet in self._details.model.nodes[number].outlets():
                del self.hosted[outlet]

    def _native(self, first: int, last: int) -> None:
        if first < last:
            self.plan.call_steps(self.execution, first, last)
            refused = self.execution.refused()
            if refused is not None:
                self.go_on_after(refused, last)

    def _one_by_one(self) -> None:
        """Step by step, on the way that loops and branches take."""
        steps, place = self._details.program.steps, 0
        while place < len(steps):
            check_run_time()
            place = self._step(place, steps[place])

    def _step(self, place: int, step: Step) -> int:
        """One step. Returns the place of the next one."""
        if isinstance(step, HostStep | ReadStep):
            self._on_host(step)
            return place + 1
        if isinstance(step, NativeStep):
            number = self.plan.layout.numbers[place]
            whole = None if self.only_times else self._details.inlined_at(number)
            if whole is not None:
                self._native(number, self.plan.layout.numbers[whole.last])
                return whole.last
            self.plan.call_steps(self.execution, number, number + 1)
            refused = self.execution.refused()
            if refused is None and step.tasks == CONTROL:
                return self._details.behind(int(self.execution.course[NEXT]) - 1)
            inlined = None if refused is None else self._details.inlined_at(refused)
            if inlined is not None:
                self._by_host((inlined.node,))
                return inlined.last
            if refused is not None:
                self.go_on_after(refused, number + 1)
        if step.body and self.only_times and step.nodes and self.observe is not None:
            self.observe(Part(step.nodes, step.body), {})
        elif not step.body:
            for outlet, array in self._show(step).items():
                self._exchange(outlet, array)
        return place + 1

    def _exchange(self, outlet: OutletId, array: Array) -> None:
        view = self._details.program.views.get(outlet)
        in_memory = outlet in self._details.program.blocked
        if not in_memory and (view is None or view.storage.kind not in _WRITTEN):
            shown = self.array(outlet, view)
            if shown.tobytes() == array.tobytes():
                return  # as it was read from what was exchanged before
            where = f"node {self._details.model.nodes[outlet.node].name!r}"
            hint = "exchange what comes before it, or use the runtime 'reference'"
            raise RunError("its result cannot be exchanged: it is a view on another tensor", where=where, hint=hint)
        self._write(outlet, array)

    def _write(self, outlet: OutletId, array: Array) -> None:
        """Write a tensor where the step that computes it writes it."""
        blocked = self._details.program.blocked.get(outlet)
        if blocked is not None:
            self.memory(blocked.view)[...] = blocked.form.blocked_array(array)
        else:
            self.array(outlet, self._details.program.views.get(outlet))[...] = array

    def _on_host(self, step: HostStep | ReadStep) -> None:
        """A step that is not native. Where it tells sizes, the run goes on with what these need."""
        if isinstance(step, HostStep):
            self._host(step)
        else:
            self._read(step)
        stages, stage = self._details.program.stages, self.execution.stage
        if stage < len(stages) and self._details.program.steps[stages[stage].place] is step:
            self.execution = self.state.later(self.execution, self.symbols)
            self._room.taken += self.execution.bytes
            self._make_outputs(None)

    def _make_outputs(self, out: Sequence[Array] | None) -> None:
        """Arrays for the outputs whose sizes are known from now on. ``out``: those of the caller, if he has some."""
        first = len(self.inputs)
        for number, output in self.execution.outputs.items():
            self._pass(first + number, output.array() if out is None else out[number])

    def take_outputs(self, outputs: Sequence[Array]) -> None:
        """Those that stages before filled are there, too."""
        for number, array in enumerate(outputs, start=len(self.inputs)):
            self._pass(number, array)

    def _read(self, step: ReadStep) -> None:
        """Read sizes and numbers, as the host would before it computes the node."""
        arrays = [self.memory(view) for view in step.inputs]
        reading = self._details.readings[step.node.node]
        reading.read(arrays, self.symbols)
        if step.node.binds:
            self.plan.turn.check_after(step.node, self.symbols)

    def _host(self, step: HostStep) -> None:
        node, host, call = step.node, self.state.host, self._details.calls[step.node.node]
        inputs = [self._input(outlet, view, keeps=call.keeps) for outlet, view in call.inputs]
        outputs = node.run(host, inputs)
        if node.binds:
            self.plan.turn.check_after(node, host.session.symbols)
        for (outlet, number), array in zip(call.results, outputs, strict=True):
            self._hold(outlet, number, array)
        if self.observe is not None:
            for outlet, array in self._show(step).items():
                self._hold(outlet, call.results[outlet.slot][1], array)

    def _hold(self, outlet: OutletId, number: int, array: Any) -> None:
        """What the host gave is there for those that read it."""
        self.hosted[outlet] = kept = self._kept(array)
        self._held.take(kept)
        self._pass(number, kept)

    def _kept(self, array: Any) -> Array:
        """What an operator gave, as native code can read it, and outside of memory whose content changes."""
        found: Any = readable(array)
        if found.__class__ is not np.ndarray or found.flags.owndata:
            return found
        memory = self.state.memory
        changes = self.execution.arena.may_hold(found) or (memory is not None and memory.may_hold(found))
        return found.copy() if changes else found

    def _by_outlet(self, outlet: OutletId) -> Array | None:
        """An input, a constant, or what the host gave; ``None`` for what is only in native memory."""
        found = self.hosted.get(outlet)
        return self._details.constants.get(outlet) if found is None else found

    def _input(self, outlet: OutletId, view: View | None, *, keeps: bool) -> Array:
        found = self._by_outlet(outlet)
        if found is not None:
            return found
        array = self._seen(outlet, view)
        if not keeps or view is None or view.storage.kind not in _CHANGING:
            return array
        copy: Array = array.copy()
        return copy

    def _seen(self, outlet: OutletId, view: View | None) -> Array:
        """A tensor that is read: in memory which is the same in every turn of an execution it is looked up once."""
        if view is None or view.storage.kind not in _LASTING:
            return self.array(outlet, view)
        found = self.execution.seen.get(outlet)
        if found is None:
            found = self.execution.seen[outlet] = self.memory(view)
            found.flags.writeable = False
        return found

    def array(self, outlet: OutletId, view: View | None) -> Array:
        """A tensor, as a view on the memory where it is; one that is only there in blocks of channels is copied."""
        if view is not None:
            return self.memory(view)
        details = self._details
        blocked = details.program.blocked.get(outlet)  # what neither shows came from the host
        if blocked is None:  # but for weights in blocks, which nobody unpacked
            node = details.by_number[outlet.node]
            return node.run(self.state.host, [self._input(one, None, keeps=False) for one in node.inputs])[outlet.slot]
        kind = details.model.outlet_fact(outlet).datum_type.storage.numpy
        return blocked.form.plain_array(self.memory(blocked.view)).astype(kind, copy=False)

    def memory(self, view: View) -> Array:
        """The memory of a view."""
        storage, begin = view.storage, 0
        if storage.kind is Kind.ARENA:
            arena = self.plan.layout.arena.value
            memory, begin = self.execution.arena.slot(arena.slot_of[storage.number])
            begin += evaluate(arena.offset_of[storage.number], self.symbols)
        elif storage.kind is Kind.KEPT:
            assert self.state.memory is not None  # somebody keeps something
            memory, begin = self.state.memory.tensor(storage.number)
        elif storage.kind is Kind.CONSTANT:
            memory: Any = self._details.program.constants[storage.number]
        else:
            memory = self.arrays[self.plan.layout.number(storage)]
        return seen(view, memory, self.symbols, begin)

    def _pass(self, number: int, array: Any) -> None:
        """Have a storage whose addresses are passed be an array, by its number among them."""
        self.arrays[number] = array
        if array.__class__ is np.ndarray:
            self.execution.passed[number] = address_of(array)

    def _output(self, outlet: OutletId, view: View | None) -> Array:
        if view is not None and view.storage.kind is Kind.OUTPUT:
            return self.arrays[len(self.inputs) + view.storage.number]
        found = self._by_outlet(outlet)
        return self.array(outlet, view) if found is None else found

    def _show(self, step: Step) -> Mapping[OutletId, Array]:
        """Let the observer see what leaves a step. Returns what it gives instead."""
        part, views = self._details.results_of(step)
        if self.observe is None or not part.nodes:
            return {}
        if self.only_times:
            return self.observe(part, {}) or {}
        hosted = self.hosted
        late = self._details.program.blocked  # what is born in blocks is not there as a plain tensor yet
        shown = {
            outlet: hosted[outlet] if outlet in hosted else self.array(outlet, None if outlet in late else view)
            for outlet, view in views.items()
        }
        return self.observe(part, {outlet: array.copy() for outlet, array in shown.items()}) or {}
