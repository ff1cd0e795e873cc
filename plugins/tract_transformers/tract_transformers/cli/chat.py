"""``tract MODEL chat``: a conversation in the terminal."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.command import ModelCommand
from tract_transformers.cli.options import (
    adapter_option,
    cache_option,
    exact_option,
    sampling_options,
    threads_option,
    tokenizer_option,
)

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_transformers.generation.text_model import TextModel
    from tract_transformers.generation.writing import Writing

COMMANDS: Final = "/exit ends it, /clear begins anew, /system TEXT says what the model is told first, /help this"


@click.command(cls=ModelCommand, short_help="Talk with a language model.")
@click.option("--system", metavar="TEXT", help="What the model is told before.")
@sampling_options
@tokenizer_option
@adapter_option
@threads_option
@exact_option
@cache_option
@click.pass_obj
def command(request: Request, system: str | None, **wishes: Any) -> None:
    """Talk with MODEL: each line is what a user says, and the answer is printed as it is written.

    /exit or the end of the input ends it; Ctrl-C ends an answer. /clear begins anew. What was said before is not read
    again for the next answer.
    """
    from tract_core.errors import InputError
    from tract_transformers.cli.options import draft_of, is_rounded, text_model_of

    threads, exact, cache = (wishes.pop(name) for name in ("threads", "exact", "cache"))
    tokenizer, adapters = wishes.pop("tokenizer"), wishes.pop("adapters")
    model = text_model_of(request, tokenizer, threads, exact=exact, cache=cache, adapters=adapters)
    wishes["draft"] = draft_of(request, wishes["draft"], threads, exact=exact)
    if model.template is None:
        raise InputError("the model has no chat template", hint="'tract MODEL generate --prompt TEXT' needs none")
    if sys.stdin.isatty():
        _say(f"{COMMANDS}{'; rounded to 8 bits where weights have few: see --exact' * is_rounded(model.runnable)}")
    _Conversation(model, system, wishes).talk()


class _Conversation:
    """The messages so far. ``system``: what comes before them."""

    def __init__(self, model: TextModel, system: str | None, wishes: dict[str, Any]) -> None:
        self._model = model
        self._wishes = wishes
        self._system = system
        self._messages: list[dict[str, str]] = []

    def talk(self) -> None:
        """Ask and answer until the input ends."""
        while (line := _asked()) is not None:
            words = line.strip()
            if words == "/exit":
                return
            if words.startswith("/"):
                self._do(words)
            elif words:
                self._answer(line)

    def _do(self, words: str) -> None:
        name, _, rest = words.partition(" ")
        if name == "/clear":
            self._messages = []
        elif name == "/system":
            self._system, self._messages = rest or None, []
        else:
            _say(COMMANDS if name == "/help" else f"there is no {name}: {COMMANDS}")

    def _answer(self, line: str) -> None:
        """Print what the model says to a line. Ctrl-C ends it, and what was said stays."""
        from tract_core.errors import InputError

        asked = {"role": "user", "content": line}
        try:
            writing = self._model.generate([*self._said, asked], stream=True, **self._wishes)
        except InputError as error:
            _say(f"{error}\n(/clear begins anew)")
            return
        _print(writing)
        self._messages += [asked, {"role": "assistant", "content": writing.answer.text}]

    @property
    def _said(self) -> list[dict[str, str]]:
        before = [] if self._system is None else [{"role": "system", "content": self._system}]
        return [*before, *self._messages]


def _say(text: str, *, nl: bool = True) -> None:
    """What is no part of the conversation."""
    click.echo(text, nl=nl, err=True)


def _print(writing: Writing) -> None:
    try:
        for piece in writing:
            click.echo(piece, nl=False)
            sys.stdout.flush()
    except KeyboardInterrupt:
        writing.close()
    click.echo()


def _asked() -> str | None:
    """The next line of the user; ``None`` at the end of the input."""
    shown = sys.stdin.isatty()
    try:
        if shown:
            _say("> ", nl=False)
        line = sys.stdin.readline()
    except KeyboardInterrupt:
        if not shown:
            raise
        _say("\n(/exit ends it)")
        return ""
    return line.rstrip("\n") if line else None
