"""The plan gives what solving the sizes anew gives, for every shape."""

from __future__ import annotations

from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tract_core.data import DatumType
from tract_core.dims import Dim, bind, dim_max, dim_min, evaluate, symbol
from tract_core.errors import DimError
from tract_core.model.fact import TypedFact
from tract_core.runtime.binding_plan import BindingPlan, Check, Take

S, T = symbol("S"), symbol("T")
SIZES: list[Dim] = [
    *(0, 1, 3, S, T, S + 1, S * 2, 3 * T + 1, 5 - S, S + T, S * T, S * S, (S + 3) // 4, S // 2 + T),
    *(dim_max(S, T), dim_min(S, 3)),
]

shapes_of_facts = st.lists(st.lists(st.sampled_from(SIZES), max_size=3), max_size=3)
values = st.integers(0, 7)


@given(st.data(), shapes_of_facts, st.dictionaries(st.sampled_from("ST"), values))
def test_the_plan_agrees_with_solving(data: st.DataObject, dims: list[list[Dim]], known: dict[str, int]) -> None:
    facts = [TypedFact.of(DatumType.F32, shape) for shape in dims]
    chosen = {"S": data.draw(values), "T": data.draw(values)} | known
    shapes: list[list[int]] = []
    for shape in dims:
        fitting = [evaluate(dim, chosen) for dim in shape]
        shapes.append([max(0, size + data.draw(st.sampled_from([0, 0, 0, 0, 0, 1, -1]))) for size in fitting])
    found = BindingPlan.of(facts).values(shapes, known)
    try:
        wanted = bind(list(chain(*dims)), list(chain(*shapes)), known)
    except DimError:
        wanted = None
    assert found == wanted


def test_a_plan_is_data() -> None:
    facts = [TypedFact.of(DatumType.F32, shape) for shape in ((S, 64), (2 * T + 1, S), (S + T, S * symbol("P")))]
    assert BindingPlan.of(facts) == BindingPlan(
        ranks=(2, 2, 2),
        takes=(Take(0, 0, "S"), Take(1, 0, "T", 2, 1)),
        fixed=(Check(0, 1, 64),),
        checks=(Check(1, 1, S), Check(2, 0, S + T)),
        rest=(Check(2, 1, S * symbol("P")),),
    )


@pytest.mark.parametrize("shapes", [[], [(2, 3)], [(2,), (3, 4)], [(2, 3, 4), (3, 4)], [(2, 3), (3, 4), (1, 1)]])
def test_other_numbers_of_inputs_and_axes_do_not_fit(shapes: list[tuple[int, ...]]) -> None:
    plan = BindingPlan.of([TypedFact.of(DatumType.F32, (S, 3)), TypedFact.of(DatumType.F32, (3, T))])
    assert plan.values(shapes) is None
    assert plan.values([(2, 3), (3, 4)]) == {"S": 2, "T": 4}
