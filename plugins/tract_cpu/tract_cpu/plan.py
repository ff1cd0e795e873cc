"""A compiled model, and what its executions keep.

The program of a model is cut where a node is left to the host; each piece between is one native call. A state owns its
arena, so that several states run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cached_property, partial
from math import inf
from threading import Event, Thread
from time import monotonic, perf_counter_ns
from typing import Any, Final

from tract_llvm.isa import Isa
from tract_llvm.objects.library import library_of
from tract_llvm.program.views import Kind, Storage, View

from tract_core.data import Constant, Container
from tract_core.dims import Dim, evaluate
from tract_core.errors import TractError
from tract_core.frozen import frozen
from tract_core.limits import check_room, check_run_time, run_until, seconds_until
from tract_core.model.bodies import own_symbols
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.session import BodyPlan
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import STATE, Array
from tract_core.runtime.binding_plan import BindingPlan
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.held import owners_of
from tract_core.runtime.host import Bodies, HostNode, HostState, host_nodes
from tract_core.runtime.observed import ObservedState
from tract_core.runtime.parts import BodyPath, Part, bodies_within
from tract_core.runtime.protocol import Observer, Timing
from tract_core.runtime.turn import Turn
from tract_core.runtime.work import Ceilings
from tract_cpu.binding import ArgumentLayout
from tract_cpu.ceilings import Meter
from tract_cpu.compile import Target, compiled, program_of
from tract_cpu.execution import Execution
from tract_cpu.hosted import gone_after
from tract_cpu.kept import KeptMemory
from tract_cpu.kernels.code import code_of
from tract_cpu.native.executor import (
    MOST_ARRAYS,
    code_of_executor,
    code_of_helper,
    executor,
    helper,
)
from tract_cpu.native.objects import address_of, are_known
from tract_cpu.native.pool import pool
from tract_cpu.native.repeat import Repeat, code_of_repeat, look_closer, repeat_of
from tract_cpu.native.sharing import ALWAYS, Sharing
from tract_cpu.program.program import HostStep, Inlined, NativeStep, Program, ReadStep, Step
from tract_cpu.state import CpuState, NativeState, Workplace
from tract_cpu.timing import timings

MOST_IDLE: Final = 4
"""How many executions a plan keeps for states to come."""

MOST_IDLE_BYTES: Final = 16 << 20
MOST_IDLE_SHARE: Final = 64
"""How many bytes each of them takes at most once there is another one, and which part of what a run may take."""

MOST_SIZES: Final = 64
"""Of how many sizes a plan remembers how runs with them are best done."""


@frozen
class HostCall:
    """What every turn has to know of a host step. ``keeps``: whether the node may hold on to arrays that it is given.

    ``inputs``: as in the step, by outlet; ``results``: outlets, with the numbers of their storages.
    """

    keeps: bool
    inputs: tuple[tuple[OutletId, View | None], ...]
    results: tuple[tuple[OutletId, int], ...]

    @staticmethod
    def of(step: HostStep, layout: ArgumentLayout) -> HostCall:
        """Of a step of the program with this layout."""
        node = step.node
        keeps = node.state is not None or any(isinstance(fact.datum_type, Container) for fact in node.facts)
        outlets = [OutletId(node.node, slot) for slot in range(len(step.results))]
        numbers = map(layout.number, step.results)
        inputs = zip(node.inputs, step.inputs, strict=True)
        return HostCall(keeps, tuple(inputs), tuple(zip(outlets, numbers, strict=True)))


class CpuPlan:
    """A model, compiled. Immutable: many threads may spawn states from it."""

    def __init__(
        self,
        model: TypedModel,
        isa: Isa,
        threads: int = 1,
        known: frozenset[str] = frozenset(),
        *,
        winograd: bool = True,
    ) -> None:
        """``known``: symbols of models around, whose values every run is given. ``winograd``: as in `Lowering`."""
        found = compiled(model, Target(isa, threads, known, winograd))
        self.isa, self.threads, self.winograd = isa, threads, winograd
        self.model = model = found.model
        self.nodes, self.program = found.nodes, found.program
        self.turn = Turn(model, self.nodes)
        self.views, self.layout = self.program.views, ArgumentLayout(self.program, found.arena, len(model.inputs))
        self._known = known
        self._bodies = Bodies(lambda body: CpuPlan(body, isa, threads, self._known_in(body), winograd=winograd))
        self._library = library_of(isa)
        self.pieces = list(_pieces(self.program))
        self.calls = {one.node: HostCall.of(step, self.layout) for one, step in self.program.hosted()}
        self.places = [place for place, step in enumerate(self.program.steps) if isinstance(step, NativeStep)]
        """Where native steps are in the program, by their numbers."""
        self.by_number = {node.node: node for node in self.nodes}
        self.may_refuse = any(self.layout.may_refuse)
        self.arrays = len(model.inputs) + len(model.outputs)
        native = all(isinstance(piece, range) for piece in self.pieces) and self.arrays <= MOST_ARRAYS
        self.is_timed = model.limits.run_deadline_s < inf
        self.runs_in_one_call = native and not self.lent
        lasts = not (self.program.kept and self.may_refuse)  # else what was kept would be changed twice
        self._repeats = self.runs_in_one_call and lasts and not self.is_timed and are_known()
        self.kernels = self._compiled()
        self.call = executor(self._library, self.arrays if self.runs_in_one_call else 0)
        self._steps = executor(self._library, 0)
        self._help = helper(self._library)
        self.constants = _constants(self.nodes)
        self.filled = self._outputs_of_stages()
        self.input_types = (
            [model.outlet_fact(outlet).datum_type.storage.numpy for outlet in model.inputs]
            if self.runs_in_one_call
            else []
        )
        self.inner_turns = self._turns_of_bodies()
        self._steps_at = self._library.address(code_of_executor(isa, 0))
        self._repeat_at = self._library.address(code_of_repeat(isa)) if self._repeats else 0
        self.repeat: Repeat = look_closer
        """A turn on a fresh state that is like the last one, by `Repeating`; none where states keep something."""
        self._repeated: Execution | None = None
        self._sharing = dict[tuple[tuple[str, int], ...], Sharing]()
        self._idle, self._idle_workplaces = list[Execution](), list[Workplace]()

    @cached_property
    def gone(self) -> list[list[tuple[OutletId, int]]]:
        """What of the host nobody needs behind each piece, with the numbers of its storages."""
        found = gone_after(self.model, self.program, self.pieces)
        return [[(outlet, self.layout.number(storage)) for outlet, storage in one] for one in found]

    @cached_property
    def owners(self) -> frozenset[int]:
        """The ids of the owners of constants."""
        return owners_of(self.constants.values())

    def _outputs_of_stages(self) -> list[dict[int, tuple[tuple[Dim, ...], Any]]]:
        """Shapes and types of the outputs that native code fills, by stages of the run."""
        found: list[dict[int, tuple[tuple[Dim, ...], Any]]] = [{} for _ in range(1 + len(self.program.stages))]
        hosted = set(self.lent)
        for number in range(len(self.model.outputs)):
            if number not in hosted:
                shape, dtype = self._shape_of(number)
                found[self.program.stage_of(shape)][number] = shape, dtype
        return found

    def _turns_of_bodies(self) -> list[list[tuple[Turn, Dim, str]]]:
        """What is checked of the bodies that run, by the stages in which their sizes are known."""
        found: list[list[tuple[Turn, Dim, str]]] = [[] for _ in range(1 + len(self.program.stages))]
        for one in self.program.inlined:
            for body, runs in () if one.body else one.bodies:
                inner = Turn(body, host_nodes(body)), runs, self.by_number[one.node].place
                found[self.program.stage_at(one.first)].append(inner)
        return found

    def _compiled(self) -> list[int]:
        """The addresses of the kernels. What else native code is needed is compiled along with them."""
        isa = self.isa
        kernels = [code_of(step.kernel, isa) for step in self.layout.steps]
        others = [code_of_helper(isa), code_of_executor(isa, 0)]
        if self.runs_in_one_call:
            others.append(code_of_executor(isa, self.arrays))
        if self._repeats:
            others.append(code_of_repeat(isa))
        return self._library.addresses([*kernels, *others])[: len(kernels)]

    def _lowered(self, body: TypedModel) -> Program:
        """The program of a body that is left to the host."""
        return program_of(body, Target(self.isa, known=self._known_in(body), winograd=self.winograd))

    def _known_in(self, body: TypedModel) -> frozenset[str]:
        """The symbols that mean the same in a body, and have values as soon as a run begins."""
        facts = [self.model.outlet_fact(outlet) for outlet in self.model.inputs]
        return (self._known | BindingPlan.of(facts, self.model.symbols.definitions).symbols) - own_symbols(body)

    def bodies(self, body: TypedModel) -> CpuPlan:
        """The plan of a body that is left to the host, made once."""
        found = self._bodies(body)
        assert isinstance(found, CpuPlan)  # that is what is made
        return found

    @property
    def lent(self) -> Sequence[int]:
        """Outputs that come from the host may be inputs, or views on them; native code gives none."""
        views = enumerate(self.program.outputs)
        return [number for number, view in views if view is None or view.storage.kind is Kind.HOST]

    def spawn(self) -> CpuState | NativeState:
        """A fresh state."""
        return NativeState(self) if self.runs_in_one_call else CpuState(self)

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> CpuState:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        return CpuState(self, plan_of)

    def spawn_observed(self, observe: Observer) -> ObservedState:
        """A fresh state, in whose turns ``observe`` sees what leaves every step, and may exchange it."""
        return ObservedState(self.spawn_with(self.bodies), observe)

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        """One turn on a fresh state, and what each step took in it, those of bodies too."""
        return timings(self, inputs)

    def ceilings(self) -> Ceilings:
        """What this machine can do at most, with the threads of this plan: operations on f32, and reading memory."""
        return Meter(self.isa, 0.05).ceilings(self.threads)

    def explain(self) -> Explanation:
        """Which kernel computes which nodes, and why a node is left to the host, in bodies too."""
        found: list[Placement] = []
        programs: dict[BodyPath, tuple[Program, int]] = {(): (self.program, 0)}
        for path, body in bodies_within(self.model):
            program, depth = programs[path] if path in programs else (self._lowered(body), len(path))
            found += _placements(self.model, program, path, depth)
            for one in program.inlined:
                around = (*path[:depth], *one.body)
                programs |= {(*around, (one.node, number)): (program, depth) for number in range(len(one.bodies))}
        return Explanation("cpu", tuple(found))

    def new_memory(self) -> KeptMemory | None:
        """What nodes keep from turn to turn in native memory, if they keep anything."""
        first = self.layout.number(Storage(Kind.KEPT, 0))
        return KeptMemory(self.program.kept, first) if self.program.kept else None

    def inlined_at(self, number: int) -> Inlined | None:
        """The operator of the model in whose body a native step is."""
        if not self.program.inlined:
            return None
        place = self.places[number]
        return next((one for one in self.program.inlined if not one.body and one.first <= place <= one.last), None)

    def behind(self, number: int) -> int:
        """The place in the program that follows a native step."""
        return self.places[number] + 1 if number >= 0 else 0

    def new_execution(self, symbols: Mapping[str, int], before: Execution | None = None) -> Execution:
        """Memory and tables for these sizes, which are checked for the bodies that run. Raises RunError.

        ``before``: what the stage of the run was run with that ends here, as more sizes are known now.
        """
        stage, own = 0, symbols
        if before is not None:
            stage, own = before.stage + 1, self.own_symbols(before.stage, symbols)
        for turn, runs, place in self.inner_turns[stage]:
            if evaluate(runs, symbols):
                try:
                    turn.check(symbols)
                except TractError as error:
                    raise error.at(place) from error.__cause__
        self._give_up_idle(own)
        found = Execution(
            self.layout,
            self.kernels,
            self.filled[stage],
            symbols,
            self.threads,
            own=own,
            before=before,
            check_room=partial(check_room, allowed=self.turn.room),
            watching=self._watching if self.is_timed else None,
        )
        if found.threads > 1:
            found.sharing = self._sharing_with(own)
        return found

    def _watching(self, number: int) -> int:
        """The address of a kernel that ends as soon as the run has to, for a native step by its number."""
        return self._library.address(code_of(self.layout.steps[number].kernel, self.isa, watches=True))

    def _give_up_idle(self, symbols: Mapping[str, int]) -> None:
        """Give memory back before there is more, but for a little for the same sizes."""
        most = min(MOST_IDLE_BYTES, self.turn.room // MOST_IDLE_SHARE)

        def stays(one: Execution | None) -> bool:
            return one is not None and one.symbols == symbols and one.bytes <= most

        kept = list[Execution]()
        while (one := self.idle_execution()) is not None:  # one by one, as other threads take some meanwhile
            if stays(one):
                kept.append(one)
        self._idle += kept
        for place in list(self._idle_workplaces):
            if not stays(place.execution):
                place.execution = None
                place.later.clear()
        if not stays(self._repeated):
            self.repeat, self._repeated = look_closer, None

    def own_symbols(self, stage: int, symbols: Mapping[str, int]) -> dict[str, int]:
        """The values of the symbols that come up at the end of a stage."""
        return {name: symbols[name] for name in self.program.stages[stage].symbols if name in symbols}

    def _sharing_with(self, symbols: Mapping[str, int]) -> Sharing:
        """What says whether runs with these sizes are shared, whoever does them."""
        if len(self._sharing) >= MOST_SIZES:
            self._sharing.clear()
        return self._sharing.setdefault(tuple(symbols.items()), Sharing())

    def idle_execution(self) -> Execution | None:
        """Memory and tables that nobody uses now, for the sizes that they say; if there are any."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def idle_workplace(self) -> Workplace:
        """A workplace for a fresh state, of one that is gone if possible, without what that kept."""
        try:
            return self._idle_workplaces.pop()
        except IndexError:
            return Workplace(HostState(self.model, self.bodies))

    def give_back_workplace(self, workplace: Workplace) -> None:
        """Whoever asks next may have it."""
        workplace.host.reset()
        if len(self._idle_workplaces) < MOST_IDLE:
            self._idle_workplaces.append(workplace)

    def call_steps(self, execution: Execution, first: int, last: int) -> None:
        """Run native steps, by their numbers, on what was passed. Raises RunError where time is up."""
        inlined = self.inlined_at(first)
        within = inlined is not None and self.layout.numbers[inlined.first] < first
        frame = execution.frame_within if within else execution.frame
        with _watched(execution):
            pool().run(execution.threads, self._steps, (frame, first, last), (), self._help)
            self._go_on(execution, first, last, execution.threads)

    def call_all(self, execution: Execution, arrays: Sequence[Array]) -> None:
        """Run all steps. ``arrays``: inputs and outputs, in order. Raises RunError where time is up."""
        steps, passed = (execution.frame, 0, execution.steps), tuple(map(id, arrays))
        sharing = execution.sharing
        threads = execution.threads if sharing is None or sharing.begin() else 1
        helped = threads == 1 or pool().helps(threads)
        begin = perf_counter_ns()
        with _watched(execution):
            if execution.threads == 1:
                self.call(*steps, 0, *passed)
            else:
                pool().run(threads, self.call, steps, passed, self._help)
            self._go_on(execution, 0, execution.steps, threads)
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
        held = (execution.memory, execution.sharing, self.program.constants, kept)
        execution.repeat = repeat_of(self._repeat_at, numbers, arrays, held)

    def give_back(self, execution: Execution) -> None:
        """Whoever asks next for the same sizes may have it; the plan itself keeps one for turns on fresh states."""
        if self.program.kept:
            execution.shapes, execution.repeat = None, look_closer
        last = self._repeated
        others = last is None or last.shapes != execution.shapes or last.repeat is not self.repeat  # by another thread
        if execution.repeat is not look_closer and others:
            self._repeated, self.repeat = execution, execution.repeat
        elif len(self._idle) < MOST_IDLE:
            self._idle.append(execution)

    def results_of(self, step: Step) -> tuple[Part, dict[OutletId, View | None]]:
        """The nodes of a step, and the tensors that leave it, with where they are."""
        part = Part((step.node.node,) if isinstance(step, HostStep) else step.nodes)
        views = self.views
        return part, {outlet: views.get(outlet) for outlet in part.results(self.model)}

    def _shape_of(self, output: int) -> tuple[tuple[Dim, ...], Any]:
        fact = self.model.outlet_fact(self.model.outputs[output])
        return tuple(fact.shape), fact.datum_type.storage.numpy


