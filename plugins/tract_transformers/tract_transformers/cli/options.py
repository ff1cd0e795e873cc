"""Flags that the subcommands for language models share, and the model that they ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from tract_core.cli.options import flag
from tract_core.cli.readings import NumberRange

if TYPE_CHECKING:
    from tract_core.api.model import Model
    from tract_core.api.runnable import Runnable
    from tract_core.cli.request import Request
    from tract_transformers.generation.halves import Halves
    from tract_transformers.generation.loading import Words
    from tract_transformers.generation.text_model import TextModel

F = TypeVar("F", bound=Callable[..., Any])

CHOOSING: Final = "How tokens are chosen"

PROMPT: Final = "prompt"
"""The draft that is no model."""

BYTES: Final = "bytes"
"""The option of a runtime that rounds to 8 bits what is multiplied with weights of few bits."""

tokenizer_option = click.option(
    "--tokenizer",
    type=click.Path(exists=True),
    metavar="FOLDER",
    help="Where tokenizer.json is. Default: beside MODEL, or in it.",
)

threads_option = click.option(
    "--threads", type=click.IntRange(1), metavar="N", help="Threads that the runtime may use. Default: as in 'run'."
)

adapter_option = click.option(
    "--adapter",
    "adapters",
    multiple=True,
    type=click.Path(exists=True),
    metavar="PATH",
    help="A folder of PEFT or a file of GGUF with a low-rank adapter (LoRA). Repeat for several.",
)

cache_option = click.option(
    "--cache",
    type=click.Choice(("f32", "f16", "bf16", "i8")),
    help="How keys and values are kept. Default: f16, or f32 with --exact.",
)
exact_option = click.option(
    "--exact",
    is_flag=True,
    help="Compute in f32. Else the runtime rounds what meets weights of up to 6 bits to 8 bits, if it can, and keeps "
    "keys and values in f16: faster.",
)

_SAMPLING: Final = (
    flag(CHOOSING, "--temperature", type=NumberRange(0), default=0.8, show_default=True, metavar="T",
         help="Below 1, likely tokens become likelier; 0 takes the likeliest."),
    flag(CHOOSING, "--top-k", type=click.IntRange(0), default=40, show_default=True, metavar="K",
         help="Draw from the K likeliest; 0 for all."),
    flag(CHOOSING, "--top-p", type=NumberRange(0, 1), default=0.95, show_default=True, metavar="P",
         help="Draw from the likeliest that have the probability P together."),
    flag(CHOOSING, "--min-p", type=NumberRange(0, 1), default=0.05, show_default=True, metavar="P",
         help="Leave out what is less than P times as likely as the likeliest."),
    flag(CHOOSING, "--repetition-penalty", type=NumberRange(0, min_open=True), default=1.0, show_default=True,
         metavar="X", help="Above 1, what is in the text becomes less likely."),
    flag(CHOOSING, "--presence-penalty", type=float, default=0.0, show_default=True, metavar="X",
         help="Take X from the logits of what is in the answer."),
    flag(CHOOSING, "--frequency-penalty", type=float, default=0.0, show_default=True, metavar="X",
         help="The same, for each time that it is there."),
    flag(CHOOSING, "--seed", type=click.IntRange(0), metavar="N",
         help="The same number gives the same text. Default: a fresh one."),
    flag(CHOOSING, "--stop", multiple=True, metavar="TEXT", help="End before this text. Repeat for several."),
    flag(CHOOSING, "-n", "--max-tokens", type=click.IntRange(0), default=256, show_default=True, metavar="N",
         help="End after so many tokens."),
)  # fmt: skip


_DRAFTING: Final = (
    flag(CHOOSING, "--draft", metavar="MODEL",
         help="A smaller model with the same tokens, which proposes some; 'prompt' for those in the text before."),
    flag(CHOOSING, "--draft-tokens", type=click.IntRange(1, 15), default=5, show_default=True, metavar="N",
         help="So many are proposed at once."),
)  # fmt: skip


def sampling_options(command: F) -> F:
    """Decorator: the flags that say how tokens are chosen, and how many."""
    for option in reversed((*_SAMPLING, *_DRAFTING)):
        command = option(command)
    return command


def draft_of(request: Request, given: str | None, threads: int | None, *, exact: bool) -> TextModel | str | None:
    """What ``--draft`` asks for, as `TextModel.generate` takes it. Raises TractError."""
    if given is None or given == PROMPT:
        return given
    return text_model_of(replace(request, model=given), None, threads, exact=exact)


def text_model_of(
    request: Request,
    tokenizer: str | None,
    threads: int | None,
    *,
    exact: bool,
    cache: str | None = None,
    adapters: Sequence[str] = (),
) -> TextModel:
    """The language model that the global flags ask for. Raises TractError."""
    from tract_transformers.generation.halves import is_in_halves
    from tract_transformers.generation.loading import text_model

    words = words_of_request(request, tokenizer)
    if is_in_halves(Path(request.model or ""), words.architecture):
        return _text_to_text(request, words, threads, exact=exact, adapters=adapters)
    return text_model(runnable_of(request, threads, exact=exact, cache=cache, adapters=adapters), words)


def _text_to_text(
    request: Request, words: Words, threads: int | None, *, exact: bool, adapters: Sequence[str]
) -> TextModel:
    """The model with an encoder that the global flags ask for. Raises TractError."""
    from tract_core.errors import InputError
    from tract_transformers.generation.halves import text_to_text

    if adapters:
        raise InputError("adapters of a model with an encoder are not known")
    halves = halves_of(request)
    name, options, own = runtime_flags(request, threads, exact=exact)
    with request.progress("preparing"):
        return text_to_text(halves, words.tokenizer, name, **options, **own)


def halves_of(request: Request) -> Halves:
    """The encoder and the decoder of MODEL. Raises TractError, also for flags that change one model."""
    from tract_core.errors import InputError
    from tract_transformers.generation.halves import read_halves

    given = [name for name in _OF_ONE_MODEL if getattr(request, name)]
    if given:
        name = given[0].replace("_", " ")
        raise InputError(f"the model is an encoder and a decoder: flags that say of one model ({name}) are not for it")
    with request.progress("loading"):
        return read_halves(Path(request.model or ""), request.limits)


_OF_ONE_MODEL: Final = (
    *("inputs", "facts_bundle", "constantize", "override_fact", "assertions", "input_nodes", "output_nodes"),
    *("stage", "declutter_step", "transforms", "settings", "optimize"),
)
"""Fields of a request that change a model."""


def runtime_flags(
    request: Request, threads: int | None, *, exact: bool
) -> tuple[str, Mapping[str, Any], Mapping[str, Any]]:
    """The runtime's name, the options that the global flags give, and those that the others ask for.

    ``exact``: whether floats are never rounded to bytes, unless the global flags say so.
    """
    from tract_core.plugins.parameters import parse_call

    name, options = parse_call(request.runtime)
    own = {} if threads is None else {"threads": threads}
    if not exact and BYTES not in options and takes_bytes(name):
        own[BYTES] = True
    return name, options, own


def words_of_request(request: Request, tokenizer: str | None) -> Words:
    """What lies beside MODEL about its texts. Raises TractError."""
    from tract_core.errors import InputError
    from tract_transformers.generation.loading import words_of

    if request.model is None:
        raise InputError("no model was named", hint="write 'tract MODEL SUBCOMMAND'")
    with request.progress("reading the tokenizer of"):
        return words_of(Path(request.model), tokenizer)


def runnable_of(
    request: Request,
    threads: int | None,
    *,
    exact: bool,
    cache: str | None = None,
    all_logits: bool = False,
    adapters: Sequence[str] = (),
) -> Runnable:
    """The model of the global flags, ready to run. ``all_logits``: whether those of all tokens count.

    ``exact``: whether floats are never rounded to bytes, unless the global flags say so. ``cache``: the type in which
    keys and values are kept; ``None`` for f16 where floats are rounded, else f32. ``adapters``: files of them.
    """
    from tract_transformers.generation.drafts import MOST_DRAFTED
    from tract_transformers.generation.loading import add_adapters
    from tract_transformers.language_model.keep import keep_past

    model = _model_of(request)
    add_adapters(model, adapters, Path(request.model or ""))
    name, options, own = runtime_flags(request, threads, exact=exact)
    kept = cache or ("f16" if {**options, **own}.get(BYTES, False) else "f32")
    keep_past(model, kept, last=None if all_logits else MOST_DRAFTED + 1)
    return _prepared(request, model, name, {**options, **own})


def _model_of(request: Request) -> Model:
    """The model that the global flags ask for; where they change nothing, what was prepared of it is found again."""
    from tract_core.api.model import Model
    from tract_transformers.cli.genai import with_folder
    from tract_transformers.generation.genai import WithoutMask, genai_folder, read_genai
    from tract_transformers.generation.loading import file_in, load_model

    path = None if request.model is None else Path(request.model)
    changes = any(getattr(request, name) for name in (*_OF_ONE_MODEL, *_OF_LOADING))
    if path is not None and path.exists() and not changes:
        with request.progress("loading"):
            return load_model(path)
    folder = None if path is None else genai_folder(path)
    request = with_folder(request)
    if request.model is not None:
        request = replace(request, model=str(file_in(Path(request.model))))
    model = Model.from_typed(request.typed_model())
    if folder is not None:
        model.transform(WithoutMask(read_genai(folder).mask))
    return model


_OF_LOADING: Final = ("format_name", "limits", "of_format", "left_context", "right_context", "check_patches", "staged")
"""Fields that say how it is loaded, or what is looked at meanwhile."""


def text_of(file: str) -> str:
    """What is in a file. Raises InputError for what is no text."""
    from tract_core.errors import InputError

    try:
        return Path(file).read_text("utf-8")
    except (OSError, ValueError) as error:
        raise InputError(f"it is no text in UTF-8: {error}", where=file) from None


def takes_bytes(name: str) -> bool:
    """Whether a runtime has the option to round to 8 bits what is multiplied with weights of few bits."""
    from tract_core.api.runtime import runtime_for_name

    return hasattr(type(runtime_for_name(name).backend), BYTES)


def is_rounded(runnable: Runnable) -> bool:
    """Whether it does so."""
    return bool(getattr(runnable.runtime.backend, BYTES, False))


def runtime_of(runnable: Runnable) -> Mapping[str, str]:
    """What runs it, what activations are that meet weights of few bits, and how the past is kept, for JSON."""
    from tract_transformers.transforms.paged import PAGE_KIND

    kind = "8 bits" if is_rounded(runnable) else "floats"
    kept = str(runnable.property(PAGE_KIND).to_numpy()) if PAGE_KIND in runnable.property_keys() else "copied"
    return {"runtime": runnable.runtime.name(), "activations": kind, "cache": kept}


def _prepared(request: Request, model: Model, name: str, options: Mapping[str, Any]) -> Runnable:
    """A model ready to run with some options. Raises InputError for a runtime that does not have them."""
    from tract_core.api.runtime import runtime_for_name

    runtime = runtime_for_name(name, None, **options)
    with request.progress("preparing"):
        return runtime.prepare(model)
