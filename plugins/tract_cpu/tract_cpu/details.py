"""What is known of a compiled model by its nodes: for runs in which the host has a part, and for who looks at it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from tract_llvm.objects.library import Code
from tract_llvm.program.storages import Kind
from tract_llvm.program.views import View

from tract_core.data import Constant, Container
from tract_core.dims import evaluate
from tract_core.frozen import frozen
from tract_core.garbage import uncollected
from tract_core.model.bodies import own_symbols
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.plugins.keys import STATE, Array
from tract_core.runtime.binding_plan import given_in_every_turn
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.held import owners_of
from tract_core.runtime.host import HostNode, host_nodes
from tract_core.runtime.parts import BodyPath, Part, bodies_within
from tract_core.runtime.turn import Turn
from tract_cpu.compile import Planned, compiled, program_of
from tract_cpu.hosted import gone_after
from tract_cpu.kernels.code import code_of
from tract_cpu.lay_arguments import argument_layout, native_steps
from tract_cpu.native.executor import MOST_ARRAYS
from tract_cpu.native.write_executor import code_of_executor, code_of_helper
from tract_cpu.native.write_repeat import code_of_repeat
from tract_cpu.program.program import HostStep, Inlined, NativeStep, Program, ReadStep, Step
from tract_cpu.program.reads import Reading, number_name
from tract_cpu.ready import Filled, FunctionName, Ready
from tract_cpu.target import Target

if TYPE_CHECKING:
    from tract_core.dims import Dim
    from tract_core.model.typed import TypedModel
    from tract_cpu.binding import ArgumentLayout


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


@frozen
class StageReading:
    """What is read of which tensors at the end of a stage. ``shapes``: of the inputs of the node.

    ``whole``: of each tensor that is an input of the model, as it is, the number; ``None`` for others.
    """

    step: ReadStep
    shapes: tuple[tuple[Dim, ...], ...]
    whole: tuple[int | None, ...]

    @staticmethod
    def of(step: ReadStep, model: TypedModel) -> StageReading:
        """By a step of the program."""
        shapes = tuple(tuple(model.outlet_fact(outlet).shape) for outlet in step.node.inputs)
        return StageReading(step, shapes, tuple(_whole_input(view, model) for view in step.inputs))

    def read(self, arrays: Sequence[Array], values: dict[str, int]) -> None:
        """Add what the arrays tell to the values of symbols. Raises what the node would, with its name."""
        node, reads = self.step.node, self.step.reads
        shapes = [tuple(evaluate(dim, values) for dim in shape) for shape in self.shapes]

        def reading() -> Reading:
            found = reads.read(node.op, shapes, *arrays)
            node.bind_shapes(values, found.shapes)
            return found

        found = node.attempt(arrays, reading)
        values |= {number_name(node.node, place): one for place, one in enumerate(found.numbers)}


def _whole_input(view: View, model: TypedModel) -> int | None:
    if view.storage.kind is not Kind.INPUT:
        return None
    number = view.storage.number
    whole = View.contiguous(view.storage, view.element, tuple(model.outlet_fact(model.inputs[number]).shape))
    return number if view == whole else None


class Details:
    """A compiled model with its nodes. ``target``: what it is compiled for; ``layout``: of its arguments.

    ``model``, ``nodes``, ``program``: in native form; ``steps``: the native ones; ``pieces``: what runs in one go.
    ``places``: where native steps are in the program, by their numbers. ``by_number``: the nodes.
    """

    def __init__(self, found: Planned, target: Target, layout: ArgumentLayout | None = None) -> None:
        """``layout``: where it was made already."""
        self.found, self.target = found, target
        self.model, self.nodes, self.program = found.model, found.nodes, found.program
        self.layout = layout or argument_layout(self.program, found.arena, len(self.model.inputs))
        self.steps = native_steps(self.program)
        self.pieces = list(_pieces(self.program))
        self.calls = {one.node: HostCall.of(step, self.layout) for one, step in self.program.hosted()}
        self.places = [place for place, step in enumerate(self.program.steps) if isinstance(step, NativeStep)]
        self.by_number = {node.node: node for node in self.nodes}
        self.constants = _constants(self.nodes)

    @staticmethod
    def of(model: TypedModel, target: Target) -> Details:
        """Those of a model in normal form, compiled now."""
        with uncollected():
            return Details(compiled(model, target), target)

    @cached_property
    def gone(self) -> list[list[tuple[OutletId, int]]]:
        """What of the host nobody needs behind each piece, with the numbers of its storages."""
        found = gone_after(self.model, self.program, self.pieces)
        return [[(outlet, self.layout.number(storage)) for outlet, storage in one] for one in found]

    @cached_property
    def owners(self) -> frozenset[int]:
        """The ids of the owners of constants."""
        return owners_of(self.constants.values())

    @cached_property
    def codes(self) -> tuple[Code, ...]:
        """All native functions, in the order of `Ready.functions`."""
        isa, arrays = self.target.isa, self._arrays if self._is_one_call or self._is_in_stages else 0
        kernels = [code_of(step.kernel, isa) for step in self.steps]
        others = code_of_executor(isa, arrays), code_of_executor(isa, 0), code_of_helper(isa), code_of_repeat(isa)
        return (*kernels, *others)

    @cached_property
    def ready(self) -> Ready:
        """What turns need of it as long as nobody looks at nodes."""
        model, program = self.model, self.program
        names: list[FunctionName] = [(one.key, one.name) for one in self.codes]
        run, steps, help_, repeat = names[-4:]
        is_native = self._is_one_call or self._is_in_stages
        inputs = [model.outlet_fact(outlet).datum_type for outlet in model.inputs] if is_native else []
        # What was kept would be changed twice where a kernel may refuse.
        lasts = not (program.kept and any(self.layout.may_refuse)) and model.limits.run_deadline_s == inf
        return Ready(
            turn=Turn(model, self.nodes),
            inner_turns=self._turns_of_bodies(),
            layout=self.layout,
            kernels=tuple(names[:-4]),
            run=run,
            steps=steps,
            help=help_,
            repeat=repeat,
            filled=self._outputs_of_stages(),
            inputs=tuple(kind.storage.numpy for kind in inputs),
            outputs=len(model.outputs),
            lent=self._lent,
            is_one_call=self._is_one_call,
            is_in_stages=self._is_in_stages,
            lasts=lasts,
            kept=program.kept,
            stages=tuple(stage.symbols for stage in program.stages),
        )

    @property
    def _arrays(self) -> int:
        return len(self.model.inputs) + len(self.model.outputs)

    @property
    def _is_one_call(self) -> bool:
        native = all(isinstance(piece, range) for piece in self.pieces)
        return native and self._are_few

    @property
    def _is_in_stages(self) -> bool:
        """Whether native code does all but to read sizes, without anybody who looks at the clock."""
        native = not any(isinstance(piece, HostStep) for piece in self.pieces) and bool(self.program.stages)
        told = any(node.op.tells for node in self.nodes)
        return native and self._are_few and not told and self.model.limits.run_deadline_s == inf

    @property
    def _are_few(self) -> bool:
        """Whether native code can be given all inputs and outputs in one call."""
        return self._arrays <= MOST_ARRAYS and not self._lent

    @cached_property
    def readings(self) -> dict[int, StageReading]:
        """What is read at the ends of stages, by the nodes that it is read for, in order."""
        steps = [self.program.steps[stage.place] for stage in self.program.stages]
        return {step.node.node: StageReading.of(step, self.model) for step in steps if isinstance(step, ReadStep)}

    @cached_property
    def _lent(self) -> tuple[int, ...]:
        """Outputs that come from the host may be inputs, or views on them; native code gives none."""
        views = enumerate(self.program.outputs)
        return tuple(number for number, view in views if view is None or view.storage.kind is Kind.HOST)

    def _outputs_of_stages(self) -> tuple[Filled, ...]:
        """Shapes and types of the outputs that native code fills, by stages of the run."""
        found: list[dict[int, tuple[tuple[Dim, ...], np.dtype[Any]]]] = [
            {} for _ in range(1 + len(self.program.stages))
        ]
        for number, outlet in enumerate(self.model.outputs):
            if number not in self._lent:
                fact = self.model.outlet_fact(outlet)
                shape = tuple(fact.shape)
                found[self.program.stage_of(shape)][number] = shape, fact.datum_type.storage.numpy
        return tuple(found)

    def _turns_of_bodies(self) -> tuple[tuple[tuple[Turn, Dim, str], ...], ...]:
        """What is checked of the bodies that run, by the stages in which their sizes are known."""
        found: list[list[tuple[Turn, Dim, str]]] = [[] for _ in range(1 + len(self.program.stages))]
        for one in self.program.inlined:
            for body, runs in () if one.body else one.bodies:
                inner = Turn(body, host_nodes(body)), runs, self.by_number[one.node].place
                found[self.program.stage_at(one.first)].append(inner)
        return tuple(map(tuple, found))

    def known_in(self, body: TypedModel) -> frozenset[str]:
        """The symbols that mean the same in a body, and have values as soon as a run begins."""
        return (self.target.known | given_in_every_turn(self.model)) - own_symbols(body)

    def _lowered(self, body: TypedModel) -> Program:
        """The program of a body that is left to the host."""
        target = Target(self.target.isa, known=self.known_in(body), rounding=self.target.rounding)
        return program_of(body, target)

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

    def inlined_at(self, number: int) -> Inlined | None:
        """The operator of the model in whose body a native step is."""
        if not self.program.inlined:
            return None
        place = self.places[number]
        return next((one for one in self.program.inlined if not one.body and one.first <= place <= one.last), None)

    def behind(self, number: int) -> int:
        """The place in the program that follows a native step."""
        return self.places[number] + 1 if number >= 0 else 0

    def results_of(self, step: Step) -> tuple[Part, dict[OutletId, View | None]]:
        """The nodes of a step, and the tensors that leave it, with where they are."""
        part = Part((step.node.node,) if isinstance(step, HostStep) else step.nodes)
        views = self.program.views
        return part, {outlet: views.get(outlet) for outlet in part.results(self.model)}


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
