"""Sizes that the state of an operator tells: known before the first node runs, others in the next turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tract_core.dims import Dim, symbol
from tract_core.errors import RunError
from tract_core.model.fact import TypedFact
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.op import TypedOp
from tract_core.model.session import Session
from tract_core.model.typed import TypedModel
from tract_core.ops.range import Range
from tract_core.plugins.keys import STATE
from tract_core.plugins.tables import Rows
from tract_core.runtime.plan import TypedSimplePlan
from tract_core.runtime.schedule import execution_order
from tract_core.testing.toys import toy_registry

ROWS = Rows()
N, S = symbol("N"), symbol("S")


@dataclass(frozen=True)
class Counted(TypedOp):
    """Its input, of which it counts the elements of all turns; ``fails``: in the turn of so many elements."""

    before: Dim
    fails: int = -1

    tells = ("before",)

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        return (inputs[0].without_value(),)


@dataclass(frozen=True)
class Wrong(Counted):
    """One whose state does not tell what it should."""


class _Count:
    def __init__(self, op: Counted) -> None:
        self.op, self.count = op, 0

    def told(self) -> tuple[Any, ...]:
        return (self.count,)

    def run(self, session: Session, inputs: Sequence[Any]) -> tuple[Any, ...]:
        self.count += inputs[0].size
        if inputs[0].size == self.op.fails:
            raise ValueError("no more")
        return (inputs[0],)

    def freeze(self) -> int:
        return self.count

    def thaw(self, frozen: int) -> None:
        self.count = frozen


WRONG: list[Any] = []


class _Wrong(_Count):
    def told(self) -> tuple[Any, ...]:
        return WRONG[0]


@ROWS.row(STATE, Counted)
def state(op: Counted, session: Session) -> _Count:
    return _Count(op)


@ROWS.row(STATE, Wrong)
def wrong_state(op: Wrong, session: Session) -> _Wrong:
    return _Wrong(op)


REGISTRY = toy_registry("acme", rows={"state": [__name__]})


def model_of(*ops: Counted) -> TypedModel:
    """The operators on one input, one behind the other, and the numbers from N on."""
    model = TypedModel(registry=REGISTRY)
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    for number, op in enumerate(ops):
        (x,) = model.wire_node(f"n{number}", op, [x])
    ends = [model.add_const("begin", N), model.add_const("end", N + S), model.add_const("one", np.array(1))]
    model.set_outputs([x, *model.wire_node("numbers", Range(S), ends)])
    return model


def numbers(running: Any, size: int) -> list[int]:
    return running.run([np.zeros(size, np.float32)])[1].tolist()


def test_each_turn_begins_with_what_the_state_tells() -> None:
    running = TypedSimplePlan(model_of(Counted(N))).spawn()
    assert [numbers(running, size) for size in (2, 0, 1, 2)] == [[0, 1], [], [2], [3, 4]]
    running.reset()
    assert numbers(running, 1) == [0]


def test_what_needs_the_size_may_run_before_the_node_that_tells_it() -> None:
    model = model_of(Counted(N))
    model.outputs.reverse()
    order = [model.nodes[node].name for node in execution_order(model)]
    assert order.index("numbers") < order.index("n0")


def test_a_node_that_tells_what_others_need_stays_unread() -> None:
    model = model_of(Counted(N), Counted(N))
    del model.outputs[0]
    model.prune()
    assert [node.name for node in model.live_nodes() if node.op.tells] == ["n0"]


def test_the_last_node_that_tells_what_others_need_is_not_dead() -> None:
    model = model_of(Counted(N), Counted(N))
    del model.outputs[0]
    model.remove_dead([model.node_by_name("n1").id])
    assert [node.name for node in model.live_nodes() if node.op.tells] == ["n0"]


def test_a_node_that_tells_what_nobody_needs_goes() -> None:
    model = model_of(Counted(symbol("M")))
    del model.outputs[0]
    assert not model.must_stay(model.node_by_name("n0"))


@pytest.mark.parametrize("place", [0, 1])
def test_a_turn_that_fails_never_was(place: int) -> None:
    ops = [Counted(N), Counted(N)]
    ops[place] = Counted(N, fails=3)
    running = TypedSimplePlan(model_of(*ops)).spawn()
    numbers(running, 2)
    for _ in range(2):
        with pytest.raises(RunError, match=rf"node 'n{place}' \(Counted\).*no more"):
            numbers(running, 3)
    assert [numbers(running, 1) for _ in range(2)] == [[2], [3]]


def test_a_state_that_was_left_behind_is_told() -> None:
    plan = TypedSimplePlan(model_of(Counted(N), Counted(N)))
    running = plan.spawn()
    numbers(running, 2)
    frozen = running.freeze()
    frozen.states[max(frozen.states)] = 5
    running.thaw(frozen)
    with pytest.raises(RunError, match=r"node 'n1'.*holds 5 positions, wanted N, where N is 2 by node 'n0'"):
        numbers(running, 1)


@pytest.mark.parametrize(
    ("told", "problem"),
    [((), "tells 0 sizes, wanted 1"), ((1, 2), "tells 2 sizes"), (("a",), "TypeError"), (3, "TypeError")],
)
def test_a_state_that_tells_something_else_is_named(told: Any, problem: str) -> None:
    WRONG[:] = [told]
    with pytest.raises(RunError, match=rf"node 'n0' \(Wrong\).*{problem}"):
        numbers(TypedSimplePlan(model_of(Wrong(N))).spawn(), 1)
