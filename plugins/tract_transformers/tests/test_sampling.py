"""Steps of sampling beside plain definitions, draws beside the distribution that they come from."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest
from tract_transformers.sampling.counts import Counts
from tract_transformers.sampling.draw import chance, checked_seed, drawn
from tract_transformers.sampling.sampler import Sampler, sampler_of, token_chance
from tract_transformers.sampling.steps import (
    CountPenalty,
    Logits,
    MinP,
    RepetitionPenalty,
    Step,
    Temperature,
    TopK,
    TopP,
    log_probabilities,
    probabilities,
)

from tract_core.errors import InputError, RunError

NONE = Counts()


def random_logits(size: int, seed: int = 0, kind: type = np.float32) -> Logits:
    return np.random.default_rng(seed).normal(scale=3, size=size).astype(kind)


def shares_of(logits: Logits) -> list[float]:
    """A softmax in plain Python."""
    top = max(map(float, logits))
    powers = [math.exp(float(one) - top) for one in logits]
    total = math.fsum(powers)
    return [power / total for power in powers]


def kept(logits: Logits) -> set[int]:
    return set(np.flatnonzero(logits > -np.inf).tolist())


def in_order(logits: Logits) -> list[int]:
    return sorted(range(logits.size), key=lambda token: (-float(logits[token]), token))


LOGITS = {
    "random": random_logits(50),
    "wide": random_logits(31, kind=np.float64),
    "two": np.array([1.0, 2.0], np.float32),
    "one": np.array([-3.0], np.float32),
    "ties": np.array([1, 2, 2, 0, 2, 1, 2], np.float32),
    "equal": np.zeros(9, np.float32),
    "cut": np.array([-np.inf, 0.5, -np.inf, 3, 0.5], np.float32),
    "far": np.array([0, -1e30, 5, 1e30, 1e30], np.float32),
}


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("k", [1, 2, 3, 5, 8, 1000])
def test_top_k_keeps_the_k_likeliest_the_first_of_equal_ones(logits: Logits, k: int) -> None:
    found = TopK(k)(logits, NONE)
    possible = [token for token in in_order(logits) if logits[token] > -np.inf]
    assert kept(found) == set(possible[:k])
    assert all(found[token] == logits[token] for token in kept(found))
    assert found.dtype == logits.dtype


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("p", [0.0, 1e-9, 0.3, 0.5, 0.77, 0.999, 1.0])
def test_top_p_keeps_as_few_as_have_enough_together(logits: Logits, p: float) -> None:
    found = TopP(p)(logits, NONE)
    if p == 1:
        assert kept(found) == kept(logits)
        return
    shares, wanted, total = shares_of(logits), set[int](), 0.0
    for token in in_order(logits):
        wanted.add(token)
        total += shares[token]
        if total >= p - 1e-12:
            break
    assert kept(found) == wanted
    assert found.dtype == logits.dtype


@pytest.mark.parametrize("logits", LOGITS.values(), ids=LOGITS)
@pytest.mark.parametrize("p", [0.0, 0.01, 0.5, 1.0])
def test_min_p_keeps_what_is_likely_enough_beside_the_likeliest(logits: Logits, p: float) -> None:
    shares = shares_of(logits)
    wanted = {token for token, share in enumerate(shares) if share >= p * max(shares) * (1 - 1e-6)}
    found = MinP(p)(logits, NONE)
    assert kept(found) == (wanted & kept(logits) if p else kept(logits))
    assert found.dtype == logits.dtype


def test_top_k_of_a_large_vocabulary_is_that_of_the_whole_order() -> None:
    for seed, size in enumerate((1000, 4321, 20_000)):
        logits = np.round(random_logits(size, seed), 1)  # many are equal
        logits[:: seed + 2] = -np.inf
        order = np.argsort(-logits, kind="stable")
        for k in (1, 2, 40, 499):
            assert kept(TopK(k)(logits, NONE)) == set(order[:k].tolist())


def test_what_is_cut_off_early_changes_no_draw() -> None:
    """The draw among what is left is that among all logits."""
    for seed in range(60):
        logits, counts = random_logits(500, seed), Counts([1, 2, 3], [4] * (seed % 5))
        for asked in (
            sampler_of(seed=seed, temperature=1.5, top_k=30, top_p=0.9, min_p=0.01, repetition_penalty=1.5),
            sampler_of(seed=seed, top_p=0.8),
            Sampler((TopK(50), CountPenalty(1.0), MinP(0.01)), seed),
        ):
            assert asked(logits, counts) == drawn(asked.logits(logits, counts), chance(seed, counts.length))


def test_top_p_of_a_large_vocabulary_is_that_of_the_whole_order() -> None:
    for seed in range(5):
        logits = random_logits(20_000, seed) * np.float32(0.2 + seed)
        order = np.argsort(-logits, kind="stable")
        sums = np.cumsum(np.array(shares_of(logits))[order])
        for p in (0.5, 0.9, 0.9999):
            assert kept(TopP(p)(logits, NONE)) == set(order[: int(np.searchsorted(sums, p)) + 1].tolist())


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_temperature_divides(kind: type) -> None:
    logits = random_logits(40, kind=kind)
    for temperature in (0.1, 0.7, 1.5, 100.0):
        found = Temperature(temperature)(logits, NONE)
        exact = np.array(shares_of(logits.astype(np.float64) / temperature))
        assert np.abs(probabilities(found) - exact).max() < (1e-5 if kind is np.float32 else 1e-13)
        assert found.dtype == logits.dtype
    for tiny in (1e-30, 1e-45, 1e-300):
        assert probabilities(Temperature(tiny)(logits, NONE)).argmax() == logits.argmax()
        assert probabilities(Temperature(tiny)(logits, NONE)).max() == 1


def test_penalties_look_at_what_is_in_the_text() -> None:
    logits = np.array([2, -2, 0, 4, 1, -np.inf], np.float32)
    counts = Counts([0, 1, 0, 5], [3, 3, 3, 1])
    assert RepetitionPenalty(2.0)(logits, counts).tolist() == [1, -4, 0, 2, 1, -np.inf]
    assert RepetitionPenalty(0.5)(logits, counts).tolist() == [4, -1, 0, 8, 1, -np.inf]
    assert CountPenalty(presence=0.5)(logits, counts).tolist() == [2, -2.5, 0, 3.5, 1, -np.inf]
    assert CountPenalty(frequency=0.5)(logits, counts).tolist() == [2, -2.5, 0, 2.5, 1, -np.inf]
    assert CountPenalty(-1, 0.25)(logits, counts).tolist() == [2, -1.25, 0, 4.25, 1, -np.inf]
    assert logits[3] == 4
    for step in (RepetitionPenalty(3.0), CountPenalty(1, 1)):
        assert step(logits, NONE).tolist() == logits.tolist()


def test_the_steps_come_in_the_order_that_is_written_down() -> None:
    asked = sampler_of(
        seed=1, temperature=0.5, top_k=5, top_p=0.9, min_p=0.1,
        repetition_penalty=1.2, presence_penalty=0.1, frequency_penalty=0.2,
    )  # fmt: skip
    steps = (RepetitionPenalty(1.2), CountPenalty(0.1, 0.2), Temperature(0.5), TopK(5), TopP(0.9), MinP(0.1))
    assert asked == Sampler(steps, 1)
    logits, counts = random_logits(60), Counts([1, 2], [3])
    found = logits
    for step in steps:
        found = step(found, counts)
    assert np.array_equal(asked.logits(logits, counts), found)
    assert sampler_of(seed=1) == Sampler((), 1)
    assert sampler_of(seed=1, temperature=0, top_k=3, top_p=0.1) == Sampler((), None)


def test_temperature_zero_takes_the_likeliest_the_first_of_several() -> None:
    greedy = sampler_of(seed=9, temperature=0)
    for logits in LOGITS.values():
        assert greedy(logits, NONE) == in_order(logits)[0]
    assert sampler_of(seed=9, temperature=0, repetition_penalty=100.0)(LOGITS["two"], Counts([1])) == 0


CRITICAL = {3: 16.27, 9: 27.88, 19: 43.82}
"""Of the chi-square distribution by degrees of freedom, which one in a thousand exceeds; the seeds here are fixed."""


@pytest.mark.parametrize("size", [4, 10, 20])
def test_draws_have_the_distribution_of_the_logits(size: int) -> None:
    logits, count = random_logits(size, 5) / 3, 4000
    exact = shares_of(logits)
    found = Counter(drawn(logits, chance(seed, place)) for seed in range(40) for place in range(count // 40))
    assert all(count * share >= 5 for share in exact)
    square = sum((found[token] - count * share) ** 2 / (count * share) for token, share in enumerate(exact))
    assert square < CRITICAL[size - 1]
    assert square > 0.1  # nothing that is drawn is as even as that


def test_what_follows_one_another_is_not_related() -> None:
    logits = np.zeros(2, np.float32)
    bits = [drawn(logits, chance(7, place)) for place in range(4000)]
    pairs = Counter(zip(bits[::2], bits[1::2], strict=True))
    assert sum((pairs[a, b] - 500) ** 2 / 500 for a in (0, 1) for b in (0, 1)) < CRITICAL[3]


def test_a_draw_falls_where_the_probabilities_say() -> None:
    logits = np.log(np.array([1, 2, 0.5, 0.5], np.float64))
    for number, token in ((0, 0), (0.24, 0), (0.26, 1), (0.74, 1), (0.76, 2), (0.88, 3), (1 - 2**-53, 3)):
        assert drawn(logits, number) == token
    cut = np.array([-np.inf, 0, -np.inf, -np.inf], np.float32)
    assert {drawn(cut, number) for number in (0.0, 0.5, 1 - 2**-53)} == {1}


def test_chance_comes_from_the_seed_and_the_place_alone() -> None:
    places = [chance(3, place) for place in range(5)]
    assert [chance(3, place) for place in reversed(range(5))] == places[::-1]
    assert len({*places, *(chance(4, place) for place in range(5))}) == 10
    assert all(0 <= one < 1 and Fraction(one).denominator <= 2**53 for one in places)


def test_philox_is_what_numpy_says_it_is() -> None:
    """So that seeds mean the same tomorrow: the first numbers of the published generator."""
    assert [int(chance(seed, place) * 2**53) for seed, place in ((0, 0), (42, 0), (42, 1))] == [
        int(np.random.Philox(key=seed, counter=place).random_raw()) >> 11 for seed, place in ((0, 0), (42, 0), (42, 1))
    ]


def test_the_same_seed_gives_the_same_tokens_whatever_else_is_drawn() -> None:
    logits = [random_logits(100, place) for place in range(20)]

    def answer(seed: int, others: int) -> list[int]:
        samplers = [sampler_of(seed=seed + other, temperature=0.8, top_k=40) for other in range(others + 1)]
        texts = [Counts() for _ in samplers]
        found: list[int] = []
        for one in logits:
            for sampler, counts in reversed(list(zip(samplers, texts, strict=True))):
                token = sampler(one, counts)
                counts.add(token)
            found.append(token)
        return found

    assert answer(5, 0) == answer(5, 3) != answer(6, 0)


def test_log_probabilities_are_those_of_the_model() -> None:
    logits = random_logits(30)
    exact = [math.log(share) for share in shares_of(logits)]
    assert np.allclose(log_probabilities(logits), exact, rtol=0, atol=1e-12)
    found = token_chance(logits, 7, 3)
    assert found.token == 7
    assert abs(found.logprob - exact[7]) < 1e-12
    assert [token for token, _ in found.likeliest] == in_order(logits)[:3]
    assert len(token_chance(logits, 0, 100).likeliest) == 30
    assert token_chance(logits, 0, 0).likeliest == ()
    assert log_probabilities(LOGITS["cut"])[0] == -np.inf


@pytest.mark.parametrize(
    ("logits", "found"),
    [
        ([1.0, math.nan], "not-a-number"),
        ([1.0, math.inf], "an infinity"),
        ([-math.inf, -math.inf], "no token"),
        ([], "no token"),
    ],
)
def test_logits_that_are_none_are_refused(logits: list[float], found: str) -> None:
    for sampler in (sampler_of(seed=0), sampler_of(seed=0, temperature=0)):
        with pytest.raises(RunError, match=f"the logits hold {found}"):
            sampler(np.array(logits, np.float32), NONE)


@pytest.mark.parametrize(
    "parameters",
    [
        {"temperature": -0.1}, {"temperature": math.nan}, {"temperature": "hot"}, {"temperature": math.inf},
        {"top_k": -1}, {"top_k": 1.5}, {"top_k": True}, {"top_p": -0.1}, {"top_p": 1.1}, {"top_p": None},
        {"min_p": 2}, {"repetition_penalty": 0}, {"repetition_penalty": -1}, {"presence_penalty": math.nan},
        {"frequency_penalty": "much"},
    ],
)  # fmt: skip
@pytest.mark.parametrize("greedy", [False, True])
def test_parameters_that_are_none_are_refused(parameters: dict[str, object], greedy: bool) -> None:
    (name,) = parameters
    others = {"temperature": 0} if greedy and name != "temperature" else {}
    with pytest.raises(InputError, match=f"{name} is "):
        sampler_of(seed=0, **others, **parameters)


@pytest.mark.parametrize("seed", [-1, 1 << 64, 1.0, "1", None, True])
def test_seeds_that_are_none(seed: object) -> None:
    with pytest.raises(InputError, match="seed is "):
        checked_seed(seed)


def test_steps_are_values() -> None:
    steps: list[Step] = [TopK(3), TopP(0.5), MinP(0.1), Temperature(2.0), RepetitionPenalty(1.5), CountPenalty(1, 2)]
    assert len({*steps, *steps}) == len(steps)
    for wrong in (lambda: TopK(0), lambda: Temperature(0), lambda: TopP(2)):
        with pytest.raises(InputError):
            wrong()
