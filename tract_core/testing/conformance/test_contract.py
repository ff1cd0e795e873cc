"""What every runtime promises, whatever the operators: `tract_core.runtime.protocol` in tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from tract_core.errors import InputError, Unsupported
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.model.spec import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.elementwise import Exp
from tract_core.runtime.explain import Explanation
from tract_core.runtime.protocol import Plan
from tract_core.testing.checks import Bench
from tract_core.testing.conformance.selection import pytest_generate_tests

__all__ = [
    "pytest_generate_tests",
    "test_arrays_of_the_caller_are_filled",
    "test_arrays_of_the_caller_that_do_not_fit_are_refused",
    "test_arrays_that_do_not_fit_are_refused",
    "test_each_turn_has_sizes_of_its_own",
    "test_outputs_are_not_changed_by_later_turns",
    "test_plan_explains_every_node",
    "test_runtime_is_offered_by_its_name",
    "test_unknown_operators_are_refused_together",
]


@dataclass(frozen=True, slots=True)
class Unheard(TypedOp):
    """An operator that no table knows."""

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """The input's."""
        return (inputs[0],)


@dataclass(frozen=True, slots=True)
class Unseen(Unheard):
    """Another one."""


def _sum_of_exponentials(bench: Bench) -> TypedModel:
    """exp(a) + exp(b) for two inputs of the same symbolic size."""
    model = TypedModel(registry=bench.registry)
    inputs = [model.add_source(name, parse_typed_fact("N,3,f32", model.symbols)) for name in ("a", "b")]
    terms = [model.wire_node(f"exp_{slot}", Exp(), [outlet])[0] for slot, outlet in enumerate(inputs)]
    model.set_outputs(model.wire_node("sum", Add(), terms))
    return model


def _plan(bench: Bench) -> Plan:
    return bench.runtime.prepare(_sum_of_exponentials(bench))


def _ones(*shape: int) -> np.ndarray[tuple[int, ...], np.dtype[np.float32]]:
    return np.ones(shape, np.float32)


def test_runtime_is_offered_by_its_name(bench: Bench) -> None:
    """A runtime bears the name that it is offered under, and is a class without constructor arguments."""
    name = bench.runtime.name
    assert bench.registry.load("tract_runtimes", name)().name == name


def test_plan_explains_every_node(bench: Bench) -> None:
    """The explanation names the runtime, and says of each placement where, how and why."""
    explanation = _plan(bench).explain()
    assert isinstance(explanation, Explanation)
    assert explanation.runtime == bench.runtime.name
    assert explanation.placements
    assert all(place.node and place.op and place.where and place.how and place.why for place in explanation.placements)


@pytest.mark.parametrize(
    ("shapes", "kind"),
    [
        (((2, 3),), "f4"),
        (((2, 3), (2, 3), (2, 3)), "f4"),
        (((2, 3), (2, 4)), "f4"),
        (((2, 3), (2, 3, 1)), "f4"),
        (((2, 3), (5, 3)), "f4"),
        (((2, 3), (2, 3)), "f8"),
    ],
    ids=["too few", "too many", "wrong size", "wrong rank", "symbol with two values", "wrong type"],
)
def test_arrays_that_do_not_fit_are_refused(bench: Bench, shapes: Sequence[tuple[int, ...]], kind: str) -> None:
    """An InputError, and no crash, for arrays of a wrong number, rank, size or type."""
    state = _plan(bench).spawn()
    with pytest.raises(InputError):
        state.run([np.ones(shape, kind) for shape in shapes])
    (found,) = state.run([_ones(2, 3), _ones(2, 3)])
    assert found.shape == (2, 3)


def test_each_turn_has_sizes_of_its_own(bench: Bench) -> None:
    """Symbols are bound anew in each turn of a stateless model, also to nothing at all."""
    state = _plan(bench).spawn()
    for size in (2, 5, 1, 0, 2):
        (found,) = state.run([_ones(size, 3), _ones(size, 3)])
        np.testing.assert_allclose(found, np.full((size, 3), 2 * np.e), rtol=1e-5)


def test_outputs_are_not_changed_by_later_turns(bench: Bench) -> None:
    """What a turn returned stays as it is."""
    state = _plan(bench).spawn()
    (first,) = state.run([_ones(2, 3), _ones(2, 3)])
    kept = np.array(first)
    state.run([_ones(2, 3) * 5, _ones(2, 3) * 5])
    np.testing.assert_array_equal(first, kept)


def test_arrays_of_the_caller_are_filled(bench: Bench) -> None:
    """``out`` is what is filled and returned, turn by turn, for sizes that come and go; inputs stay as they are."""
    state = _plan(bench).spawn()
    for size in (2, 5, 0):
        given, filled = [_ones(size, 3), _ones(size, 3)], _ones(size, 3) * np.float32(np.nan)
        found = state.run(given, out=[filled])
        assert len(found) == 1
        assert found[0] is filled
        np.testing.assert_allclose(filled, np.full((size, 3), 2 * np.e), rtol=1e-5)
        assert all((array == 1).all() for array in given)


@pytest.mark.parametrize(
    ("shapes", "kind"),
    [((), "f4"), (((2, 3), (2, 3)), "f4"), (((3, 3),), "f4"), (((6,),), "f4"), (((2, 3),), "f8")],
    ids=["too few", "too many", "wrong size", "wrong rank", "wrong type"],
)
def test_arrays_of_the_caller_that_do_not_fit_are_refused(
    bench: Bench, shapes: Sequence[tuple[int, ...]], kind: str
) -> None:
    """An InputError, with nothing written, for ``out`` of a wrong number, rank, size or type."""
    state, out = _plan(bench).spawn(), [np.zeros(shape, kind) for shape in shapes]
    with pytest.raises(InputError):
        state.run([_ones(2, 3), _ones(2, 3)], out=out)
    assert not any(array.any() for array in out)


def test_unknown_operators_are_refused_together(bench: Bench) -> None:
    """A model with operators that nothing is known of is refused when it is prepared, with all their names."""
    model = TypedModel(registry=bench.registry)
    x = model.add_source("x", parse_typed_fact("3,f32", model.symbols))
    (y,) = model.wire_node("first", Unheard(), [x])
    model.set_outputs(model.wire_node("second", Unseen(), [y]))
    with pytest.raises(Unsupported) as caught:
        bench.runtime.prepare(model)
    assert "Unheard" in str(caught.value)
    assert "Unseen" in str(caught.value)
