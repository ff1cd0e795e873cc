"""A compiled model, and what its executions keep.

The program of a model is cut where a node is left to the host; each piece between is one native call. A state owns its
arena, so that several states run at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final

from tract_core.data import Constant
from tract_core.dims import Dim
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.session import BodyPlan
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import STATE, Array
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.host import Bodies, host_nodes
from tract_core.runtime.parts import BodyPath, Part, bodies_within
from tract_core.runtime.protocol import Observer, Timing
from tract_core.runtime.stopwatch import timed_run
from tract_core.runtime.turn import Turn
from tract_cpu.binding import Layout
from tract_cpu.execution import Execution
from tract_cpu.isa import Isa
from tract_cpu.kernels.kernel import Kernel, KernelPlan
from tract_cpu.lower.program import HostStep, NativeStep, Program, Step, ViewStep
from tract_cpu.lower.select import lower
from tract_cpu.lower.views import Kind, View
from tract_cpu.native.cache import key_of
from tract_cpu.native.executor import MOST_ARRAYS, executor
from tract_cpu.native.library import Code, library_of
from tract_cpu.native.origins import origin_of, own_sources
from tract_cpu.native.pool import pool
from tract_cpu.state import CpuState, NativeState

MOST_IDLE: Final = 4
"""How many executions a plan keeps for states to come."""


class CpuPlan:
    """A model, compiled. Immutable: many threads may spawn states from it."""

    def __init__(self, model: TypedModel, isa: Isa, threads: int = 1) -> None:
        self.model = model
        self.isa = isa
        self.threads = threads
        self.nodes = host_nodes(model)
        self.turn = Turn(model, self.nodes)
        self.program: Program = lower(model, self.nodes, isa)
        self.views = self.program.views
        self.layout = Layout(self.program, len(model.inputs))
        self.bodies = Bodies(lambda body: CpuPlan(body, isa, threads))
        self._library, self._sources = library_of(isa), own_sources()
        self.kernels = self._library.addresses([self._code(step.kernel) for step in self.layout.steps])
        self.pieces = list(_pieces(self.program))
        self.by_number = {node.node: node for node in self.nodes}
        self.may_refuse = any(self.layout.may_refuse)
        self.arrays = len(model.inputs) + len(model.outputs)
        native = all(isinstance(piece, range) for piece in self.pieces) and self.arrays <= MOST_ARRAYS
        self.runs_in_one_call = native and model.limits.run_deadline_s == inf and not self.lent
        self.call = executor(self._library, self._sources, self.arrays if self.runs_in_one_call else 0)
        self._steps = executor(self._library, self._sources, 0)
        self.constants: dict[OutletId, Array] = {
            OutletId(node.node): node.op.value.array
            for node in self.nodes
            if isinstance(node.op, Const) and isinstance(node.op.value, Constant)
        }
        self.filled = {
            number: self._shape_of(number) for number in range(len(model.outputs)) if number not in self.lent
        }
        self.input_types = (
            [model.outlet_fact(outlet).datum_type.storage.numpy for outlet in model.inputs] if native else []
        )
        self._idle: list[Execution] = []

    @property
    def lent(self) -> Sequence[int]:
        """Outputs that come from the host may be inputs, or views on them; native code gives none."""
        views = enumerate(self.program.outputs)
        return [number for number, view in views if view is None or view.storage.kind is Kind.HOST]

    def spawn(self) -> CpuState | NativeState:
        """A fresh state."""
        return NativeState(self) if self.runs_in_one_call else CpuState(self, self.bodies)

    def spawn_with(self, plan_of: Callable[[TypedModel], BodyPlan]) -> CpuState:
        """A fresh state, whose operators ask ``plan_of`` who runs their bodies."""
        return CpuState(self, plan_of)

    def observed_run(self, inputs: Sequence[Array], observe: Observer) -> list[Array]:
        """One turn on a fresh state, in which ``observe`` sees what leaves every step, and may exchange it."""
        return self.spawn_with(self.bodies).run(inputs, observe=observe)

    def timed_run(self, inputs: Sequence[Array]) -> list[Timing]:
        """One turn on a fresh state, and what each step took in it, those of bodies too."""
        return timed_run(self, inputs)

    def explain(self) -> Explanation:
        """Which kernel computes which nodes, and why a node is left to the host, in bodies too."""
        found: list[Placement] = []
        for path, body in bodies_within(self.model):
            program = self.program if body is self.model else lower(body, host_nodes(body), self.isa)
            found += _placements(self.model, program, path)
        return Explanation("cpu", tuple(found))

    def new_execution(self, symbols: Mapping[str, int]) -> Execution:
        """Memory and tables for these sizes."""
        return Execution(self.layout, self.kernels, self.filled, symbols, self.threads)

    def idle_execution(self) -> Execution | None:
        """Memory and tables that nobody uses now, for the sizes that they say; if there are any."""
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def call_steps(self, execution: Execution, first: int, last: int) -> None:
        """Run native steps, by their numbers, on what was passed."""

        def work(thread: int, threads: int) -> None:
            self._steps(execution.frame, first, last, thread, threads)

        pool().run(execution.threads, work)

    def call_all(self, execution: Execution, arrays: Sequence[Array]) -> None:
        """Run all steps. ``arrays``: inputs and outputs, in order; they are kept until all threads are done."""

        def work(thread: int, threads: int) -> None:
            self.call(execution.frame, 0, execution.steps, thread, threads, *map(id, arrays))

        pool().run(execution.threads, work)

    def give_back(self, execution: Execution) -> None:
        """Whoever asks next for the same sizes may have it."""
        if len(self._idle) < MOST_IDLE:
            self._idle.append(execution)

    def results_of(self, step: Step) -> tuple[Part, dict[OutletId, View | None]]:
        """The nodes of a step, and the tensors that leave it, with where they are."""
        part = Part((step.node.node,) if isinstance(step, HostStep) else step.nodes)
        views = self.views
        return part, {outlet: views.get(outlet) for outlet in part.results(self.model)}

    def _shape_of(self, output: int) -> tuple[tuple[Dim, ...], Any]:
        fact = self.model.outlet_fact(self.model.outputs[output])
        return tuple(fact.shape), fact.datum_type.storage.numpy

    def _code(self, kernel: KernelPlan) -> Code:
        key = key_of(f"{origin_of(type(kernel))} {kernel.text()}", self.isa, self._sources)
        name = f"{kernel.name}_{key.digest[:8]}"

        def emit(module: Any) -> None:
            k = Kernel(module, name, self.isa)
            kernel.emit(k)
            k.finish()

        return Code(key, name, emit)


def _pieces(program: Program) -> list[range | HostStep]:
    """What runs in one go: native steps, by their numbers among these, and single host steps."""
    pieces: list[range | HostStep] = []
    count = 0
    for step in program.steps:
        if isinstance(step, HostStep):
            pieces.append(step)
        if not isinstance(step, NativeStep):
            continue
        last = pieces.pop() if pieces and isinstance(pieces[-1], range) else range(count, count)
        assert isinstance(last, range)  # it was asked for
        count += 1
        pieces.append(range(last.start, count))
    return pieces


def _placements(model: TypedModel, program: Program, path: BodyPath) -> list[Placement]:
    found: list[Placement] = []
    for step in program.steps:
        if isinstance(step, HostStep):
            stateful = model.registry[STATE].find(type(step.node.op)) is not None
            how = "state" if stateful else "numpy"
            found.append(Placement.of(model, [step.node.node], "cpu", how, step.why, body=path))
        elif isinstance(step, ViewStep):
            found.append(Placement.of(model, step.nodes, "cpu", "view", "a view on another tensor", body=path))
        elif step.nodes:
            found.append(Placement.of(model, step.nodes, "cpu", step.kernel.name, "native code", body=path))
    return found
