"""Text that a small network writes, beside a plain loop in f64 that recomputes everything."""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from tiny_llama import TinyLlama
from tract_transformers.generation.asking import wishes_of
from tract_transformers.generation.loading import Words, text_model
from tract_transformers.generation.stops import Stops, checked_stops
from tract_transformers.generation.text_model import TextModel
from tract_transformers.generation.writing import Writing
from tract_transformers.templates.template import ChatTemplate
from tract_transformers.tokenizers.from_gguf import tokenizer_from_gguf
from tract_transformers.transforms.wanted_logits import LastLogits
from vocabularies import bytes_metadata

from tract_core.errors import InputError, RunError

TOKENIZER = tokenizer_from_gguf({**bytes_metadata(), "tokenizer.ggml.add_bos_token": True})
NETWORK = TinyLlama(vocabulary=TOKENIZER.size + 6, seed=3)
"""With more rows than there are tokens, as many a network has."""

START, END = TOKENIZER.begin[0], min(TOKENIZER.ends)
PROMPT = "the quick fox"
TEMPLATE = (
    "{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|start|>assistant\n{% endif %}"
)


def writer(network: TinyLlama = NETWORK, runtime: str = "cpu", context: int | None = None, **form: bool) -> TextModel:
    model = network.model(**form)
    model.transform(LastLogits("logits"))
    return text_model(model.into_runnable(runtime), Words(TOKENIZER, ChatTemplate(TEMPLATE), context))


@pytest.fixture(scope="module")
def model() -> TextModel:
    return writer()


def plain_greedy(prompt: list[int], count: int) -> list[int]:
    """From f64, with the rows left out that are no tokens; up to an end."""
    found: list[int] = []
    for _ in range(count):
        token = int(NETWORK.logits([*prompt, *found])[-1][: TOKENIZER.size].argmax())
        if token == END:
            break
        found.append(token)
    return found


@pytest.mark.parametrize("form", [{}, {"onnx_names": True}, {"past": False}])
def test_greedy_text_is_that_of_a_loop_without_caches(form: dict[str, bool]) -> None:
    prompt = [START, *TOKENIZER.encode(PROMPT)]
    answer = writer(**form).generate(PROMPT, max_tokens=12, temperature=0, chunk=2)
    assert list(answer.tokens) == plain_greedy(prompt, 12)
    assert answer.text == TOKENIZER.decode(answer.tokens) == str(answer)
    assert (answer.finish_reason, answer.prompt_tokens) == ("length", len(prompt))


