"""Texts by how well they answer a query: an encoder looks at both at once, and gives each pair a score."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tract_core.api.given import checked_path
from tract_core.api.runnable import Runnable
from tract_core.api.runtime import Runtime
from tract_core.errors import InputError, RunError, Unsupported
from tract_transformers.generation.loading import Words, load_model, words_of
from tract_transformers.generation.said_of_vectors import context_of
from tract_transformers.language_model.encoder import Encoder, computed, encoder_of, keep_output
from tract_transformers.tokenizers.protocol import Framed

Scores = npt.NDArray[np.float32]


class TextReranker:
    """A model that scores pairs of a query and a text. Many threads may use one."""

    def __init__(self, runnable: Runnable, words: Words) -> None:
        """``runnable``: an encoder whose only output is one score. Raises Unsupported for another model."""
        self.runnable = runnable
        self.tokenizer = words.tokenizer
        self.context = words.context
        self._encoder = checked_reranker(encoder_of(runnable))

    def scores(self, query: str, texts: str | Iterable[str]) -> Scores:
        """The score of each text with the query: higher ones answer it better. A single text is one of one.

        Scores are the numbers that the model gives; ``1 / (1 + exp(-score))`` lies between 0 and 1. Raises InputError
        for what is no text, and for pairs that are longer than the model's context; RunError where the model fails.
        """
        pairs = [self._tokens(query, text) for text in ([texts] if isinstance(texts, str) else texts)]
        found = np.zeros(len(pairs), np.float32)
        for number, scores in computed(self.runnable, self._encoder, pairs):
            found[number] = scores[0]
        if not np.isfinite(found).all():
            raise RunError("the model gives a pair of texts a score that is no number")
        return found

    def count(self, query: str, texts: Iterable[str]) -> int:
        """How many tokens the model reads of some texts with the query. Raises InputError as `scores` does."""
        return sum(len(self._tokens(query, text).tokens) for text in texts)

    def rank(self, query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
        """The texts by how well each answers a query: their numbers, with their scores, the best first.

        Raises as `scores` does.
        """
        found = self.scores(query, list(texts))
        return [(int(place), float(found[place])) for place in np.argsort(-found, kind="stable")]

    def _tokens(self, query: object, text: object) -> Framed:
        for one in (query, text):
            if not isinstance(one, str):
                raise InputError(f"a text is a {type(one).__name__}, wanted a string")
        found = self.tokenizer.framed(str(query), str(text))
        if not found.tokens:
            raise InputError("both texts are empty, and the model puts nothing around them")
        if self.context is not None and len(found.tokens) > self.context:
            raise InputError(f"both texts have {len(found.tokens)} tokens, and the model's context is {self.context}")
        return found

    def __repr__(self) -> str:
        return f"TextReranker({self.tokenizer!r}, on {self.runnable.runtime.name()})"


def checked_reranker(encoder: Encoder | None) -> Encoder:
    """The encoder, if it gives one score for a text. Raises Unsupported for a model that does not."""
    hint = "tract_transformers.load_embedder ranks texts by how near their vectors are to that of a query"
    if encoder is None or encoder.scores is None:
        raise Unsupported("the model gives no scores of texts, so that it cannot rank them", hint=hint)
    if encoder.labels != 1:
        raise Unsupported(
            f"the model gives {encoder.labels} scores of each text; one that ranks texts gives 1", hint=hint
        )
    return encoder


def load_reranker(
    path: str | os.PathLike[str],
    runtime: str | Runtime = "default",
    *,
    tokenizer: str | os.PathLike[str] | None = None,
    **options: Any,
) -> TextReranker:
    """An encoder with a head for one score (a cross-encoder), of a file or a folder, as what ranks texts.

    The parameters are those of `load`, which says what is raised; Unsupported for a model without such a head.
    """
    found = checked_path(path)
    words = words_of(found, tokenizer)
    model = load_model(found)
    encoder = checked_reranker(encoder_of(model))
    assert encoder.scores is not None  # that was checked
    keep_output(model, encoder.scores)
    words = replace(words, context=context_of(found) or words.context)
    return TextReranker(model.into_runnable(runtime, **options), words)
