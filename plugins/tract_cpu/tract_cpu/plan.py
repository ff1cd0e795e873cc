"""A compiled model, and what its executions keep.

The program of a model is cut where a node is left to the host; each piece between is one native call. A state owns its
arena, so that several states run at once. Turns without the host need little of all that is known of the model; what
they need is `Ready`, and can be kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from math import inf
from time import monotonic, perf_counter_ns
from typing import TYPE_CHECKING, Final

import numpy as np
from tract_llvm.isa import Isa
from tract_llvm.llvm import LOCK
from tract_llvm.objects.library import library_of
from tract_llvm.program.storages import Kind, Storage

from tract_core.dims import evaluate
from tract_core.errors import TractError
from tract_core.later import Later, already
from tract_core.limits import check_room, check_run_time, run_until, seconds_until
from tract_cpu.execution import Execution, LaterKey
from tract_cpu.native.executor import executor, helper
from tract_cpu.native.objects import address_of, are_known
from tract_cpu.native.pool import pool
from tract_cpu.native.repeat import Repeat, give_back, look_closer, repeat_of, take
from tract_cpu.native.sharing import ALWAYS, Sharing
from tract_cpu.native_state import NativeState
from tract_cpu.target import USUAL, Rounding, Target

if TYPE_CHECKING:
    from tract_core.model.session import BodyPlan
    from tract_core.model.typed import TypedModel
    from tract_core.plugins.keys import Array
    from tract_core.runtime.explain import Explanation
    from tract_core.runtime.host import Bodies
    from tract_core.runtime.observed import ObservedState
    from tract_core.runtime.protocol import Observer, Timing
    from tract_core.runtime.work import Ceilings
    from tract_cpu.compile import Planned
    from tract_cpu.details import Details, StageReading
    from tract_cpu.kept import KeptMemory
    from tract_cpu.program.program import NativeStep, Program
    from tract_cpu.ready import Ready
    from tract_cpu.staged_state import StagedState
    from tract_cpu.state import CpuState, Workplace

MOST_IDLE: Final = 4
"""How many executions a plan keeps for states to come."""

MOST_IDLE_BYTES: Final = 16 << 20
MOST_IDLE_SHARE: Final = 64
"""How many bytes each of them takes at most once there is another one, and which part of what a run may take."""

MOST_LATER: Final = 128
"""For how many sizes that came up in the middle of runs it is kept what these went on with."""

MOST_SIZES: Final = 64
"""Of how many sizes a plan remembers how runs with them are best done."""


class CpuPlan:
    """A model, compiled. Immutable: many threads may spawn states from it."""

    def __init__(
        self,
        model: TypedModel,
        isa: Isa,
        threads: int = 1,
        known: frozenset[str] = frozenset(),
        *,
        rounding: Rounding = USUAL,
    ) -> None:
        """``known``: symbols of models around, whose values every run is given. ``rounding``: as in `Target`."""
        details = _details().of(model, Target(isa, threads, known, rounding))
        self._begin(details.target, details.ready, library_of(isa).addresses(details.codes))
        self._details = already(details)

    @staticmethod
    def restored(
        target: Target, ready: Ready, found: Later[Planned] | None, model: Callable[[], TypedModel]
    ) -> CpuPlan | None:
        """The plan that this is kept of; ``None`` where one of its native functions is not kept any more.

        ``found``: with its nodes, where runs need them. ``model``: gives the one that was compiled, when it is asked.
        """
        addresses = library_of(target.isa).kept(ready.functions)
        if addresses is None:
            return None
        plan = CpuPlan.__new__(CpuPlan)
        plan._begin(target, ready, addresses)
        plan._remade = Later(
            lambda: CpuPlan(model(), target.isa, target.threads, target.known, rounding=target.rounding)
        )
        if found is not None:
            plan._details = Later(lambda: _details()(found.value, target, ready.layout))
        return plan

    def _begin(self, target: Target, ready: Ready, addresses: Sequence[int]) -> None:
        """``addresses``: of the native functions."""
        self._details: Later[Details] | None = None
        self._remade: Later[CpuPlan] | None = None
        self.isa, self.threads, self.target, self.ready = target.isa, target.threads, target, ready
        self.turn, self.layout, self.filled = ready.turn, ready.layout, ready.filled
        self.arrays = len(ready.inputs) + ready.outputs if ready.is_one_call or ready.is_in_stages else 0
        self.runs_in_one_call, self.input_types = ready.is_one_call, list(ready.inputs)
        self.may_refuse, self.is_timed = any(ready.layout.may_refuse), ready.turn.seconds < inf
        self._repeats = ready.is_one_call and ready.lasts and are_known()
        self.kernels = addresses[:-4]
        self._constants = np.array([address_of(one) for one in ready.layout.constants], np.int64)
        run, self._steps_at, help_, self._repeat_at = addresses[-4:]
        self.call, self._steps = executor(run, self.arrays), executor(self._steps_at, 0)
        self._help = helper(help_)
        self.repeat: Repeat = look_closer
        """A turn on a fresh state that is like the last one, by `Repeating`; none where states keep something."""
        self._repeated: Execution | None = None
        self._sharing = dict[tuple[tuple[str, int], ...], Sharing]()
        self._idle: list[Execution] = []
        self._idle_workplaces: list[Workplace] = []

    @property
    def whole(self) -> CpuPlan:
        """The plan with its nodes: this one, or one of the same model that is compiled when it is asked for."""
        return self if self._details is not None or self._remade is None else self._remade.value

    @property
    def details(self) -> Details:
        """What is known of the model by its nodes."""
        details = self.whole._details
        assert details is not None  # that is what whole plans have
        return details.value

    @property
    def model(self) -> TypedModel:
        """The model in native form."""
        return self.details.model

    @property
    def program(self) -> Program:
        """The program."""
        return self.details.program

    @property
    def steps(self) -> Sequence[NativeStep]:
        """The native steps of the program."""
        return self.details.steps

    @cached_property
    def _bodies(self) -> Bodies:
        from tract_core.runtime.host import Bodies  # for what the host runs

        target, details = self.target, self.details
        return Bodies(
            lambda body: CpuPlan(body, target.isa, target.threads, details.known_in(body), rounding=target.rounding)
        )

    def bodies(self, body: TypedModel) -> CpuPlan:
        """The plan of a body that is left to the host, made once."""
        found = self._bodies(body)
        assert isinstance(found, CpuPlan)  # that is what is made
        return found

    @cached_property
    def readings(self) -> tuple[StageReading, ...]:
        """What is read at the end of each stage but the last one, where nothing else is done between."""
        return tuple(self.details.readings.values())

    @property
    def lent(self) -> Sequence[int]:
        """Outputs that come from the host may be inputs, or views on them; native code gives none."""
        return self.ready.lent

    def spawn(self) -> CpuState | NativeState | StagedState:
        """A fresh state."""
        if self.runs_in_one_call:
            return NativeState(self)
        if self.ready.is_in_stages:
            from tract_cpu.staged_state import StagedState  # which few models want

            return StagedState(self)
        return self.with_host()

    def with_host(self, memory: KeptMemory | None = None) -> CpuState:
        """A fresh state, in whose turns the host may have a part. ``memory``: of native code, where there is some."""
        from tract_cpu.state import CpuState  # which imports all that a host needs

        return CpuState(self, memory=memory)

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> CpuState:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        from tract_cpu.state import CpuState

        return CpuState(self.whole, plan_of)

    def spawn_observed(self, observe: Observer) -> ObservedState:
        """A fresh state, in whose turns ``observe`` sees what leaves every step, and may exchange it."""
        from tract_core.runtime.observed import ObservedState

        return ObservedState(self.spawn_with(self.whole.bodies), observe)

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        """One turn on a fresh state, and what each step took in it, those of bodies too."""
        from tract_cpu.timing import timings

        return timings(self.whole, inputs)

    def ceilings(self) -> Ceilings:
        """What this machine can do at most, with the threads of this plan: operations on f32, and reading memory."""
        from tract_cpu.ceilings import Meter

        return Meter(self.isa, 0.05).ceilings(self.threads)

    def explain(self) -> Explanation:
        """Which kernel computes which nodes, and why a node is left to the host, in bodies too."""
        return self.details.explain()

    def new_memory(self) -> KeptMemory | None:
        """What nodes keep from turn to turn in native memory, if they keep anything."""
        if not self.ready.kept:
            return None
        from tract_cpu.kept import KeptMemory

        return KeptMemory(self.ready.kept, self.layout.number(Storage(Kind.KEPT, 0)))

    def new_execution(self, symbols: Mapping[str, int], before: Execution | None = None) -> Execution:
        """Memory and tables for these sizes, which are checked for the bodies that run. Raises RunError.

        ``before``: what the stage of the run was run with that ends here, as more sizes are known now.
        """
        stage, own = 0, symbols
        if before is not None:
            stage, own = before.stage + 1, self.own_symbols(before.stage, symbols)
        for turn, runs, place in self.ready.inner_turns[stage]:
            if evaluate(runs, symbols):
                try:
                    turn.check(symbols)
                except TractError as error:
                    raise error.at(place) from error.__cause__
        if before is None:
            self._give_up_idle(symbols)
        found = Execution(
            self.layout,
            self.kernels,
            self._constants,
            self.filled[stage],
            symbols,
            threads=self.threads,
            own=own,
            before=before,
            check_room=partial(check_room, allowed=self.turn.room),
            watching=self._watching if self.is_timed else None,
        )
        if found.threads > 1:
            found.sharing = self._sharing_with(own if before is None else {**own, "": stage})
        return found

    def later_execution(
        self, first: Execution, before: Execution, key: LaterKey, symbols: Mapping[str, int]
    ) -> Execution:
        """What a run goes on with behind the stage ``before``, and does again where ``key`` comes up there.

        ``first``: what the run began with.
        """
        if first.later_count >= MOST_LATER or first.later_bytes > self._most_idle:
            first.forget_later()
        self._give_up_idle(first.symbols)
        found = before.later[key] = self.new_execution(symbols, before)
        first.later_count += 1
        first.later_bytes += found.bytes
        return found

    def _watching(self, number: int) -> int:
        """The address of a kernel that ends as soon as the run has to, for a native step by its number."""
        from tract_cpu.kernels.code import code_of

        return library_of(self.isa).address(code_of(self.steps[number].kernel, self.isa, watches=True))

    def _give_up_idle(self, symbols: Mapping[str, int]) -> None:
        """Give memory back before there is more, but for a little for the same sizes."""

        def stays(one: Execution | None) -> bool:
            return one is not None and one.symbols == symbols and not self._is_large(one)

        kept = list[Execution]()
        while (one := self.idle_execution()) is not None:  # one by one, as other threads take some meanwhile
            if stays(one):
                kept.append(one)
        self._idle += kept
        for place in list(self._idle_workplaces):
            if not stays(place.execution):
                place.execution = None
        if not stays(self._repeated):
            self.repeat, self._repeated = look_closer, None

    def own_symbols(self, stage: int, symbols: Mapping[str, int]) -> dict[str, int]:
        """The values of the symbols that come up at the end of a stage."""
        return {name: symbols[name] for name in self.ready.stages[stage] if name in symbols}

    def _sharing_with(self, symbols: Mapping[str, int]) -> Sharing:
        """What says whether runs with these sizes are shared, whoever does them."""
        if len(self._sharing) >= MOST_SIZES:
            self._sharing.clear()
        return self._sharing.setdefault(tuple(symbols.items()), Sharing())

    def idle_execution(self) -> Execution | None:
        """Memory and tables that nobody uses now, for the sizes that they say; if there are any.

        Those of turns on fresh states only where they are so large that there are no others beside them.
        """
        try:
            return self._idle.pop()
        except IndexError:
            last = self._repeated
            if last is None or not self._is_large(last) or not take(last.repeat):
                return None
            self.repeat, self._repeated = look_closer, None
            return last

    def _is_large(self, execution: Execution) -> bool:
        """Whether it takes so much memory that it is given back before there is another one."""
        return execution.bytes + execution.later_bytes > self._most_idle

    @property
    def _most_idle(self) -> int:
        """How many bytes are kept for turns that may come."""
        return min(MOST_IDLE_BYTES, self.turn.room // MOST_IDLE_SHARE)

    def idle_workplace(self) -> Workplace:
        """A workplace for a fresh state, of one that is gone if possible, without what that kept."""
        try:
            return self._idle_workplaces.pop()
        except IndexError:
            from tract_core.runtime.host import HostState
            from tract_cpu.state import Workplace

            return Workplace(HostState(self.model, self.bodies))

    def give_back_workplace(self, workplace: Workplace) -> None:
        """Whoever asks next may have it."""
        workplace.host.reset()
        if len(self._idle_workplaces) < MOST_IDLE:
            self._idle_workplaces.append(workplace)

    def call_steps(self, execution: Execution, first: int, last: int) -> None:
        """Run native steps, by their numbers, on what was passed. Raises RunError where time is up."""
        inlined = self.details.inlined_at(first)
        within = inlined is not None and self.layout.numbers[inlined.first] < first
        frame = execution.frame_within if within else execution.frame
        if execution.threads == 1 and not execution.is_watched:
            self._steps(frame, first, last, 0)
            self._go_on(execution, first, last, 1)
            return
        with _watched(execution):
            pool().run(execution.threads, self._steps, (frame, first, last), (), self._help)
            self._go_on(execution, first, last, execution.threads)

    def call_all(self, execution: Execution, arrays: Sequence[Array]) -> None:
        """Run all steps of a stage. ``arrays``: inputs and outputs, in order. Raises RunError where time is up."""
        if execution.threads == 1 and not execution.is_watched:  # as most that are short
            self.call(execution.frame, execution.first, execution.steps, 0, *map(id, arrays))
            if execution.has_stopped():
                self._go_on(execution, execution.first, execution.steps, 1)
            return
        steps, passed = (execution.frame, execution.first, execution.steps), tuple(map(id, arrays))
        sharing = execution.sharing
        threads = execution.threads if sharing is None or sharing.begin() else 1
        helped = threads == 1 or pool().helps(threads)
        begin = perf_counter_ns()
        with _watched(execution):
            pool().run(threads, self.call, steps, passed, self._help)
            self._go_on(execution, execution.first, execution.steps, threads)
        if sharing is not None:
            sharing.took(perf_counter_ns() - begin, helped=helped)

    def _go_on(self, execution: Execution, first: int, last: int, threads: int) -> None:
        """Go on as long as a call has stopped in the middle, for somebody to look at the clock. Raises RunError."""
        while execution.has_stopped():
            check_run_time()
            pool().run(threads, self._steps, (execution.frame, first, last), (), self._help)

    def expect(self, execution: Execution, shapes: list[tuple[int, ...]], symbols: Mapping[str, int] | None) -> None:
        """An execution is used for inputs of these shapes, which were checked, and may be again.

        ``symbols``: the values of symbols that came with them.
        """
        execution.shapes, execution.repeat = shapes, look_closer
        execution.given = None if symbols is None else dict(symbols)
        large = any(output.is_large for output in execution.outputs.values())
        execution.may_repeat = self._repeats and execution.never_stops and symbols is None and not large

    def get_ready(self, execution: Execution, shapes: Sequence[tuple[int, ...]], kept: Sequence[Array]) -> None:
        """Make the native function that repeats turns on inputs of these shapes, which `expect` was told of.

        ``kept``: the memory that stays from turn to turn.
        """
        numbers = {
            "run": self._steps_at,
            "team": 0 if execution.threads == 1 else pool().address,
            "helpers": execution.threads - 1,
            "sharing": address_of(ALWAYS) if execution.sharing is None else execution.sharing.address,
            "frame": execution.frame,
            "steps": execution.steps,
            "status": execution.status,
            "passed": address_of(execution.passed),
            "lets_go": not execution.is_short,
            "inputs": len(shapes),
            "outputs": len(execution.filled),
        }
        inputs = zip(self.input_types, shapes, strict=True)
        arrays = [*inputs, *((dtype, shape) for shape, dtype in execution.filled)]
        held = (execution.memory, execution.sharing, self.layout.constants, kept)
        execution.repeat = repeat_of(self._repeat_at, numbers, arrays, held)

    def give_back(self, execution: Execution) -> None:
        """Whoever asks next for the same sizes may have it; the plan itself keeps one for turns on fresh states."""
        if self.ready.kept:
            execution.shapes, execution.repeat = None, look_closer
        give_back(execution.repeat)
        last = self._repeated
        others = last is None or last.shapes != execution.shapes or last.repeat is not self.repeat  # by another thread
        if execution.repeat is not look_closer and others:
            self._repeated, self.repeat = execution, execution.repeat
        elif len(self._idle) < MOST_IDLE:
            self._idle.append(execution)


def _details() -> type[Details]:
    """The class, which is imported with the compiler, where a plan is not kept, or its nodes are looked at."""
    with LOCK:  # a fork waits: what one thread has begun to import, a child would wait for
        from tract_cpu.details import Details

    return Details


def _watched(execution: Execution) -> AbstractContextManager[object]:
    """Inside, an execution is told when the time of the run is up, where one of its steps has to be."""
    until = run_until() if execution.is_watched else inf
    return _Watch(execution, until) if until < inf else _NO_WATCH


_NO_WATCH: Final = nullcontext()


class _Watch:
    """A thread that waits until time is up."""

    def __init__(self, execution: Execution, until: float) -> None:
        from threading import Event, Thread

        self._execution, self._until = execution, until
        self._is_done = Event()
        self._thread = Thread(target=self._wait, name="tract-cpu-watch", daemon=True)

    def _wait(self) -> None:
        while not self._is_done.wait(seconds_until(self._until)):
            if monotonic() >= self._until:
                self._execution.end()
                return

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *raised: object) -> None:
        self._is_done.set()
        self._thread.join()  # it tells no later run
