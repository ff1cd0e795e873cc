"""The reference plan: run a typed model node by node, with the NumPy meaning of each operator.

A plan is immutable and may be shared between threads; everything that changes is in its states.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np

from tract_core.data import Constant, DatumType
from tract_core.data.text_bytes import text_bytes
from tract_core.dims import bind, symbol
from tract_core.errors import DimError, GraphError, RunError, TractError, Unsupported
from tract_core.limits import TOO_LARGE_HINT, check_run_time, check_texts, run_limit, running
from tract_core.model.bodies import bodies_of
from tract_core.model.fact import TypedFact
from tract_core.model.graph import OutletId
from tract_core.model.op import TypedOp
from tract_core.model.substitute import substitute_in, symbols_needed
from tract_core.model.typed import TypedModel
from tract_core.ops.const import Const
from tract_core.ops.source import TypedSource
from tract_core.plugins.keys import REFERENCE, STATE, Array, ReferenceFn, StateFn
from tract_core.plugins.registry import Registry
from tract_core.runtime.binding import bind_inputs, check_assertions
from tract_core.runtime.conditions import ComingConditions
from tract_core.runtime.explain import Explanation, Placement
from tract_core.runtime.protocol import NodeTiming
from tract_core.runtime.returned import Promise, Wanted, are_arrays, is_right
from tract_core.runtime.schedule import execution_order, last_uses
from tract_core.runtime.session import OpState, Session
from tract_core.runtime.sizes import ComingSizes

Observer = Callable[["Step", "tuple[Array, ...]"], "tuple[Array, ...] | None"]
"""Called after every node with the step and its outputs; what it returns, if anything, takes their place."""


@dataclass(frozen=True, slots=True)
class Step:
    """One node in the order of execution. ``dying``: the tensors that nothing needs after it.

    ``makes_texts``: whether it gives texts, whose lengths only running it tells.
    """

    node: int
    name: str
    op: TypedOp
    inputs: tuple[OutletId, ...]
    facts: tuple[TypedFact, ...]
    symbols: frozenset[str]
    binds: frozenset[str]
    dying: tuple[OutletId, ...]
    meaning: ReferenceFn | None
    state: StateFn | None
    makes_texts: bool
    promise: Promise

    @property
    def place(self) -> str:
        """What messages call the node."""
        return f"node {self.name!r} ({self.op.name})"


class TypedSimplePlan:
    """An execution plan for a `TypedModel`.

    Raises Unsupported, naming every operator concerned, when one has no NumPy meaning.
    """

    def __init__(self, model: TypedModel) -> None:
        self.model = model
        self.registry = model.registry
        self.inputs = list(model.inputs)
        self.outputs = list(model.outputs)
        self.input_names = [model.outlet_name(outlet) for outlet in model.inputs]
        self.input_facts = [model.outlet_fact(outlet) for outlet in model.inputs]
        self.constants: dict[OutletId, Array] = {}
        self.steps = self._steps()
        self.conditions = ComingConditions(model, self.steps)
        self.late = self._late()
        self.sizes = ComingSizes(self.steps, run_limit(model.limits))

    def _steps(self) -> list[Step]:
        order = execution_order(self.model)
        dying = last_uses(self.model, order)
        missing = missing_meanings(self.model, self.registry)
        if missing:
            listed = ", ".join(f"{op} (node {name!r})" for op, name in missing.items())
            raise Unsupported(f"no NumPy meaning for {listed}", hint="'tract plugins' shows what is installed")
        steps: list[Step] = []
        known = frozenset[str]().union(*(fact.shape.symbols() for fact in self.input_facts))
        for node_id in order:
            step = self._step(node_id, tuple(dying.get(node_id, ())), known)
            known |= step.binds
            if isinstance(step.op, Const) and isinstance(step.op.value, Constant):
                self.constants[OutletId(node_id)] = step.op.value.array
            elif not isinstance(step.op, TypedSource):
                steps.append(step)
        return steps

    def _step(self, node_id: int, dying: tuple[OutletId, ...], known: frozenset[str]) -> Step:
        node = self.model.nodes[node_id]
        facts = tuple(self.model.output_facts(node))
        kind = type(node.op)
        return Step(
            node=node_id,
            name=node.name,
            op=node.op,
            inputs=tuple(node.inputs),
            facts=facts,
            symbols=symbols_needed(node.op) if kind is not TypedSource else frozenset(),
            binds=frozenset[str]().union(*(fact.shape.symbols() for fact in facts)) - known,
            dying=tuple(outlet for outlet in dying if outlet not in self.constants),
            meaning=self.registry[REFERENCE].find(kind),
            state=self.registry[STATE].find(kind),
            makes_texts=any(fact.datum_type is DatumType.STRING for fact in facts),
            promise=Promise(self._owner(kind), facts),
        )

    def _owner(self, kind: type[TypedOp]) -> str:
        """The distribution that brought what an operator computes."""
        return self.registry[STATE].owner(kind) or self.registry[REFERENCE].owner(kind) or "nobody"

    def _late(self) -> frozenset[int]:
        """The nodes whose sizes are only known in the middle of a run, and may differ between runs of one binding."""
        late = frozenset[str]().union(*(step.binds for step in self.steps))
        return frozenset(step.node for step in self.steps if step.promise.symbols & late)

    def spawn(self) -> TypedSimpleState:
        """A fresh state."""
        return TypedSimpleState(self)

    def from_outside(self, symbols: Mapping[str, int]) -> dict[str, int]:
        """The values of an enclosing model's symbols, without those that an input has as a size: they are its own."""
        sizes = {dim for fact in self.input_facts for dim in fact.shape}
        return {name: value for name, value in symbols.items() if symbol(name) not in sizes}

    def run(self, inputs: Sequence[Array]) -> list[Array]:
        """One turn on a fresh state."""
        return self.spawn().run(inputs)

    def timed_run(self, inputs: Sequence[Array]) -> list[NodeTiming]:
        """One turn on a fresh state, and what each node took in it."""
        timings: list[NodeTiming] = []
        start = last = perf_counter()

        def note(step: Step, outputs: tuple[Array, ...]) -> None:
            nonlocal last
            now = perf_counter()
            timings.append(NodeTiming(step.node, step.name, step.op.name, last - start, now - last))
            last = now

        self.spawn().run(inputs, observe=note)
        return timings

    def explain(self) -> Explanation:
        """Every node runs on the CPU, by its NumPy meaning."""
        return Explanation("reference", tuple(_placement(step) for step in self.steps))


