"""What callers get wrong, and what they hand over that is no array or number of theirs: an error that says so."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import numpy as np
import pytest
from onnx_policies import mlp
from policies import Recurrent
from tract_inferers import (
    AgentSnapshot,
    BaseWrapper,
    BasicInferer,
    Batched,
    Batcher,
    BrainsFailed,
    ConstantGenerator,
    DynamicInferer,
    EpsilonInjector,
    FixedBatchInferer,
    HighQualityNoiseGenerator,
    IncompatibleInferer,
    Inferer,
    LowQualityNoiseGenerator,
    MemoizingDynamicInferer,
    OrphanedData,
    RecurrentInfo,
    RecurrentTracker,
    Runtime,
    Slot,
    StatefulInferer,
)
from tract_inferers.slots import as_slots

import tract_core as tract
from tract_core.errors import InputError

Array = np.ndarray[Any, Any]
COPIES = pytest.mark.parametrize(
    "again", [copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one))], ids=["copied", "pickled"]
)
OBS = np.arange(6, dtype=np.float32).reshape(2, 3)


def policy(seed: int = 3) -> RecurrentTracker:
    noisy = EpsilonInjector.with_generator(Recurrent(), HighQualityNoiseGenerator(seed), "eps")
    return RecurrentTracker.wrap(noisy, unbegun="begin")


NO_INFERERS = (None, "policy.onnx", DynamicInferer, object(), Runtime(), BaseWrapper(), [Recurrent()])
TAKERS: dict[str, Callable[[Any], object]] = {
    "runtime": lambda one: Runtime().add_inferer(one),
    "batcher": Batcher,
    "execute": lambda one: Batcher(Recurrent()).execute(one),
    "stack": lambda one: StatefulInferer(BaseWrapper(), one),
    "noise": lambda one: EpsilonInjector(one, "eps"),
    "memory": RecurrentTracker.wrap,
    "pairs": lambda one: RecurrentTracker.new(one, [RecurrentInfo("h", "h")]),
    "replace": lambda one: policy().replace_inferer(one),
    "with_new": lambda one: policy().with_new_inferer(one),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize("wrong", NO_INFERERS, ids=lambda one: type(one).__name__)
def test_what_is_no_inferer_is_refused(take: Callable[[Any], object], wrong: object) -> None:
    with pytest.raises(InputError, match="wanted an inferer, got "):
        take(wrong)


def test_an_error_within_an_inferer_is_not_taken_for_another_class() -> None:
    class Broken(Recurrent):
        def raw_output_shapes(self) -> Any:
            raise TypeError("of its own")

    with pytest.raises(TypeError, match="of its own"):
        Batcher(Broken())


@pytest.mark.parametrize("kind", [BasicInferer, DynamicInferer, MemoizingDynamicInferer])
def test_a_model_is_given_to_from_model(kind: Any) -> None:
    model = tract.onnx().load_bytes(mlp("N"))
    for make in (kind, lambda one: FixedBatchInferer(one, [2])):
        with pytest.raises(InputError, match=r"wanted a (Policy|Single), got InferenceModel\n.*from_model"):
            make(model)


def test_other_parts_of_a_stack() -> None:
    with pytest.raises(InputError, match="wanted an InfererWrapper, got Recurrent"):
        StatefulInferer(Recurrent(), Recurrent())
    with pytest.raises(InputError, match="noise for input 'eps': wanted a NoiseGenerator, got int"):
        Recurrent().with_epsilon(3, "eps")
    with pytest.raises(InputError, match=r"\('h', 'h'\) is no pair, wanted RecurrentInfo"):
        RecurrentTracker.new(Recurrent(), [("h", "h")])
    with pytest.raises(InputError, match="None is no pair"):
        RecurrentTracker.new(Recurrent(), None)
    with pytest.raises(InputError, match="initial: is a list, wanted a dictionary"):
        RecurrentTracker.wrap(Recurrent(), initial=[1, 2])
    with pytest.raises(InputError, match="snapshot: wanted an AgentSnapshot, got dict"):
        policy().restore({})
    with pytest.raises(InputError, match="wanted float32 of shape"):
        policy().restore(AgentSnapshot((1,), {"h": [[0.0, 0.0]], "noise:eps": [0]}))


class Foreign:
    """An array of another library. ``problem``: what it raises in place of giving it."""

    def __init__(self, array: Array, problem: Exception | None = None) -> None:
        self.array, self.problem = array, problem

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if self.problem is not None:
            raise self.problem
        return self.array


class OnOtherDevice(Foreign):
    def __dlpack__(self, **_: object) -> object:
        raise BufferError("it is on a GPU")

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


def test_arrays_of_other_libraries() -> None:
    wanted = policy().infer_many([1, 2], {"obs": OBS}).arrays["act"]
    assert np.array_equal(policy().infer_many([1, 2], {"obs": Foreign(OBS)}).arrays["act"], wanted)
    for wrong in (Foreign(OBS, RuntimeError("it needs a gradient")), OnOtherDevice(OBS)):
        with pytest.raises(InputError, match=r"input 'obs': a [\w.]+ cannot be read.*\n.*bring it to the CPU"):
            policy().infer_many([1, 2], {"obs": wrong})
        with pytest.raises(InputError, match="agent 1: input 'obs'"):
            Batcher(policy()).push(1, {"obs": wrong})


def test_a_mask_is_not_lost() -> None:
    masked = np.ma.masked_array(OBS, mask=OBS > 3)
    with pytest.raises(InputError, match="input 'obs': is a masked array, whose mask would be lost"):
        policy().infer_many([1, 2], {"obs": masked})
    with pytest.raises(InputError, match="ids: agents are a sequence of integers, got MaskedArray"):
        policy().infer_many(np.ma.masked_array([1, 2], mask=[True, False]), {"obs": OBS})


def test_numbers_that_a_type_does_not_have() -> None:
    with pytest.raises(InputError, match=r"input 'obs': \[\[1e\+300, 0, 0\].* is no float32"):
        policy().infer_many([1], {"obs": [[1e300, 0, 0]]})
    inferer = policy()
    inferer.infer_many([1], {"obs": [[float("inf"), 0, 0]]})
    assert np.isinf(inferer.snapshot().arrays["h"]).tolist() == [[True, False]]


@pytest.mark.parametrize("wrong", [None, 3, [], [(1, {"obs": OBS[0]})]], ids=str)
def test_a_batch_is_a_dictionary(wrong: Any) -> None:
    with pytest.raises(
        InputError, match=f"a batch is a dictionary from agents to observations, got {type(wrong).__name__}"
    ):
        policy().infer_batch(wrong)


@pytest.mark.parametrize("wrong", [None, 3, "ab", [1, 2]], ids=str)
def test_what_is_pushed_are_pairs(wrong: Any) -> None:
    batcher = Batcher(policy())
    with pytest.raises(InputError, match="a batch is a dictionary from agents to observations, or such pairs; got"):
        batcher.extend(wrong)
    assert batcher.is_empty()


@pytest.mark.parametrize("wrong", [None, "x", 1.5, -1, 2**64, float("nan"), True, [1], np.float32(1)], ids=str)
def test_agents_that_come_and_go_are_numbers(wrong: Any) -> None:
    for inferer in (EpsilonInjector(Recurrent(), "eps"), policy()):
        for call in (inferer.begin_agent, inferer.end_agent):
            with pytest.raises(InputError, match="an agent is an integer from 0 to"):
                call(wrong)
        assert inferer.snapshot().agents == ()
    inferer.begin_agent(np.int64(7))
    assert inferer.snapshot().agents == (7,)
    assert type(inferer.snapshot().agents[0]) is int


@pytest.mark.parametrize("wrong", [-1, 1.5, "3", None], ids=str)
def test_room_is_a_number_of_rows(wrong: Any) -> None:
    with pytest.raises(InputError, match=r"size: is .*, wanted an integer from 0"):
        Batcher.new_sized(Recurrent(), wrong)


@pytest.mark.parametrize(
    "wrong", [10**400, np.timedelta64(1, "s"), True, float("nan"), 1j, "1", None], ids=lambda one: str(one)[:9]
)
def test_budgets(wrong: Any) -> None:
    with Runtime() as runtime:
        brain = runtime.add_inferer(policy())
        runtime.push(brain, 1, {"obs": OBS[0]})
        for run in (runtime.run_for, runtime.run_for_threaded):
            with pytest.raises(InputError, match=r"budget: is .*, wanted seconds, or a timedelta"):
                run(wrong)
        assert runtime.waiting(brain) == 1


def test_more_threads_than_there_can_be_cost_nothing() -> None:
    with Runtime(threads=10**12) as runtime:
        brain = runtime.add_inferer(policy())
        runtime.push(brain, 1, {"obs": OBS[0]})
        assert list(runtime.run_for_threaded(timedelta(seconds=1))) == [brain]
        assert not runtime.run_for_threaded(1)


def test_numbers_of_numpy_are_numbers() -> None:
    with Runtime(threads=np.int64(2)) as runtime:
        brain = runtime.add_inferer(policy())
        runtime.push(np.int64(brain), np.uint8(4), {"obs": OBS[0]})
        assert runtime.run_for(np.float32(1))[brain].ids == [4]


@pytest.mark.parametrize(
    ("value", "dtype", "is_right"),
    [
        (1.0, "u1", True), (0.5, "u1", False), (300, "u1", False), (float("nan"), "i8", False), (1, "?", True),
        (0.1, "f4", True), (1e300, "f4", False), (float("inf"), "f2", True), (70000.0, "f2", False),
        (10**400, "f4", False),
    ],
)  # fmt: skip
def test_constants_are_those_that_a_type_has(value: Any, dtype: str, is_right: bool) -> None:
    for rows in (0, 2):
        out, ids = np.zeros((rows, 3), dtype), np.arange(rows, dtype=np.uint64)
        if is_right:
            ConstantGenerator(value).generate(out, ids=ids, steps=ids, brain=0)
            assert np.array_equal(out, np.full_like(out, value))
        else:
            with pytest.raises(InputError, match=f"is no {np.dtype(dtype).name}"):
                ConstantGenerator(value).generate(out, ids=ids, steps=ids, brain=0)


def test_a_constant_is_a_number() -> None:
    for wrong in ("1", None, 1j, [1]):
        with pytest.raises(InputError, match="is no number"):
            ConstantGenerator(wrong)


@COPIES
def test_a_policy_is_copied_with_its_agents(again: Callable[[Any], Any]) -> None:
    one = policy()
    one.infer_many([1, 2], {"obs": OBS})
    other = again(one)
    first = [it.infer_many([1, 2], {"obs": OBS}).arrays["act"] for it in (one, other)]
    assert np.array_equal(*first)
    one.infer_many([1, 2], {"obs": OBS + 1})  # each goes on alone
    second = [it.infer_many([1, 2], {"obs": OBS}).arrays["act"] for it in (one, other)]
    assert not np.array_equal(*second)


@COPIES
def test_a_stream_of_noise_is_copied_where_it_is(again: Callable[[Any], Any]) -> None:
    def draw(generator: LowQualityNoiseGenerator) -> Array:
        out, ids = np.empty(5, np.float32), np.zeros(5, np.uint64)
        generator.generate(out, ids=ids, steps=ids, brain=0)
        return out

    one = LowQualityNoiseGenerator(5)
    before = draw(one)
    other = again(one)
    after = draw(one)
    assert np.array_equal(draw(other), after)
    assert not np.array_equal(before, after)


def test_noise_of_large_batches_is_not_kept() -> None:
    generator = HighQualityNoiseGenerator(1)
    for rows in (*range(4000, 4064), *range(1, 200)):
        out, ids = np.empty((rows, 64), np.float32), np.arange(rows, dtype=np.uint64)
        for step in range(3):
            generator.generate(out, ids=ids, steps=np.full(rows, step, np.uint64), brain=rows)
    assert len(pickle.dumps(generator)) < 3 << 20


def test_a_waiting_row_is_replaced_where_it_is() -> None:
    inferer: Inferer = policy()
    batcher = Batcher(inferer)
    batcher.push_many([5, 6, 7], {"obs": np.zeros((3, 3), np.float32)})
    batcher.drop([5])
    batcher.push(8, {"obs": OBS[0]})
    batcher.push(7, {"obs": OBS[1]}, replace=True)
    assert {agent: one["obs"].tolist() for agent, one in batcher.pending().items()} == {
        6: [0, 0, 0], 7: OBS[1].tolist(), 8: OBS[0].tolist(),
    }  # fmt: skip
    assert batcher.execute(inferer).ids == [6, 7, 8]


def test_the_name_of_an_output_in_the_place_of_an_agent() -> None:
    responses = policy().infer_many([1, 2], {"obs": OBS})
    with pytest.raises(KeyError, match=r"no response for agent 'act'; whole arrays are in \.arrays\['act'\]"):
        responses["act"]
    with pytest.raises(KeyError, match=r"no response for agent 3.$"):
        responses[3]
    assert 3 not in responses
    assert responses.get(3) is None


def test_a_set_does_not_tell_whose_the_rows_are() -> None:
    one = policy()
    with pytest.raises(InputError, match="ids: a set has no order"):
        one.infer_many({1, 2}, {"obs": OBS})
    with pytest.raises(InputError, match="ids: a set has no order"):
        Batcher(one).push_many(frozenset({1, 2}), {"obs": OBS})
    assert one.infer_many({1: 0, 2: 0}, {"obs": OBS}).ids == [1, 2]
    one.begin_agents({5, 6})  # there no rows are


def test_an_empty_batcher_is_a_batcher() -> None:
    batched = Batched(policy(), Batcher(policy(), refuse_nan=True))
    with pytest.raises(InputError, match="not a number"):
        batched.push(1, {"obs": [float("nan"), 0, 0]})


def test_a_batch_is_not_run_without_the_stack_that_fills_its_inputs() -> None:
    model = Recurrent()
    stack = RecurrentTracker.wrap(model, unbegun="begin")
    batcher = Batcher(stack)
    batcher.push(1, {"obs": OBS[0], "eps": OBS[0, :2]})
    with pytest.raises(
        IncompatibleInferer, match="input 1 is h: 2,float32, wanted eps: 2,float32; input 2, eps: 2,float32, is one too"
    ):
        batcher.execute(model)
    assert len(batcher) == 1
    batcher.execute(RecurrentTracker.wrap(model, unbegun="begin"))


def test_slots_are_what_numpy_understands() -> None:
    slot = Slot("a", [np.int64(2), 3], "f2")
    assert slot == Slot("a", (2, 3), np.dtype(np.float16))
    assert str(slot) == "a: 2,3,float16"
    for wrong in ("a", ("a", 3), ("a", (1,), 2), 3, None):
        with pytest.raises(InputError, match="slot"):
            as_slots([wrong])
    for wrong in (("a", 3), ("a", (1.5,)), ("a", (-1,)), (3, (1,)), ("a", (1,), "nonsense"), ("a", None)):
        with pytest.raises(InputError, match="slot"):
            Slot(*wrong)


@pytest.mark.parametrize("size", [None, 1.5, "1", 0, -1])
def test_a_size_that_is_none_ends_the_run(size: Any) -> None:
    inferer = Recurrent()
    inferer.select_batch_size = lambda _: size
    with pytest.raises(InputError, match=r"select_batch_size\(2\) of Recurrent is .*, wanted 1 or more"):
        inferer.infer_many([1, 2], {"obs": OBS, "h": OBS[:, :2], "eps": OBS[:, :2]})


@COPIES
def test_what_an_error_holds_is_there_when_it_is_copied(again: Callable[[Any], Any]) -> None:
    orphaned = again(OrphanedData("they waited", orphans={3: {7: {"obs": 1}}}, where="here"))
    assert orphaned.orphans == {3: {7: {"obs": 1}}}
    assert str(orphaned).startswith("here: they waited")
    failed = again(BrainsFailed("one failed", errors={3: ValueError("why")}, responses={4: 5}))
    assert repr(failed.errors) == "{3: ValueError('why')}"
    assert failed.responses == {4: 5}
