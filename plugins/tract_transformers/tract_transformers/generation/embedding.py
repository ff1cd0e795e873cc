"""Texts as vectors, so that texts alike lie near each other.

Encoders are made for that; of language models, what stands in front of their head is taken.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import numpy as np
import numpy.typing as npt

from tract_core.api.given import checked_path
from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.api.runtime import Runtime
from tract_core.errors import InputError, RunError, Unsupported
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_core.model.graph import OutletId
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Binary
from tract_core.ops.cast import Cast
from tract_core.ops.einsum import EinSum
from tract_core.ops.elementwise import ElementWise
from tract_transformers.generation.adapters import Adapter
from tract_transformers.generation.loading import Words, add_adapters, load_model, several, words_of
from tract_transformers.generation.reading import CHUNK
from tract_transformers.generation.said_of_vectors import POOLINGS, Pooling, SaidOfVectors, said_of_vectors
from tract_transformers.language_model.encoder import Array, Encoder, computed, encoder_of, keep_output
from tract_transformers.language_model.keep import description_of, keep_past, pasts_of
from tract_transformers.tokenizers.protocol import Framed
from tract_transformers.transforms.wanted_logits import replace_logits

Vectors = npt.NDArray[np.float32]


@frozen
class HiddenStates:
    """A model whose output ``logits`` is what its head was given, B,S,width, instead of scores of tokens."""

    name: ClassVar[str] = "hidden_states"
    logits: str

    def apply(self, model: TypedModel) -> TypedModel:
        """The changed model. Raises Unsupported where no head is found, TransformError without such an output."""
        found = model.clone()
        replace_logits(found, self.logits, lambda before: _before_head(found, before))
        found.prune()
        return found


def _before_head(model: TypedModel, outlet: OutletId) -> OutletId:
    """What the last product of a model is made of, through functions of one number behind it."""
    while True:
        node = model.producer(outlet)
        if isinstance(node.op, EinSum):
            letter = node.op.axes.outputs[0][1]
            having = [one for one, term in zip(node.inputs, node.op.axes.inputs, strict=True) if letter in term]
        elif isinstance(node.op, (ElementWise, Cast)):
            having = [node.inputs[0]]
        elif isinstance(node.op, Binary):
            having = [one for one in node.inputs if not isinstance(model.producer(one).op, Const)]
        else:
            having = []
        if len(having) != 1 or model.outlet_fact(having[0]).rank != 3:
            raise Unsupported(f"the model has no head that is known: its logits are made by {node}")
        outlet = having[0]
        if isinstance(node.op, EinSum):
            return outlet


class Vectors64(Protocol):
    """What makes vectors of texts, of no certain length."""

    def tokens(self, text: str) -> Framed:
        """The tokens of a text, with those around it. Raises InputError."""
        ...

    def vectors(self, texts: Sequence[Framed]) -> Iterator[tuple[int, Array]]:
        """The number of each text, and its vector [width] in f64, in any order. Raises RunError."""
        ...


class OfDecoder:
    """Vectors of a language model, with `HiddenStates`: each text is read alone, in pieces."""

    def __init__(self, runnable: Runnable, words: Words, pooling: Pooling, *, end: bool) -> None:
        if pooling == "cls":
            raise InputError("the first token of a text says nothing of it, as it sees no other: take 'last' or 'mean'")
        ends = sorted(words.tokenizer.ends)
        if end and not ends:
            raise InputError("the tokenizer has no token that ends texts")
        self._tokenizer, self._pooling = words.tokenizer, pooling
        self._behind = ends[:1] if end else []
        # There are other numbers of logits than of tokens, so that says nothing of which tokens there are.
        self._pasts = pasts_of(runnable, replace(description_of(runnable), vocabulary=None))

    def tokens(self, text: str) -> Framed:
        """As the protocol says."""
        found = [*self._tokenizer.begin, *self._tokenizer.encode(text), *self._behind]
        return Framed(found, [0] * len(found))

    def vectors(self, texts: Sequence[Framed]) -> Iterator[tuple[int, Array]]:
        """As the protocol says."""
        for number, text in enumerate(texts):
            yield number, self._of(text.tokens)

    def _of(self, tokens: Sequence[int]) -> Array:
        past, total = self._pasts.past(), np.zeros(())
        try:
            past.truncate(0)
            for start in range(0, len(tokens), CHUNK):
                rows = past.extend(tokens[start : start + CHUNK], every=self._pooling == "mean").astype(np.float64)
                total = total + rows.sum(axis=0) if self._pooling == "mean" else rows[-1]
        finally:
            self._pasts.give_back(past)
        return total


class OfEncoder:
    """Vectors of an encoder, whose only output are those of tokens: texts of like lengths are read side by side."""

    def __init__(self, runnable: Runnable, words: Words, pooling: Pooling, encoder: Encoder, *, end: bool) -> None:
        if end:
            raise InputError("what stands behind a text is up to the encoder's tokenizer (end=True)")
        self._runnable, self._encoder = runnable, encoder
        self._tokenizer, self._pooling = words.tokenizer, pooling

    def tokens(self, text: str) -> Framed:
        """As the protocol says."""
        return self._tokenizer.framed(text)

    def vectors(self, texts: Sequence[Framed]) -> Iterator[tuple[int, Array]]:
        """As the protocol says."""
        for number, rows in computed(self._runnable, self._encoder, texts):
            wide = rows.astype(np.float64)
            yield number, wide.sum(axis=0) if self._pooling == "mean" else wide[0 if self._pooling == "cls" else -1]


class TextEmbedder:
    """A model that makes vectors of texts. Many threads may use one."""

    def __init__(
        self,
        runnable: Runnable,
        words: Words,
        pooling: Pooling = "last",
        *,
        end: bool = False,
        before: str = "",
        lowercase: bool = False,
    ) -> None:
        """``runnable``: an encoder, or a language model with `HiddenStates`.

        ``end``: whether the token that ends texts stands behind each; ``before``: a text that stands in front of each;
        ``lowercase``: whether texts are written in small letters.
        """
        if pooling not in POOLINGS:
            raise InputError(f"pooling is {pooling!r}, wanted one of {', '.join(POOLINGS)}")
        encoder = encoder_of(runnable)
        self.runnable = runnable
        self.tokenizer = words.tokenizer
        self.context = words.context
        self.pooling: Pooling = pooling
        self._before, self._lowercase = before, lowercase
        self._made: Vectors64 = (
            OfDecoder(runnable, words, pooling, end=end)
            if encoder is None
            else OfEncoder(runnable, words, pooling, encoder, end=end)
        )

    def embed(self, texts: str | Iterable[str]) -> Vectors:
        """A vector of length 1 for each text: texts,width. A single text is one of one.

        Raises InputError for what is no text, an empty one, and one that is longer than the model's context; RunError
        where the model fails.
        """
        framed = [self._tokens(text) for text in ([texts] if isinstance(texts, str) else texts)]
        found: dict[int, Vectors] = {number: _scaled(total) for number, total in self._made.vectors(framed)}
        return np.stack([found[number] for number in range(len(framed))]) if framed else np.zeros((0, 0), np.float32)

    def count(self, texts: Iterable[str]) -> int:
        """How many tokens the model reads of some texts. Raises InputError as `embed` does."""
        return sum(len(self._tokens(text).tokens) for text in texts)

    def rank(self, query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
        """The texts by how near each is to a query: their numbers, with the cosine, the nearest first.

        Raises as `embed` does.
        """
        if not texts:
            return []
        near = self.embed(texts) @ self.embed(query)[0]
        return [(int(place), float(near[place])) for place in np.argsort(-near, kind="stable")]

    def _tokens(self, text: object) -> Framed:
        if not isinstance(text, str):
            raise InputError(f"a text is a {type(text).__name__}, wanted a string")
        whole = self._before + text
        found = self._made.tokens(whole.lower() if self._lowercase else whole)
        if not found.tokens:
            raise InputError("a text is empty, and the model has no token for the beginning of one")
        if self.context is not None and len(found.tokens) > self.context:
            raise InputError(f"a text has {len(found.tokens)} tokens, and the model's context is {self.context}")
        return found

    def __repr__(self) -> str:
        return f"TextEmbedder({self.tokenizer!r}, on {self.runnable.runtime.name()})"


def _scaled(total: Array) -> Vectors:
    """A vector of length 1. Raises RunError for one without a direction."""
    length = float(np.linalg.norm(total))
    if not np.isfinite(length) or not length:
        raise RunError("the vector of a text has no direction: it is zero, or holds not-a-number")
    return (total / length).astype(np.float32)


def load_embedder(
    path: str | os.PathLike[str],
    runtime: str | Runtime = "default",
    *,
    pooling: Pooling | None = None,
    end: bool = False,
    tokenizer: str | os.PathLike[str] | None = None,
    adapters: Iterable[Adapter] = (),
    **options: Any,
) -> TextEmbedder:
    """An encoder, or a language model, of a file or a folder, as what makes vectors of texts.

    ``pooling``: whether the vector of the last token stands for a text, the mean of all, or that of the first
    (``cls``); unless given, what the model says: in ``modules.json`` beside it, or in its GGUF file. One that says
    nothing has the mean, where it is an encoder, else the last token. ``end``: whether the token that ends texts stands
    behind each. The others are those of `load`, which says what is raised; encoders take no adapters.
    """
    found, added = checked_path(path), several(adapters)
    words = words_of(found, tokenizer)
    model = load_model(found)
    encoder, said = encoder_of(model), said_of_vectors(found, pooling=pooling)
    if encoder is None:
        _keep_states(model, added, found)
        default: Pooling = "last"
    else:
        _keep_hidden(model, encoder, added)
        words, default = replace(words, context=said.context or words.context), "mean"
    runnable = model.into_runnable(runtime, **options)
    return _embedder(runnable, words, said, said.pooling or default, end=end)


def _embedder(runnable: Runnable, words: Words, said: SaidOfVectors, pooling: Pooling, *, end: bool) -> TextEmbedder:
    return TextEmbedder(runnable, words, pooling, end=end, before=said.before, lowercase=said.lowercase)


def _keep_states(model: Model, adapters: Sequence[Adapter], path: Path) -> None:
    """Have a language model give what its head reads. Raises as `load` does."""
    add_adapters(model, adapters, path)
    model.transform(HiddenStates(description_of(model).logits))
    keep_past(model)


def _keep_hidden(model: Model, encoder: Encoder, adapters: Sequence[Adapter]) -> None:
    """Have an encoder give the vectors of tokens alone. Raises Unsupported for one that gives none."""
    if adapters:
        raise InputError("adapters of encoders are not known")
    if encoder.hidden is None:
        hint = "tract_transformers.load_reranker gives scores"
        raise Unsupported("the encoder gives scores of texts, and no vectors", hint=hint)
    keep_output(model, encoder.hidden)
