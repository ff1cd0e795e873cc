"""``tract MODEL perplexity FILE``: how well a language model foretells a text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand
from tract_transformers.cli.options import text_of, threads_option, tokenizer_option

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_transformers.generation.perplexity import Perplexity
    from tract_transformers.language_model.past import Past


@click.command(cls=ModelCommand, short_help="Say how well a language model foretells a text.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option(
    "--context", type=click.IntRange(2), default=512, show_default=True, metavar="N", help="Tokens of a window."
)
@click.option("--windows", type=click.IntRange(1), metavar="N", help="Look at the first N windows alone.")
@tokenizer_option
@threads_option
@click.option("--json", "as_json", is_flag=True, help="Figures as JSON.")
@click.pass_obj
def command(request: Request, file: str, context: int, as_json: bool, **flags: Any) -> None:
    """Say how well MODEL foretells the text in FILE: e to the mean of what each token is unlikely.

    The text is cut into windows of --context tokens that do not overlap. In each, the tokens of the second half are
    looked at, which all have half a window or more before them, as llama.cpp's tool does it.
    """
    from tract_transformers.cli.options import words_of_request
    from tract_transformers.generation.perplexity import perplexity

    text = text_of(file)
    words = words_of_request(request, flags["tokenizer"])
    _check(context, words.context)
    past, begin = _past_of(request, flags["threads"]), words.tokenizer.begin
    with request.progress("measuring"):
        tokens = words.tokenizer.encode(text)
        found = perplexity(past, tokens, context, begin=begin, windows=flags["windows"], say=request.say)
    if as_json:
        click.echo(json.dumps({**found.to_json(), "context": context}))
    else:
        _print(request, found, context)


def _check(context: int, most: int | None) -> None:
    from tract_core.errors import InputError

    if most is not None and context > most:
        raise InputError(f"--context is {context}, and the model's own is {most}")


def _past_of(request: Request, threads: int | None) -> Past:
    from tract_transformers.cli.options import runnable_of
    from tract_transformers.language_model.keep import description_of, pasts_of

    runnable = runnable_of(request, threads, exact=True, all_logits=True)
    return pasts_of(runnable, description_of(runnable)).past()


def _print(request: Request, found: Perplexity, context: int) -> None:
    rest = f" ± {found.error:.4f} perplexity, of {found.count:,} tokens in {found.windows} windows of {context}"
    request.console.line((f"{found.value:.4f}", "bold"), rest)
