"""From what a request says to the tokens that a model goes on with. In a thread: it may take a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias, cast

from tract_core.errors import InputError, ModelError
from tract_serve.chat.answers import AskedText
from tract_serve.chat.errors import WrongParameter, about
from tract_serve.chat.fields import Fields, checked, shown
from tract_serve.chat.served import ServedText
from tract_serve.chat.wishes import Wished

Prompt: TypeAlias = str | list[int]

MOST_CHARACTERS: Final = 1 << 22
"""Of the prompts of a request, together."""

MOST_PROMPTS: Final = 128
"""Of one request."""

ANSWER: Final = 2048
"""Tokens of an answer, where nobody says how many, neither the client nor the model."""


def prompts_of(asked: Fields) -> list[Prompt]:
    """``prompt``: a text, tokens, or several of either. Raises WrongParameter."""
    given = asked.get("prompt")
    if given is None:
        raise asked.wrong("prompt", "is missing, wanted a text, or tokens, or a list of them")
    if isinstance(given, str):
        return [asked.text("prompt", most=MOST_CHARACTERS)]
    several: list[Any] = checked(given, list, "prompt")
    if several and all(type(one) is int for one in several):
        return [_tokens(several, "prompt")]
    found = asked.list("prompt", MOST_PROMPTS)
    if not found:
        raise asked.wrong("prompt", "is an empty list")
    prompts = [_prompt(one, f"prompt[{place}]") for place, one in enumerate(found)]
    count = sum(map(len, prompts))
    if count > MOST_CHARACTERS:
        raise asked.wrong("prompt", f"has {count} characters or tokens in all, at most {MOST_CHARACTERS} are taken")
    return prompts


def _prompt(given: object, param: str) -> Prompt:
    if isinstance(given, list):
        return _tokens(cast("list[object]", given), param)
    text: str = checked(given, str, param)
    if len(text) > MOST_CHARACTERS:
        raise WrongParameter(param, f"has {len(text)} characters, at most {MOST_CHARACTERS} are taken")
    return text


def _tokens(given: Sequence[object], param: str) -> list[int]:
    if not given or len(given) > MOST_CHARACTERS:
        raise WrongParameter(param, f"is a list of {len(given)}, wanted 1 to {MOST_CHARACTERS} tokens")
    strange = next((one for one in given if type(one) is not int), None)
    if strange is not None:
        raise WrongParameter(param, f"holds {shown(strange)}, wanted tokens")
    return cast("list[int]", list(given))


def asked_in_chat(
    served: ServedText,
    messages: Sequence[Mapping[str, Any]],
    variables: Mapping[str, Any],
    wished: Wished,
) -> list[AskedText]:
    """The answers that are wanted in a conversation. ``variables``: that the template reads, as ``tools``.

    Raises WrongParameter.
    """
    try:
        text = served.model.conversation(messages, **variables)
        tokens = served.model.tokenizer.encode(text, special=True)
    except (InputError, ModelError) as error:  # a template that fails does so over these messages
        raise about("messages", error) from None
    return _asked(served, "messages", [tokens], wished)


def asked_in_texts(served: ServedText, prompts: Sequence[Prompt], wished: Wished) -> list[AskedText]:
    """The answers that are wanted behind some texts. Raises WrongParameter."""
    found: list[Prompt] = []
    for prompt in prompts:
        try:
            tokens = served.model.prompt_tokens(prompt)
        except InputError as error:
            code = "context_length_exceeded" if "context is" in error.problem else None
            raise WrongParameter("prompt", error.problem, hint=error.hint, code=code) from None
        found.append(prompt if served.is_read_whole else tokens)
    return _asked(served, "prompt", found, wished)


def _asked(served: ServedText, param: str, prompts: Sequence[Prompt], wished: Wished) -> list[AskedText]:
    """So many answers for each prompt."""
    wishes = {**served.wishes, **wished.generate, **({} if wished.form is None else wished.form.wishes)}
    found: list[AskedText] = []
    for number, prompt in enumerate(prompts):
        if not prompt:
            raise WrongParameter(param, "is empty, and the model has no token for the beginning of a text")
        most = wished.max_tokens if wished.max_tokens is not None else _room(served, param, len(prompt))
        for answer in range(wished.count):
            seed = {} if wished.seed is None else {"seed": (wished.seed + answer) % (1 << 64)}
            found.append(AskedText(prompt, {**wishes, "max_tokens": most, **seed}, number))
    return found


def _room(served: ServedText, param: str, length: int) -> int:
    """How many tokens an answer may have. Raises WrongParameter where the prompt leaves none."""
    most = served.most_tokens
    if most is None or served.is_read_whole:
        return ANSWER
    if length >= most:
        problem = f"has {length} tokens, and there is room for {most} with the answer"
        raise WrongParameter(param, problem, code="context_length_exceeded")
    return most - length
