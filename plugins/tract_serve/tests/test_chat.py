"""Conversations and texts by the OpenAI interface, asked by its own client, beside the same model in this process."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import openai
import pytest
from chat_models import CONTEXT, TEMPLATE, loaded, parameters, put_text
from servers import Running, serving

ASKED: list[Any] = [{"role": "user", "content": "the quick fox"}]
WISHES: dict[str, Any] = {"max_tokens": 20, "seed": 3}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("models")
    put_text(found, "tiny")
    put_text(
        found, "other", TEMPLATE.replace("assistant\n", "assistant: "), parameters(texts=2, cache="f32", exact="true")
    )
    return found


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Running]:
    with serving(folder) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="none", max_retries=0) as made:
        yield made


@pytest.fixture(scope="module")
def model(folder: Path) -> Any:
    return loaded(folder / "tiny" / "1" / "model.gguf")


def test_the_models_are_listed(client: openai.OpenAI) -> None:
    found = client.models.list().data
    assert [one.id for one in found] == ["other", "tiny"]
    assert [one.model_extra["kind"] for one in found if one.model_extra] == ["text", "text"]
    tiny = client.models.retrieve("tiny")
    assert tiny.model_extra is not None
    assert tiny.model_extra["max_model_len"] == CONTEXT
    assert tiny.model_extra["activations"].startswith("8 bits")
    assert tiny.model_extra["cache"] == "f16"
    other = client.models.retrieve("other")
    assert other.model_extra is not None
    assert (other.model_extra["activations"], other.model_extra["cache"], other.model_extra["texts"]) == (
        "floats",
        "f32",
        2,
    )


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        {"temperature": 0},
        {"temperature": 1.5, "top_p": 0.9},
        {"presence_penalty": 1.5, "frequency_penalty": -1},
        {"stop": ["e", "7"]},
        {"stop": "o"},
    ],
)
def test_an_answer_is_that_of_the_model_alone(client: openai.OpenAI, model: Any, wishes: dict[str, Any]) -> None:
    wanted = model.generate(ASKED, **WISHES, **wishes)
    found = client.chat.completions.create(model="tiny", messages=ASKED, **WISHES, **wishes)
    assert found.choices[0].message.content == wanted.text
    assert found.choices[0].message.role == "assistant"
    assert found.choices[0].finish_reason == wanted.finish_reason
    assert found.usage is not None
    assert (found.usage.prompt_tokens, found.usage.completion_tokens) == (wanted.prompt_tokens, len(wanted.tokens))
    assert found.usage.total_tokens == wanted.prompt_tokens + len(wanted.tokens)


def test_parameters_of_others_are_taken(client: openai.OpenAI, model: Any) -> None:
    wishes = {"top_k": 5, "min_p": 0.1, "repetition_penalty": 1.3}
    more: dict[str, Any] = {**wishes, "ignored": [1, {"x": 2}], "chat_template_kwargs": {"think": "well,"}}
    found = client.chat.completions.create(model="tiny", messages=ASKED, extra_body=more, user="me", **WISHES)
    prompt = model.tokenizer.encode(model.conversation(ASKED) + "well,", special=True)
    assert found.choices[0].message.content == model.generate(prompt, **WISHES, **wishes).text
    everything = client.chat.completions.create(model="tiny", messages=ASKED, extra_body={"top_k": -1}, **WISHES)
    assert everything.choices[0].message.content == model.generate(ASKED, top_k=0, **WISHES).text


def test_max_completion_tokens_goes_first(client: openai.OpenAI) -> None:
    found = client.chat.completions.create(
        model="tiny", messages=ASKED, max_tokens=9, max_completion_tokens=4, temperature=0
    )
    assert found.usage is not None
    assert (found.usage.completion_tokens, found.choices[0].finish_reason) == (4, "length")


def test_messages_come_in_many_forms(client: openai.OpenAI, model: Any) -> None:
    messages: list[Any] = [
        {"role": "developer", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "name": "me"},
        {"role": "assistant", "content": None, "tool_calls": [_call('{"city": "Rome"}'), _call("no JSON")]},
        {"role": "tool", "content": "warm", "tool_call_id": "c1"},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ]
    wanted = "".join(
        f"<|start|>{role}\n{content}<|end|>\n"
        for role, content in [
            ("system", "be brief"),
            ("user", "a\nb"),
            ("assistant", "<tool_call>Rome<tool_call>"),
            ("tool", "warm"),
            ("assistant", "no"),
        ]
    )
    prompt = model.tokenizer.encode(f"{wanted}<|start|>assistant\n", special=True)
    found = client.chat.completions.create(model="tiny", messages=messages, **WISHES)
    assert found.choices[0].message.content == model.generate(prompt, **WISHES).text


def _call(arguments: str) -> dict[str, Any]:
    return {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": arguments}}


def test_events_are_the_answer_in_pieces(client: openai.OpenAI, model: Any) -> None:
    wanted = model.generate(ASKED, **WISHES)
    found = list(client.chat.completions.create(model="tiny", messages=ASKED, stream=True, **WISHES))
    assert "".join(one.choices[0].delta.content or "" for one in found) == wanted.text
    assert found[0].choices[0].delta.role == "assistant"
    assert [one.choices[0].finish_reason for one in found[:-1]] == [None] * (len(found) - 1)
    assert found[-1].choices[0].finish_reason == "length"
    assert len({one.id for one in found}) == 1
    assert all(one.usage is None for one in found)
    assert len(found) > 5


def test_events_with_usage(client: openai.OpenAI) -> None:
    usage: Any = {"include_usage": True}
    found = list(
        client.chat.completions.create(model="tiny", messages=ASKED, stream=True, stream_options=usage, **WISHES)
    )
    assert all(one.usage is None for one in found[:-1])
    last = found[-1]
    assert last.choices == []
    assert last.usage is not None
    assert last.usage.completion_tokens == 20


def test_what_is_sent_are_events(server: Running) -> None:
    body = {"model": "tiny", "messages": ASKED, "stream": True, "max_tokens": 2}
    connection = HTTPConnection(server.http)
    connection.request("POST", "/v1/chat/completions", json.dumps(body), {"accept-encoding": "gzip"})
    answer = connection.getresponse()
    assert answer.getheader("content-type") == "text/event-stream"
    assert answer.getheader("content-encoding") is None
    lines = answer.read().decode().split("\n\n")
    assert lines[-2:] == ["data: [DONE]", ""]
    assert all(json.loads(line.removeprefix("data: "))["object"] == "chat.completion.chunk" for line in lines[:-2])
    connection.close()


def test_several_answers_have_seeds_of_their_own(client: openai.OpenAI, model: Any) -> None:
    wanted = [model.generate(ASKED, max_tokens=12, seed=8 + number).text for number in range(4)]
    found = client.chat.completions.create(model="tiny", messages=ASKED, n=4, seed=8, max_tokens=12)
    assert [(one.index, one.message.content) for one in found.choices] == list(enumerate(wanted))
    assert found.usage is not None
    assert found.usage.completion_tokens == 48
    assert found.usage.prompt_tokens == len(model.prompt_tokens(ASKED))
    pieces = dict.fromkeys(range(4), "")
    for one in client.chat.completions.create(model="tiny", messages=ASKED, n=4, seed=8, max_tokens=12, stream=True):
        pieces[one.choices[0].index] += one.choices[0].delta.content or ""
    assert list(pieces.values()) == wanted


def test_without_a_seed_answers_differ(client: openai.OpenAI) -> None:
    found = {
        client.chat.completions.create(model="tiny", messages=ASKED, max_tokens=12).choices[0].message.content
        for _ in range(4)
    }
    assert len(found) > 1


def test_seeds_may_be_negative(client: openai.OpenAI, model: Any) -> None:
    found = client.chat.completions.create(model="tiny", messages=ASKED, seed=-1, max_tokens=12)
    assert found.choices[0].message.content == model.generate(ASKED, seed=2**64 - 1, max_tokens=12).text


def test_log_probabilities(client: openai.OpenAI, model: Any) -> None:
    wanted = model.generate(ASKED, logprobs=3, **WISHES).logprobs
    found = client.chat.completions.create(model="tiny", messages=ASKED, logprobs=True, top_logprobs=3, **WISHES)
    told = found.choices[0].logprobs
    assert told is not None
    assert told.content is not None
    assert [one.logprob for one in told.content] == pytest.approx([one.logprob for one in wanted], abs=1e-5)
    for one, other in zip(told.content, wanted, strict=True):
        assert [top.logprob for top in one.top_logprobs] == pytest.approx([top for _, top in other.likeliest], abs=1e-5)
        assert [bytes(top.bytes or []) for top in one.top_logprobs] == [
            _named(model, top) for top, _ in other.likeliest
        ]
        assert bytes(one.bytes or []) == _named(model, other.token)
        assert one.token == _named(model, other.token).decode(errors="replace")
    streamed = [
        chance
        for one in client.chat.completions.create(
            model="tiny", messages=ASKED, logprobs=True, top_logprobs=3, stream=True, **WISHES
        )
        if one.choices[0].logprobs is not None
        for chance in one.choices[0].logprobs.content or []
    ]
    assert [one.token for one in streamed] == [one.token for one in told.content]
    assert [one.logprob for one in streamed] == pytest.approx([one.logprob for one in told.content], abs=1e-5)


def _named(model: Any, token: int) -> bytes:
    piece = model.tokenizer.pieces()[token]
    return model.tokenizer.decode([token], special=True).encode() if piece is None else piece


def test_log_probabilities_of_what_cannot_come_are_numbers(client: openai.OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["a"]}}}
    found = client.chat.completions.create(
        model="tiny", messages=ASKED, logprobs=True, top_logprobs=20, response_format=form, max_tokens=9
    )
    assert found.choices[0].message.content == '"a"'
    told = found.choices[0].logprobs
    assert told is not None
    assert told.content is not None
    assert min(top.logprob for one in told.content for top in one.top_logprobs) == -9999.0


def test_texts_go_on(client: openai.OpenAI, model: Any) -> None:
    wanted = model.generate("the quick", **WISHES)
    found = client.completions.create(model="tiny", prompt="the quick", **WISHES)
    assert (found.choices[0].text, found.object) == (wanted.text, "text_completion")
    assert found.usage is not None
    assert found.usage.prompt_tokens == wanted.prompt_tokens
    streamed = client.completions.create(model="tiny", prompt="the quick", stream=True, **WISHES)
    assert "".join(one.choices[0].text for one in streamed) == wanted.text
    short = client.completions.create(model="tiny", prompt="the quick", temperature=0)
    assert short.usage is not None
    assert short.usage.completion_tokens == 16


def test_texts_come_as_tokens_and_in_lists(client: openai.OpenAI, model: Any) -> None:
    tokens = model.prompt_tokens("the quick")
    prompts: list[Any] = [tokens, [tokens, [5]], ["the quick", "a"], ["the quick"]]
    wanted = {number: model.generate(tokens, max_tokens=6, seed=4 + number).text for number in range(2)}
    for prompt in prompts:
        found = client.completions.create(model="tiny", prompt=prompt, n=2, max_tokens=6, seed=4)
        several = 2 if isinstance(prompt[0], (str, list)) and len(prompt) == 2 else 1
        assert [one.index for one in found.choices] == list(range(2 * several))
        assert [found.choices[number].text for number in range(2)] == list(wanted.values())
    last = client.completions.create(model="tiny", prompt=[tokens, [5]], max_tokens=6, seed=4)
    assert last.choices[1].text == model.generate([5], max_tokens=6, seed=4).text


def test_prompts_are_echoed(client: openai.OpenAI, model: Any) -> None:
    wanted = "the quick" + model.generate("the quick", **WISHES).text
    for stream in (False, True):
        found: Any = client.completions.create(model="tiny", prompt="the quick", echo=True, stream=stream, **WISHES)
        assert "".join(one.choices[0].text for one in (found if stream else [found])) == wanted


def test_log_probabilities_of_texts(client: openai.OpenAI, model: Any) -> None:
    wanted = model.generate("the quick", logprobs=2, **WISHES).logprobs
    told = client.completions.create(model="tiny", prompt="the quick", logprobs=2, **WISHES).choices[0].logprobs
    assert told is not None
    assert told.token_logprobs == pytest.approx([one.logprob for one in wanted], abs=1e-5)
    assert told.tokens == [_named(model, one.token).decode(errors="replace") for one in wanted]
    assert told.tokens is not None
    assert told.text_offset == [len("".join(told.tokens[:place])) for place in range(len(told.tokens))]
    assert told.top_logprobs is not None
    assert all(len(one) <= 2 for one in told.top_logprobs)


def test_a_prompt_that_comes_again_is_not_read_again(client: openai.OpenAI, model: Any) -> None:
    long: list[Any] = [{"role": "user", "content": "a fox " * 60}]
    count = len(model.prompt_tokens(long))
    for wanted in (range(64), range(count - 1, count)):
        usage = client.chat.completions.create(model="tiny", messages=long, max_tokens=3).usage
        assert usage is not None
        assert usage.prompt_tokens_details is not None
        assert usage.prompt_tokens_details.cached_tokens in wanted


def test_many_clients_and_two_models_at_once(server: Running, folder: Path, model: Any) -> None:
    import tract_transformers

    other = tract_transformers.load(folder / "other" / "1" / "model.gguf", "cpu")
    prompts = [f"{word} fox {number}" for number, word in enumerate(["the", "a", "quick", "lazy"] * 5)]
    models = {"tiny": model, "other": other}

    async def one(client: openai.AsyncOpenAI, number: int, name: str) -> str:
        messages: Any = [{"role": "user", "content": prompts[number]}]
        if number % 2:
            found = await client.chat.completions.create(model=name, messages=messages, seed=number, max_tokens=20)
            return found.choices[0].message.content or ""
        text = ""
        async for piece in await client.chat.completions.create(
            model=name, messages=messages, seed=number, max_tokens=20, stream=True
        ):
            text += piece.choices[0].delta.content or ""
        return text

    async def all_of_them() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"http://{server.http}/v1", api_key="none", max_retries=0) as client:
            return await asyncio.gather(
                *[one(client, number, name) for number in range(len(prompts)) for name in models]
            )

    found = asyncio.run(all_of_them())
    wanted = [
        alone.generate([{"role": "user", "content": prompt}], seed=number, max_tokens=20).text
        for number, prompt in enumerate(prompts)
        for alone in models.values()
    ]
    assert found == wanted


def test_json_of_a_form(client: openai.OpenAI) -> None:
    schema = {
        "type": "object",
        "properties": {"city": {"enum": ["Rome", "Paris"]}, "warm": {"type": "boolean"}},
        "required": ["city", "warm"],
        "additionalProperties": False,
    }
    form: Any = {"type": "json_schema", "json_schema": {"name": "weather", "schema": schema, "strict": True}}
    found = client.chat.completions.create(model="tiny", messages=ASKED, response_format=form, max_tokens=90)
    told = json.loads(found.choices[0].message.content or "")
    assert told["city"] in ("Rome", "Paris")
    assert isinstance(told["warm"], bool)
    assert found.choices[0].finish_reason == "stop"
    plain: Any = {"type": "json_object"}
    text = ""
    for one in client.chat.completions.create(
        model="tiny", messages=ASKED, response_format=plain, max_tokens=40, seed=1, stream=True
    ):
        text += one.choices[0].delta.content or ""
    assert text.startswith("{")
    told_as_text: Any = {"type": "text"}
    same = client.chat.completions.create(model="tiny", messages=ASKED, response_format=told_as_text, **WISHES)
    assert (
        same.choices[0].message.content
        == client.chat.completions.create(model="tiny", messages=ASKED, **WISHES).choices[0].message.content
    )


def test_a_draft_changes_no_greedy_answer(tmp_path: Path, model: Any) -> None:
    put_text(tmp_path, "first", config=parameters(draft="prompt", draft_tokens=3))
    file = put_text(tmp_path, "second", config=parameters(draft="draft.gguf"))
    (file.parent / "draft.gguf").write_bytes(file.read_bytes())
    (tmp_path / "second" / "config.pbtxt").write_text(
        parameters(draft="draft.gguf") + '\ndefault_model_filename: "model.gguf"'
    )
    wanted = model.generate(ASKED, temperature=0, max_tokens=30).text
    with serving(tmp_path) as running, _client(running) as client:
        for name in ("first", "second"):
            found = client.chat.completions.create(model=name, messages=ASKED, temperature=0, max_tokens=30)
            assert found.choices[0].message.content == wanted


def test_a_model_without_pages_for_all_says_what_there_is_room_for(tmp_path: Path) -> None:
    put_text(tmp_path, "small", config=parameters(pages=3, remembered=0))
    with serving(tmp_path) as running, _client(running) as client:
        found = client.chat.completions.create(model="small", messages=ASKED, temperature=0)
        assert found.usage is not None
        assert found.usage.total_tokens <= 128
        with pytest.raises(openai.BadRequestError, match=r"needs .* pages, 3 are allowed") as raised:
            client.chat.completions.create(model="small", messages=ASKED, max_tokens=500)
        assert raised.value.param == "max_tokens"


def _client(server: Running) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="none", max_retries=0)
