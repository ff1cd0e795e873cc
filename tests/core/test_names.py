"""Names of nodes and of tensors: which is free, and what one leads to."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tract_core.data import DatumType
from tract_core.errors import GraphError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.graph import OutletId
from tract_core.model.names import Names
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Neg
from tract_core.ops.pool import MaxPool
from tract_core.ops.pool_spec import DataFormat, PoolSpec


def first_free(taken: dict[str, int], name: str) -> str:
    """As the documentation has it."""
    numbered = [name, *(f"{name}.{number}" for number in range(1, len(taken) + 2))]
    return next(one for one in numbered if one not in taken)


@given(st.lists(st.tuples(st.sampled_from(["a", "a.1", "a.1.1", "b", "a.²", "a.01"]), st.integers(0, 5)), max_size=40))
def test_the_first_that_is_free(steps: list[tuple[str, int]]) -> None:
    names, taken = Names(), dict[str, int]()
    for number, (wanted, removed) in enumerate(steps):
        assert names.free(wanted) == first_free(taken, wanted)
        free = names.free(wanted)
        names.give(free, number)
        taken[free] = number
        if removed < len(taken) and removed % 2:
            gone = list(taken)[removed]
            names.take(gone, taken.pop(gone))
    assert dict(names) == taken


def test_a_name_is_taken_from_its_own_node_only() -> None:
    names = Names([("a", 1)])
    names.take("a", 2)
    assert names["a"] == 1
    copy = names.copy()
    copy.take("a", 1)
    assert "a" in names
    assert "a" not in copy


def test_many_nodes_of_one_name() -> None:
    names = Names()
    start = time.process_time()
    for number in range(50_000):
        names.give(names.free("x"), number)
    assert time.process_time() - start < 5
    assert names["x.49999"] == 49_999


def named() -> TypedModel:
    """x -> neg (the output, called y) -> nothing; top has two outputs, the second one is called place."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("2,3,f32"))
    (y,) = model.wire_node("neg", Neg(), [x])
    both = model.wire_node("top", MaxPool(PoolSpec(DataFormat.CHW, (1,)), DatumType.I64), [x])
    model.set_outputs([y])
    model.set_label(y, "y")
    model.set_label(both[1], "place")
    return model


@pytest.mark.parametrize(
    ("name", "wanted"), [("x", "0/0"), ("y", "1/0"), ("neg", "1/0"), ("place", "2/1"), ("top", "2/0"), ("top:1", "2/1")]
)
def test_a_tensor_goes_by_its_label_its_node_and_its_slot(name: str, wanted: str) -> None:
    assert str(named().outlet_named(name)) == wanted


def test_what_an_input_or_output_is_called_comes_first() -> None:
    model = named()
    model.set_label(OutletId(1), "top")
    assert model.outlet_named("top") == OutletId(1)


@pytest.mark.parametrize(
    ("name", "near"), [("plac", "place"), ("ney", "neg"), ("top:7", "no outlet 2/7"), ("top:²", "top")]
)
def test_a_tensor_that_is_not_there(name: str, near: str) -> None:
    with pytest.raises(GraphError) as caught:
        named().outlet_named(name)
    assert near in str(caught.value)
