"""What a model has seen of one text. Whoever generates knows this protocol, and not how the past is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from tract_core.api.runnable import Runnable
from tract_core.errors import CorruptModel, InputError
from tract_transformers.language_model.description import LanguageModel

Array = npt.NDArray[Any]


class Past(Protocol):
    """The beginning of a text, as a model that goes on with it needs it.

    ``tokens``: that beginning. To be read, not changed.
    """

    @property
    def tokens(self) -> Sequence[int]:
        """What was seen so far."""
        ...

    def recall(self, tokens: Sequence[int]) -> int:
        """Be the longest beginning of ``tokens`` that is known. Returns how long that is."""
        ...

    def extend(self, tokens: Sequence[int], *, every: bool = False) -> Array:
        """See these tokens too. Returns logits, [n,V], in f32 or f64, of the last one at the least.

        ``every``: of all of them, where the model was not made to give no others than the last.

        Raises InputError for none, and for a number that is no token; RunError where the model fails. Then, nothing
        of it was seen.
        """
        ...

    def truncate(self, length: int) -> None:
        """Forget all but the first ``length`` tokens. Raises InputError for more than there are."""
        ...

    def close(self) -> None:
        """Nobody goes on with this text."""
        ...

    def freeze(self) -> Mapping[str, Array]:
        """What was seen, as arrays by names that `thaw` knows: copies, or views that nobody writes to."""
        ...

    def thaw(self, tokens: Sequence[int], arrays: Mapping[str, Array]) -> None:
        """Be what a past of the same model was when it saw ``tokens`` and gave ``arrays``, which are not kept.

        Raises CorruptModel where they do not fit; then, nothing was seen.
        """
        ...


class StatelessPast:
    """The past of a model without a state: arrays that it gives, and that it is given in the next step."""

    def __init__(self, runnable: Runnable, description: LanguageModel) -> None:
        self._state = runnable.spawn_state()
        self._description = description
        self._outputs = runnable.output_names()
        self._kept: list[Array] = [one.empty() for one in description.past]
        self._tokens: list[int] = []

    @property
    def tokens(self) -> Sequence[int]:
        """What was seen so far."""
        return self._tokens

    def recall(self, tokens: Sequence[int]) -> int:
        """As the protocol says."""
        length = common_beginning(self._tokens, tokens)
        self.truncate(length)
        return length

    def extend(self, tokens: Sequence[int], *, every: bool = False) -> Array:
        """As the protocol says; whether all logits come is up to the model."""
        check_tokens(tokens, self._description.vocabulary)
        keeps = bool(self._description.past)
        given = [*tokens] if keeps else [*self._tokens, *tokens]
        outputs = self._state.run(self._inputs(given, len(self._tokens) if keeps else 0))
        found = {name: one.view() for name, one in zip(self._outputs, outputs, strict=True)}
        self._kept = [found[one.output] for one in self._description.past]
        self._tokens.extend(tokens)
        logits = found[self._description.logits][0][-len(tokens) :]
        return logits if logits.dtype.itemsize >= 4 else logits.astype(np.float32)

    def _inputs(self, tokens: list[int], seen: int) -> dict[str, Array]:
        """What the model is given: the tokens, and where they stand behind so many others."""
        form = self._description
        of_tokens, of_positions, of_mask = form.kinds
        inputs: dict[str, Array] = {form.tokens: np.array([tokens], of_tokens.numpy)}
        if form.positions is not None:
            inputs[form.positions] = np.arange(seen, seen + len(tokens), dtype=of_positions.numpy)[None]
        if form.mask is not None:
            inputs[form.mask] = np.ones((1, seen + len(tokens)), of_mask.numpy)
        return inputs | {one.input: array for one, array in zip(form.past, self._kept, strict=True)}

    def truncate(self, length: int) -> None:
        """As the protocol says."""
        check_length(length, len(self._tokens))
        if length < len(self._tokens):
            self._kept = [np.ascontiguousarray(one[:, :, :length]) for one in self._kept]
            del self._tokens[length:]

    def close(self) -> None:
        """As the protocol says."""
        self.truncate(0)

    def freeze(self) -> Mapping[str, Array]:
        """As the protocol says: ``heads,positions,size`` for each tensor of the past, by the names of the inputs."""
        return {one.input: array[0] for one, array in zip(self._description.past, self._kept, strict=True)}

    def thaw(self, tokens: Sequence[int], arrays: Mapping[str, Array]) -> None:
        """As the protocol says."""
        self.truncate(0)
        past = self._description.past
        shapes = {one.input: ((one.heads, len(tokens), one.size), one.kind.numpy) for one in past}
        check_frozen(tokens, arrays, shapes, self._description.vocabulary)
        self._kept = [arrays[one.input][None].copy() for one in past]
        self._tokens = list(tokens)


def common_beginning(one: Sequence[int], other: Sequence[int]) -> int:
    """How many tokens two texts have in common in front."""
    pairs = zip(one, other, strict=False)
    return next((at for at, (a, b) in enumerate(pairs) if a != b), min(len(one), len(other)))


def check_tokens(tokens: Sequence[int], vocabulary: int | None) -> None:
    """Raise InputError for what a model cannot be given."""
    if not len(tokens):
        raise InputError("there are no tokens to go on with", hint="a prompt has one token at the least")
    strange = next((one for one in tokens if one < 0 or (vocabulary is not None and one >= vocabulary)), None)
    if strange is not None:
        hint = "the tokenizer belongs to another model"
        raise InputError(f"token {strange} is outside the model's vocabulary of {vocabulary}", hint=hint)


Frozen = Mapping[str, tuple[tuple[int, ...], np.dtype[Any]]]
"""Shapes and types of arrays, by name."""


def check_frozen(tokens: Sequence[int], arrays: Mapping[str, Array], wanted: Frozen, vocabulary: int | None) -> None:
    """Raise CorruptModel for what no past of this form gave."""
    if vocabulary is not None and any(one >= vocabulary for one in tokens):
        raise CorruptModel(f"the past has tokens outside the model's vocabulary of {vocabulary}")
    found = {name: (array.shape, array.dtype) for name, array in arrays.items()}
    strange = sorted(name for name in found.keys() | wanted.keys() if found.get(name) != wanted.get(name))
    if strange:
        there, right = (one.get(strange[0], "nothing") for one in (found, wanted))
        raise CorruptModel(f"the past has {there} as {strange[0]!r:.80}, wanted {right}")


def check_length(length: int, there: int) -> None:
    """Raise InputError for a beginning that a text has not."""
    if not 0 <= length <= there:
        raise InputError(f"the first {length} tokens cannot stay: there are {there}")
