"""What a request asks of its answers, whichever way it gives its prompt."""

from __future__ import annotations

from typing import Any, Final

from tract_core.frozen import frozen
from tract_serve.chat.fields import Fields, checked
from tract_serve.chat.forms import Form
from tract_serve.settings import Limits

MOST_STOPS: Final = 16
"""Texts at which an answer ends."""

MOST_STOP: Final = 1000
"""Characters of one."""

MOST_LIKELIEST: Final = 20
"""Tokens whose log-probabilities are told for each place."""

_NUMBERS: Final = {
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
    "min_p": (0.0, 1.0),
    "presence_penalty": (-2.0, 2.0),
    "frequency_penalty": (-2.0, 2.0),
    "repetition_penalty": (0.01, 100.0),
}
"""Parameters of `TextModel.generate` that are numbers, and their ranges. Some are no part of OpenAI's interface."""

_NOT_THERE: Final = {
    "logit_bias": "likelihoods of tokens cannot be set",
    "audio": "the model writes text alone",
    "web_search_options": "the server searches no web",
}
"""Parameters that change an answer, and are not known here."""


@frozen
class Wished:
    """What is asked of the answers. ``generate``: parameters of `TextModel.generate`, but for tokens and form.

    ``count``: of answers for each prompt. ``max_tokens``: ``None`` for as many as there is room for. ``seed``: of the
    first answer; the next one has the next. ``streams``: whether they are sent while they are written; ``usage``:
    whether tokens are counted at the end of that. ``user``: who the client says it is. ``form``: what answers have to
    look like, if anything. ``prompts``: how many there are.
    """

    generate: dict[str, Any]
    count: int
    max_tokens: int | None
    seed: int | None
    streams: bool
    usage: bool
    user: str
    form: Form | None = None
    prompts: int = 1


def wished_of(asked: Fields, limits: Limits) -> Wished:
    """What a request asks of its answers. Raises WrongParameter."""
    for name, problem in _NOT_THERE.items():
        if asked.get(name):
            raise asked.wrong(name, f"is not taken: {problem}")
    generate: dict[str, Any] = {"stop": _stops(asked)}
    for name, (low, high) in _NUMBERS.items():
        found = asked.number(name, low, high)
        if found is not None:
            generate[name] = found
    top_k = asked.whole("top_k", -1, 1 << 30)
    if top_k is not None:
        generate["top_k"] = max(top_k, 0)
    seed = asked.whole("seed", -(1 << 63), (1 << 64) - 1)
    streams = asked.flag("stream")
    options = asked.object("stream_options")
    if options is not None and not streams:
        raise asked.wrong("stream_options", "is there, and 'stream' is not true")
    return Wished(
        generate,
        asked.whole("n", 1, limits.choices) or 1,
        _most_tokens(asked),
        None if seed is None else seed % (1 << 64),
        streams,
        options is not None and options.flag("include_usage"),
        asked.text("user", "", most=1000),
    )


def _most_tokens(asked: Fields) -> int | None:
    """``max_completion_tokens``, or ``max_tokens`` as it was called before."""
    found = [asked.whole(name, 0, 1 << 40) for name in ("max_completion_tokens", "max_tokens")]
    return next((one for one in found if one is not None), None)


def _stops(asked: Fields) -> list[str]:
    given = asked.get("stop")
    several = [given] if isinstance(given, str) else [*asked.list("stop", MOST_STOPS)]
    for place, one in enumerate(several):
        param = asked.param("stop" if isinstance(given, str) else f"stop[{place}]")
        if not checked(one, str, param) or len(one) > MOST_STOP:
            raise asked.wrong("stop", f"holds a text of {len(one)} characters, wanted 1 to {MOST_STOP}")
    return several
