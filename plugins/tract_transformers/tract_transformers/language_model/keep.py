"""How a language model keeps its past: in pages where it can be made so, else through inputs and outputs."""

from __future__ import annotations

import json
from typing import Protocol

from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.errors import TransformError, Unsupported
from tract_transformers.language_model.description import LanguageModel, describe
from tract_transformers.language_model.encoder import described
from tract_transformers.language_model.paged import PagedTexts
from tract_transformers.language_model.past import Past, StatelessPast
from tract_transformers.transforms.paged import PAGE_BYTES, PAGE_SIZE, PagedCache
from tract_transformers.transforms.wanted_logits import LastLogits


def description_of(model: Model | Runnable) -> LanguageModel:
    """What its inputs and outputs are. Raises Unsupported for what is no language model of a known form."""
    keys, pages = model.property_keys(), None
    if PAGE_SIZE in keys and PAGE_BYTES in keys:
        pages = int(model.property(PAGE_SIZE).to_numpy()), int(model.property(PAGE_BYTES).to_numpy())
    inputs = {name: model.input_fact(name).typed for name in model.input_names()}
    outputs = {name: model.output_fact(name).typed for name in model.output_names()}
    if described(inputs, outputs) is not None:
        raise Unsupported(
            "this is an encoder, which writes no text",
            hint="tract_transformers.load_embedder has it make vectors of texts, load_reranker scores of pairs",
        )
    return describe(inputs, outputs, pages)


def keep_past(model: Model, kept: str = "f32", *, last: int | None = None) -> None:
    """Have a language model keep its past in pages, in the type ``kept``; one that cannot be made so stays as it is.

    ``last``: of how many tokens logits are given by one that stays as it is; of all unless given. Pages give those
    that are asked for. Raises Unsupported for what is no language model of a known form.
    """
    description = description_of(model)
    if description.past:
        try:
            model.transform(_spec(PagedCache.name, kept=kept, logits=description.logits))
        except TransformError:  # whoever asks for a description is told that there are no pages
            pass
        else:
            return
    if last is not None and description.pages is None:
        model.transform(_spec(LastLogits.name, logits=description.logits, count=last))


def _spec(name: str, **parameters: object) -> str:
    """A transform by its name: as a text, by which another process finds what was prepared."""
    return json.dumps({"name": name, **parameters})


class Pasts(Protocol):
    """Where pasts come from, and go when they are over. Many threads may use one."""

    def past(self) -> Past:
        """A past without a token, or one of which nobody needs what it has; `Past.recall` tells what that is."""
        ...

    def give_back(self, past: Past) -> None:
        """Nobody goes on with a past."""
        ...


class StatelessPasts:
    """Pasts of a model without a state. The last one that was given back is the next one, with what it has."""

    def __init__(self, runnable: Runnable, description: LanguageModel) -> None:
        self._runnable, self._description = runnable, description
        self._idle: list[Past] = []

    def past(self) -> Past:
        """As the protocol says."""
        try:
            return self._idle.pop()
        except IndexError:
            return StatelessPast(self._runnable, self._description)

    def give_back(self, past: Past) -> None:
        """As the protocol says."""
        self._idle = [past]


def pasts_of(runnable: Runnable, description: LanguageModel) -> Pasts:
    """Where the pasts of a model come from."""
    if description.pages is None:
        return StatelessPasts(runnable, description)
    return PagedTexts(runnable, description)
