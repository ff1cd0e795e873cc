"""Calls of functions: found in what models of each family write, however it is cut, and asked for by a client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from chat_models import BARE, PLAIN, put_text
from servers import Running, serving
from tract_serve.chat.calls import CallReader
from tract_serve.chat.families import family_of
from tract_serve.chat.forms import form_of
from tract_serve.chat.tools import Tool, Tools

HERMES = family_of("... <tool_call> ...")
MISTRAL = family_of("... [TOOL_CALLS] ...")
LLAMA = family_of('... {"name": "f", "parameters": {}} ...')
ANY = family_of("nothing")

NAMES = ("weather", "time")


def read(family: Any, pieces: list[str], *, forced: bool = False) -> tuple[str, list[tuple[str, str]]]:
    reader = CallReader(NAMES, family, forced=forced)
    found = [*(reader.take(piece) for piece in pieces), reader.finish()]
    assert len({call.id for one in found for call in one.calls}) == sum(len(one.calls) for one in found)
    return "".join(one.text for one in found), [(call.name, call.arguments) for one in found for call in one.calls]


ROME = ("weather", '{"city": "Rome"}')
NOW = ("time", "{}")
BOTH = [ROME, NOW]


@pytest.mark.parametrize(
    ("family", "text", "wanted", "calls"),
    [
        (HERMES, "only text, 1 < 2", "only text, 1 < 2", []),
        (HERMES, '<tool_call>\n{"name": "weather", "arguments": {"city": "Rome"}}\n</tool_call>', "", [ROME]),
        (
            HERMES,
            'Let me see.\n<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>\n'
            '<tool_call>\n{"name": "time", "arguments": {}}\n</tool_call>',
            "Let me see.\n",
            [ROME, NOW],
        ),
        (HERMES, '<tool_call>{"name": "time", "arguments": {}}', "", [NOW]),  # an end token came in its place
        (HERMES, "a <tool_call>nonsense</tool_call> b", "a <tool_call>nonsense</tool_call> b", []),
        (HERMES, 'a <tool_call>{"name": 3}', "a <tool_call>{\"name\": 3}", []),
        (HERMES, "<tool_cal", "<tool_cal", []),
        (HERMES, '{"name": "time", "arguments": {}}', '{"name": "time", "arguments": {}}', []),
        (HERMES, '<tool_call>{"name": "x", "arguments": "{}"}</tool_call>', "", [("x", "{}")]),
        (MISTRAL, '[TOOL_CALLS] [{"name": "weather", "arguments": {"city": "Rome"}}, {"name": "time"}]', "", BOTH),
        (MISTRAL, 'weather[ARGS]{"city": "Rome"}', 'weather[ARGS]{"city": "Rome"}', []),
        (MISTRAL, '[TOOL_CALLS]weather[ARGS]{"city": "Rome"}[TOOL_CALLS]time[CALL_ID]abc[ARGS]{}', "", [ROME, NOW]),
        (MISTRAL, 'Yes.[TOOL_CALLS]time{}', "Yes.", [NOW]),
        (MISTRAL, "[1, 2]", "[1, 2]", []),
        (MISTRAL, "[TOO few]", "[TOO few]", []),
        (LLAMA, '{"name": "weather", "parameters": {"city": "Rome"}}', "", [ROME]),
        (LLAMA, ' {"name": "weather", "parameters": {"city": "Rome"}}; {"name": "time"}', "", [ROME, NOW]),
        (LLAMA, '<|python_tag|>{"name": "time", "parameters": {}}', "", [NOW]),
        (LLAMA, '{"type": "function", "function": {"name": "time", "parameters": {}}}', "", [NOW]),
        (LLAMA, '{"name": "nobody", "parameters": {}}', '{"name": "nobody", "parameters": {}}', []),
        (LLAMA, '{"name": "Ada"} was here', '{"name": "Ada"} was here', []),
        (LLAMA, "{", "{", []),
        (LLAMA, "no {} here", "no {} here", []),
        (ANY, '[{"name": "time", "arguments": {}}]', "", [NOW]),
        (ANY, '<tool_call>{"name": "time", "arguments": {}}</tool_call>', "", [NOW]),
        (ANY, "   ", "   ", []),
        (ANY, "", "", []),
    ],
)  # fmt: skip
def test_calls_are_found_wherever_the_text_is_cut(family: Any, text: str, wanted: str, calls: list[Any]) -> None:
    assert read(family, [text]) == (wanted, calls)
    assert read(family, list(text)) == (wanted, calls)
    for place in range(1, len(text)):
        assert read(family, [text[:place], text[place:]]) == (wanted, calls), place


def test_what_was_forced_is_a_call_whatever_its_name() -> None:
    assert read(HERMES, ['{"name": "new", "arguments": {}}'], forced=True) == ("", [("new", "{}")])


def test_calls_are_named_as_their_models_want_them() -> None:
    for family, front, length in ((HERMES, "call_", 29), (MISTRAL, "", 9)):
        reader = CallReader(NAMES, family, forced=True)
        (call,) = [*reader.take('{"name": "time"}').calls, *reader.finish().calls]
        assert call.id.startswith(front)
        assert len(call.id) == length


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 50_000, "<tool_call>" * 20_000, '{"name": "\\ud800"}'])
def test_nonsense_is_text(text: str) -> None:
    found, calls = read(ANY, [text])
    assert found == text
    assert not calls


def test_halves_of_characters_are_left_out() -> None:
    text = '<tool_call>{"name": "time", "arguments": {"a": "\\ud800"}}</tool_call>'
    assert read(HERMES, [text]) == ("", [("time", '{"a": "?"}')])


def accepted(form: Any, text: str) -> bool:
    """Whether a text is of a form, token by token."""
    from model_files import VOCABULARY
    from tract_transformers.sampling.grammar import grammar_of
    from tract_transformers.tokenizers.from_gguf import tokenizer_from_gguf
    from vocabularies import bytes_metadata

    tokenizer = tokenizer_from_gguf(bytes_metadata())
    assert tokenizer.size == VOCABULARY
    grammar = grammar_of(**form.wishes)
    assert grammar is not None
    matching = grammar.matching(tokenizer)
    import numpy as np

    for token in [*tokenizer.encode(text), min(tokenizer.ends)]:
        logits = np.full(tokenizer.size, -1.0, np.float32)
        if matching.masked(logits)[token] == -np.inf:
            return False
        if token not in tokenizer.ends:
            matching.add(token)
    return True


POINT = {
    "type": "object",
    "properties": {"at": {"$ref": "#/$defs/place"}},
    "required": ["at"],
    "additionalProperties": False,
    "$defs": {"place": {"enum": [1, 2]}},
}
OTHER = {**POINT, "$defs": {"place": {"enum": ["a"]}}}
FIRST = '{"name": "point", "arguments": {"at": 1}}'
TOOLS = (Tool("point", None, POINT), Tool("other", None, OTHER))


@pytest.mark.parametrize(
    ("family", "several", "texts", "wrong"),
    [
        (
            HERMES,
            True,
            [
                '<tool_call>\n{"name": "point", "arguments": {"at": 1}}\n</tool_call>',
                '<tool_call>\n{"name": "other", "arguments": {"at": "a"}}\n</tool_call>\n'
                '<tool_call>\n{"name": "point", "arguments": {"at": 2}}\n</tool_call>',
            ],
            ["a", '<tool_call>\n{"name": "point", "arguments": {"at": "a"}}\n</tool_call>', '{"name": "point"}'],
        ),
        (
            MISTRAL,
            True,
            [f"[{FIRST}]", f'[{FIRST}, {{"name": "other", "arguments": {{"at": "a"}}}}]'],
            ["[]", FIRST],
        ),
        (MISTRAL, False, [FIRST], [f"[{FIRST}]"]),
        (LLAMA, True, [FIRST.replace("arguments", "parameters")], [FIRST]),
    ],
)  # fmt: skip
def test_forced_calls_have_a_form(family: Any, several: bool, texts: list[str], wrong: list[str]) -> None:
    form = form_of(None, Tools(TOOLS, TOOLS, several), family)
    assert form is not None
    for text in texts:
        assert accepted(form, text), text
    for text in wrong:
        assert not accepted(form, text), text


@pytest.mark.parametrize("family", [HERMES, LLAMA, MISTRAL])
def test_an_answer_of_a_form_or_calls(family: Any) -> None:
    form = form_of(OTHER, Tools(TOOLS[:1], (), several=True), family)
    assert form is not None
    assert accepted(form, '{"at": "a"}')
    assert not accepted(form, '{"at": 1}')
    call = f'{{"name": "point", "{family.arguments}": {{"at": 1}}}}'
    assert accepted(form, f"<tool_call>\n{call}\n</tool_call>" if family is HERMES else call)
    assert form_of(None, Tools(TOOLS, ()), family) is None


# By a client


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    found = tmp_path_factory.mktemp("models")
    put_text(found, "marked")
    put_text(found, "bare", BARE)
    put_text(found, "plain", PLAIN)
    with serving(found) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: Running) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"http://{server.http}/v1", api_key="none", max_retries=0) as made:
        yield made


CITY = {
    "type": "object",
    "properties": {"city": {"enum": ["Rome", "Paris"]}},
    "required": ["city"],
    "additionalProperties": False,
}
GIVEN: Any = [
    {"type": "function", "function": {"name": "weather", "description": "how warm it is", "parameters": CITY}},
    {"type": "function", "function": {"name": "now"}},
]
ASKED: Any = [{"role": "user", "content": "the quick fox"}]


@pytest.mark.parametrize("model", ["marked", "bare"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_call_is_forced(client: openai.OpenAI, model: str, stream: bool) -> None:
    named: Any = {"type": "function", "function": {"name": "weather"}}
    found: Any = client.chat.completions.create(
        model=model, messages=ASKED, tools=GIVEN, tool_choice=named, max_tokens=200, seed=1, stream=stream
    )
    if stream:
        events = list(found)
        deltas = [one.choices[0].delta for one in events]
        calls = [call for one in deltas for call in one.tool_calls or []]
        assert "".join(one.content or "" for one in deltas) == ""
        assert [one.index for one in calls] == [0]
        finish = events[-1].choices[0].finish_reason
    else:
        assert found.choices[0].message.content is None
        calls, finish = found.choices[0].message.tool_calls, found.choices[0].finish_reason
    assert finish == "tool_calls"
    (call,) = calls
    assert (call.type, call.function.name) == ("function", "weather")
    assert json.loads(call.function.arguments)["city"] in ("Rome", "Paris")
    assert call.id.startswith("call_")


def test_some_call_is_required(client: openai.OpenAI) -> None:
    for several in (True, False):
        found = client.chat.completions.create(
            model="bare", messages=ASKED, tools=GIVEN, tool_choice="required", parallel_tool_calls=several,
            max_tokens=400, seed=3,
        )  # fmt: skip
        calls = found.choices[0].message.tool_calls or []
        assert found.choices[0].finish_reason in ("tool_calls", "length")
        assert {one.function.name for one in calls if one.type == "function"} <= {"weather", "now"}
        assert several or len(calls) == 1


def test_functions_are_told_to_the_template(client: openai.OpenAI, server: Running) -> None:
    with_tools = client.chat.completions.create(model="marked", messages=ASKED, tools=GIVEN, max_tokens=4)
    none = client.chat.completions.create(model="marked", messages=ASKED, tools=GIVEN, tool_choice="none", max_tokens=4)
    assert with_tools.usage is not None
    assert none.usage is not None
    served: Any = server.server.serving.repository.model("marked")
    told = "".join(json.dumps(one) + "\n" for one in GIVEN)
    text = f"<|start|>system\n{told}Write <tool_call> to call one.<|end|>\n<|start|>user\nthe quick fox<|end|>\n"
    wanted = len(served.model.tokenizer.encode(f"{text}<|start|>assistant\n", special=True))
    assert with_tools.usage.prompt_tokens == wanted
    assert none.usage.prompt_tokens < wanted


def test_an_answer_of_a_form_beside_functions(client: openai.OpenAI) -> None:
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"enum": ["yes"]}}}
    for seed in range(6):
        found = client.chat.completions.create(
            model="bare",
            messages=ASKED,
            tools=GIVEN[:1],
            response_format=form,
            parallel_tool_calls=False,
            max_tokens=200,
            seed=seed,
        )
        message = found.choices[0].message
        assert message.tool_calls or message.content == '"yes"'


def test_a_template_that_knows_no_functions_is_told_of_none(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="the chat template of the model knows none") as raised:
        client.chat.completions.create(model="plain", messages=ASKED, tools=GIVEN)
    assert raised.value.param == "tools"


def test_a_schema_that_nobody_can_hold_to_is_refused(client: openai.OpenAI) -> None:
    schema = {"type": "object", "properties": {"a": {"not": {"type": "string"}}}}
    form: Any = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    for stream in (False, True):
        with pytest.raises(openai.BadRequestError) as raised:
            client.chat.completions.create(model="bare", messages=ASKED, response_format=form, stream=stream)
        assert raised.value.param == "response_format"
    tools: Any = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    with pytest.raises(openai.BadRequestError) as raised:
        client.chat.completions.create(model="bare", messages=ASKED, tools=tools, tool_choice="required")
    assert raised.value.param == "tools"


def test_marks_that_are_special_tokens_are_seen(tmp_path: Path) -> None:
    """What a model of Mistral writes: its mark is a token that texts leave out."""
    put_text(tmp_path, "special", BARE.replace("a call: ", "[TOOL_CALLS]"))
    with serving(tmp_path) as running, openai.OpenAI(base_url=f"http://{running.http}/v1", api_key="x") as client:
        served: Any = running.server.serving.repository.model("special")
        asked: list[dict[str, Any]] = []
        submit = served.writer.submit
        served.writer.submit = lambda prompt, **wishes: (asked.append(wishes), submit(prompt, **wishes))[1]
        client.chat.completions.create(model="special", messages=ASKED, tools=GIVEN, max_tokens=2)
        client.chat.completions.create(model="special", messages=ASKED, max_tokens=2)
    assert [one.get("special", False) for one in asked] == [True, False]
