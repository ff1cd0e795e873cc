"""Caches give all that came so far, whatever the turns, and tell the model how long the past is."""

from __future__ import annotations

import pickle
from itertools import accumulate

import numpy as np
import pytest
from cache_models import RUNTIMES, P, S, around, pieces, state_of, turn, two_caches
from tract_transformers.ops.kv_cache import DynKvCache

import tract_core as tract
from tract_core.api.model import Model
from tract_core.dims import Dim, symbol
from tract_core.errors import FactError, InputError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.reduce import Reduce, Reducer
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput
from tract_core.transforms.apply import apply_transform
from tract_core.transforms.select import SelectOutputs
from tract_core.transforms.set_symbols import SetSymbols

TURNS = [0, 1, 2, 7, 0, 1]


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize("runtime", RUNTIMES)
@pytest.mark.parametrize("kind", ["f32", "f16"])
@pytest.mark.parametrize(
    ("shape", "axis"), [((1, 2, 0, 4), 2), ((0, 3), 0), ((2, 3, 0), 2), ((0, 2, 0, 4), 2), ((2, 0, 1), 1)]
)
def test_everything_so_far_comes_out(runtime, kind, shape, axis, rng) -> None:
    sizes = ["S" if place == axis else str(size) for place, size in enumerate(shape)]
    state = state_of(around(DynKvCache("past", axis, P), ",".join([*sizes, kind])), runtime)
    coming = pieces(rng, shape, axis, TURNS, f"f{int(kind[1:]) // 8}")
    for count, piece in enumerate(coming, 1):
        (found,) = turn(state, piece)
        wanted = np.concatenate(coming[:count], axis)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_the_past_has_its_length_before_the_first_node_runs(runtime, rng) -> None:
    model = two_caches()
    state, other = state_of(model, runtime), state_of(model, runtime)
    keys, values = (pieces(rng, (1, 2, 0, 4), 2, TURNS, "f4") for _ in range(2))
    for count, (k, v, end) in enumerate(zip(keys, values, accumulate(TURNS), strict=True), 1):
        sums, twice, positions = turn(state, k, v)
        np.testing.assert_array_equal(sums, np.concatenate(keys[:count], 2) + np.float32(2))
        np.testing.assert_array_equal(twice, np.concatenate(values[:count], 2) * 2)
        np.testing.assert_array_equal(positions, np.arange(end - k.shape[2], end))
    np.testing.assert_array_equal(turn(other, keys[3], values[3])[2], np.arange(7))
    state.reset()
    np.testing.assert_array_equal(turn(state, keys[2], values[2])[2], np.arange(2))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_frozen_state_goes_on_elsewhere(runtime, rng) -> None:
    state = state_of(two_caches(), runtime)
    first, second, third = (pieces(rng, (1, 2, 0, 4), 2, [3, size], "f4") for size in (3, 2, 1))
    turn(state, first[0], first[1])
    frozen = state.freeze()
    turn(state, second[0][:, :, :2], second[1])
    for copy in (frozen, pickle.loads(pickle.dumps(frozen))):
        other = copy.unfreeze()
        sums, _, positions = turn(other, third[0][:, :, :1], third[1])
        wanted = np.concatenate([first[0], third[0][:, :, :1]], 2) + np.float32(2)
        np.testing.assert_array_equal(sums, wanted)
        np.testing.assert_array_equal(positions, [3])
    assert turn(state, first[0], first[1])[2].tolist() == [5, 6, 7]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_caches_of_one_symbol_agree(runtime, rng) -> None:
    state = state_of(two_caches(values="1,2,T,4,f32"), runtime)
    (one, two) = pieces(rng, (1, 2, 0, 4), 2, [1, 2], "f4")
    turn(state, one, two)
    with pytest.raises(RunError, match=r"node 'values'.*holds 2 positions, wanted P, where P is 1 by node 'keys'"):
        turn(state, one, one)
    state.reset()
    turn(state, one, one)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_turn_that_fails_leaves_all_caches_as_they_were(runtime, rng) -> None:
    state = state_of(two_caches("1,2,S,4,f32", "1,H,S,4,f32"), runtime)
    k, v = pieces(rng, (1, 2, 0, 4), 2, [3, 3], "f4")
    turn(state, k, v)
    with pytest.raises(RunError, match=r"node 'values'.*shape \[1, 2, \*, 4\], found \[1, 1, \*, 4\]"):
        turn(state, k, v[:, :1])
    sums, twice, positions = turn(state, k[:, :, :1], v[:, :, :1])
    np.testing.assert_array_equal(sums, np.concatenate([k, k[:, :, :1]], 2) + np.float32(2))
    np.testing.assert_array_equal(twice, np.concatenate([v, v[:, :, :1]], 2) * 2)
    assert positions.tolist() == [3]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_inputs_agree_with_the_past(runtime) -> None:
    model = around(DynKvCache("past", 1, P), "1,S,f32")
    mask = model.add_source("mask", parse_typed_fact("P+S,f32", model.symbols))
    model.set_outputs([*model.outputs, mask])
    state, x = state_of(model, runtime), np.ones((1, 2), np.float32)
    turn(state, x, np.ones(2, np.float32))
    turn(state, x, np.ones(4, np.float32))
    with pytest.raises(InputError, match="'mask'"):
        turn(state, x, np.ones(5, np.float32))
    assert turn(state, x, np.ones(6, np.float32))[0].shape == (1, 6)


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_what_is_asserted_of_the_past_is_checked_in_every_turn(runtime) -> None:
    model, x = around(DynKvCache("past", 0, P), "S,f32"), np.ones(2, np.float32)
    model.symbols.add_assertion("P+S<=5")
    state = state_of(model, runtime)
    turn(state, x)
    turn(state, x)
    for _ in range(2):
        with pytest.raises(InputError, match=r"P\+S<=5"):
            turn(state, x)
    assert turn(state, x[:1])[0].size == 5


