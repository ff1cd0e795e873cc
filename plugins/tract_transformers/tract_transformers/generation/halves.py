"""From a file or a folder with an encoder and a decoder to what writes with them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.api.runtime import Runtime
from tract_core.errors import CorruptModel, InputError, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import DEFAULT_LIMITS, LoadLimits
from tract_transformers.generation.gguf_files import gguf, has_weights, is_gguf
from tract_transformers.generation.text_to_text import TextToText
from tract_transformers.language_model.encoded import have_last_logits
from tract_transformers.tokenizers.from_json import settings
from tract_transformers.tokenizers.protocol import Tokenizer

FILES: Final = ("t5",)
"""Architectures of GGUF files that have both halves."""

SOUND: Final = "features"
"""The input of an encoder of sound."""


def is_in_halves(path: Path, architecture: str | None) -> bool:
    """Whether a file or a folder of weights says that it has an encoder and a decoder. Raises ModelError.

    ``architecture``: of a GGUF file.
    """
    if architecture is not None:
        return architecture in FILES
    folder = path.parent if path.name.startswith("model.safetensors") else path
    return has_weights(folder) and settings(folder, "config.json").get("is_encoder_decoder") is True


@frozen
class Halves:
    """The encoder and the decoder of a network.

    ``said``: what files beside them say, as of the tokens that texts begin and end with.
    """

    encoder: Model
    decoder: Model
    said: Mapping[str, Any]

    @property
    def takes_sound(self) -> bool:
        """Whether the encoder is given the spectrum of sound, and not tokens."""
        return SOUND in self.encoder.input_names()

    def prepared(self, runtime: str | Runtime, **options: Any) -> tuple[Runnable, Runnable]:
        """Both, ready to run. The models are handed over."""
        return self.encoder.into_runnable(runtime, **options), self.decoder.into_runnable(runtime, **options)


def read_halves(path: Path, limits: LoadLimits | None = None) -> Halves:
    """Both models. Raises ModelError, Unsupported for a network without such halves, PluginError."""
    folder = path if path.is_dir() else path.parent
    found = gguf().load_halves(path if is_gguf(path) else folder, limits=limits or DEFAULT_LIMITS)
    encoder, decoder = cast("tuple[Model, Model]", found)
    have_last_logits(decoder)
    return Halves(encoder, decoder, _said(path, folder))


def text_to_text(halves: Halves, tokenizer: Tokenizer, runtime: str | Runtime, **options: Any) -> TextToText:
    """What writes texts for texts. Raises InputError for a model of sound, ModelError."""
    if halves.takes_sound:
        raise InputError(
            "the model takes sound, and not text", hint="tract_transformers.load_speech, 'tract transcribe'"
        )
    start = token_of(halves.said, ("decoder_start_token_id", "pad_token_id"), tokenizer)
    if start is None:
        raise Unsupported("nobody says with which token answers begin: there is no decoder_start_token_id")
    end = token_of(halves.said, ("eos_token_id",), tokenizer)
    return TextToText(*halves.prepared(runtime, **options), tokenizer, start=start, end=end)


def token_of(said: Mapping[str, Any], names: tuple[str, ...], tokenizer: Tokenizer) -> int | None:
    """The token that is said under the first of some names. Raises CorruptModel for what is none."""
    given: object = next((said[name] for name in names if said.get(name) is not None), None)
    found = cast("list[object]", given)[0] if isinstance(given, list) and given else cast("object", given)
    if found is None:
        return None
    if type(found) is not int or not 0 <= found < tokenizer.size:
        raise CorruptModel(f"{' or '.join(names)} is {found!r:.80}, wanted a token from 0 to {tokenizer.size - 1}")
    return found


def _said(path: Path, folder: Path) -> Mapping[str, Any]:
    """What is said of tokens: by the file, or by the folder, where what is said of generation goes first."""
    if not is_gguf(path):
        said = {**settings(folder, "config.json"), **settings(folder, "generation_config.json")}
        return {key: value for key, value in said.items() if value is not None}
    names = {
        "t5.decoder_start_token_id": "decoder_start_token_id",
        "tokenizer.ggml.eos_token_id": "eos_token_id",
        "tokenizer.ggml.padding_token_id": "pad_token_id",
    }
    metadata = gguf().read(path).metadata
    return {name: int(metadata[key]) for key, name in names.items() if key in metadata}
