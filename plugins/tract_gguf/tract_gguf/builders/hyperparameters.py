"""The numbers that say how large a network is, which files have under the name of its architecture."""

from __future__ import annotations

from typing import Final

import numpy as np

from tract_core.dims import Dim
from tract_core.errors import CorruptModel, ModelError
from tract_core.model.typed import TypedModel
from tract_core.plugins.keys import Array
from tract_gguf.builders.weights import Weights
from tract_gguf.reading.file import GgufFile

MOST: Final = 1 << 16
"""Elements of a head, before it is known that the weights have as many."""


class Hyperparameters:
    """The sizes of a network. ``weights``: its tensors. ``length``: how many positions there are, the past and new.

    ``width``: of what layers hand on. ``heads``, ``key_heads``: of queries, and of keys and values. ``key_size``,
    ``value_size``: elements of a head. ``vocabulary``: how many tokens there are. ``layers``: their number.
    ``context_length``: how many positions it was made for.
    """

    def __init__(self, file: GgufFile, model: TypedModel) -> None:
        self._file = file
        self._architecture = file.architecture
        self.weights = Weights(file, model)
        self.batch: Dim = model.symbols.add("B")
        self.count: Dim = model.symbols.add("S")
        self.past: Dim = model.symbols.add("P")
        self.length: Dim = self.past + self.count
        self.layers = self.positive("block_count")
        self.width = self.positive("embedding_length")
        self.heads = self.positive("attention.head_count")
        self.key_heads = self.positive("attention.head_count_kv", self.heads)
        self.key_size = self.positive("attention.key_length", max(self.width // self.heads, 1), most=MOST)
        self.value_size = self.positive("attention.value_length", self.key_size, most=MOST)
        self.context_length = self.positive("context_length", 1 << 20)
        self.vocabulary = self._vocabulary()
        if self.heads % self.key_heads:
            problem = f"{self.heads} heads of queries cannot share {self.key_heads} heads of keys"
            raise CorruptModel(problem)

    def integer(self, key: str, default: int | None = None) -> int:
        """An integer of the network, or of all of its layers alike. Raises ModelError where it is none."""
        name = self._key(key)
        found = self._file.metadata.get(name)
        if isinstance(found, np.ndarray):
            return self._alike(key, found)
        return self._file.integer(name, default)

    def positive(self, key: str, default: int | None = None, *, most: int = 1 << 31) -> int:
        """An integer above 0, and up to ``most``. Raises ModelError where it is none."""
        found = self.integer(key, default)
        if not 0 < found <= most:
            raise self.wrong(key, found, f"an integer from 1 to {most}")
        return found

    def number(self, key: str, default: float | None = None) -> float:
        """A number. Raises ModelError where it is none."""
        return self._file.number(self._key(key), default)

    def divisor(self, key: str) -> float:
        """A number that something is divided by; 1 where there is none. Raises ModelError for 0."""
        found = self.number(key, 1.0)
        if not 0 < abs(found) < float("inf"):
            raise self.wrong(key, found, "a number other than 0")
        return found

    def flag(self, key: str, *, default: bool) -> bool:
        """Whether something holds. Raises ModelError where the file says neither."""
        found = self._file.metadata.get(self._key(key), default)
        if not isinstance(found, bool):
            raise self.wrong(key, found, "a boolean")
        return found

    def text(self, key: str, default: str) -> str:
        """A text. Raises ModelError where it is none."""
        name = self._key(key)
        return self._file.text(name) if name in self._file.metadata else default

    def __contains__(self, key: str) -> bool:
        """Whether the file says something of it."""
        return self._key(key) in self._file.metadata

    def wrong(self, key: str, found: object, wanted: str) -> ModelError:
        """The error for a value of the metadata."""
        return CorruptModel(f"{self._key(key)} is {found!r:.80}, wanted {wanted}")

    def _key(self, key: str) -> str:
        return f"{self._architecture}.{key}"

    def _alike(self, key: str, found: Array) -> int:
        """The one integer that all layers have. Raises ModelError where they differ."""
        if not found.size or found.dtype.kind not in "iu" or (found != found[0]).any():
            raise self.wrong(key, found.tolist(), "one integer for all layers")
        return int(found[0])

    def _vocabulary(self) -> int:
        rows = self.weights.sizes("token_embd.weight")
        if len(rows) != 2:
            raise CorruptModel(f"the tensor 'token_embd.weight' has shape {list(rows)}, wanted a matrix")
        return rows[0]
