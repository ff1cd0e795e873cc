"""What a model has seen of a prompt, in a file: a later process does not read the prompt again.

It is a file of safetensors, whose metadata say ``format`` and ``model``, the identity of the model. The tensor
``tokens``: n, in i64, are the tokens, and the others what a `Past` makes of itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from tract_core.api.runnable import Runnable
from tract_core.data import Constant
from tract_core.digests import blake2b
from tract_core.errors import CorruptModel, InputError, ModelError, TractError
from tract_core.frozen import frozen
from tract_core.model.const import Const
from tract_transformers.generation.tensor_file import Array, read_tensors, write_tensors
from tract_transformers.language_model.past import Past, common_beginning

FORMAT: Final = "tract prompt 1"
TOKENS: Final = "tokens"

HINT: Final = "write it again by TextModel.save_prompt"

_SAMPLES: Final = 8
"""Places of a tensor of weights that are looked at to tell models apart, of `_SAMPLE` bytes each."""

_SAMPLE: Final = 512


@frozen
class SavedPrompt:
    """``tokens`` that a model has seen, and the ``arrays`` that its past is made of; from the file ``path``."""

    path: Path
    tokens: tuple[int, ...]
    arrays: Mapping[str, Array]


def save_past(path: Path, past: Past, model: str) -> None:
    """Write what a past holds. ``model``: the identity of its model. Raises InputError for an unwritable file."""
    arrays = {TOKENS: np.array(past.tokens, np.int64), **past.freeze()}
    write_tensors(path, {"format": FORMAT, "model": model}, arrays)


def read_saved(path: Path, model: str) -> SavedPrompt:
    """What such a file holds, over its memory. ``model``: the identity of the one that is to go on.

    Raises InputError for a file of another model, ModelError for one that cannot be read, or breaks the rules.
    """
    try:
        found = read_tensors(path)
        if found.about.get("format") != FORMAT:
            raise CorruptModel(f"it is no prompt of the form {FORMAT!r}")
        if found.about.get("model") != model:
            raise InputError("it was written for another model, or for one that was changed", hint=HINT)
        arrays = dict(found.tensors)
        return SavedPrompt(path, _tokens(arrays.pop(TOKENS, None)), arrays)
    except CorruptModel as error:
        raise _about(error, path) from None
    except (ModelError, InputError) as error:
        raise error.at(str(path)) from None


def recall_saved(past: Past, prompt: Sequence[int], saved: SavedPrompt) -> None:
    """Have a past be what was saved, unless it knows as much of a prompt. Raises CorruptModel for what does not fit."""
    if past.recall(prompt) < common_beginning(saved.tokens, prompt):
        try:
            past.thaw(saved.tokens, saved.arrays)
        except CorruptModel as error:
            raise _about(error, saved.path) from None


def identity_of(runnable: Runnable) -> str:
    """A text that is the same for the same model, and hardly for another: of places in its weights, in any order."""
    model = runnable.typed
    found: list[bytes] = []
    for node in model.live_nodes():
        if isinstance(node.op, Const) and isinstance(node.op.value, Constant):
            array = node.op.value.array
            if array.nbytes >= _SAMPLE and not array.dtype.hasobject:  # else it is no weight
                found.append(_digest(array))
    return blake2b(b"".join(sorted(found)), digest_size=20).hexdigest()


def _digest(array: Array) -> bytes:
    flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    places = np.linspace(0, flat.size - _SAMPLE, _SAMPLES).astype(np.int64)
    said = f"{array.dtype} {array.shape}".encode()
    return blake2b(said + b"".join(flat[at : at + _SAMPLE].tobytes() for at in places), digest_size=20).digest()


def _tokens(found: Array | None) -> tuple[int, ...]:
    if found is None or found.dtype != np.int64 or found.ndim != 1 or (found < 0).any():
        raise CorruptModel("its tokens are none", where=f"tensor {TOKENS!r}")
    return tuple(found.tolist())


def _about(error: CorruptModel, path: Path) -> TractError:
    """The error, with the file, and what to do about it."""
    error.hint = HINT
    return error.at(str(path))