def _read_only(array: Array) -> Array:
    """The array, or a view on it that nobody can write to."""
    if not array.flags.writeable:
        return array
    view = array.view()
    view.flags.writeable = False
    return view


def _failure(step: Step, inputs: Sequence[Array], error: Exception) -> RunError:
    """The error for what the code behind an operator raised."""
    if isinstance(error, ValueError) and "read-only" in str(error):
        hint = f"other nodes read the same array, so that nobody may write to his inputs; {step.promise.hint}"
        return RunError(f"the operator writes to its inputs: {error}", where=step.place, hint=hint)
    found = "; ".join(f"{array.dtype}{list(array.shape)}" for array in inputs)
    hint = f"the inputs of the node were: {found or 'none'}"
    return RunError(f"{type(error).__name__}: {error}", where=step.place, hint=hint)


def _placement(step: Step) -> Placement:
    if step.state is not None:
        return Placement(step.name, step.op.name, "cpu", "state", "the operator keeps state or runs a body")
    return Placement(step.name, step.op.name, "cpu", "numpy", "the reference runtime knows no other way")


def missing_meanings(model: TypedModel, registry: Registry) -> dict[str, str]:
    """The operators without NumPy meaning that the outputs need, also inside bodies: name of operator, name of node."""
    missing: dict[str, str] = {}
    for node_id in model.eval_order():
        node, kind = model.nodes[node_id], type(model.nodes[node_id].op)
        for body in bodies_of(node.op):
            for op, name in missing_meanings(body, registry).items():
                missing.setdefault(op, f"{node.name}/{name}")
        if kind is not TypedSource and registry[REFERENCE].find(kind) is None and registry[STATE].find(kind) is None:
            missing.setdefault(node.op.name, node.name)
    return missing


