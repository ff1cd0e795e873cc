"""Which input and which output of an encoder of texts is what, and what it makes of several texts side by side.

Two forms are known, by the names and by the shapes of their tensors:

========== ==================================== =====================================================
..         models of tract-gguf                 what exporters of ONNX write
========== ==================================== =====================================================
tokens     ``tokens``: B,S,i64                  ``input_ids``
mask       ``mask``: B,S,i64                    ``attention_mask``, where the model has it
types      ``types``: B,S,i64, of BERT          ``token_type_ids``, where the model has it
vectors    ``hidden``: B,S,width                ``last_hidden_state`` or ``token_embeddings``
scores     ``scores``: B,L, of rerankers        ``scores`` or ``logits``: B,L
========== ==================================== =====================================================

A mask is 1 for each token of a text, and 0 behind it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

import numpy as np
import numpy.typing as npt

from tract_core.api.model import Model
from tract_core.api.runnable import Runnable
from tract_core.errors import Unsupported
from tract_core.frozen import frozen
from tract_core.model.fact import TypedFact
from tract_transformers.language_model.description import LOGITS, TOKENS, Facts

Array = npt.NDArray[Any]

MASKS: Final = ("mask", "attention_mask")
TYPES: Final = ("types", "token_type_ids")
HIDDEN: Final = ("hidden", "last_hidden_state", "token_embeddings")
SCORES: Final = ("scores", "logits")

MOST_TOGETHER: Final = 2048
"""Tokens that are computed at once, with what stands behind texts: enough to read weights seldom."""

LEAST_BEHIND: Final = 8
"""How many tokens a text may be shorter than its neighbours, whatever its length."""


class TypedTokens(Protocol):
    """A text, or two. ``tokens``: with those around; ``types``: of each."""

    @property
    def tokens(self) -> Sequence[int]:
        """The tokens."""
        ...

    @property
    def types(self) -> Sequence[int]:
        """The type of each."""
        ...


@frozen
class Encoder:
    """The names of an encoder's inputs (tokens, mask, types) and outputs; ``None`` for what it has not.

    ``kinds``: element types of inputs. ``width``: how many numbers ``hidden`` has of a token. ``labels``: how many
    ``scores`` there are of a text.
    """

    tokens: str
    mask: str | None
    types: str | None
    hidden: str | None
    scores: str | None
    kinds: dict[str, np.dtype[Any]]
    width: int | None = None
    labels: int | None = None


def encoder_of(model: Model | Runnable) -> Encoder | None:
    """What the inputs and outputs of an encoder are; ``None`` for what is none.

    Raises Unsupported for an encoder that wants something that nobody knows.
    """
    inputs = {name: model.input_fact(name).typed for name in model.input_names()}
    outputs = {name: model.output_fact(name).typed for name in model.output_names()}
    return described(inputs, outputs)


def described(inputs: Facts, outputs: Facts) -> Encoder | None:
    """As `encoder_of`, by the facts."""
    tokens = next((name for name in TOKENS if name in inputs), None)
    hidden, scores = _output(outputs, HIDDEN, 3), _output(outputs, SCORES, 2)
    if tokens is None or (hidden is None and scores is None) or _output(outputs, LOGITS, 3) is not None:
        return None
    mask, types = (next((one for one in names if one in inputs), None) for names in (MASKS, TYPES))
    known = {tokens: inputs[tokens], **{name: inputs[name] for name in (mask, types) if name is not None}}
    strange = [name for name in inputs if name not in known or not _is_for_each_token(inputs[name])]
    if strange:
        problem = f"the encoder wants {strange[0]!r}, {inputs[strange[0]]}, and nobody knows what to give to it"
        raise Unsupported(problem, hint="docs/generation.md says which inputs an encoder has")
    width, labels = (None if name is None else outputs[name].shape[-1] for name in (hidden, scores))
    return Encoder(
        tokens,
        mask,
        types,
        hidden,
        scores,
        {name: fact.datum_type.numpy for name, fact in known.items()},
        width if isinstance(width, int) else None,
        labels if isinstance(labels, int) else None,
    )


def _output(outputs: Facts, names: Sequence[str], rank: int) -> str | None:
    found = [name for name in names if name in outputs and outputs[name].rank == rank]
    return next((name for name in found if outputs[name].datum_type.is_float()), None)


def _is_for_each_token(fact: TypedFact) -> bool:
    return fact.rank == 2 and fact.datum_type.is_integer()


def keep_output(model: Model, name: str) -> None:
    """Have an encoder compute what one output needs, and nothing else."""
    model.transform(json.dumps({"name": "select_outputs", "outputs": [name]}))


def computed(runnable: Runnable, encoder: Encoder, texts: Sequence[TypedTokens]) -> Iterator[tuple[int, Array]]:
    """The number of each text, with what the only output has of it, in any order: S,width of its S tokens, or L scores.

    Texts of like lengths are computed side by side, and what stands behind the shorter ones is masked. Raises RunError.
    """
    for together in batches([len(one.tokens) for one in texts], masked=encoder.mask is not None):
        longest = max(len(texts[one].tokens) for one in together)
        shape = (len(together), longest)
        given = {name: np.zeros(shape, kind) for name, kind in encoder.kinds.items()}
        for row, number in enumerate(together):
            count = len(texts[number].tokens)
            given[encoder.tokens][row, :count] = texts[number].tokens
            if encoder.mask is not None:
                given[encoder.mask][row, :count] = 1
            if encoder.types is not None:
                given[encoder.types][row, :count] = texts[number].types
        (found,) = runnable.run(given)
        rows = found.to_numpy()
        for row, number in enumerate(together):
            yield number, rows[row, : len(texts[number].tokens)] if rows.ndim == 3 else rows[row]


def batches(lengths: Sequence[int], *, masked: bool = True) -> Iterator[list[int]]:
    """The numbers of texts that are computed side by side, each once. ``lengths``: of all, in tokens.

    ``masked``: whether what stands behind a text is left out; texts of one batch have one length otherwise.
    """
    found: list[int] = []
    for number in sorted(range(len(lengths)), key=lambda one: -lengths[one]):
        longest = lengths[found[0]] if found else 0
        slack = max(longest // 4, LEAST_BEHIND) if masked else 0
        if found and (longest - lengths[number] > slack or (len(found) + 1) * longest > MOST_TOGETHER):
            yield found
            found = []
        found.append(number)
    if found:
        yield found
