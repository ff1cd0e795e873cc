"""The tensors that a method writes for one matrix, and what the configuration says of all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, prod
from typing import Any, Final, cast

import numpy as np

from tract_core.data.blocks import Blocks
from tract_core.errors import CorruptModel, LimitExceeded, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import LoadLimits
from tract_core.plugins.keys import Array
from tract_gguf.reading.quantised import Quantised, QuantisedTensor
from tract_gguf.reading.tensors import GgufTensor

CONFIG: Final = "quantization_config"

FLOATS: Final = ("f32", "f16", "bf16", "f8e8m0fnu")
"""Types of scales."""


@frozen
class Settings:
    """What ``config.json`` says of quantisation. ``said``: an object of JSON; ``where``: its name there."""

    said: Mapping[str, Any]
    where: str = CONFIG

    def integer(self, key: str, default: int | None = None) -> int:
        """Raises CorruptModel for anything else, and where there is neither it nor ``default``."""
        found = self.said.get(key)
        found = default if found is None else found
        if type(found) is not int or abs(found) >= 1 << 31:
            raise self.wrong(key, "an integer of 32 bits")
        return found

    def one_of(self, key: str, known: Sequence[object], default: object = None) -> Any:
        """One of those that are known. Raises Unsupported for another."""
        found = self.said.get(key)
        found = default if found is None else found
        if found not in known:
            listed = ", ".join(map(str, known))
            raise Unsupported(
                f"config.json has {found!r:.80} as {self.where}.{key}, which is not read; known: {listed}"
            )
        return found

    def truth(self, key: str, *, default: bool) -> bool:
        """Raises CorruptModel for anything but true and false."""
        found = self.said.get(key)
        found = default if found is None else found
        if not isinstance(found, bool):
            raise self.wrong(key, "true or false")
        return found

    def pair(self, key: str) -> tuple[int, int] | None:
        """Two sizes above 0; ``None`` where there are none. Raises CorruptModel for anything else."""
        found = self.said.get(key)
        if found is None:
            return None
        sizes = cast("list[object]", found) if isinstance(found, list) else []
        if len(sizes) != 2 or not all(type(one) is int and 0 < one < 1 << 31 for one in sizes):
            raise self.wrong(key, "two integers above 0")
        first, second = cast("list[int]", sizes)
        return first, second

    def inside(self, key: str) -> Settings:
        """An object inside. Raises CorruptModel for anything else."""
        found = self.said.get(key)
        if not isinstance(found, dict):
            raise self.wrong(key, "an object")
        return Settings(cast("Mapping[str, Any]", found), f"{self.where}.{key}")

    def wrong(self, key: str, wanted: str) -> CorruptModel:
        """The error for a value that is none."""
        return CorruptModel(f"config.json has {self.said.get(key)!r:.80} as {self.where}.{key}, wanted {wanted}")

    def group(self, key: str, columns: int) -> int:
        """How many columns share a scale; -1 stands for all. Raises CorruptModel for 0 and for other negative ones."""
        found = self.integer(key)
        if found == 0 or found < -1:
            raise self.wrong(key, "a size of groups above 0, or -1")
        return columns if found == -1 else min(found, columns)


@frozen
class Module:
    """The tensors ``parts``, by name, that a method wrote for the matrix of a linear layer ``name``."""

    name: str
    parts: Mapping[str, GgufTensor]
    limits: LoadLimits

    def part(self, name: str, kinds: Sequence[str], shape: Sequence[int] | None = None) -> GgufTensor:
        """One of them. Raises CorruptModel where there is none, or one of another type or shape than these."""
        found = self.parts.get(name)
        if found is None:
            raise CorruptModel(f"there is no tensor {f'{self.name}.{name}'!r:.200}, which its other tensors want")
        if found.kind not in kinds:
            raise self.wrong(found, f"elements are of type {found.kind}, wanted {' or '.join(kinds)}")
        if shape is not None and found.shape != tuple(shape):
            raise self.wrong(found, f"shape is {list(found.shape)}, wanted {list(shape)}")
        return found

    def matrix(self, name: str, kinds: Sequence[str]) -> GgufTensor:
        """One of them that has two axes, none of size 0. Raises CorruptModel."""
        found = self.part(name, kinds)
        if len(found.shape) != 2 or not all(found.shape):
            raise self.wrong(found, f"shape is {list(found.shape)}, wanted two axes, none of size 0")
        return found

    def wrong(self, tensor: GgufTensor, what: str) -> CorruptModel:
        """The error for a tensor."""
        return CorruptModel(f"its {what}", where=f"tensor {tensor.name!r:.200}")

    def tensor(self, kind: str, shape: tuple[int, ...], make: Callable[[], Quantised | Blocks]) -> QuantisedTensor:
        """The matrix, [N,K] of numbers. Raises LimitExceeded where its codes take more than one tensor may."""
        self.check_size(prod(shape))
        return QuantisedTensor(f"{self.name}.weight", kind, shape, make)

    def check_size(self, size: int) -> None:
        """Raises LimitExceeded where the matrix takes more than one tensor may."""
        if size > self.limits.max_tensor_bytes:
            problem = f"it takes {size} bytes, {self.limits.max_tensor_bytes} are allowed"
            raise LimitExceeded(problem, where=f"tensor {f'{self.name}.weight'!r:.200}")


def elements(tensor: GgufTensor) -> Array:
    """The elements of a tensor that has no blocks."""
    held = tensor.stored()
    assert not isinstance(held, Blocks)  # files of safetensors have none
    return held


def scales_of(tensor: GgufTensor) -> Array:
    """Scales as floats of 16 or 32 bits: other floats become f32, which holds them exactly; zeros as they are."""
    held = elements(tensor)
    return held if tensor.kind in ("f32", "f16", "i8") else held.astype(np.float32)


def for_rows(
    module: Module, name: str, shape: tuple[int, int], each: tuple[int, int], kinds: Sequence[str] = FLOATS
) -> Callable[[], Array]:
    """What gives a scale for every row and block of columns: [N, ceil(K / columns)]; or a zero, of these ``kinds``.

    ``shape``: [N,K]; ``each``: rows and columns that share one. One for all may have no axes. Raises CorruptModel.
    """
    counts = ceil(shape[0] / each[0]), ceil(shape[1] / each[1])
    found = module.part(name, kinds)
    fits = [counts, *([counts[:1]] if counts[1] == 1 else []), *([()] if counts == (1, 1) else [])]
    if found.shape not in fits:
        rows = f"{each[0]} rows and {each[1]} columns"
        raise module.wrong(
            found, f"shape is {list(found.shape)}, wanted {list(counts)}: one for {rows} of {list(shape)}"
        )

    def make() -> Array:
        return np.repeat(scales_of(found).reshape(counts), each[0], axis=0)[: shape[0]]

    return make


def ordered(groups: GgufTensor, columns: int, group: int) -> Array | None:
    """Which columns to take one after the other, so that those of a group are neighbours; ``None``: as they lie.

    ``groups``: [columns], the group of each. Raises CorruptModel where another than the last has not ``group`` columns.
    """
    given = elements(groups)
    wanted = np.arange(columns) // group
    if np.array_equal(given, wanted):
        return None
    order = np.argsort(given, kind="stable")
    if not np.array_equal(given[order], wanted):
        problem = f"it does not give {group} columns to each group from 0 to {wanted[-1]}, but for the last"
        raise CorruptModel(problem, where=f"tensor {groups.name!r:.200}")
    return order.astype(np.int64)


def zeros_like(codes: Array, scale: Array, value: int = 0) -> Array:
    """One code that stands for 0, for every scale: no memory is taken for them."""
    one = np.array(value, np.uint8).view(codes.dtype) if codes.dtype.itemsize == 1 else np.array(value, codes.dtype)
    return np.broadcast_to(one, scale.shape)
