"""What is written in words that the established engine reads, and that means the same here."""

from __future__ import annotations

from dataclasses import replace

import documents
import numpy as np
import pytest
from cycles import INTERCHANGE, cycle_of_cases, cycled, small_model, text
from tract_nnef.nnef_only.sdpa import Sdpa
from tract_nnef.options import Writing
from tract_nnef.registry import CORE, TRANSFORMERS

import tract_core as tract
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.cumsum import CumSum
from tract_core.ops.cumsum_loop import running_loop
from tract_core.ops.pad import Pad, PadWrap
from tract_core.plugins import default_registry
from tract_core.testing.case import CASES

SHORT = [case.name for case in default_registry()[CASES].find("cumsum") or () if "f16" in case.name]
"""Running sums of floats of 16 bits, which come back with casts around them."""

test_running_sums_come_back_from_loops = cycle_of_cases("cumsum", others=SHORT)


def test_a_loop_that_goes_on_from_turn_to_turn_stays_one() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,3,f32", model.symbols))
    start = model.add_const("start", np.zeros((1, 3), np.float32))
    loop = running_loop(CumSum(0), model.outlet_fact(x))
    for name, op in (("fresh", loop), ("going_on", replace(loop, reset_every_turn=False))):
        model.set_outputs([*model.outputs, model.wire_node(name, op, [x, start])[0]])
    kinds = [model.producer(outlet).op.name for outlet in model.declutter().outputs]
    assert kinds == ["CumSum", "Scan"]


@pytest.mark.parametrize("said", ["B>=2", "2*B<=S+7", "B==3", "decode: S==1"])
def test_assertions_on_sums_of_sizes(said: str) -> None:
    model = small_model()
    model.symbols.add("S")
    model.symbols.add_assertion(said)
    assert f"extension tract_assert {said};" in text(model, how=INTERCHANGE)


@pytest.mark.parametrize("said", ["-(B/4==1)+1==1", "B/2==2*(B/4)", "B*S<=100"])
def test_other_assertions_are_for_this_project(said: str) -> None:
    model = small_model()
    model.symbols.add("S")
    model.symbols.add_assertion(said)
    written = text(model, how=INTERCHANGE)
    assert f'extension tract_py_assert "{said}";' in written
    assert "extension tract_assert" not in written
    assert list(cycled(model, how=INTERCHANGE).symbols) == list(model.symbols)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("y = reshape(slice(x, axes = [0], begin = [0], end = [min(1, B)]), shape = [3, 2]);", "B>=1"),
        ("y = slice(x, axes = [0], begin = [2], end = [5]);", None),
        ("y = reshape(x, shape = [-1, 2]);", None),
    ],
)
def test_what_sizes_must_be_at_least_is_asserted(body: str, said: str | None) -> None:
    model = documents.read(body, {"x": "B,6"})
    assert "tract_assert" not in text(model.typed)
    found = [line for line in text(model.typed, how=INTERCHANGE).splitlines() if "tract_assert" in line]
    assert found == ([f"extension tract_assert {said};"] if said else [])
    assert [str(one) for one in cycled(model.typed, how=INTERCHANGE).symbols] == ([said] if said else [])


def test_numbers_among_sizes_are_sizes_and_nothing_is_less_a_quotient() -> None:
    body = "y = add(x, tract_core_cast([[[3], [B - B / 2]]], to = 'i64'));"
    model = documents.read(body, {"x": "B,2,4"}, kinds={"x": "i64"})
    assert "[[3], [B - B / 2]]" in text(model.typed)
    assert "[[0 * B + 3], [(B + 1) / 2]]" in text(model.typed, how=INTERCHANGE)
    x = np.zeros((5, 2, 4), np.int64)
    found = documents.run(tract.Model(cycled(model.typed, how=INTERCHANGE)), x)
    np.testing.assert_array_equal(found, x + np.array([[3], [3]]))


