"""``tract MODEL generate``: what a language model writes behind a text."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from tract_core.cli.command import ModelCommand
from tract_transformers.cli.options import (
    adapter_option,
    cache_option,
    exact_option,
    sampling_options,
    text_of,
    threads_option,
    tokenizer_option,
)

if TYPE_CHECKING:
    from tract_core.cli.request import Request


_FILE: Final = click.Path(exists=True, dir_okay=False)


@click.command(cls=ModelCommand, short_help="Have a language model go on with a text.")
@click.option("-p", "--prompt", metavar="TEXT", help="The text; '-' for standard input.")
@click.option("--message", metavar="TEXT", help="In its place, what a user says: the chat template writes it down.")
@click.option("--system", metavar="TEXT", help="With --message, what the model is told before.")
@click.option("--logprobs", type=click.IntRange(0), metavar="N", help="With --json, of N likely tokens at each place.")
@click.option("--schema", type=_FILE, metavar="FILE", help="The answer is JSON as this schema wants it.")
@click.option("--grammar", type=_FILE, metavar="FILE", help="The answer is as this grammar of llguidance wants it.")
@click.option("--regex", metavar="TEXT", help="The answer is as this expression wants it.")
@click.option(
    "--prompt-cache",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="What the model has seen of a prompt: it goes on from there. Written if there is no such file.",
)
@click.option("--json", "as_json", is_flag=True, help="The answer as JSON, when it is whole.")
@sampling_options
@tokenizer_option
@adapter_option
@threads_option
@exact_option
@cache_option
@click.pass_obj
def command(request: Request, as_json: bool, **wishes: Any) -> None:
    """Print what MODEL writes behind a text, as it is written.

    Special tokens that are spelled in --prompt count as such.
    """
    from tract_transformers.cli.options import draft_of, runtime_of, text_model_of

    asked = _asked(*(wishes.pop(name) for name in ("prompt", "message", "system")))
    threads, exact, cache = (wishes.pop(name) for name in ("threads", "exact", "cache"))
    wishes |= {name: text_of(wishes[name]) for name in ("schema", "grammar") if wishes[name] is not None}
    tokenizer, adapters = wishes.pop("tokenizer"), wishes.pop("adapters")
    model = text_model_of(request, tokenizer, threads, exact=exact, cache=cache, adapters=adapters)
    wishes["draft"] = draft_of(request, wishes["draft"], threads, exact=exact)
    if wishes["prompt_cache"] is not None and not Path(wishes["prompt_cache"]).exists():
        model.save_prompt(wishes["prompt_cache"], asked)
    writing = model.generate(asked, stream=True, **wishes)
    if as_json:
        with request.progress("writing with"):
            for _ in writing:
                pass
        click.echo(json.dumps({**writing.answer.to_json(), **runtime_of(model.runnable)}))
        return
    for piece in writing:
        click.echo(piece, nl=False)
        sys.stdout.flush()
    click.echo()


def _asked(prompt: str | None, message: str | None, system: str | None) -> Any:
    """A text, or the messages of a conversation."""
    if (prompt is None) == (message is None):
        raise click.UsageError("give the text with --prompt, or what a user says with --message")
    if system is not None and message is None:
        raise click.UsageError("--system goes with --message")
    if message is None:
        return sys.stdin.read() if prompt == "-" else prompt
    before = [] if system is None else [{"role": "system", "content": system}]
    return [*before, {"role": "user", "content": message}]
