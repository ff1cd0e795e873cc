"""Batches: what is pushed comes back to whom it belongs to, and what does not fit changes nothing."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from toy_policies import FIRST, SECOND, SUM, TWICE, Toy, observation
from tract_inferers import Batched, Batcher, IncompatibleInferer, InfererExt, ScratchPad, ScratchPadView, Slot

from tract_core.errors import InputError, RunError

IDS = st.lists(st.integers(0, 2**64 - 1), unique=True, max_size=20)


def arrays(count: int, seed: int = 0) -> dict[str, np.ndarray]:
    random = np.random.default_rng(seed)
    return {
        "first": random.standard_normal((count, 2, 3)).astype(np.float32),
        "second": random.integers(-9, 9, count),
    }


def check(responses: Any, ids: list[int], given_: dict[str, np.ndarray]) -> None:
    """Each agent has what its own row gives, by agent and in whole arrays."""
    assert list(responses) == responses.ids == ids
    assert len(responses) == len(ids)
    sums = given_["first"].astype(np.float64).sum(axis=1) + given_["second"][:, None]
    np.testing.assert_allclose(responses.arrays["sum"], sums, rtol=1e-6, atol=1e-6)
    for row, agent in enumerate(ids):
        np.testing.assert_array_equal(responses[agent]["sum"], responses.arrays["sum"][row])
        assert responses[agent]["twice"] == 2 * given_["second"][row]
    for (agent, response), other, row in zip(responses.items(), responses.values(), range(len(ids)), strict=True):
        assert agent == ids[row]
        assert response.keys() == other.keys() == {"sum", "twice"}
        assert response["twice"] == other["twice"] == 2 * given_["second"][row]
        assert response["twice"].shape == ()


# -- the same rows, whichever way they go ------------------------------------------------------------------------------


@given(IDS, st.integers(1, 5))
def test_whole_arrays(ids: list[int], most: int) -> None:
    toy, rows = Toy(most), arrays(len(ids))
    check(toy.infer_many(ids, rows), ids, rows)
    assert sum(toy.calls) == len(ids)
    assert all(size <= most for size in toy.calls)


@given(IDS, st.integers(1, 5))
def test_dictionaries(ids: list[int], most: int) -> None:
    rows = arrays(len(ids))
    batch = {agent: {name: array[row] for name, array in rows.items()} for row, agent in enumerate(ids)}
    check(Toy(most).infer_batch(batch), ids, rows)


@given(IDS, st.integers(1, 5), st.integers(0, 20), st.integers(0, 4))
def test_pushed_in_every_way(ids: list[int], most: int, cut: int, size: int) -> None:
    rows, toy = arrays(len(ids)), Toy(most)
    batcher = Batcher(toy, size)
    first, second = ids[:cut], ids[cut:]
    for row, agent in enumerate(first):
        batcher.push(agent, {name: array[row] for name, array in rows.items()})
    batcher.push_many(second, {name: array[cut:] for name, array in rows.items()})
    assert len(batcher) == len(ids)
    assert batcher.is_empty() == (not ids)
    assert list(batcher.pending()) == ids
    check(batcher.execute(toy), ids, rows)
    assert batcher.is_empty()


def test_one_observation() -> None:
    assert Toy().infer_single(observation(1, 5))["twice"] == 10
    np.testing.assert_array_equal(Toy().infer_single(observation(1, 5), agent=8)["sum"], [7, 7, 7])


def test_infer_is_deprecated() -> None:
    with pytest.warns(DeprecationWarning, match="infer_batch"):
        assert Toy().infer({3: observation(1)})[3]["twice"] == 0


def test_batched() -> None:
    batched = Toy().into_batched()
    assert isinstance(batched, Batched)
    batched.push(1, observation(1))
    batched.extend({2: observation(2)})
    batched.extend([(3, observation(3))])
    batched.push_many([4], arrays(1))
    assert len(batched) == 4
    assert not batched.is_empty()
    assert list(batched.execute()) == [1, 2, 3, 4]
    toy, batcher = batched.into_parts()
    assert isinstance(toy, Toy)
    assert batcher.is_empty()


def test_no_agents() -> None:
    toy = Toy()
    for responses in (toy.infer_many([], arrays(0)), toy.infer_batch({}), Batcher(toy).execute(toy)):
        assert dict(responses) == {}
        assert responses.arrays["sum"].shape == (0, 3)
        assert responses.arrays["twice"].dtype == np.int64
    assert not toy.calls


def test_a_hundred_thousand_agents() -> None:
    ids, rows = np.arange(100_000)[::-1], arrays(100_000)
    responses = Toy().infer_many(ids, rows)
    np.testing.assert_array_equal(responses.arrays["twice"], 2 * rows["second"])
    assert responses[99_999]["twice"] == 2 * rows["second"][0]


def test_rows_arrive_in_the_order_of_pushes_and_in_place() -> None:
    """The arrays of a caller are those that the model reads."""
    seen: list[ScratchPadView] = []

    class Seeing(Toy):
        def infer_raw(self, pad: ScratchPadView) -> None:
            seen.append(pad)
            super().infer_raw(pad)

    rows = arrays(3)
    Seeing().infer_many([5, 3, 4], rows)
    assert seen[0].ids == [5, 3, 4]
    assert seen[0].inputs[0] is rows["first"]
    batcher = Batcher(Seeing())
    for _ in range(2):
        for agent in (9, 1, 5):
            batcher.push(agent, observation(agent))
        batcher.execute(Seeing())
    assert seen[1].ids == seen[2].ids == [9, 1, 5]
    assert np.shares_memory(seen[1].inputs[0], seen[2].inputs[0])
    assert not np.shares_memory(seen[1].outputs[0], seen[2].outputs[0])


def test_responses_stay_as_they_are() -> None:
    toy = Toy()
    batcher = Batcher(toy)
    batcher.push(1, observation(1, 1))
    first = batcher.execute(toy)
    batcher.push(1, observation(2, 2))
    batcher.execute(toy)
    assert first[1]["twice"] == 2
    assert pickle.loads(pickle.dumps(first))[1]["twice"] == 2
    assert copy.deepcopy(first)[1]["twice"] == 2
    with pytest.raises(KeyError):
        first[2]
    assert "1 agents" in repr(first)


# -- what is refused, before anything is written -----------------------------------------------------------------------

BAD = [
    ({"first": np.zeros((2, 3), np.float32)}, "input 'second' is missing; inputs: 'first', 'second'"),
    ({**observation(0), "secund": 0}, "there is no input 'secund'; inputs: .*(?s:.*)did you mean 'second'"),
    ({**observation(0), 5: 0}, "there is no input 5"),
    ({**observation(0), "first": np.zeros((3, 2), np.float32)}, r"input 'first': has shape \[3, 2\], wanted \[2, 3\]"),
    ({**observation(0), "first": np.zeros(7, np.float32)}, r"input 'first': has shape \[7\], wanted \[2, 3\]"),
    (
        {**observation(0), "first": np.zeros((2, 3))},
        r"input 'first': is float64, the policy wants float32(?s:.*)astype\('float32'\)",
    ),
    ({**observation(0), "second": 0.5}, "input 'second': 0.5 is no int64"),
    ({**observation(0), "second": 1 << 80}, "input 'second': .* is no int64"),
    ({**observation(0), "second": "1"}, "input 'second': '1' is no int64"),
    ({**observation(0), "first": [[1, 2, 3], [4, 5]]}, "input 'first': cannot be read as an array"),
    ({**observation(0), "first": None}, "input 'first': None is no float32"),
    ([("first", 1)], "an observation is a dictionary from names to arrays, got list"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=str)
def test_bad_observations(bad: Any, message: str) -> None:
    toy = Toy()
    batcher = Batcher(toy)
    batcher.push(1, observation(3, 1))
    before = batcher.pending()
    with pytest.raises(InputError, match=f"agent 2: {message}"):
        batcher.push(2, bad)
    with pytest.raises(InputError, match=message):
        batcher.extend([(5, observation(1)), (6, bad)])
    with pytest.raises(InputError, match=message):
        toy.infer_single(bad)
    assert list(batcher.pending()) == list(before) == [1]
    np.testing.assert_array_equal(batcher.pending()[1]["first"], before[1]["first"])
    batcher.push(2, observation(4, 2))
    batcher.push(5, observation(4, 2))
    responses = batcher.execute(toy)
    np.testing.assert_array_equal(responses[1]["sum"], [7, 7, 7])
    np.testing.assert_array_equal(responses[2]["sum"], [10, 10, 10])


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2, 1], "ids: agent 1 is there twice"),
        (np.array([4, 4, 2]), "agent 4 is there twice"),
        ([1, 2], r"input 'first': has shape \[3, 2, 3\], wanted \[2, 2, 3\]"),
        ([0, -1, 2], "there is an agent -1"),
        ([0.5, 1, 2], "a sequence of integers, got list"),
        (np.zeros((3, 1), int), r"a sequence of integers, got ndarray of shape \(3, 1\)"),
        (7, "a sequence of integers, got int"),
        ("abc", "a sequence of integers, got str"),
        ([1, 2, 1 << 64], "there is an agent 18446744073709551616; agents go from 0"),
        ([True, False, True], "a sequence of integers"),
    ],
    ids=str,
)
def test_bad_ids(ids: Any, message: str) -> None:
    toy = Toy()
    batcher = Batcher(toy)
    batcher.push(50, observation(3, 1))
    for run in (toy.infer_many, batcher.push_many):
        with pytest.raises(InputError, match=message):
            run(ids, arrays(3))
    assert not toy.calls
    assert list(batcher.pending()) == [50]


@pytest.mark.parametrize("agent", [-1, 1 << 64, "3", 1.0, None, True], ids=str)
def test_bad_agents(agent: Any) -> None:
    batcher = Batcher(Toy())
    with pytest.raises(InputError, match=r"an agent is an integer from 0 to 2\*\*64 - 1, got"):
        batcher.push(agent, observation(0))
    assert batcher.is_empty()


def test_an_agent_has_one_row() -> None:
    toy = Toy()
    batcher = Batcher(toy)
    batcher.push(3, observation(1, 1))
    for again in (lambda: batcher.push(3, observation(2)), lambda: batcher.push_many([4, 3], arrays(2))):
        with pytest.raises(InputError, match=r"agent 3: an observation of it waits already(?s:.*)replace=True"):
            again()
    assert batcher.execute(toy)[3]["twice"] == 2
    batcher.push(3, observation(1, 4))
    assert batcher.execute(toy)[3]["twice"] == 8


@pytest.mark.parametrize("many", [False, True])
def test_a_newer_observation_may_replace_one_that_waits(many: bool) -> None:
    toy = Toy()
    batcher = Batcher(toy)
    batcher.extend({agent: observation(agent, agent) for agent in (3, 5, 8)})
    if many:
        newer = {"first": np.zeros((2, 2, 3), np.float32), "second": np.array([50, 90])}
        batcher.push_many([5, 9], newer, replace=True)
        with pytest.raises(InputError, match="input 'second' is missing"):
            batcher.extend({3: {"first": np.zeros((2, 3), np.float32)}}, replace=True)
    else:
        batcher.push(5, observation(0, 50), replace=True)
        batcher.push(9, observation(0, 90), replace=True)
    found = {agent: int(response["twice"]) for agent, response in batcher.execute(toy).items()}
    assert found == {3: 6, 5: 100, 8: 16, 9: 180}


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"first": np.zeros((3, 2, 3), np.float32)}, "input 'second' is missing"),
        ({**arrays(3), "third": 1}, "there is no input 'third'"),
        ({**arrays(3), "first": np.zeros((3, 2, 3))}, "input 'first': is float64"),
        ({**arrays(3), "first": np.zeros((3, 2, 2), np.float32)}, r"has shape \[3, 2, 2\], wanted \[3, 2, 3\]"),
        ({**arrays(3), "second": np.zeros((3, 2), int)}, r"has shape \[3, 2\], wanted \[3\]"),
        (5, "an observation is a dictionary"),
    ],
    ids=str,
)
def test_bad_arrays(bad: Any, message: str) -> None:
    toy = Toy()
    batcher = Batcher(toy)
    for run in (toy.infer_many, batcher.push_many):
        with pytest.raises(InputError, match=message):
            run([1, 2, 3], bad)
    assert not toy.calls
    assert batcher.is_empty()


def test_not_a_number() -> None:
    nan = {"first": np.full((2, 3), np.nan, np.float32), "second": 0}
    assert np.isnan(Toy().infer_single(nan)["sum"]).all()
    batcher = Batcher(Toy(), refuse_nan=True)
    with pytest.raises(InputError, match="agent 4: input 'first': an element is not a number"):
        batcher.push(4, nan)
    rows = arrays(3)
    rows["first"][1, 0, 2] = np.nan
    for run in (batcher.push_many, lambda ids, given_: Toy().infer_many(ids, given_, refuse_nan=True)):
        with pytest.raises(InputError, match="input 'first': row 1 has an element that is not a number"):
            run([1, 2, 3], rows)
    assert batcher.is_empty()
    with pytest.raises(InputError, match="input 'first': an element is not a number"):
        Toy().infer_single(nan, refuse_nan=True)
    batcher.push(4, observation(np.inf))
    assert len(batcher) == 1


# -- what is taken, though it looks different --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "first",
    [
        [[1, 2, 3], [4, 5, 6]],
        np.arange(1, 7, dtype=np.float32),
        np.arange(1, 7, dtype=">f4").reshape(2, 3),
        np.arange(1, 7, dtype=np.float32).reshape(3, 2, order="F").T.copy().reshape(2, 3, order="F"),
        np.arange(1, 13, dtype=np.float32).reshape(2, 6)[:, :3],
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0],
    ],
    ids=str,
)
def test_other_ways_to_say_it(first: Any) -> None:
    want = np.asarray(first, np.float64).reshape(2, 3).sum(axis=0)
    np.testing.assert_array_equal(Toy().infer_single({"first": first, "second": 0})["sum"], want)
    whole = np.asarray([first, first]) if isinstance(first, list) else np.stack([first, first])
    found = Toy().infer_many([0, 1], {"first": whole.astype(np.float32), "second": np.zeros(2, int)})
    np.testing.assert_array_equal(found.arrays["sum"], [want, want])


def test_element_types_are_kept() -> None:
    large = {"first": np.zeros((2, 3), np.float32), "second": 2**61 + 1}
    assert Toy().infer_single(large)["twice"] == 2**62 + 2


# -- errors in the middle of a run -------------------------------------------------------------------------------------


@pytest.mark.parametrize("failing", [0, 1, 3])
def test_after_an_error_the_batch_is_as_it_was(failing: int) -> None:
    toy, rows = Toy(most=2, failing=[failing]), arrays(7)
    batcher = Batcher(toy)
    batcher.push_many(range(7), rows)
    with pytest.raises(RunError, match="the toy is broken"):
        batcher.execute(toy)
    assert len(batcher) == 7
    batcher.push(7, {"first": rows["first"][0], "second": rows["second"][0]})
    found = batcher.execute(toy)
    check(found, list(range(8)), {name: np.concatenate([array, array[:1]]) for name, array in rows.items()})


def test_what_was_remembered_is_brought_back() -> None:
    """Of several calls one fails: what the others changed is undone."""

    class Counting(Toy):
        def __init__(self) -> None:
            super().__init__(most=2, failing=[2])
            self.steps = dict.fromkeys(range(5), 0)

        def infer_raw(self, pad: ScratchPadView) -> None:
            super().infer_raw(pad)
            for agent in pad.ids:
                self.steps[agent] += 1

        def remember(self, ids: Any) -> Any:
            before = {agent: self.steps[agent] for agent in ids}
            return lambda: self.steps.update(before)

        def snapshot(self, ids: Any = None) -> Any: ...
        def restore(self, snapshot: Any) -> None: ...

    counting = Counting()
    with pytest.raises(RunError):
        counting.infer_many(range(5), arrays(5))
    assert set(counting.steps.values()) == {0}
    counting.infer_many(range(5), arrays(5))
    assert set(counting.steps.values()) == {1}


@pytest.mark.parametrize("size", [0, -3])
def test_an_inferer_that_wants_no_rows_ends_with_an_error(size: int) -> None:
    toy = Toy()
    toy.select_batch_size = lambda _: size  # pyright: ignore[reportAttributeAccessIssue]: a broken inferer
    with pytest.raises(InputError, match=rf"select_batch_size\(2\) of Toy is {size}, wanted 1 or more"):
        toy.infer_many([0, 1], arrays(2))


def test_an_inferer_that_wants_more_rows_than_there_are_gets_those() -> None:
    toy = Toy()
    toy.select_batch_size = lambda _: 4  # pyright: ignore[reportAttributeAccessIssue]: as above
    toy.infer_many(range(6), arrays(6))
    assert toy.calls == [4, 2]


class Other(Toy):
    def raw_output_shapes(self) -> Any:
        return SUM, Slot("twice", (), np.dtype(np.int32))


def test_a_batcher_belongs_to_an_interface() -> None:
    batcher = Batcher(Toy())
    batcher.push(1, observation(1))
    with pytest.raises(
        IncompatibleInferer,
        match=r"output 1 is twice: int32, wanted twice: int64; all outputs of the",
    ):
        batcher.execute(Other())
    assert batcher.execute(Toy(most=1))[1]["twice"] == 0


def test_rows_can_be_dropped() -> None:
    toy, rows = Toy(), arrays(5)
    batcher = Batcher(toy)
    batcher.push_many(range(5), rows)
    assert batcher.drop([2, 7]) == 1
    assert batcher.drop([2]) == 0
    assert 2 not in batcher
    assert 3 in batcher
    kept = [0, 1, 3, 4]
    check(batcher.execute(toy), kept, {name: array[kept] for name, array in rows.items()})


# -- shapes as plain pairs, and the scratch pad ------------------------------------------------------------------------


def test_an_inferer_may_say_its_shapes_as_pairs() -> None:
    class Plain(InfererExt):
        def select_batch_size(self, max_count: int) -> int:
            return max_count

        def infer_raw(self, pad: ScratchPadView) -> None:
            pad.output_slot(0)[...] = pad.input_slot(0) + 1

        def raw_input_shapes(self) -> Any:
            return [("x", [2])]

        def raw_output_shapes(self) -> Any:
            return [("y", [2])]

    np.testing.assert_array_equal(Plain().infer_single({"x": [1, 2]})["y"], [2, 3])
    np.testing.assert_array_equal(Plain().infer_many([4], {"x": np.ones((1, 2), np.float32)})[4]["y"], [2, 2])


def test_an_inferer_shows_what_it_takes_and_gives() -> None:
    assert repr(Toy()) == "Toy(first: 2,3,float32; second: int64 -> sum: 3,float32; twice: int64)"


def test_a_slot_is_a_pair_too() -> None:
    assert dict(Toy().input_shapes()) == {"first": (2, 3), "second": ()}
    name, shape = FIRST
    assert (name, shape, FIRST.dtype, FIRST.count) == ("first", (2, 3), np.float32, 6)
    assert [str(slot) for slot in (SECOND, TWICE)] == ["second: int64", "twice: int64"]


@given(st.integers(0, 3), st.integers(0, 40))
def test_a_pad_grows_and_keeps_its_rows(capacity: int, rows: int) -> None:
    pad = ScratchPad([FIRST, SECOND], [SUM], capacity)
    assert pad.capacity == capacity
    for row in range(rows):
        assert pad.next(100 + row) == row
        pad.push(0, row)
        pad.push(1, -row)
    assert len(pad) == rows
    assert pad.capacity >= rows
    np.testing.assert_array_equal(pad.inputs[0][:rows, 1, 2], np.arange(rows))
    np.testing.assert_array_equal(pad.inputs[1][:rows], -np.arange(rows))
    assert pad.inputs[0].flags.c_contiguous


def test_views_of_a_pad() -> None:
    pad = ScratchPad([FIRST, SECOND], [SUM])
    for row in range(5):
        pad.next(10 + row)
        pad.push(1, row)
    view = pad.chunk(1, 3, brain=7)
    assert (len(view), view.ids, view.brain) == (3, [11, 12, 13], 7)
    assert (view.input_name(1), view.output_name(0)) == ("second", "sum")
    ids, second = view.input_slot_with_id(1)
    assert ids == view.ids
    np.testing.assert_array_equal(second, [1, 2, 3])
    view.input_slot(1)[0] = 50
    assert pad.inputs[1][1] == 50
    assert view.output_slot_with_id(0)[1].shape == view.output_slot(0).shape == (3, 3)
    assert len(pad.chunk(4, 10)) == 1
    assert len(pad.chunk(9, 10)) == 0
    part = view.rows(1, 2)
    assert (part.ids, part.brain) == ([12, 13], 7)
    assert np.shares_memory(part.outputs[0], view.outputs[0])
    pad.clear()
    assert len(pad) == 0