@pytest.mark.parametrize("pads", [((0, 0), (2, 3)), ((1, 0), (0, 2)), ((3, 0), (0, 0))])
def test_pads_that_go_around_are_slices_that_are_joined(pads: tuple[tuple[int, int], ...]) -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,4,f32", model.symbols))
    model.set_outputs(model.wire_node("y", Pad(pads, PadWrap()), [x]))
    given = np.random.default_rng(2).random((3, 4), np.float32)
    found = documents.run(tract.Model(cycled(model, how=INTERCHANGE)), given)
    np.testing.assert_array_equal(found, np.pad(given, pads, mode="wrap"))


def test_pads_that_go_around_more_than_once_are_refused() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("4,f32", model.symbols))
    model.set_outputs(model.wire_node("y", Pad(((5, 0),), PadWrap()), [x]))
    with pytest.raises(tract.errors.Unsupported, match="node 'y': Pad cannot be written"):
        text(model, how=INTERCHANGE)


@pytest.mark.parametrize("start", [0, -1])
def test_a_range_of_sizes(start: int) -> None:
    bounds = ", ".join(f"tract_core_cast({bound}, to = 'i64')" for bound in (start, "2*B", 1))
    body = f"y = add(x, unsqueeze(tract_core_range({bounds}), axes = [1]));"
    model = documents.read(body, {"x": f"2*B-({start}),3"}, kinds={"x": "i64"})
    ours, theirs = (text(model.typed, how=how) for how in (Writing(), INTERCHANGE))
    count = "2 * B + 1" if start else "2 * B"
    said = f'tract_core_cast(tract_core_range({start}, 2 * B, 1, announced = [{count}]), to = "i64")'
    assert f"= {said};" in ours
    assert (f"= abs({said});" if start == 0 else f"= {said};") in theirs
    x = np.arange(3 * (4 - start)).reshape(-1, 3)
    for how in (Writing(), INTERCHANGE):
        found = documents.run(tract.Model(cycled(model.typed, how=how)), x)
        np.testing.assert_array_equal(found, x + np.arange(start, 4)[:, None])


def test_a_mask_of_booleans() -> None:
    model = TypedModel()
    facts = {"q": "B,S,8,f32", "k": "B,P,8,f32", "v": "B,P,3,f32", "mask": "S,P,bool"}
    inputs = [model.add_source(name, parse_typed_fact(fact, model.symbols)) for name, fact in facts.items()]
    model.set_outputs(model.wire_node("y", Sdpa(0.5), inputs))
    how = Writing(registries=frozenset({CORE, TRANSFORMERS}))
    written = text(model, how=how)
    assert "y_mask = select(mask, [[0.0]], [[-inf]]);" in written
    assert "mask = y_mask" in written
    rng = np.random.default_rng(3)
    arrays = [rng.random(shape, np.float32) for shape in ((2, 3, 8), (2, 5, 8), (2, 5, 3))]
    arrays.append(np.arange(15).reshape(3, 5) % 4 < 2)
    scores = np.einsum("bsd,bpd->bsp", arrays[0], arrays[1]).astype(np.float64) / 2
    weights = np.exp(scores) * arrays[3]
    wanted = weights / weights.sum(-1, keepdims=True) @ arrays[2]
    np.testing.assert_allclose(documents.run(tract.Model(cycled(model, how=how)), *arrays), wanted, rtol=1e-5)


@pytest.mark.parametrize("sizes", [(5, 7), (1, 3), (41, 2)])
@pytest.mark.parametrize("given", [(3, 4), (7, 41)])
def test_images_are_resized_by_factors(sizes: tuple[int, int], given: tuple[int, int]) -> None:
    body = f"y = tract_core_resize(x, sizes = [B, 2, {sizes[0]}, {sizes[1]}], interpolator = 'linear', axes = [2, 3]);"
    model = documents.read(body, {"x": f"B,2,{given[0]},{given[1]}"})
    assert f"sizes = [B, 2, {sizes[0]}, {sizes[1]}]" in text(model.typed)
    assert "sizes" not in text(model.typed, how=INTERCHANGE)
    x = np.random.default_rng(1).random((3, 2, *given), np.float32)
    found = documents.run(tract.Model(cycled(model.typed, how=INTERCHANGE)), x)
    assert found.shape == (3, 2, *sizes)
    np.testing.assert_allclose(found, documents.run(model, x), rtol=1e-5, atol=1e-6)
