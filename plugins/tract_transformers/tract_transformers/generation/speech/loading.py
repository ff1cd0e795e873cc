"""From a folder to a model that writes down what is said."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

from tract_core.api.given import checked_path
from tract_core.api.runtime import Runtime
from tract_core.errors import CorruptModel, Unsupported
from tract_transformers.audio.spectrum import front_end_of
from tract_transformers.generation.halves import Halves, is_in_halves, read_halves
from tract_transformers.generation.loading import words_of
from tract_transformers.generation.speech.model import SpeechModel
from tract_transformers.generation.speech.tokens import tokens_of
from tract_transformers.tokenizers.from_json import settings
from tract_transformers.tokenizers.protocol import Tokenizer

PREPROCESSOR: Final = "preprocessor_config.json"


def load_speech(
    path: str | os.PathLike[str],
    runtime: str | Runtime = "default",
    *,
    tokenizer: str | os.PathLike[str] | None = None,
    **options: Any,
) -> SpeechModel:
    """The model of speech of a folder of the ``transformers`` package: Whisper.

    ``runtime``, ``options``, ``tokenizer``: as for `load`. Raises as that does, and InputError for a model of text.
    """
    found = checked_path(path)
    words = words_of(found, tokenizer)
    if not is_in_halves(found, words.architecture):
        raise Unsupported("it is no model of speech: it has no encoder of sound", where=str(found))
    return speech_model(read_halves(found), words.tokenizer, found, runtime, **options)


def speech_model(
    halves: Halves, tokenizer: Tokenizer, path: Path, runtime: str | Runtime, **options: Any
) -> SpeechModel:
    """``path``: of the model, or of its folder. Raises ModelError, Unsupported for a model of text."""
    if not halves.takes_sound:
        hint = "tract_transformers.load gives what writes with it"
        raise Unsupported("its encoder takes text, and not sound", where=str(path), hint=hint)
    prepared = settings(path if path.is_dir() else path.parent, PREPROCESSOR)
    front_end, tokens = front_end_of(prepared), tokens_of(halves.said, tokenizer)
    context = halves.said.get("max_target_positions")
    if type(context) is not int or context < 1:
        raise CorruptModel(f"config.json has {context!r:.80} as max_target_positions, wanted an integer above 0")
    encoder, decoder = halves.prepared(runtime, **options)
    return SpeechModel(encoder, decoder, tokenizer, tokens, front_end, context=context)
