"""Drafts: answers are as likely as without them, and the very same where nothing is drawn."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pytest
from tiny_llama import TinyLlama
from tract_transformers.generation.drafts import LookUp, ModelDraft
from tract_transformers.generation.loading import Words, text_model
from tract_transformers.generation.next_tokens import DraftedTokens, TextSoFar
from tract_transformers.generation.text_model import TextModel
from tract_transformers.sampling.counts import Counts
from tract_transformers.sampling.sampler import Sampler, sampler_of
from tract_transformers.sampling.speculative import decide, propose
from tract_transformers.tokenizers.from_gguf import tokenizer_from_gguf
from tract_transformers.transforms.wanted_logits import LastLogits
from vocabularies import bytes_metadata, pieces_metadata

from tract_core.api.runnable import Runnable
from tract_core.errors import InputError

TOKENIZER = tokenizer_from_gguf({**bytes_metadata(), "tokenizer.ggml.add_bos_token": True})
NETWORK = TinyLlama(vocabulary=TOKENIZER.size + 6, seed=3)
SMALLER = TinyLlama(vocabulary=TOKENIZER.size, seed=4, layers=1)
PROMPT = "the quick fox the quick"

QUANTILES = {2: 18.4, 4: 23.5, 26: 60.1}
"""Of chi-square, by degrees of freedom: what is drawn as it should be is above in one of 10,000 tests."""


@cache
def runnable(smaller: bool, count: int) -> Runnable:
    model = (SMALLER if smaller else NETWORK).model()
    model.transform(LastLogits("logits", count))
    return model.into_runnable("cpu")


def writer(*, smaller: bool = False, count: int = 16, context: int | None = None) -> TextModel:
    return text_model(runnable(smaller, count), Words(TOKENIZER, None, context))


@pytest.fixture(scope="module")
def model() -> TextModel:
    return writer()


def chi_square(found: Counter[Any], wanted: dict[Any, float]) -> float:
    """Of what can happen, how far apart what did is from what was to be expected."""
    count = found.total()
    assert set(found) <= {one for one, share in wanted.items() if share > 0}
    return sum((found[one] - count * share) ** 2 / (count * share) for one, share in wanted.items() if share > 0)


def shares(logits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    powers = np.exp(logits.astype(np.float64) - logits.max())
    return powers / powers.sum()


@pytest.mark.parametrize(
    ("p", "q"),
    [
        ([0.0, 1.0, 2.0, -1.0, 0.5], [2.0, 0.0, 1.0, 0.0, -2.0]),
        ([0.0, 1.0, 2.0, -1.0, 0.5], [0.0, 1.0, 2.0, -1.0, 0.5]),
        ([0.0, 1.0, 2.0, -1.0, 0.5], [-np.inf, -np.inf, -np.inf, -np.inf, 0.0]),
        ([-np.inf, 1.0, 2.0, -np.inf, 0.5], [3.0, 0.0, -np.inf, 3.0, 0.0]),
    ],
)
@pytest.mark.parametrize("top_k", [0, 3])
def test_a_token_is_as_likely_as_without_a_draft(p: list[float], q: list[float], top_k: int) -> None:
    """Also where the model would never take what the draft proposes, and the other way."""
    wanted, proposed = np.array(p, np.float32), np.array(q, np.float32)
    if top_k:
        kept = np.sort(wanted)[-top_k]
        exact = shares(np.where(wanted >= kept, wanted, -np.inf))
    else:
        exact = shares(wanted)
    found: Counter[int] = Counter()
    for seed in range(3000):
        sampler = sampler_of(seed=seed, top_k=top_k)
        found[decide(sampler, wanted, Counts(), propose(sampler, proposed, Counts()))] += 1
    assert chi_square(found, dict(enumerate(exact))) < QUANTILES[int((exact > 0).sum()) - 1]


def test_the_same_draft_is_always_accepted() -> None:
    logits = np.random.default_rng(0).normal(size=50).astype(np.float32)
    for seed in range(200):
        sampler = sampler_of(seed=seed, temperature=0.7, top_p=0.9)
        proposal = propose(sampler, logits, Counts())
        assert decide(sampler, logits, Counts(), proposal) == proposal.token


class Chain:
    """The past of a model in which the next token depends on the last one alone."""

    def __init__(self, table: np.ndarray[Any, Any]) -> None:
        self.table = table
        self.tokens: list[int] = []
        self.steps = 0

    def recall(self, tokens: Sequence[int]) -> int:
        del self.tokens[:]
        return 0

    def extend(self, tokens: Sequence[int], *, every: bool = False) -> np.ndarray[Any, Any]:
        self.steps += 1
        self.tokens += tokens
        return self.table[list(tokens) if every else list(tokens[-1:])]

    def truncate(self, length: int) -> None:
        assert 0 <= length <= len(self.tokens)
        del self.tokens[length:]

    def close(self) -> None:
        pass


@pytest.mark.parametrize("count", [1, 2])
def test_answers_are_as_likely_as_without_a_draft(count: int) -> None:
    """All answers of three tokens of three, of a chain; the numbers of places behind a refused token are used twice."""
    random = np.random.default_rng(1)
    table, other = (random.normal(size=(3, 3)).astype(np.float32) for _ in range(2))
    exact = {}
    for answer in product(range(3), repeat=3):
        steps = zip((0, *answer), answer, strict=False)
        exact[answer] = float(np.prod([shares(table[before])[token] for before, token in steps]))
    found: Counter[tuple[int, ...]] = Counter()
    for seed in range(3000):
        sampler = Sampler((), seed)
        text = TextSoFar([0], frozenset(), 3, None)
        draft = ModelDraft(Chain(other), sampler, 8)
        source = DraftedTokens(Chain(table), text, sampler, 8, draft=draft, count=count, most=4)
        found[tuple(next(source).token for _ in range(3))] += 1
    assert chi_square(found, exact) < QUANTILES[26]


def test_a_good_draft_saves_steps() -> None:
    table = np.random.default_rng(2).normal(size=(5, 5)).astype(np.float32)
    past = Chain(table)
    sampler = Sampler((), 7)
    draft = ModelDraft(Chain(table), sampler, 8)
    source = DraftedTokens(past, TextSoFar([0], frozenset(), 5, None), sampler, 8, draft=draft, count=4, most=22)
    assert len([next(source) for _ in range(21)]) == 21
    assert past.steps == 5  # one for the first, then five at once
    assert len(past.tokens) == 21


def test_the_past_is_the_text_without_its_last_token() -> None:
    random = np.random.default_rng(3)
    past, sampler = Chain(random.normal(size=(4, 4)).astype(np.float32)), Sampler((), 1)
    draft = ModelDraft(Chain(random.normal(size=(4, 4)).astype(np.float32)), sampler, 8)
    text = TextSoFar([0, 1], frozenset(), 4, None)
    source = DraftedTokens(past, text, sampler, 8, draft=draft, count=3, most=40)
    for _ in range(30):
        next(source)
        assert past.tokens == text.tokens[:-1]
        assert text.counts.length == len(text.tokens) - 2


@pytest.mark.parametrize("draft_tokens", [1, 4, 15])
def test_the_likeliest_tokens_are_those_without_a_draft(model: TextModel, draft_tokens: int) -> None:
    wishes: dict[str, Any] = {"max_tokens": 40, "temperature": 0, "repetition_penalty": 1.05, "logprobs": 1}
    plain = model.generate(PROMPT, **wishes)
    for draft in ("prompt", writer(smaller=True), model):
        found = model.generate(PROMPT, draft=draft, draft_tokens=draft_tokens, **wishes)
        assert found.tokens == plain.tokens
        assert found.text == plain.text
        assert plain.logprobs is not None
        assert found.logprobs is not None
        for one, other in zip(found.logprobs, plain.logprobs, strict=True):
            assert abs(one.logprob - other.logprob) < 1e-4


def test_what_is_looked_up_changes_no_draw(model: TextModel) -> None:
    for seed in range(4):
        wishes: dict[str, Any] = {"max_tokens": 30, "temperature": 0.4, "seed": seed}
        assert model.generate(PROMPT, draft="prompt", **wishes).tokens == model.generate(PROMPT, **wishes).tokens


def test_seeds_reproduce_with_a_draft(model: TextModel) -> None:
    draft = writer(smaller=True)
    wishes: dict[str, Any] = {"max_tokens": 20, "temperature": 1.2, "draft": draft, "frequency_penalty": 0.1}
    found = [model.generate(PROMPT, seed=seed, **wishes).tokens for seed in range(4)]
    assert len(set(found)) == 4
    model.generate("another text", max_tokens=4, draft=draft)
    assert [model.generate(PROMPT, seed=seed, **wishes).tokens for seed in range(4)] == found
    assert [len(tokens) for tokens in found] == [20] * 4


def test_a_tiny_model_draws_as_without_a_draft() -> None:
    """The second token of answers, of the few that are likely; what the draft says is far from that."""
    model, draft = writer(), writer(smaller=True)
    prompt = model.prompt_tokens("the quick")
    first = int(NETWORK.logits(prompt)[-1][: TOKENIZER.size].argmax())
    exact = NETWORK.logits([*prompt, first])[-1][: TOKENIZER.size]
    likely = np.argsort(-exact)[:3]
    found: Counter[int] = Counter()
    for seed in range(150):
        wishes: dict[str, Any] = {"max_tokens": 3, "top_k": 3, "top_p": 1.0, "min_p": 0.0, "seed": seed}
        tokens = model.generate("the quick", draft=draft, draft_tokens=2, temperature=1.0, **wishes).tokens
        if tokens[:1] == (first,) and len(tokens) > 1:
            found[tokens[1]] += 1
    assert found.total() > 40
    assert chi_square(found, dict(zip(likely.tolist(), shares(exact[likely]).tolist(), strict=True))) < QUANTILES[2]


def test_look_up_proposes_what_came_behind() -> None:
    draft = LookUp()
    text = TextSoFar([1, 2, 3, 4, 9, 2, 3, 5, 1, 2, 3], frozenset(), 10, None)
    assert [one.token for one in draft.propose(text, 3)] == [4, 9, 2]  # three alike go before two
    text.add(5)
    assert [one.token for one in draft.propose(text, 9)] == [1, 2, 3, 5]
    text.add(7)
    assert draft.propose(text, 3) == []
    assert LookUp().propose(TextSoFar([1], frozenset(), 10, None), 3) == []


@pytest.mark.parametrize("ends", [1, 3, 8])
def test_an_end_among_what_is_proposed_ends_the_answer(model: TextModel, ends: int) -> None:
    whole = model.generate(PROMPT, max_tokens=30, temperature=0).tokens
    tokenizer = TOKENIZER.__class__(TOKENIZER._library, begin=TOKENIZER.begin, ends=[whole[ends]])
    ending, draft = writer(), writer()
    ending.tokenizer = draft.tokenizer = tokenizer
    for guess in ("prompt", draft):
        found = ending.generate(PROMPT, max_tokens=30, temperature=0, draft=guess)
        assert found.tokens == whole[: whole.index(whole[ends])]
        assert found.finish_reason == "stop"


def test_the_context_of_both_is_a_limit() -> None:
    model, draft = writer(context=30), writer(context=16)
    plain = model.generate(PROMPT, max_tokens=99, temperature=0)
    assert model.generate(PROMPT, max_tokens=99, temperature=0, draft=draft).tokens == plain.tokens
    assert plain.prompt_tokens + len(plain.tokens) == 30


def test_drafts_that_are_none(model: TextModel) -> None:
    for given, problem in (("text", "draft is 'text'"), (3, "draft is 3")):
        with pytest.raises(InputError, match=problem):
            model.generate(PROMPT, draft=given)
    for count in (0, 16, "x"):
        with pytest.raises(InputError, match=r"draft_tokens is .*, wanted a whole number from 1 to 15"):
            model.generate(PROMPT, draft="prompt", draft_tokens=count)
    other = writer()
    other.tokenizer = tokenizer_from_gguf(pieces_metadata())
    with pytest.raises(InputError, match="the draft has other tokens than the model"):
        model.generate(PROMPT, draft=other)
    with pytest.raises(InputError, match=r"gives the logits of 1 tokens, and a draft needs \d"):
        writer(count=1).generate(PROMPT, draft="prompt", temperature=0)
