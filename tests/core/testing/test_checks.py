"""The checks of the conformance kit notice runtimes that are wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tract_core.errors import RegistrationError
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.elementwise import Exp
from tract_core.plugins import Rows
from tract_core.plugins.keys import STATE
from tract_core.plugins.tables import Row, Table
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.reference import ReferenceRuntime
from tract_core.testing.case import Case
from tract_core.testing.checks import CHECKS, Bench, Disagreement
from tract_core.testing.gaps import KNOWN_GAPS, Gap
from tract_core.testing.toys import toy_registry

EXP = Case("Exp", Exp(), ["B,3,f32"], np.exp, {"B": 2})
ROWS = Rows()


@dataclass(frozen=True, slots=True)
class Count(TypedOp):
    """x plus the number of turns before this one."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (inputs[0].without_value(),)


class Counter:
    def __init__(self) -> None:
        self.turns = 0

    def run(self, session: Any, inputs: Sequence[Any]) -> tuple[Any, ...]:
        self.turns += 1
        return (inputs[0] + inputs[0].dtype.type(self.turns - 1),)

    def freeze(self) -> int:
        return self.turns

    def thaw(self, frozen: int) -> None:
        self.turns = frozen


@ROWS.row(STATE, Count)
def count(op: Count, session: Any) -> Counter:
    return Counter()


COUNT = Case("Count", Count(), ["B,3,f32"], lambda x: x, {"B": 2})


REGISTRY = toy_registry("count", rows={"state": [__name__]})


def into(out: list[Any], found: list[Any]) -> list[Any]:
    for array, one in zip(out, found, strict=False):
        array[...] = one
    return out


def bench(**methods: Any) -> Bench:
    """The reference runtime with plans of which some methods are replaced, as ``run=lambda run, inputs: ...``."""

    class Plan(TypedSimplePlan):
        def spawn(self) -> Any:
            state = super().spawn()
            if "run" in methods:
                right = state.run

                def run(inputs: Any, out: Any = None) -> Any:
                    found = methods["run"](right, inputs)
                    return found if out is None else into(out, found)

                return SimpleNamespace(run=run, freeze=state.freeze, thaw=state.thaw, reset=state.reset)
            if "spawn" in methods:
                return methods["spawn"](self, state)
            return state

    return Bench(
        SimpleNamespace(name="faulty", why_unusable=lambda: None, prepare=methods.get("prepare", Plan)), REGISTRY
    )


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("case", [EXP, COUNT], ids=str)
def test_the_reference_passes(case, check):
    CHECKS[check](case, Bench(ReferenceRuntime(), REGISTRY))


@pytest.mark.parametrize("check", CHECKS)
def test_a_wrong_element_is_noticed(check):
    def wrong(run: Any, inputs: Any) -> Any:
        (found,) = run(inputs)
        found[1, 2] *= 1.001
        return [found]

    with pytest.raises(Disagreement, match=r"Exp.*output 0: 1 of 6 elements differ; the worst, at \[1, 2\]"):
        CHECKS[check](EXP, bench(run=wrong))


@pytest.mark.parametrize("check", [check for check in CHECKS if check != "filled"])
def test_a_wrong_type_or_number_of_outputs_is_noticed(check):
    with pytest.raises(Disagreement, match="output 0 is of type float64, the operator says "):
        CHECKS[check](EXP, bench(run=lambda run, inputs: [run(inputs)[0].astype(np.float64)]))
    with pytest.raises(Disagreement, match="2 outputs, wanted 1"):
        CHECKS[check](EXP, bench(run=lambda run, inputs: run(inputs) * 2))


def test_arrays_that_are_not_filled_are_noticed():
    def forget(plan: Any, state: Any) -> Any:
        return SimpleNamespace(run=lambda inputs, out=None: out or state.run(inputs))

    with pytest.raises(Disagreement, match="Exp in arrays of the caller: output 0: 6 of 6 elements differ"):
        CHECKS["filled"](EXP, bench(spawn=forget))

    def return_others(plan: Any, state: Any) -> Any:
        return SimpleNamespace(run=lambda inputs, out=None: state.run(inputs, *out[:0]))

    with pytest.raises(Disagreement, match="Exp: what was returned is not the arrays that were to be filled"):
        CHECKS["filled"](EXP, bench(spawn=return_others))


def test_writing_to_the_inputs_is_noticed():
    def write(run: Any, inputs: Any) -> Any:
        inputs[0] *= 2
        return run(inputs)

    with pytest.raises(ValueError, match="read-only"):
        CHECKS["fixed"](EXP, bench(run=write))


def test_changing_the_model_is_noticed():
    def prepare(model: Any) -> Any:
        model.rename(model.nodes[-1].id, "changed")
        return TypedSimplePlan(model)

    with pytest.raises(Disagreement, match="prepare changed the model"):
        CHECKS["fixed"](EXP, bench(prepare=prepare))


def test_a_state_that_forgets_its_snapshot_is_noticed():
    def forget(plan: Any, state: Any) -> Any:
        return SimpleNamespace(run=state.run, freeze=state.freeze, thaw=lambda _: None)

    CHECKS["fixed"](COUNT, bench(spawn=forget))
    with pytest.raises(Disagreement, match="Count after a snapshot"):
        CHECKS["frozen"](COUNT, bench(spawn=forget))


def test_a_state_that_is_shared_between_threads_is_noticed():
    shared: dict[int, Any] = {}

    def share(plan: Any, state: Any) -> Any:
        return shared.setdefault(id(plan), state)

    with pytest.raises(Disagreement, match="Count"):
        CHECKS["threads"](COUNT, bench(spawn=share))


class TestGaps:
    @pytest.mark.parametrize(
        ("gap", "covered"),
        [
            (Gap("Conv-*", "none yet"), {("Conv-2d", "fixed"), ("Conv-2d", "frozen")}),
            (Gap("Conv-2d", "none yet", ("frozen",)), {("Conv-2d", "frozen")}),
            (Gap("conv-2d", "none yet"), set()),
            (Gap("*", "none yet", ("threads",)), set()),
        ],
    )
    def test_what_a_gap_covers(self, gap, covered):
        asked = [(case, check) for case in ("Conv-2d", "Exp") for check in ("fixed", "frozen")]
        assert {pair for pair in asked if gap.covers(*pair)} == covered

    @pytest.mark.parametrize("row", ["Conv-*", ["Conv-*"], 3])
    def test_a_list_of_something_else_is_refused(self, row):
        with pytest.raises(RegistrationError, match="wanted a list of Gap"):
            Table(KNOWN_GAPS).check([Row("known_gaps", "toy", row)], "tract-toy")