def test_a_stream_is_the_answer_in_pieces(model: TextModel) -> None:
    wishes: dict[str, Any] = {"max_tokens": 30, "seed": 5, "temperature": 1.5, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
    whole = model.generate(PROMPT, **wishes)
    writing = model.generate(PROMPT, stream=True, **wishes)
    pieces = list(writing)
    assert "".join(pieces) == whole.text == writing.answer.text
    assert writing.answer.tokens == whole.tokens
    assert all(pieces)
    assert len(pieces) > 3


def test_seeds_reproduce_alone_and_beside_others(model: TextModel) -> None:
    wishes: dict[str, Any] = {"max_tokens": 16, "temperature": 1.2}
    alone = [model.generate(PROMPT, seed=seed, **wishes).tokens for seed in range(6)]
    assert len(set(alone)) > 3
    with ThreadPoolExecutor(3) as pool:
        beside = list(pool.map(lambda seed: model.generate(PROMPT, seed=seed, **wishes).tokens, range(6)))
    assert beside == alone
    fresh = model.generate(PROMPT, **wishes)
    assert model.generate(PROMPT, seed=fresh.seed, **wishes).tokens == fresh.tokens
    assert writer(runtime="cpu(threads=1)").generate(PROMPT, seed=2, **wishes).tokens == alone[2]


def test_what_was_seen_before_changes_nothing(model: TextModel) -> None:
    fresh = writer().generate("the lazy dog", max_tokens=8, temperature=0).tokens
    for before in ("the lazy dog", "the lazy", "the lazy dog and more", "x"):
        model.generate(before, max_tokens=3)
        assert model.generate("the lazy dog", max_tokens=8, temperature=0).tokens == fresh


def test_log_probabilities_are_those_of_f64(model: TextModel) -> None:
    answer = model.generate(PROMPT, max_tokens=5, seed=1, logprobs=3)
    prompt = [START, *TOKENIZER.encode(PROMPT)]
    assert answer.logprobs is not None
    assert len(answer.logprobs) == 5
    for place, chance in enumerate(answer.logprobs):
        logits = NETWORK.logits([*prompt, *answer.tokens[:place]])[-1][: TOKENIZER.size]
        exact = logits - logits.max() - math.log(np.exp(logits - logits.max()).sum())
        assert chance.token == answer.tokens[place]
        assert abs(chance.logprob - exact[chance.token]) < 2e-5
        assert [token for token, _ in chance.likeliest] == np.argsort(-exact)[:3].tolist()
    assert model.generate(PROMPT, max_tokens=2).logprobs is None


def test_an_answer_ends_at_the_end_token() -> None:
    model = writer()
    found = model.generate(PROMPT, max_tokens=12, temperature=0)
    stopped = TOKENIZER.__class__(TOKENIZER._library, begin=TOKENIZER.begin, ends=[found.tokens[3]])
    model.tokenizer = stopped
    ended = model.generate(PROMPT, max_tokens=12, temperature=0)
    first = found.tokens.index(found.tokens[3])
    assert ended.tokens == found.tokens[:first]
    assert ended.finish_reason == "stop"


@pytest.mark.parametrize("cut", [(1, 3), (2, 2), (4, 9)])
def test_an_answer_ends_before_a_stop_text_wherever_tokens_begin(model: TextModel, cut: tuple[int, int]) -> None:
    whole = model.generate(PROMPT, max_tokens=20, temperature=0).text
    stop = whole[cut[0] : cut[0] + cut[1]]
    for stops in (stop, [stop, "never"], ("never", stop)):
        found = model.generate(PROMPT, max_tokens=20, temperature=0, stop=stops)
        assert found.text == whole[: whole.index(stop)]
        assert found.finish_reason == "stop"
    pieces = list(model.generate(PROMPT, max_tokens=20, temperature=0, stop=stop, stream=True))
    assert "".join(pieces) == whole[: whole.index(stop)]
    assert model.generate(PROMPT, max_tokens=20, temperature=0, stop="\u1234").text == whole


@pytest.mark.parametrize("stops", [["ab"], ["abab", "b!"], ["aab", "aaab"], ["c"], ["abcab", "bca"]])
def test_stops_are_found_however_the_text_is_cut(stops: list[str]) -> None:
    draw = np.random.default_rng(1)
    for _ in range(300):
        text = "".join(draw.choice(list("abc!"), 12))
        places = [text.find(stop) for stop in stops if stop in text]
        ends = [text.find(stop) + len(stop) for stop in stops if stop in text]
        first = text[: min(ends)] if ends else text  # of two that overlap, the one that ends first counts
        wanted = min(first.find(stop) for stop in stops if stop in first) if places else len(text)
        found, scanner, stopped = "", Stops(stops), False
        cuts = [0, *sorted(draw.choice(13, 4)), 12]
        for start, end in pairwise(cuts):
            piece, stopped = scanner.take(text[start:end])
            found += piece
            if stopped:
                break
        found += "" if stopped else scanner.finish()
        assert found == text[:wanted]
        assert stopped == bool(places)


def test_messages_are_written_down_by_the_template(model: TextModel) -> None:
    messages = [{"role": "user", "content": "the dog"}]
    text = "<|start|>user\nthe dog<|end|>\n<|start|>assistant\n"
    assert model.conversation(messages) == text
    assert model.prompt_tokens(messages) == TOKENIZER.encode(text, special=True)
    assert model.prompt_tokens(messages)[0] == START
    answer = model.generate(messages, max_tokens=6, temperature=0)
    assert list(answer.tokens) == plain_greedy(model.prompt_tokens(messages), 6)
    assert model.prompt_tokens("<|start|>x") == TOKENIZER.encode("<|start|>x", special=True)
    assert model.prompt_tokens("") == [START]


def test_the_context_is_a_limit() -> None:
    model = writer(context=12)
    prompt = model.prompt_tokens(PROMPT)
    answer = model.generate(PROMPT, max_tokens=100, temperature=0)
    assert len(prompt) + len(answer.tokens) == 12
    assert answer.finish_reason == "length"
    with pytest.raises(InputError, match=r"the prompt has \d+ tokens, and the model's context is 12"):
        model.generate(PROMPT * 9)


def test_nothing_is_computed_for_no_tokens(model: TextModel) -> None:
    answer = model.generate(PROMPT, max_tokens=0)
    assert (answer.text, answer.tokens, answer.finish_reason) == ("", (), "length")


def test_who_leaves_early_gets_what_was_written(model: TextModel) -> None:
    with model.generate(PROMPT, max_tokens=50, temperature=0, stream=True) as writing:
        first = next(writing)
    assert list(writing) == []
    assert writing.answer.finish_reason == "interrupted"
    assert writing.answer.text == first
    assert model.generate(PROMPT, max_tokens=50, temperature=0).text.startswith(first)


@pytest.mark.parametrize(
    ("wishes", "problem"),
    [
        ({"max_tokens": -1}, "max_tokens is -1"),
        ({"max_tokens": "many"}, "max_tokens is 'many'"),
        ({"max_token": 3}, "no parameter 'max_token'"),
        ({"stop": 3}, "stop is a int"),
        ({"stop": [""]}, "stop holds ''"),
        ({"logprobs": -1}, "logprobs is -1"),
        ({"seed": -1}, "seed is -1"),
        ({"chunk": 0}, "chunk is 0"),
        ({"top_p": 2}, "top_p is 2"),
        ({"special": 1}, "special is 1, wanted True or False"),
    ],
)
def test_wishes_that_are_none(model: TextModel, wishes: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        model.generate(PROMPT, **wishes)


@pytest.mark.parametrize("prompt", [3, None, [None], [{"content": "x"}], {"role": "user"}])
def test_prompts_that_are_none(model: TextModel, prompt: Any) -> None:
    with pytest.raises(InputError, match=r"messages are a|wanted a dictionary with a role"):
        model.generate(prompt)


def test_a_prompt_of_tokens(model: TextModel) -> None:
    tokens = model.prompt_tokens(PROMPT)
    assert model.generate(tokens, seed=2, max_tokens=9).tokens == model.generate(PROMPT, seed=2, max_tokens=9).tokens
    assert model.generate(tuple(tokens), seed=2, max_tokens=1).prompt_tokens == len(tokens)
    for strange in ([3, -1], [model.tokenizer.size], [3, 1.5], [3, True], [3, "a"]):
        with pytest.raises(InputError, match=r"the prompt holds .*, wanted tokens from 0 to"):
            model.generate(strange)  # pyright: ignore[reportArgumentType, reportCallIssue]: on purpose


def test_what_was_seen_before_is_counted(model: TextModel) -> None:
    tokens = model.prompt_tokens(PROMPT)
    first = model.generate([tokens[0], *tokens], max_tokens=1)
    again = model.generate([tokens[0], *tokens], max_tokens=1)
    assert first.cached_tokens <= 1  # what other tests left
    assert again.cached_tokens == len(tokens)  # all but the last, for which logits are wanted


class _Writes:
    """A past whose model writes one token, whatever it sees."""

    tokens: tuple[int, ...] = ()

    def __init__(self, token: int) -> None:
        self._logits = np.zeros((1, TOKENIZER.size), np.float32)
        self._logits[0, token] = 50.0

    def recall(self, tokens: Any) -> int:
        return 0

    def extend(self, tokens: Any, *, every: bool = False) -> Any:
        return self._logits

    def truncate(self, length: int) -> None: ...

    def close(self) -> None: ...


@pytest.mark.parametrize(("special", "wanted"), [(True, "<|start|>" * 3), (False, "")])
def test_special_tokens_are_spelled_out_where_that_is_wished_for(special: bool, wanted: str) -> None:
    wishes = wishes_of(None, max_tokens=3, special=special)
    writing = Writing(_Writes(START), TOKENIZER, [START], wishes)  # pyright: ignore[reportArgumentType]: enough of a past
    assert "".join(writing) == wanted
    assert writing.answer.tokens == (START,) * 3


def test_without_a_beginning_or_a_template() -> None:
    model = writer()
    model.template = None
    with pytest.raises(InputError, match="the model has no chat template"):
        model.generate([{"role": "user", "content": "x"}])
    model.tokenizer = tokenizer_from_gguf(bytes_metadata())
    with pytest.raises(InputError, match="the prompt is empty"):
        model.generate("")


def test_a_model_that_gives_no_numbers_is_told() -> None:
    network = TinyLlama(vocabulary=TOKENIZER.size, layers=1)
    network.weights["head"][:] = np.nan
    for wishes in ({"temperature": 0}, {}):
        with pytest.raises(RunError, match="the logits hold not-a-number"):
            writer(network, "reference").generate(PROMPT, **wishes)


def test_stops_are_texts() -> None:
    assert checked_stops(None) == ()
    assert checked_stops("a") == ("a",)
    assert checked_stops(["a", "b"]) == ("a", "b")