def _watched(execution: Execution) -> AbstractContextManager[object]:
    """Inside, an execution is told when the time of the run is up, where one of its steps has to be."""
    until = run_until() if execution.is_watched else inf
    return _Watch(execution, until) if until < inf else _NO_WATCH


_NO_WATCH: Final = nullcontext()


class _Watch:
    """A thread that waits until time is up."""

    def __init__(self, execution: Execution, until: float) -> None:
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


def _constants(nodes: Sequence[HostNode]) -> dict[OutletId, Array]:
    """The tensors that are part of a model."""
    return {
        OutletId(node.node): node.op.value.array
        for node in nodes
        if isinstance(node.op, Const) and isinstance(node.op.value, Constant)
    }


def _pieces(program: Program) -> list[range | HostStep | ReadStep]:
    """What runs in one go: native steps, by their numbers among these, and single steps of the host."""
    pieces: list[range | HostStep | ReadStep] = []
    count = 0
    for step in program.steps:
        if isinstance(step, HostStep | ReadStep):
            pieces.append(step)
        if not isinstance(step, NativeStep):
            continue
        last = pieces.pop() if pieces and isinstance(pieces[-1], range) else range(count, count)
        assert isinstance(last, range)  # it was asked for
        count += 1
        pieces.append(range(last.start, count))
    return pieces


def _placements(model: TypedModel, program: Program, path: BodyPath, depth: int) -> Iterator[Placement]:
    """The nodes of one body. ``depth``: that of the body, or the model, whose program it is."""
    inside = path[depth:]
    how = {one.node: one.how for one in program.inlined if one.body == inside}
    for step in program.steps:
        if isinstance(step, ReadStep):
            continue
        if isinstance(step, HostStep):
            if inside:
                continue
            stateful = model.registry[STATE].find(type(step.node.op)) is not None
            way = "state" if stateful else "numpy"
            yield Placement.of(model, [step.node.node], "cpu", way, step.why, body=path)
        elif step.body != inside or not step.nodes:
            continue
        elif isinstance(step, NativeStep):
            yield Placement.of(model, step.nodes, "cpu", step.kernel.name, "native code", body=path)
        elif step.nodes[0] in how:
            yield Placement.of(model, step.nodes, "cpu", how[step.nodes[0]], "native code", body=path)
        else:
            yield Placement.of(model, step.nodes, "cpu", "view", "a view on another tensor", body=path)
