"""Noise: its words against NumPy's, its normals against the distribution, and what it depends on."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ml_dtypes import bfloat16
from policies import Affine, Recurrent
from tract_inferers import (
    BaseWrapper,
    ConstantGenerator,
    EpsilonInjector,
    EpsilonInjectorWrapper,
    HighQualityNoiseGenerator,
    LowQualityNoiseGenerator,
    Slot,
    StatefulInferer,
)
from tract_inferers.noise import epsilon
from tract_inferers.noise.philox import keys_of_rounds, scramble

from tract_core.errors import InputError

U64 = st.one_of(st.integers(0, 2**64 - 1), st.sampled_from([0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1]))


def noise_of(
    generator: Any, ids: Any, steps: Any, shape: tuple[int, ...] = (), dtype: Any = np.float64, *, brain: int = 0
) -> np.ndarray:
    agents = np.asarray(ids, np.uint64)
    out = np.full((len(agents), *shape), 77, dtype)
    generator.generate(out, ids=agents, steps=np.broadcast_to(np.asarray(steps, np.uint64), agents.shape), brain=brain)
    return out


def words_of_numpy(seed: int, brain: int, step: int, agent: int, count: int) -> list[int]:
    key, counter = np.array([seed, brain], np.uint64), np.array([0, step, agent, 0], np.uint64)
    return np.random.Philox(key=key, counter=counter).random_raw(count).tolist()


def normals_of_words(words: list[int]) -> list[float]:
    found = []
    for first, second in zip(words[::2], words[1::2], strict=True):
        radius = math.sqrt(-2 * math.log(((first >> 11) + 1) / 2**53))
        angle = 2 * math.pi * (second >> 11) / 2**53
        found += [radius * math.cos(angle), radius * math.sin(angle)]
    return found


@given(U64, U64, st.lists(st.tuples(U64, U64, U64), min_size=1, max_size=40))
def test_words_are_those_of_numpy(seed: int, brain: int, counters: list[tuple[int, int, int]]) -> None:
    block, step, agent = np.array(counters, np.uint64).T
    pair = (np.concatenate(halves) for halves in ((block, agent), (step, 0 * step)))
    even, odd = (words.reshape(2, -1) for words in scramble(*pair, keys_of_rounds(seed, brain)))
    found = np.stack([even[0], odd[0], even[1], odd[1]], axis=1).tolist()
    key = np.array([seed, brain], np.uint64)
    for counter, words in zip(counters, found, strict=True):
        # NumPy counts on before it makes the first block
        whole = (sum(word << 64 * place for place, word in enumerate((*counter, 0))) - 1) % 2**256
        before = np.array([whole >> 64 * place & (2**64 - 1) for place in range(4)], np.uint64)
        assert words == np.random.Philox(key=key, counter=before).random_raw(4).tolist()


@given(U64, st.integers(0, 65535), U64, st.lists(U64, min_size=1, max_size=9, unique=True), st.integers(1, 11))
def test_normals_are_made_of_those_words(seed: int, brain: int, step: int, agents: list[int], count: int) -> None:
    found = noise_of(HighQualityNoiseGenerator(seed), agents, step, (count,), brain=brain)
    for agent, row in zip(agents, found, strict=True):
        wanted = normals_of_words(words_of_numpy(seed, brain, step, agent, 4 * -(-count // 4)))[:count]
        np.testing.assert_allclose(row, wanted, rtol=1e-12, atol=1e-14)


def test_many_agents_are_made_of_those_words() -> None:
    found = noise_of(HighQualityNoiseGenerator(3), range(3000), 5, (2, 3))
    for agent in (0, 1, 511, 512, 1023, 1024, 2047, 2999):
        np.testing.assert_allclose(found[agent].ravel(), normals_of_words(words_of_numpy(3, 0, 5, agent, 8))[:6], 1e-12)


@pytest.mark.parametrize("dtype", [np.float16, bfloat16, np.float32])
def test_normals_are_rounded_to_the_type_of_the_input(dtype: Any) -> None:
    exact = noise_of(HighQualityNoiseGenerator(3), range(100), 5, (3,))
    rounded = noise_of(HighQualityNoiseGenerator(3), range(100), 5, (3,), dtype)
    assert rounded.dtype == dtype
    assert rounded.tobytes() == exact.astype(dtype).tobytes()


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 6), st.sampled_from([np.float64, np.float32]))
def test_noise_depends_on_agent_and_step_alone(seed: int, count: int, dtype: Any) -> None:
    random = Random(seed)
    agents = [random.getrandbits(64) for _ in range(50)]
    steps = dict.fromkeys(agents, 0)
    generator = HighQualityNoiseGenerator(11)
    for _ in range(12):
        batch = random.sample(agents, random.choice([1, 2, 50])) if random.random() < 0.5 else agents
        found = noise_of(generator, batch, [steps[agent] for agent in batch], (count,), dtype)
        for agent, row in zip(batch, found, strict=True):
            alone = noise_of(HighQualityNoiseGenerator(11), [agent], [steps[agent]], (count,), dtype)
            assert row.tobytes() == alone.tobytes()
            steps[agent] += 1


def test_steps_one_after_the_other_are_those_asked_for_alone() -> None:
    generator = HighQualityNoiseGenerator(1)
    start = 2**64 - 30  # the number of steps begins again at 0
    for turn in range(100):
        step = (start + turn) % 2**64
        found = noise_of(generator, [4, 9], [step, step], (3,))
        assert found.tobytes() == noise_of(HighQualityNoiseGenerator(1), [4, 9], [step, step], (3,)).tobytes()
    apart = noise_of(HighQualityNoiseGenerator(1), [4, 9], [5, 6])
    assert noise_of(generator, [4, 9], [5, 6]).tobytes() == apart.tobytes()


def test_brains_and_seeds_have_noise_of_their_own() -> None:
    generator = HighQualityNoiseGenerator(7)
    rows = [noise_of(generator, [1], 0, (4,), brain=brain)[0].tolist() for brain in range(3)]
    rows += [noise_of(HighQualityNoiseGenerator(8), [1], 0, (4,))[0].tolist()]
    assert len({number for row in rows for number in row}) == 16
    assert HighQualityNoiseGenerator().seed != HighQualityNoiseGenerator().seed


@pytest.mark.parametrize("kind", [HighQualityNoiseGenerator, LowQualityNoiseGenerator])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_noise_is_standard_normal(kind: Any, dtype: Any) -> None:
    agents, steps, count, generator = 200, 100, 10, kind(20)
    values = np.stack([noise_of(generator, range(agents), step, (count,), dtype) for step in range(steps)])
    flat = np.sort(values.ravel().astype(np.float64))
    size = flat.size
    # each bound is five standard errors of its estimate
    assert abs(flat.mean()) < 5 / math.sqrt(size)
    assert abs(flat.var() - 1) < 5 * math.sqrt(2 / size)
    assert abs((flat**3).mean()) < 5 * math.sqrt(15 / size)
    assert abs((flat**4).mean() - 3) < 5 * math.sqrt(96 / size)
    cdf = 0.5 * (1 + np.array([math.erf(value / math.sqrt(2)) for value in flat]))
    rank = np.arange(size)
    distance = max(np.max((rank + 1) / size - cdf), np.max(cdf - rank / size))
    assert distance < 1.95 / math.sqrt(size)  # Kolmogorov's law: exceeded once in a thousand
    assert flat[-1] > 4
    for first, second in (
        (values[:, 1:], values[:, :-1]),  # agents
        (values[1:], values[:-1]),  # steps
        (values[..., 1:], values[..., :-1]),  # elements
        (values[..., 1::2], values[..., ::2]),  # the two of a pair
    ):
        one, other = first.astype(np.float64), second.astype(np.float64)
        assert abs(np.mean(one * other)) < 5 / math.sqrt(one.size)
        assert abs(np.mean((one**2 - 1) * (other**2 - 1))) < 5 * 2 / math.sqrt(one.size)


def test_the_cheap_stream_is_that_of_its_seed_and_never_the_same_twice() -> None:
    one, other = LowQualityNoiseGenerator(4), LowQualityNoiseGenerator(4)
    for dtype in (np.float32, np.float64, np.float16, bfloat16):
        first, second = (noise_of(one, range(9), 0, (2,), dtype).tobytes() for _ in range(2))
        assert first == noise_of(other, range(9), 3, (2,), dtype).tobytes()
        assert second == noise_of(other, range(9), 0, (2,), dtype).tobytes()
        assert first != second
    assert LowQualityNoiseGenerator().seed != LowQualityNoiseGenerator().seed


def test_constants() -> None:
    for generator, value in (
        (ConstantGenerator.zeros(), 0.0),
        (ConstantGenerator.ones(), 1.0),
        (ConstantGenerator.for_value(-2.5), -2.5),
    ):
        for dtype in (np.float32, bfloat16):
            assert noise_of(generator, range(3), 0, (2,), dtype).astype(float).tolist() == [[value, value]] * 3
    assert not np.signbit(noise_of(ConstantGenerator.zeros(), [1], 0)).any()
    assert noise_of(ConstantGenerator.ones(), [1], 0, (), np.int64).tolist() == [1]


@pytest.mark.parametrize("generator", [HighQualityNoiseGenerator(1), LowQualityNoiseGenerator(1)])
def test_other_types_have_no_normal_noise(generator: Any) -> None:
    policy = Affine(1.0, inputs=[Slot("obs", (), np.dtype(np.int32))])
    with pytest.raises(InputError, match="noise for input 'obs': has the type int32; normal noise is f16, bf16, f32"):
        policy.with_epsilon(generator, "obs")
    assert policy.with_epsilon(ConstantGenerator.ones(), "obs").input_shapes() == []


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "a", True])
def test_seeds_are_numbers_of_64_bits(seed: Any) -> None:
    for kind in (HighQualityNoiseGenerator, LowQualityNoiseGenerator):
        with pytest.raises(InputError, match=r"a seed is an integer from 0 to 2\*\*64 - 1, got"):
            kind(seed)


def test_an_input_that_is_not_there_is_refused() -> None:
    policy = Recurrent()
    with pytest.raises(InputError, match='model has no input key "epsilon"; there are obs: 3,float32; h: 2,float32'):
        policy.with_default_epsilon("epsilon")
    with pytest.raises(InputError, match=r'model has no input key "epz"; .*\n  hint: did you mean \'eps\'\?'):
        policy.with_default_epsilon("epz")
    below = EpsilonInjectorWrapper.wrap(BaseWrapper(), policy, "eps")
    with pytest.raises(InputError, match=r'model has no input key "eps"; .*\n  hint: a layer below takes care of it'):
        EpsilonInjectorWrapper.wrap(below, policy, "eps")
    with pytest.raises(InputError, match='model has no input key "eps"'):
        policy.with_default_epsilon("eps").with_default_epsilon("eps")


def test_the_input_is_hidden_and_nothing_else() -> None:
    policy = Recurrent()
    injector = EpsilonInjector.with_generator(policy, ConstantGenerator.ones(), "h")
    assert [name for name, _ in injector.input_shapes()] == ["obs", "eps"]
    assert [name for name, _ in injector.output_shapes()] == ["h", "act"]
    assert list(injector.raw_input_shapes()) == list(policy.raw_input_shapes())
    found = injector.infer_many([1], {"obs": np.zeros((1, 3), np.float32), "eps": np.zeros((1, 2), np.float32)})
    assert found.arrays["h"].tolist() == [[0.5, 0.5]]


def eps_of(injector: StatefulInferer, agents: list[int]) -> list[bytes]:
    """The noise that agents were given: what `Recurrent` puts out for observations and states of zero."""
    rows = len(agents)
    zeros = {"obs": np.zeros((rows, 3), np.float32), "h": np.zeros((rows, 2), np.float32)}
    return [row.tobytes() for row in injector.infer_many(agents, zeros).arrays["act"]]


def wanted_eps(generator: HighQualityNoiseGenerator, agent: int, step: int) -> bytes:
    return noise_of(HighQualityNoiseGenerator(generator.seed), [agent], [step], (2,), np.float32)[0].tobytes()


@pytest.mark.parametrize("size", [1, 2, 3, 100])
def test_agents_have_the_noise_of_their_steps_in_however_many_calls(size: int) -> None:
    injector = EpsilonInjector.wrap(Recurrent(size=size), "eps")
    generator = injector.stack.generator
    assert isinstance(generator, HighQualityNoiseGenerator)
    steps = dict.fromkeys(range(7), 0)
    for batch in ([0, 1, 2, 3, 4, 5, 6], [6, 5, 3], [0], [3, 0, 6, 1, 2, 5, 4], []):
        wanted = [wanted_eps(generator, agent, steps[agent]) for agent in batch]
        assert eps_of(injector, batch) == wanted
        for agent in batch:
            steps[agent] += 1


def test_a_run_that_fails_is_no_step() -> None:
    policy = Recurrent(size=2)
    injector = EpsilonInjector.wrap(policy, "eps")
    first = eps_of(injector, [1, 2, 3, 4, 5])
    policy.fail_after = 2
    with pytest.raises(RuntimeError, match="it fails"):
        eps_of(injector, [1, 2, 3, 9, 5])
    policy.fail_after = None
    second = eps_of(injector, [1, 2, 3, 9, 5])
    generator = injector.stack.generator
    assert second == [wanted_eps(generator, agent, agent != 9) for agent in (1, 2, 3, 9, 5)]
    assert not set(first) & set(second)


def test_an_agent_that_begins_again_has_other_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epsilon, "ENDED", 3)
    injector = EpsilonInjector.wrap(Recurrent(), "eps")
    generator = injector.stack.generator
    for episode in range(3):
        injector.begin_agent(7)
        assert eps_of(injector, [7]) == [wanted_eps(generator, 7, episode)]
        injector.end_agent(7)
    eps_of(injector, [1, 2, 3])
    injector.end_agent(99)  # nothing is known of it, and nothing changes
    for agent in (1, 2):
        injector.end_agent(agent)
    assert injector.snapshot().agents == (7, 1, 2, 3)
    assert eps_of(injector, [1]) == [wanted_eps(generator, 1, 1)]  # it goes on without being begun
    injector.end_agent(3)  # the fourth, so that the first is forgotten
    assert injector.snapshot().agents == (1, 2, 3)
    assert eps_of(injector, [7]) == [wanted_eps(generator, 7, 0)]
    for agent in range(10, 13):
        eps_of(injector, [agent])
        injector.end_agent(agent)
    assert sorted(injector.snapshot().agents) == [1, 7, 10, 11, 12]
    assert eps_of(injector, [1]) == [wanted_eps(generator, 1, 2)]


def test_threads_do_not_change_the_noise() -> None:
    injector = EpsilonInjector.wrap(Recurrent(), "eps")
    generator = injector.stack.generator

    def run(first: int) -> list[list[bytes]]:
        return [eps_of(injector, list(range(first, first + 5))) for _ in range(40)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(run, range(0, 40, 5)))
    for place, turns in enumerate(found):
        for step, turn in enumerate(turns):
            assert turn == [wanted_eps(generator, 5 * place + row, step) for row in range(5)]


def test_an_agent_that_began_again_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(epsilon, "ENDED", 1)
    injector = EpsilonInjector.wrap(Recurrent(), "eps")
    eps_of(injector, [1, 2, 3])
    injector.end_agent(1)
    injector.begin_agent(1)
    injector.end_agent(2)
    injector.end_agent(3)
    assert injector.snapshot().agents == (1, 3)


def test_one_generator_serves_inputs_of_several_types() -> None:
    generator = HighQualityNoiseGenerator(1)
    for step in range(4):
        for dtype in (np.float64, np.float32):
            alone = noise_of(HighQualityNoiseGenerator(1), [4], step, (3,), dtype)
            assert noise_of(generator, [4], step, (3,), dtype).tobytes() == alone.tobytes()


def test_who_ended_and_was_restored_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tract_inferers.noise.epsilon.ENDED", 3)
    inferer = EpsilonInjector.with_generator(Recurrent(), HighQualityNoiseGenerator(1), "eps")
    inferer.begin_agent(1)
    inferer.infer_many([1], {"obs": np.zeros((1, 3), np.float32), "h": np.zeros((1, 2), np.float32)})
    snapshot = inferer.snapshot()
    inferer.end_agent(1)
    inferer.restore(snapshot)
    for agent in range(10, 20):
        inferer.begin_agent(agent)
        inferer.end_agent(agent)
    assert inferer.snapshot([1]).arrays["noise:eps"].tolist() == [1]
