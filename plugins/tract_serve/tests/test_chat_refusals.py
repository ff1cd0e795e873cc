"""Requests of the OpenAI interface that are wrong: the right status, an error object, the parameter that is meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import onnx
import openai
import pytest
from chat_models import PLAIN, parameters, put_text
from servers import Running, identity, put, serving
from tract_serve.chat import loading
from tract_serve.chat.options import TextOptions
from tract_serve.config import ModelConfig

from tract_core.errors import CorruptModel

ASKED: list[Any] = [{"role": "user", "content": "the quick fox"}]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    found = tmp_path_factory.mktemp("models")
    put_text(found, "tiny")
    put_text(found, "mute", "")
    put(found, "numbers", identity())
    with serving(found, limits={"messages": 3, "choices": 2, "json_bytes": 6 << 20, "waiting_of_one": 250}) as running:
        yield running


def sent(server: Running, path: str, body: Any, method: str = "POST", **headers: str) -> tuple[int, Any, Any]:
    """The status, the headers and the JSON of an answer."""
    connection = HTTPConnection(server.http)
    content = body if isinstance(body, (bytes, str)) else json.dumps(body)
    connection.request(method, path, content, {"content-type": "application/json", **headers})
    answer = connection.getresponse()
    found = json.loads(answer.read())
    connection.close()
    return answer.status, answer.headers, found


def tool(**function: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": "f", **function}}


MESSAGE = {"role": "user", "content": "a"}

SCHEMA = {"type": "json_schema", "json_schema": {"schema": []}}

WRONG: list[tuple[dict[str, Any], str | None, str]] = [
    ({"model": None}, "model", "is missing, wanted a text"),
    ({"model": 3}, "model", "is 3, wanted a text"),
    ({"messages": None}, "messages", "is missing or empty"),
    ({"messages": []}, "messages", "is missing or empty"),
    ({"messages": "Hello"}, "messages", "is 'Hello', wanted a list"),
    ({"messages": [MESSAGE] * 4}, "messages", "has 4 elements, at most 3 are taken"),
    ({"messages": ["Hello"]}, "messages[0]", "is 'Hello', wanted an object"),
    ({"messages": [{"content": "a"}]}, "messages[0].role", "is missing"),
    ({"messages": [{"role": "king", "content": "a"}]}, "messages[0].role", "is 'king', wanted 'system'"),
    ({"messages": [MESSAGE, {"role": "user"}]}, "messages[1].content", "is missing"),
    ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content", "is 3, wanted a text"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "messages[0].content[0].type", "text alone"),
    ({"messages": [{"role": "user", "content": ["a"]}]}, "messages[0].content[0]", "wanted an object"),
    ({"messages": [{**MESSAGE, "tool_calls": [{}]}]}, "messages[0].tool_calls", "wanted 'assistant'"),
    ({"messages": [{"role": "assistant", "tool_calls": [{}]}]}, "messages[0].tool_calls[0].function", "is missing"),
    ({"messages": [{"role": "function", "content": "a"}]}, "messages", "it refuses the conversation: no function"),
    ({"messages": [{"role": "user", "content": "a " * 5000}]}, "messages", "there is room for"),
    ({"temperature": -1}, "temperature", "is -1, wanted a number from 0 to 2"),
    ({"temperature": "hot"}, "temperature", "is 'hot', wanted a number"),
    ({"temperature": True}, "temperature", "is true, wanted a number"),
    ({"top_p": 1.5}, "top_p", "is 1.5, wanted a number from 0 to 1"),
    ({"presence_penalty": 3}, "presence_penalty", "wanted a number from -2 to 2"),
    ({"max_tokens": -1}, "max_tokens", "is -1, wanted a whole number"),
    ({"max_completion_tokens": 1.5}, "max_completion_tokens", "is 1.5, wanted a whole number"),
    ({"n": 0}, "n", "is 0, wanted a whole number from 1 to 2"),
    ({"n": 3}, "n", "is 3, wanted a whole number from 1 to 2"),
    ({"seed": 1.5}, "seed", "is 1.5, wanted a whole number"),
    ({"seed": 1 << 64}, "seed", "wanted a whole number"),
    ({"stop": 3}, "stop", "is 3, wanted a list"),
    ({"stop": [3]}, "stop[0]", "is 3, wanted a text"),
    ({"stop": [""]}, "stop", "holds a text of 0 characters"),
    ({"stop": ["a"] * 17}, "stop", "has 17 elements, at most 16 are taken"),
    ({"stream": 1}, "stream", "is 1, wanted true or false"),
    ({"stream_options": {"include_usage": True}}, "stream_options", "'stream' is not true"),
    ({"top_logprobs": 2}, "top_logprobs", "'logprobs' is not true"),
    ({"logprobs": True, "top_logprobs": 21}, "top_logprobs", "wanted a whole number from 0 to 20"),
    ({"logprobs": 2}, "logprobs", "is 2, wanted true or false"),
    ({"logit_bias": {"5": 100}}, "logit_bias", "is not taken"),
    ({"response_format": {"type": "xml"}}, "response_format.type", "is 'xml', wanted 'text'"),
    ({"response_format": {"type": "json_schema"}}, "response_format.json_schema", "is missing"),
    ({"response_format": SCHEMA}, "response_format.json_schema.schema", "is a list of 0, wanted an object"),
    ({"tools": [{"type": "web"}]}, "tools[0].type", "is 'web', wanted 'function'"),
    ({"tools": [tool(name="a b")]}, "tools[0].function.name", "wanted 1 to 64 letters"),
    ({"tools": [tool(parameters=3)]}, "tools[0].function.parameters", "is 3, wanted an object"),
    ({"tools": [tool(), tool()]}, "tools", "two functions have the same name"),
    ({"tools": [tool()] * 129}, "tools", "has 129 elements"),
    ({"tool_choice": "required"}, "tool_choice", "there are no tools"),
    ({"tool_choice": "maybe", "tools": [tool()]}, "tool_choice", "is 'maybe', wanted 'none'"),
    ({"tool_choice": tool(name="g"), "tools": [tool()]}, "tool_choice", "there is no such function"),
    ({"functions": [{"name": "f"}]}, "functions", "is no longer taken"),
    ({"modalities": ["text", "audio"]}, "modalities", "are not 'text' alone"),
    ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs", "not up to clients"),
    ({"user": 3}, "user", "is 3, wanted a text"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("given", "param", "problem"), WRONG, ids=[f"{next(iter(one))}-{n}" for n, (one, _, _) in enumerate(WRONG)]
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_request(server: Running, given: dict[str, Any], param: str | None, problem: str, stream: bool) -> None:
    stream = stream and "stream" not in next(iter(given))
    body = {"model": "tiny", "messages": ASKED, "max_tokens": 2, **given} | ({"stream": True} if stream else {})
    if problem == "there is room for":
        del body["max_tokens"]
    status, _, found = sent(server, "/v1/chat/completions", body)
    error = found["error"]
    assert (status, error["param"], error["type"]) == (400, param, "invalid_request_error")
    assert problem in error["message"]


TEXTS: list[tuple[dict[str, Any], str, str]] = [
    ({"prompt": None}, "prompt", "is missing"),
    ({"prompt": {}}, "prompt", "is an object, wanted a list"),
    ({"prompt": []}, "prompt", "is an empty list"),
    ({"prompt": ["a", 3]}, "prompt[1]", "is 3, wanted a text"),
    ({"prompt": [[]]}, "prompt[0]", "wanted 1 to"),
    ({"prompt": [[1, "a"]]}, "prompt[0]", "holds 'a', wanted tokens"),
    ({"prompt": [1 << 40]}, "prompt", "wanted tokens from 0 to"),
    ({"prompt": [-1]}, "prompt", "wanted tokens from 0 to"),
    ({"prompt": "a " * 5000}, "prompt", "the model's context is"),
    ({"best_of": 5}, "best_of", "is not 'n'"),
    ({"suffix": "end"}, "suffix", "is not taken"),
    ({"echo": True, "logprobs": 1}, "echo", "is not taken with 'logprobs'"),
    ({"logprobs": True}, "logprobs", "is true, wanted a whole number"),
    ({"prompt": ["a"] * 129}, "prompt", "has 129 elements"),
    ({"prompt": ["a" * 100_000] * 50}, "prompt", "has 5000000 characters or tokens in all"),
    ({"prompt": ["a"] * 128, "n": 2}, "n", "asks for 256 answers to all prompts, at most 250 are given"),
]


@pytest.mark.parametrize(("given", "param", "problem"), TEXTS)
def test_a_wrong_text(server: Running, given: dict[str, Any], param: str, problem: str) -> None:
    status, _, found = sent(server, "/v1/completions", {"model": "tiny", "prompt": "a", "max_tokens": 2, **given})
    assert (status, found["error"]["param"]) == (400, param)
    assert problem in found["error"]["message"]


def test_a_text_that_is_too_long_is_named_so(server: Running) -> None:
    for path, body in (
        ("/v1/completions", {"prompt": "a " * 5000}),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a " * 5000}]}),
    ):
        _, _, found = sent(server, path, {"model": "tiny", **body})
        assert found["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize("path", ["chat/completions", "completions", "embeddings", "rerank"])
def test_models_that_are_not_there(server: Running, path: str) -> None:
    body = {"messages": ASKED, "prompt": "a", "input": "a", "query": "a", "documents": ["a"]}
    for name in ("nobody", "numbers"):
        status, _, found = sent(server, f"/v1/{path}", {"model": name, **body})
        assert (status, found["error"]["param"], found["error"]["code"]) == (404, "model", "model_not_found")
    status, _, found = sent(server, "/v1/models/nobody", "", "GET")
    assert (status, found["error"]["code"]) == (404, "model_not_found")


def test_a_model_without_a_template(server: Running) -> None:
    status, _, found = sent(server, "/v1/embeddings", {"model": "tiny", "input": "a"})
    assert (status, found["error"]["param"]) == (400, "model")
    assert "/v1/chat/completions" in found["error"]["message"]


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"3", 400),
        (b"null", 400),
        (b"\xff", 400),
        (b"[" * 200_000, 400),
        (b'{"messages": NaN}', 400),
        (b'{"a": "' + b"x" * (6 << 20) + b'"}', 413),
    ],
)
def test_bodies_that_are_none(server: Running, content: bytes, status: int) -> None:
    for path in ("chat/completions", "completions", "embeddings", "rerank"):
        found, _, told = sent(server, f"/v1/{path}", content)
        assert found == status
        assert set(told["error"]) == {"message", "type", "param", "code"}


def test_methods_and_paths(server: Running) -> None:
    assert sent(server, "/v1/chat/completions", "", "GET")[0] == 405
    assert sent(server, "/v1/nothing", {})[0] == 404
    assert set(sent(server, "/v1/nothing", {})[2]["error"]) == {"message", "type", "param", "code"}


def test_deep_values_are_no_matter(server: Running) -> None:
    deep: Any = 1
    for _ in range(900):
        deep = [deep]
    body = {"model": "tiny", "messages": ASKED, "max_tokens": 2}
    for more in ({"ignored": deep}, {"tools": [tool(parameters={"a": deep})]}, {"chat_template_kwargs": {"x": deep}}):
        status, _, _ = sent(server, "/v1/chat/completions", {**body, **more})
        assert status == (200 if "ignored" in more else 400)
    schema = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": deep}}}
    status, _, found = sent(server, "/v1/chat/completions", {**body, "response_format": schema})
    assert (status, found["error"]["param"]) == (400, "response_format.json_schema.schema")
    forced = {"tools": [tool(parameters={"enum": deep})], "tool_choice": "required"}
    assert sent(server, "/v1/chat/completions", {**body, **forced})[0] == 400


def test_special_tokens_and_odd_texts_are_taken(server: Running) -> None:
    for text in ("<|end|><|start|>", "\x00", "\U0010ffff", "a" * 300, "", " ", "\ud83d\ude42"):
        body = {"model": "tiny", "messages": [{"role": "user", "content": text}], "max_tokens": 2}
        assert sent(server, "/v1/chat/completions", body)[0] == 200
    half = '{"model": "tiny", "max_tokens": 2, "x": NaN, "messages": [{"role": "user", "content": "\\ud800"}]}'
    assert sent(server, "/v1/chat/completions", half)[0] == 400


def test_no_tokens_and_empty_texts(server: Running) -> None:
    status, _, found = sent(server, "/v1/completions", {"model": "tiny", "prompt": "", "max_tokens": 0})
    assert status == 200
    assert (found["choices"][0]["text"], found["choices"][0]["finish_reason"]) == ("", "length")


def test_tokens_of_the_server_are_asked_for(tmp_path: Path) -> None:
    put_text(tmp_path, "tiny", PLAIN)
    with serving(tmp_path, tokens=("secret",)) as running:
        url = f"http://{running.http}/v1"
        with openai.OpenAI(base_url=url, api_key="wrong") as client, pytest.raises(openai.AuthenticationError):
            client.models.list()
        with openai.OpenAI(base_url=url, api_key="secret", max_retries=0) as client:
            assert [one.id for one in client.models.list()] == ["tiny"]
            assert client.chat.completions.create(model="tiny", messages=ASKED, max_tokens=1).choices


def test_without_models_of_texts_there_are_none(tmp_path: Path) -> None:
    onnx.save(identity(), tmp_path / "model.onnx")
    with serving(tmp_path / "model.onnx") as running:
        assert sent(running, "/v1/models", "", "GET")[2] == {"object": "list", "data": []}
        status, _, found = sent(running, "/v1/chat/completions", {"model": "model", "messages": ASKED})
        assert (status, found["error"]["code"]) == (404, "model_not_found")


def test_without_tract_transformers_it_says_how_to_get_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put_text(tmp_path, "tiny")
    put(tmp_path, "numbers", identity())
    monkeypatch.setattr(loading, "is_installed", lambda name: name != "tract-transformers")
    with serving(tmp_path) as running:
        index = {one.name: one for one in running.server.serving.repository.index}
        assert index["numbers"].state == "READY"
        assert index["tiny"].state == "UNAVAILABLE"
        assert "served with tract-transformers" in index["tiny"].reason
        assert "pip install" in index["tiny"].reason
        status, _, found = sent(running, "/v1/completions", {"model": "tiny", "prompt": "a"})
        assert status == 503
        assert "pip install" in found["error"]["message"]
        assert sent(running, "/v1/models", "", "GET")[2]["data"] == []


def test_a_broken_file_harms_no_other(tmp_path: Path) -> None:
    put_text(tmp_path, "tiny")
    for name, content in (("empty", b"GGUF"), ("cut", put_text(tmp_path, "whole").read_bytes()[:20_000])):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "1" / "model.gguf").write_bytes(content)
    with serving(tmp_path, preload=True) as running:
        states = {one.name: one.state for one in running.server.serving.repository.index}
        assert states == {"tiny": "READY", "whole": "READY", "empty": "UNAVAILABLE", "cut": "UNAVAILABLE"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"texts": "0"}, "texts is '0', wanted a number from 1 on"),
        ({"texts": "many"}, "texts is 'many'"),
        ({"pages": "-1"}, "pages is '-1'"),
        ({"cache": "f8"}, "cache is 'f8', wanted one of f32, f16"),
        ({"exact": "yes"}, "exact is 'yes', wanted true or false"),
        ({"adapters": "[3]"}, r"adapters is '\[3\]', wanted a path, or a list"),
        ({"adapters": "["}, "wanted a path, or a list"),
        ({"pooling": "max"}, "pooling is 'max'"),
    ],
)
def test_options_that_are_none(given: dict[str, str], problem: str) -> None:
    with pytest.raises(CorruptModel, match=problem):
        TextOptions.of(ModelConfig.of_text(parameters(**given), "config.pbtxt"))


def test_options() -> None:
    nothing = TextOptions.of(ModelConfig.nothing())
    assert (nothing.texts, nothing.pages, nothing.cache, nothing.exact) == (8, None, None, False)
    given = parameters(texts=3, pages=9, remembered=0, cache="i8", exact="true", adapters="a", draft="prompt")
    found = TextOptions.of(ModelConfig.of_text(given, "config.pbtxt"))
    assert (found.texts, found.pages, found.remembered, found.cache, found.exact) == (3, 9, 0, "i8", True)
    assert (found.adapters, found.draft) == (("a",), "prompt")