def test_what_the_caller_does_to_arrays_is_his_own_business() -> None:
    state, x = state_of(around(DynKvCache("past", 0, P), "S,f32"), "reference"), np.ones(2, np.float32)
    (found,) = state.run([x])
    x[...] = 5
    with pytest.raises(ValueError, match="read-only"):
        np.asarray(found)[...] = 7
    np.testing.assert_array_equal(turn(state, x)[0], [1, 1, 5, 5])


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_past_may_be_some_of_a_symbol(runtime) -> None:
    model = around(DynKvCache("past", 0, 2 * P + 0), "2*S,f32")
    model.set_outputs([*model.outputs, model.add_const("past", [P])])
    state = state_of(model, runtime)
    found = [turn(state, np.ones(2 * size, np.float32))[1].item() for size in (1, 3, 2)]
    assert found == [0, 1, 4]


def test_a_past_of_a_fixed_length_is_checked() -> None:
    model = apply_transform(around(DynKvCache("past", 0, P), "S,f32"), SetSymbols({"P": 0}))
    state = state_of(model, "reference")
    turn(state, np.ones(2, np.float32))
    with pytest.raises(RunError, match="holds 2 positions, wanted 0"):
        turn(state, np.ones(2, np.float32))


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_cache_stays_for_what_it_tells(runtime) -> None:
    model = apply_transform(two_caches(), SelectOutputs(["positions"]))
    assert [node.name for node in model.live_nodes() if isinstance(node.op, DynKvCache)] == ["keys"]
    state, x = state_of(model, runtime), np.zeros((1, 2, 2, 4), np.float32)
    assert [turn(state, x, x)[0].tolist() for _ in range(2)] == [[0, 1], [2, 3]]


def test_a_cache_that_nobody_needs_goes() -> None:
    model = apply_transform(two_caches(), SelectOutputs(["twice"]))
    assert [node.name for node in model.live_nodes() if isinstance(node.op, DynKvCache)] == ["values"]


@pytest.mark.parametrize("runtime", RUNTIMES)
def test_a_cache_inside_of_a_loop_grows_in_every_iteration(runtime) -> None:
    body, model = TypedModel(), TypedModel()
    x = body.add_source("x", parse_typed_fact("1,2,f32", body.symbols))
    (cached,) = body.wire_node("cache", DynKvCache("past", 0, P), [x])
    body.set_outputs(body.wire_node("sum", Reduce((0,), Reducer.SUM), [cached]))
    loop = Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)),))
    x = model.add_source("x", parse_typed_fact("S,2,f32", model.symbols))
    model.set_outputs(model.wire_node("loop", loop, [x]))
    state = state_of(model, runtime)
    assert [turn(state, np.ones((size, 2), np.float32))[0][:, 0].tolist() for size in (2, 3)] == [[1, 2], [3, 4, 5]]


def test_two_caches_of_the_same_are_one() -> None:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("S,f32", model.symbols))
    model.set_outputs([model.wire_node(f"c{place}", DynKvCache("past", 0, P), [x])[0] for place in range(2)])
    state = state_of(model.declutter(), "reference")
    for wanted in (2, 4):
        assert [one.size for one in turn(state, np.ones(2, np.float32))] == [wanted] * 2


def test_what_reads_a_cache_is_native_code() -> None:
    placements = tract.runtime_for_name("cpu").prepare(Model(two_caches())).explain().placements
    hosted = {name for one in placements for name in one.names if one.how in {"numpy", "state"}}
    assert hosted == {"keys", "values"}


def test_a_model_says_which_symbols_have_values() -> None:
    model = two_caches()
    assert model.given_symbols() == {"P", "S"}
    assert model.told_symbols() == {"P"}
    assert model.symbols_of_inputs() == {"S"}


@pytest.mark.parametrize(
    ("axis", "past", "problem"),
    [
        (2, P, "axis 2"),
        (0, -1, "-1 positions"),
        (0, P + symbol("Q"), "wanted a number, or one symbol"),
        (0, 3 - P, "wanted a number, or one symbol"),
        (0, P * S, "wanted a number, or one symbol"),
        (0, P // 2, "wanted a number, or one symbol"),
    ],
)
def test_a_past_that_no_state_can_tell_is_refused(axis: int, past: Dim, problem: str) -> None:
    with pytest.raises(FactError, match=problem):
        DynKvCache("past", axis, past).output_facts([parse_typed_fact("S,4,f32")])
