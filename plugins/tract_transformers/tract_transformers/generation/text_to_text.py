"""A model that reads a whole text with an encoder, and writes another one with a decoder, as T5."""

from __future__ import annotations

import os
from typing import Any, Final

from tract_core.api.runnable import Runnable
from tract_core.errors import InputError
from tract_transformers.generation.asking import wishes_of
from tract_transformers.generation.reading import CHUNK
from tract_transformers.generation.text_model import AskedText, Prompt, TextModel
from tract_transformers.generation.writing import Writing
from tract_transformers.language_model.encoded import EncodedPasts, description_of_decoder, token_input
from tract_transformers.language_model.past import Past
from tract_transformers.tokenizers.protocol import Tokenizer

MOST_READ: Final = 4096
"""Tokens of a text that is read: scores of all pairs of them take memory."""


class TextToText(TextModel):
    """A `TextModel` whose prompt is read by an encoder. Many threads may use one.

    Drafts, files of prompts, and engines are not for it. ``encoder``: what reads; ``runnable``: the decoder.
    """

    def __init__(
        self, encoder: Runnable, decoder: Runnable, tokenizer: Tokenizer, *, start: int, end: int | None = None
    ) -> None:
        """``start``: the token with which answers begin; ``end``: that which stands behind a text that is read.

        Raises Unsupported for two models that are no such halves.
        """
        super().__init__(decoder, description_of_decoder(decoder), tokenizer)
        self.encoder = encoder
        self._start, self._end = start, end
        self._halves = EncodedPasts(encoder, decoder, self.description)

    def begun(self, prompt: Prompt, **wishes: Any) -> Writing:
        """As of `TextModel`. Raises InputError too for drafts and files of prompts."""
        for name in ("draft", "draft_tokens", "prompt_cache"):
            wished = wishes.pop(name, None)
            if wished is not None and name != "draft_tokens":
                raise InputError(f"{name} is not for a model with an encoder")
        asked = wishes_of(None, **wishes)
        tokens = self.prompt_tokens(prompt)
        given = token_input(tokens, self.description.vocabulary)
        past = self._halves.past_of(lambda: given)
        done = self._halves.give_back
        return Writing(past, self.tokenizer, [self._start], asked, done, encoded=len(tokens))

    def asked(self, prompt: Prompt, **wishes: Any) -> AskedText:
        """Raises InputError: whoever computes several texts at once cannot have this model do it."""
        raise _refused()

    def prompt_tokens(self, prompt: Prompt) -> list[int]:
        """The tokens that the encoder reads. Raises InputError for a conversation, and for too long a text."""
        if not isinstance(prompt, str):
            raise InputError("the model has no chat template", hint="give the prompt as one text")
        found = self.tokenizer.encode(prompt, special=True)
        tokens = found if self._end is None else [*found, self._end]
        if len(tokens) > MOST_READ:
            raise InputError(f"the prompt has {len(tokens)} tokens, {MOST_READ} are allowed")
        return tokens

    def save_prompt(self, path: str | os.PathLike[str], prompt: Prompt, *, chunk: int = CHUNK) -> None:
        """Raises InputError: what the model sees of a prompt is no beginning of another."""
        raise _refused()

    def past(self) -> Past:
        """Raises InputError: without a text that was read, there are no logits."""
        raise _refused()

    def __repr__(self) -> str:
        return f"TextToText({self.tokenizer!r}, on {self.runnable.runtime.name()})"


def _refused() -> InputError:
    return InputError("the model has an encoder, and writes one answer at a time", hint="use its generate()")