class TypedSimpleState:
    """An execution state: what the nodes of a `TypedSimplePlan` keep between turns."""

    def __init__(self, plan: TypedSimplePlan) -> None:
        self.plan = plan
        self._states: dict[int, OpState] = {}
        self._concrete: dict[int, tuple[tuple[int, ...], TypedOp]] = {}
        self._wanted: dict[int, tuple[Wanted, ...]] = {}
        self._checked: dict[str, int] | None = None

    def run(
        self, inputs: Sequence[Array], *, symbols: dict[str, int] | None = None, observe: Observer | None = None
    ) -> list[Array]:
        """One turn. ``symbols``: values known from elsewhere (an enclosing model).

        Raises InputError when the arrays do not fit, RunError, with the node's name, when a node fails.
        """
        plan = self.plan
        bound = bind_inputs(plan.input_names, plan.input_facts, inputs, plan.from_outside(symbols or {}))
        if bound != self._checked:
            check_assertions(plan.model.symbols, bound)
            plan.conditions.check_all(bound)
            plan.sizes.check_all(bound)
            self._checked = dict(bound)
            self._wanted = {}
        session = Session(plan.registry, bound)
        values: dict[OutletId, Array] = dict(plan.constants)
        values.update(zip(plan.inputs, inputs, strict=True))
        with np.errstate(all="ignore"), running(plan.sizes.allowed, plan.model.limits.run_deadline_s):
            for step in plan.steps:
                outputs = self._compute(session, step, [_read_only(values[outlet]) for outlet in step.inputs])
                if step.binds:
                    plan.conditions.check_after(step.node, session.symbols)
                    plan.sizes.check_after(step.node, session.symbols)
                if observe is not None:
                    outputs = observe(step, outputs) or outputs
                values.update({OutletId(step.node, slot): array for slot, array in enumerate(outputs)})
                for outlet in step.dying:
                    del values[outlet]
        return [values[outlet] for outlet in plan.outputs]

    def _compute(self, session: Session, step: Step, inputs: list[Array]) -> tuple[Array, ...]:
        try:
            check_run_time()
            if step.state is not None:
                outputs = self._state_of(session, step).run(session, inputs)
            else:
                assert step.meaning is not None  # the plan refused the model otherwise
                result = step.meaning(self._op_now(session, step), *inputs)
                outputs = result if isinstance(result, tuple) else (result,)
            if (step.binds or step.op.announces) and are_arrays(outputs):
                self._bind_outputs(session, step, outputs)
            self._check(session, step, outputs)
            if step.makes_texts:
                for array in outputs:
                    check_texts(text_bytes(array))
        except TractError as error:
            raise error.at(step.place) from error.__cause__
        except MemoryError as error:
            raise RunError(f"there is not enough memory: {error}", where=step.place, hint=TOO_LARGE_HINT) from error
        except Exception as error:
            raise _failure(step, inputs, error) from error
        return outputs

    def _state_of(self, session: Session, step: Step) -> OpState:
        if step.node not in self._states:
            assert step.state is not None  # only asked for steps that have one
            self._states[step.node] = step.state(step.op, session)
        return self._states[step.node]

    def _op_now(self, session: Session, step: Step) -> TypedOp:
        """The operator with symbols replaced by their values; the last one is kept, as sizes rarely change."""
        if not step.symbols:
            return step.op
        try:
            values = tuple(session.symbols[symbol] for symbol in sorted(step.symbols))
        except KeyError as error:
            raise RunError(f"the value of symbol {error.args[0]} is not known when the node runs") from None
        cached = self._concrete.get(step.node)
        if cached is None or cached[0] != values:
            cached = (values, substitute_in(step.op, session.symbols))
            self._concrete[step.node] = cached
        return cached[1]

    def _check(self, session: Session, step: Step, outputs: tuple[Array, ...]) -> None:
        """Raises RunError where the node did not compute what its facts say. What they say is kept between turns."""
        wanted = self._wanted.get(step.node)
        if wanted is None:
            wanted = step.promise.now(session.symbols)
            if step.node not in self.plan.late:
                self._wanted[step.node] = wanted
        if not is_right(outputs, wanted):
            step.promise.check(outputs, wanted)

    def _bind_outputs(self, session: Session, step: Step, outputs: Sequence[Array]) -> None:
        for fact, array in zip(step.facts, outputs, strict=False):  # how many there are is checked next
            try:
                session.symbols.update(bind(fact.shape, array.shape, session.symbols))
            except DimError as error:
                raise RunError(f"the output has shape {array.shape}, {fact} was announced: {error}") from None

    def freeze(self) -> TypedFrozenSimpleState:
        """A snapshot that can be pickled, sent elsewhere, and unfrozen any number of times."""
        return TypedFrozenSimpleState({node: state.freeze() for node, state in self._states.items()})

    def thaw(self, frozen: TypedFrozenSimpleState) -> None:
        """Go back to a snapshot of a state of the same model."""
        session = Session(self.plan.registry)
        steps = {step.node: step for step in self.plan.steps}
        if not frozen.states.keys() <= steps.keys():
            raise GraphError("the frozen state belongs to another model")
        self._states = {}
        for node, content in frozen.states.items():
            self._state_of(session, steps[node]).thaw(copy.deepcopy(content))


@dataclass(frozen=True, slots=True)
class TypedFrozenSimpleState:
    """An execution state, frozen: what each stateful node kept, by node id."""

    states: dict[int, Any]


TypedRunnableModel = TypedSimplePlan
RunnableModel = TypedSimplePlan
