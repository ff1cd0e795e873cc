"""Texts that an engine writes at the same time, beside the same texts written one by one."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from test_generation import NETWORK, TOKENIZER
from tract_transformers.generation.engine import AHEAD, Engine, EngineText
from tract_transformers.generation.loading import Words, text_model
from tract_transformers.generation.text_model import TextModel
from tract_transformers.language_model.keep import keep_past

from tract_core.errors import InputError, LimitExceeded

PROMPTS = ["the quick fox", "the quick", "a", "jumps over the lazy dog and away", "the quick fox jumps", "zz top"]


def paged(runtime: str = "cpu", context: int | None = None, **form: bool) -> TextModel:
    model = NETWORK.model(**form)
    keep_past(model)
    return text_model(model.into_runnable(runtime), Words(TOKENIZER, None, context))


@pytest.fixture(scope="module")
def model() -> TextModel:
    return paged()


def alone(model: TextModel, wishes: list[dict[str, Any]]) -> list[tuple[int, ...]]:
    return [model.generate(prompt, **one).tokens for prompt, one in zip(PROMPTS, wishes, strict=True)]


@pytest.mark.parametrize("texts", [1, 3, 8])
def test_each_text_is_what_it_is_alone(model: TextModel, texts: int) -> None:
    wishes: list[dict[str, Any]] = [
        {"seed": n, "max_tokens": 5 + 3 * n, "temperature": n % 2} for n in range(len(PROMPTS))
    ]
    wanted = alone(model, wishes)
    with Engine(model, texts=texts, chunk=4) as engine:
        requests = [engine.submit(prompt, **one) for prompt, one in zip(PROMPTS, wishes, strict=True)]
        pieces = ["".join(request) for request in requests]
    assert [request.answer.tokens for request in requests] == wanted
    assert [request.answer.text for request in requests] == pieces
    assert {request.answer.finish_reason for request in requests} <= {"length", "stop"}


def test_a_text_that_joins_changes_no_other(model: TextModel) -> None:
    (wanted,) = {model.generate(PROMPTS[0], seed=5, max_tokens=40).tokens}
    with Engine(model) as engine:
        first = engine.submit(PROMPTS[0], seed=5, max_tokens=40)
        next(first)
        for prompt in PROMPTS[1:]:
            engine.submit(prompt, max_tokens=7)
        assert "".join(first) is not None
        assert first.answer.tokens == wanted


def test_drafts_and_grammars_go_along(model: TextModel) -> None:
    prompt = "the the the the the the"
    wanted = model.generate(prompt, temperature=0, max_tokens=20).tokens
    with Engine(model) as engine:
        drafted = engine.submit(prompt, temperature=0, max_tokens=20, draft="prompt")
        other = engine.submit(PROMPTS[0], max_tokens=20)
        list(drafted)
        list(other)
    assert drafted.answer.tokens == wanted


def test_it_is_bounded(model: TextModel) -> None:
    with pytest.raises(InputError, match="texts is 0, wanted a number from 1 on"):
        Engine(model, texts=0)
    with pytest.raises(InputError, match="remembered is -1, wanted a number from 0 on"):
        Engine(model, remembered=-1)
    with Engine(model, texts=1, waiting=1, pages=3) as engine:
        with pytest.raises(LimitExceeded, match="a text of up to 2004 tokens needs 33 pages, 3 are allowed"):
            engine.submit("the quick fox", max_tokens=2000)
        held = [engine.submit(PROMPTS[0], max_tokens=60) for _ in range(2)]
        with pytest.raises(LimitExceeded, match="2 texts are written or wait already"):
            engine.submit(PROMPTS[0], max_tokens=60)
        assert all("".join(one) is not None for one in held)
        assert {one.answer.finish_reason for one in held} <= {"length", "stop"}


def test_pages_are_promised_before_a_text_begins(model: TextModel) -> None:
    """Two of these fit at a time, beside which what is remembered has to go."""
    with Engine(model, texts=4, pages=6) as engine:
        requests = [engine.submit(f"{prompt} {n}", max_tokens=60) for n, prompt in enumerate(PROMPTS * 2)]
        for request in requests:
            list(request)
    assert all(request.answer.finish_reason in {"length", "stop"} for request in requests)


def test_a_reader_that_is_gone_stops_nobody(model: TextModel) -> None:
    with Engine(model, texts=2) as engine:
        slow = engine.submit(PROMPTS[0], max_tokens=4 * AHEAD, temperature=3)
        other = engine.submit(PROMPTS[1], max_tokens=10)
        assert list(other) is not None
        slow.close()
        assert len(slow.answer.tokens) < 4 * AHEAD


def test_what_was_written_ahead_ends_when_its_engine_is_closed(model: TextModel) -> None:
    with Engine(model) as engine:
        request = engine.submit(PROMPTS[0], max_tokens=4 * AHEAD, temperature=3)
        written = -1
        while written != (written := len(request.answer.tokens)):
            time.sleep(0.5)
        assert written < 4 * AHEAD
    pieces: list[str] = []
    reader = threading.Thread(target=lambda: pieces.extend(request), daemon=True)
    reader.start()
    reader.join(timeout=60)
    assert not reader.is_alive()
    assert "".join(pieces) == request.answer.text


def test_a_closed_engine_says_so(model: TextModel) -> None:
    engine = Engine(model)
    request = engine.submit(PROMPTS[0], max_tokens=10_000)
    engine.close()
    list(request)
    assert request.answer.finish_reason in {"interrupted", "stop"}
    with pytest.raises(InputError, match="the engine is closed"):
        engine.submit(PROMPTS[0])
    assert not [one.name for one in threading.enumerate() if one.name.startswith(("tract-engine", "tract-text"))]


def test_pieces_are_told_to_whoever_asks_for_that(model: TextModel) -> None:
    found: list[str | BaseException | None] = []
    ended = threading.Event()

    def told(text: EngineText, piece: str | BaseException | None) -> None:
        found.append(piece)
        if not isinstance(piece, str):
            found.append(text.answer.finish_reason)
            ended.set()

    wanted = model.generate(PROMPTS[0], temperature=0, max_tokens=2 * AHEAD)
    with Engine(model) as engine:
        text = engine.submit(PROMPTS[0], temperature=0, max_tokens=2 * AHEAD, told=told)
        assert list(text) == []
        assert ended.wait(60)  # though nobody has read so many
    assert (found.pop(), found.pop()) == (wanted.finish_reason, None)
    assert "".join(str(piece) for piece in found) == wanted.text == text.answer.text


def test_what_goes_wrong_is_told_too(model: TextModel) -> None:
    found: list[object] = []
    ended = threading.Event()
    with Engine(model, texts=1) as engine:
        engine._texts.extend = lambda _: 1 / 0  # pyright: ignore[reportAttributeAccessIssue]: a defect
        engine.submit(PROMPTS[0], told=lambda _, piece: (found.append(piece), ended.set()))
        assert ended.wait(60)
    assert isinstance(found[0], ZeroDivisionError)


def test_a_prompt_is_not_read_on_when_its_text_is_closed(model: TextModel) -> None:
    ended = threading.Event()
    with Engine(model, chunk=20) as engine:
        step, seen = engine._steps._step, list[int]()

        def slow(some: Any) -> None:
            seen.append(len(some[0][0].tokens))
            text.close()
            step(some)

        engine._steps._step = slow
        with engine._steps._asked:  # nothing is read before there is a text
            text = engine.submit("the fox " * 50, told=lambda _, piece: ended.set() if piece is None else None)
        assert ended.wait(60)
        assert seen == [20]
        assert text.answer.finish_reason == "interrupted"


def test_a_text_that_waits_for_pages_is_closed_at_once(model: TextModel) -> None:
    ended = threading.Event()
    with Engine(model, texts=2, pages=3) as engine:
        first = engine.submit(PROMPTS[0], max_tokens=100, temperature=0, told=lambda _, __: time.sleep(0.005))
        second = engine.submit(PROMPTS[1], max_tokens=100, told=lambda _, piece: ended.set() if piece is None else None)
        second.close()
        assert ended.wait(60)
        assert first.answer.finish_reason == "interrupted"  # it is being written


def test_prompts_that_begin_alike_share_what_is_read(model: TextModel) -> None:
    """Also while the first text is being written."""
    prompt = "a quick fox " * 40
    with Engine(model) as engine:
        first = engine.submit(prompt, max_tokens=60, temperature=0)
        next(first)
        second = engine.submit(prompt, max_tokens=60, temperature=0)
        list(second)
        list(first)
        assert first.answer.cached_tokens == 0
        assert second.answer.cached_tokens >= 64
        assert second.answer.tokens == first.answer.tokens
    with Engine(model, remembered=0) as engine:
        answers = [engine.submit(prompt, max_tokens=1) for _ in range(2)]
        assert all("".join(one) is not None for one in answers)
        assert [one.answer.cached_tokens for one in answers] == [0, 0]


def test_a_model_without_pages_is_refused() -> None:
    with pytest.raises(InputError, match="the model keeps no pages"):
        Engine(paged(past=False))


def test_many_threads_submit(model: TextModel) -> None:
    wanted = model.generate(PROMPTS[0], seed=1, max_tokens=9).text

    def one(_: int) -> str:
        return "".join(engine.submit(PROMPTS[0], seed=1, max_tokens=9))

    with Engine(model, texts=3) as engine, ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(24))) == {wanted}
