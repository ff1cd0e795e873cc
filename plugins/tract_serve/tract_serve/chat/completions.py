"""``/v1/chat/completions`` and ``/v1/completions``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from tract_serve.chat.answers import AskedText
from tract_serve.chat.fields import Fields, shallow
from tract_serve.chat.forms import form_of, schema_of
from tract_serve.chat.messages import messages_of
from tract_serve.chat.models import wanted
from tract_serve.chat.prompts import asked_in_chat, asked_in_texts, prompts_of
from tract_serve.chat.replies import ChatReply, TextReply
from tract_serve.chat.running import answered
from tract_serve.chat.served import ServedText
from tract_serve.chat.tools import Tools, tools_of
from tract_serve.chat.wishes import MOST_LIKELIEST, Wished, wished_of
from tract_serve.http.exchange import Answer, HttpRequest

MOST_TOKENS: Final = 16
"""Of what goes on behind a text, unless somebody says more: as the interface has it."""

_OWN: Final = ("messages", "tools", "documents", "add_generation_prompt")
"""What no client sets in a template."""


async def chat(request: HttpRequest) -> Answer:
    """The next message of a conversation."""
    asked = Fields(await request.json())
    served = wanted(request.serving, asked, ServedText)
    limits = request.serving.settings.limits
    messages = messages_of(asked, limits.messages)
    wished, tools = _with_logprobs(asked, wished_of(asked, limits)), tools_of(asked)
    if served.model.template is None:
        raise asked.wrong("model", f"is {served.name!r}, which has no chat template", hint="ask by /v1/completions")
    if tools.known and not served.takes_tools:
        raise asked.wrong("tools", "are there, and the chat template of the model knows none", hint="leave them out")
    modalities = asked.list("modalities", 8)
    if any(one != "text" for one in modalities):
        raise asked.wrong("modalities", "are not 'text' alone, and the model writes nothing else")
    wished = replace(wished, form=form_of(schema_of(asked), tools, served.family))
    variables = _variables(asked, tools)
    if tools.known and served.family.special:
        wished = replace(wished, generate={**wished.generate, "special": True})

    def read() -> list[AskedText]:
        _prepare(served, wished)
        return asked_in_chat(served, messages, variables, wished)

    logprobs = wished.generate.get("logprobs") is not None
    reply = ChatReply(served, tools, forced=bool(tools.forced), logprobs=logprobs)
    return await answered(request, served, wished, read, reply)


async def completions(request: HttpRequest) -> Answer:
    """What goes on behind a text."""
    asked = Fields(await request.json())
    served = wanted(request.serving, asked, ServedText)
    prompts = prompts_of(asked)
    wished = wished_of(asked, request.serving.settings.limits)
    wished = replace(wished, prompts=len(prompts))
    if wished.max_tokens is None:
        wished = replace(wished, max_tokens=MOST_TOKENS)
    likeliest = asked.whole("logprobs", 0, MOST_LIKELIEST)
    if likeliest is not None:
        wished = replace(wished, generate={**wished.generate, "logprobs": likeliest})
    if (asked.whole("best_of", 1, 1 << 20) or wished.count) != wished.count:
        raise asked.wrong("best_of", "is not 'n': answers are not drawn to be left out")
    if asked.text("suffix", ""):
        raise asked.wrong("suffix", "is not taken: models write behind a text alone")
    echo = asked.flag("echo")
    if echo and likeliest is not None:
        raise asked.wrong("echo", "is not taken with 'logprobs': those of a prompt are not there")
    wished = replace(wished, form=form_of(schema_of(asked), Tools(), served.family))
    echoed = [_text(served, prompt) if echo else "" for prompt in prompts for _ in range(wished.count)]

    def read() -> list[AskedText]:
        _prepare(served, wished)
        return asked_in_texts(served, prompts, wished)

    reply = TextReply(served, echoed, logprobs=likeliest is not None)
    return await answered(request, served, wished, read, reply)


def _with_logprobs(asked: Fields, wished: Wished) -> Wished:
    """With the log-probabilities that a conversation asks for. Raises WrongParameter."""
    likeliest = asked.whole("top_logprobs", 0, MOST_LIKELIEST)
    if not asked.flag("logprobs"):
        if likeliest:
            raise asked.wrong("top_logprobs", "is there, and 'logprobs' is not true")
        return wished
    return replace(wished, generate={**wished.generate, "logprobs": likeliest or 0})


def _variables(asked: Fields, tools: Tools) -> dict[str, Any]:
    """What the chat template reads besides messages. Raises WrongParameter."""
    told = asked.object("chat_template_kwargs")
    given: dict[str, Any] = {} if told is None else dict(told.told)
    for name in given:
        if name in _OWN or not name.isidentifier():
            raise asked.wrong("chat_template_kwargs", f"sets {name[:60]!r}, which is not up to clients")
    shallow(given, "chat_template_kwargs")
    return {**given, **({"tools": [one.told for one in tools.known]} if tools.known else {})}


def _prepare(served: ServedText, wished: Wished) -> None:
    if wished.generate.get("logprobs") is not None:
        served.names.prepare()


def _text(served: ServedText, prompt: str | list[int]) -> str:
    return prompt if isinstance(prompt, str) else served.model.tokenizer.decode(prompt)
