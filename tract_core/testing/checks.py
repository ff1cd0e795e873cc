"""What the conformance kit asks of a runtime, one function per question.

Each takes one case and a `Bench`, which has the runtime, and raises `Disagreement` (or whatever the runtime raises)
when the answer is wrong.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any, Final

import numpy as np

from tract_core.data import Container
from tract_core.model.fact import TypedFact
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_core.plugins.registry import Registry, rows_may_raise
from tract_core.runtime.protocol import Plan, PlanState, Runtime
from tract_core.testing.case import Case
from tract_core.testing.tolerance import mismatch, rounding_of, sign_mismatch

THREADS: Final = 4


class Disagreement(AssertionError):
    """A runtime computed something else than the case says."""


@dataclass(frozen=True, slots=True)
class Bench:
    """A runtime to check, and the tables to check it with."""

    runtime: Runtime
    registry: Registry

    def prepare(self, case: Case, *, symbolic: bool, declutter: bool = False) -> tuple[Plan, Sequence[TypedFact]]:
        """The case's model made ready to run, and the facts of its outputs as wired."""
        with rows_may_raise():
            model = case.model(symbolic=symbolic, registry=self.registry)
            facts = [model.outlet_fact(outlet) for outlet in model.outputs]
            if declutter:
                model.declutter()
        model.check_consistency()
        before = _content(model)
        plan = self.runtime.prepare(model)
        if _content(model) != before:
            raise Disagreement(f"prepare changed the model it was given: {before} became {_content(model)}")
        return plan, facts


def fixed(case: Case, bench: Bench) -> None:
    """Sizes are numbers."""
    _one_turn(case, *bench.prepare(case, symbolic=False))


def symbolic(case: Case, bench: Bench) -> None:
    """Sizes are symbols, bound by the arrays."""
    _one_turn(case, *bench.prepare(case, symbolic=True))


def fixed_decluttered(case: Case, bench: Bench) -> None:
    """Sizes are numbers, and the model is in normal form."""
    _one_turn(case, *bench.prepare(case, symbolic=False, declutter=True))


def symbolic_decluttered(case: Case, bench: Bench) -> None:
    """Sizes are symbols, and the model is in normal form."""
    _one_turn(case, *bench.prepare(case, symbolic=True, declutter=True))


def frozen(case: Case, bench: Bench) -> None:
    """A state goes on from a pickled snapshot, in another plan, as often as one likes; it is fresh after a reset."""
    plan, facts = bench.prepare(case, symbolic=True)
    state = plan.spawn()
    first = _turn(state, case)
    snapshot = pickle.loads(pickle.dumps(state.freeze()))
    wanted = _turn(state, case)
    compare(case, facts, first)
    for _ in range(2):
        other = bench.prepare(case, symbolic=True)[0].spawn()
        other.thaw(snapshot)
        _same(case, facts, _turn(other, case), wanted, " after a snapshot")
    state.thaw(snapshot)
    _same(case, facts, _turn(state, case), wanted, " back at a snapshot")
    state.reset()
    _same(case, facts, _turn(state, case), first, " after a reset")


def filled(case: Case, bench: Bench) -> None:
    """The outputs are written into arrays of the caller."""
    plan, facts = bench.prepare(case, symbolic=True)
    if any(isinstance(fact.datum_type, Container) for fact in facts):
        return  # no array holds it
    shapes = [np.shape(array) for array in case.outputs()]
    arrays = [_rubbish(shape, fact.datum_type.storage.numpy) for shape, fact in zip(shapes, facts, strict=True)]
    found = plan.spawn().run(_given(case), out=arrays)
    if len(found) != len(arrays) or any(one is not other for one, other in zip(found, arrays, strict=True)):
        raise Disagreement(f"{case}: what was returned is not the arrays that were to be filled")
    _same(case, facts, arrays, case.outputs(), " in arrays of the caller")


def _rubbish(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Array:
    """A new array, with bytes that mean nothing."""
    if dtype.kind == "O":
        return np.full(shape, "not filled", dtype=object)
    array: Array = np.empty(shape, dtype)
    array.reshape(-1).view(np.uint8)[...] = 0x5A
    return array


def threads(case: Case, bench: Bench) -> None:
    """Many threads use one plan, each with its own states."""
    plan, facts = bench.prepare(case, symbolic=True)
    barrier = Barrier(THREADS, timeout=60)

    def use(_: int) -> list[list[Array]]:
        barrier.wait()
        return [_turn(plan.spawn(), case) for _ in range(3)]

    with ThreadPoolExecutor(THREADS) as pool:
        results = list(pool.map(use, range(THREADS)))
    for found in (turn for turns in results for turn in turns):
        compare(case, facts, found)


CHECKS: Final[Mapping[str, Callable[[Case, Bench], None]]] = {
    "fixed": fixed,
    "symbolic": symbolic,
    "fixed_decluttered": fixed_decluttered,
    "symbolic_decluttered": symbolic_decluttered,
    "frozen": frozen,
    "filled": filled,
    "threads": threads,
}
"""Every check by its name."""


def compare(case: Case, facts: Sequence[TypedFact], found: Sequence[Array]) -> None:
    """Raise Disagreement unless the outputs are those of the case, in number, type, shape and elements."""
    _same(case, facts, found, case.outputs())


def _one_turn(case: Case, plan: Plan, facts: Sequence[TypedFact]) -> None:
    compare(case, facts, _turn(plan.spawn(), case))


def _turn(state: PlanState, case: Case) -> list[Array]:
    """One turn on arrays that cannot be written to, as the contract promises; the outputs must survive later turns."""
    found = state.run(_given(case))
    if not all(isinstance(array, np.ndarray) for array in found):  # pyright: ignore[reportUnnecessaryIsInstance]: that is the question
        kinds = ", ".join(type(array).__name__ for array in found)
        raise Disagreement(f"{case}: the outputs are of the types {kinds}, wanted arrays")
    return [np.array(array) for array in found]


def _given(case: Case) -> list[Array]:
    """The inputs of a case, which nobody can write to."""
    arrays = [np.ascontiguousarray(array).reshape(array.shape) for array in case.given()]
    for array in arrays:
        array.flags.writeable = False
    return arrays


def _same(
    case: Case, facts: Sequence[TypedFact], found: Sequence[Array], wanted: Sequence[Array], when: str = ""
) -> None:
    if len(found) != len(wanted):
        raise Disagreement(f"{case}{when}: {len(found)} outputs, wanted {len(wanted)}")
    for slot, (fact, one, other) in enumerate(zip(facts, found, wanted, strict=True)):
        place = f"{case}{when}: output {slot}"
        if one.dtype != fact.datum_type.numpy:
            raise Disagreement(f"{place} is of type {one.dtype}, the operator says {fact}")
        problem = mismatch(one, other, case.tolerance or rounding_of(fact.datum_type.storage))
        if problem is None and case.signed_zeros:
            problem = sign_mismatch(one, other)
        if problem is not None:
            raise Disagreement(f"{place}: {problem}")


def _content(model: TypedModel) -> list[Any]:
    nodes = [(node.name, node.op, tuple(node.inputs), tuple(node.outputs)) for node in model.live_nodes()]
    return [nodes, list(model.inputs), list(model.outputs)]
