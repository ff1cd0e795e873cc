"""The past of a decoder that looks at what an encoder made: of a text, or of sound.

Such a decoder is a language model with more inputs, ``cross.N.key`` and ``cross.N.value`` [B,H,L,D], which are the same
in all steps of a text. The encoder gives them under the same names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.errors import Unsupported
from tract_transformers.language_model.description import HINT, LanguageModel, describe
from tract_transformers.language_model.past import Past, StatelessPast, check_tokens
from tract_transformers.transforms.wanted_logits import LastLogits

Array = npt.NDArray[Any]

Encode = Callable[[], Mapping[str, Array]]
"""Gives what a decoder looks at, by the names of its inputs, when it is first asked for."""

ACROSS: Final = re.compile(r"cross\.\d+\.(?:key|value)")


def description_of_decoder(model: Model | Runnable) -> LanguageModel:
    """What its other inputs and its outputs are. Raises Unsupported for what is no decoder of a known form."""
    names = model.input_names()
    inputs = {name: model.input_fact(name).typed for name in names if not ACROSS.fullmatch(name)}
    if len(inputs) == len(names):
        raise Unsupported("the decoder has no input 'cross.0.key' for what the encoder makes", hint=HINT)
    return describe(inputs, {name: model.output_fact(name).typed for name in model.output_names()})


def have_last_logits(model: Model) -> None:
    """Have a decoder give the logits of the last token alone. Raises Unsupported as `description_of_decoder` does."""
    logits = description_of_decoder(model).logits
    model.transform(json.dumps({"name": LastLogits.name, "logits": logits}))


class EncodedPast(StatelessPast):
    """The past of one answer; `begin` says to what."""

    def __init__(self, runnable: Runnable, description: LanguageModel) -> None:
        super().__init__(runnable, description)
        self._encode: Encode | None = None
        self._across: Mapping[str, Array] = {}

    def begin(self, encode: Encode) -> None:
        """Nothing was seen yet, and ``encode`` gives what to look at; it is asked in the first step."""
        self.truncate(0)
        self._encode, self._across = encode, {}

    def close(self) -> None:
        """As the protocol says."""
        super().close()
        self._encode, self._across = None, {}

    def _inputs(self, tokens: list[int], seen: int) -> dict[str, Array]:
        if self._encode is not None:
            self._across, self._encode = self._encode(), None
        return super()._inputs(tokens, seen) | dict(self._across)


class EncodedPasts:
    """Pasts of one decoder, which many threads may use."""

    def __init__(self, encoder: Runnable, decoder: Runnable, description: LanguageModel) -> None:
        """Raises Unsupported where the encoder does not give what the decoder looks at."""
        self._encoder, self._decoder, self._description = encoder, decoder, description
        self._outputs = encoder.output_names()
        missing = [one for one in decoder.input_names() if ACROSS.fullmatch(one) and one not in self._outputs]
        if missing:
            raise Unsupported(f"the decoder looks at {missing[0]!r}, which the encoder does not give")
        self._idle: list[EncodedPast] = []

    def past_of(self, given: Callable[[], Array]) -> EncodedPast:
        """The past of an answer to what ``given`` makes for the encoder, which is asked in the first step."""
        try:
            past = self._idle.pop()
        except IndexError:
            past = EncodedPast(self._decoder, self._description)
        past.begin(lambda: self.encoded(given()))
        return past

    def encoded(self, given: Array) -> Mapping[str, Array]:
        """What the decoder looks at, for an input of the encoder. Raises RunError."""
        found = zip(self._outputs, self._encoder.run([given]), strict=True)
        return {name: one.view() for name, one in found if ACROSS.fullmatch(name)}

    def give_back(self, past: Past) -> None:
        """Nobody goes on with a past that `past_of` gave."""
        past.close()
        if isinstance(past, EncodedPast):
            self._idle = [past]


def token_input(tokens: Sequence[int], vocabulary: int | None) -> Array:
    """Tokens as an encoder takes them, [1,S]. Raises InputError for none, and for a number that is no token."""
    check_tokens(tokens, vocabulary)
    return np.array([tokens], np.int64)
