"""Texts as vectors: what a language model has of them in front of its head, so that texts alike lie near each other."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Final, Literal

import numpy as np
import numpy.typing as npt

from tract_core.api.given import checked_path
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
from tract_transformers.generation.loading import Words, add_adapters, load_model, words_of
from tract_transformers.generation.reading import CHUNK
from tract_transformers.language_model.keep import description_of, keep_past, pasts_of
from tract_transformers.transforms.wanted_logits import replace_logits

Pooling = Literal["last", "mean"]

POOLINGS: Final = ("last", "mean")
"""What stands for a text: the vector of its last token, or the mean of all."""

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


class TextEmbedder:
    """A model that makes vectors of texts. Many threads may use one."""

    def __init__(self, runnable: Runnable, words: Words, pooling: Pooling = "last", *, end: bool = False) -> None:
        """``runnable``: with `HiddenStates`. ``end``: whether the token that ends texts stands behind each."""
        if pooling not in POOLINGS:
            raise InputError(f"pooling is {pooling!r}, wanted one of {', '.join(POOLINGS)}")
        ends = sorted(words.tokenizer.ends)
        if end and not ends:
            raise InputError("the tokenizer has no token that ends texts")
        self.runnable = runnable
        self.tokenizer = words.tokenizer
        self.context = words.context
        self.pooling: Pooling = pooling
        self._behind = ends[:1] if end else []
        # There are other numbers of logits than of tokens, so that says nothing of which tokens there are.
        self._pasts = pasts_of(runnable, replace(description_of(runnable), vocabulary=None))

    def embed(self, texts: str | Iterable[str]) -> Vectors:
        """A vector of length 1 for each text: texts,width. A single text is one of one.

        Raises InputError for what is no text, an empty one, and one that is longer than the model's context; RunError
        where the model fails.
        """
        several = [texts] if isinstance(texts, str) else list(texts)
        found = [self._of(self._tokens(text)) for text in several]
        return np.stack(found) if found else np.zeros((0, 0), np.float32)

    def rank(self, query: str, texts: Sequence[str]) -> list[tuple[int, float]]:
        """The texts by how near each is to a query: their numbers, with the cosine, the nearest first.

        Raises as `embed` does.
        """
        if not texts:
            return []
        near = self.embed(texts) @ self.embed(query)[0]
        return [(int(place), float(near[place])) for place in np.argsort(-near, kind="stable")]

    def _tokens(self, text: object) -> list[int]:
        if not isinstance(text, str):
            raise InputError(f"a text is a {type(text).__name__}, wanted a string")
        tokens = [*self.tokenizer.begin, *self.tokenizer.encode(text), *self._behind]
        if not tokens:
            raise InputError("a text is empty, and the model has no token for the beginning of one")
        if self.context is not None and len(tokens) > self.context:
            raise InputError(f"a text has {len(tokens)} tokens, and the model's context is {self.context}")
        return tokens

    def _of(self, tokens: Sequence[int]) -> Vectors:
        past, total = self._pasts.past(), np.zeros(())
        try:
            past.truncate(0)
            for start in range(0, len(tokens), CHUNK):
                rows = past.extend(tokens[start : start + CHUNK], every=self.pooling == "mean").astype(np.float64)
                total = total + rows.sum(axis=0) if self.pooling == "mean" else rows[-1]
        finally:
            self._pasts.give_back(past)
        length = float(np.linalg.norm(total))
        if not np.isfinite(length) or not length:
            raise RunError("the vector of a text has no direction: it is zero, or holds not-a-number")
        return (total / length).astype(np.float32)

    def __repr__(self) -> str:
        return f"TextEmbedder({self.tokenizer!r}, on {self.runnable.runtime.name()})"


def load_embedder(
    path: str | os.PathLike[str],
    runtime: str | Runtime = "default",
    *,
    pooling: Pooling = "last",
    end: bool = False,
    tokenizer: str | os.PathLike[str] | None = None,
    adapters: Iterable[Adapter] = (),
    **options: Any,
) -> TextEmbedder:
    """A language model of a file or a folder as one that makes vectors of texts.

    ``pooling``: whether the last token's vector stands for a text, or the mean of all; ``end``: whether the token that
    ends texts stands behind each. What a model was trained for, its page says. The others are those of `load`, which
    says what is raised.
    """
    found = checked_path(path)
    words = words_of(found, tokenizer)
    model = load_model(found)
    add_adapters(model, adapters, found)
    model.transform(HiddenStates(description_of(model).logits))
    keep_past(model)
    return TextEmbedder(model.into_runnable(runtime, **options), words, pooling, end=end)
