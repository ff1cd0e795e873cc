"""``tract MODEL transcribe FILE``: what is said in a recording."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tract_core.cli.command import ModelCommand
from tract_core.cli.readings import NumberRange
from tract_transformers.cli.options import threads_option, tokenizer_option

if TYPE_CHECKING:
    from tract_core.cli.request import Request
    from tract_transformers.generation.speech.model import SpeechModel
    from tract_transformers.generation.speech.transcript import Segment


@click.command(cls=ModelCommand, short_help="Have a model of speech write down what is said.")
@click.argument("file", type=click.Path(exists=True, dir_okay=False))
@click.option("--language", metavar="NAME", help="In which it is said, as 'en'. Default: as the model hears it.")
@click.option(
    "--task",
    type=click.Choice(["transcribe", "translate"]),
    default="transcribe",
    show_default=True,
    help="Whether to write in that language, or in English.",
)
@click.option("--timestamps", is_flag=True, help="Say when each part is said, in seconds.")
@click.option("--json", "as_json", is_flag=True, help="The transcript as JSON, when it is whole.")
@click.option(
    "--temperature", type=NumberRange(0), default=0.0, show_default=True, metavar="T", help="As of 'generate'."
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="As of 'generate'.")
@click.option("-n", "--max-tokens", type=click.IntRange(0), metavar="N", help="End each window after so many tokens.")
@tokenizer_option
@threads_option
@click.pass_obj
def command(request: Request, file: str, as_json: bool, timestamps: bool, **wishes: Any) -> None:
    """Print what is said in FILE, a recording (WAV), each part as soon as it is written.

    MODEL is a folder with a model of speech, as Whisper.
    """
    from tract_transformers.cli.options import runtime_of

    model = _model_of(request, wishes.pop("tokenizer"), wishes.pop("threads"))
    if wishes["max_tokens"] is None:
        del wishes["max_tokens"]
    if as_json:
        with request.progress("writing with"):
            found = model.transcribe(file, timestamps=timestamps, **wishes)
        click.echo(json.dumps({**found.to_json(), "runtime": runtime_of(model.runnable)["runtime"]}))
        return
    for segment in model.segments(file, timestamps=timestamps, **wishes):
        click.echo(_line(segment, timed=timestamps))
        sys.stdout.flush()


def _line(segment: Segment, *, timed: bool) -> str:
    text = segment.text.strip()
    return f"[{segment.start:.2f} - {segment.end:.2f}] {text}" if timed else text


def _model_of(request: Request, tokenizer: str | None, threads: int | None) -> SpeechModel:
    """The model of speech that the global flags ask for. Raises TractError."""
    from tract_core.errors import Unsupported
    from tract_transformers.cli.options import halves_of, runtime_flags, words_of_request
    from tract_transformers.generation.halves import is_in_halves
    from tract_transformers.generation.speech.loading import speech_model

    words = words_of_request(request, tokenizer)
    path = Path(request.model or "")
    if not is_in_halves(path, words.architecture):
        raise Unsupported("it is no model of speech: it has no encoder of sound", where=str(path))
    halves = halves_of(request)
    name, options, own = runtime_flags(request, threads, exact=True)
    with request.progress("preparing"):
        return speech_model(halves, words.tokenizer, path, name, **options, **own)
