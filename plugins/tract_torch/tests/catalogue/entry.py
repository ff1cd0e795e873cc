"""One operator of the catalogue: how it is called, and with what."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

TYPES = {
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "u8": torch.uint8,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "bool": torch.bool,
    "c64": torch.complex64,
}

_EDGES = [math.nan, math.inf, -math.inf, 0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3, -3, 6, -6, 0.25, -0.75]
_EDGES += [1e-3, -1e-3, 20.5, -20.5, 1e4]
"""Numbers at which functions turn, end, or are not defined."""
_WHOLE_EDGES = [0, 1, -1, 2, -2, 7, -8, 2**63 - 1, -(2**63)]
"""The same of integers."""
_DIVISORS = [100, 7, 3, 2, 1, 64, 127]
"""By which an integer of any type can be divided; PyTorch ends the process where the least one is divided by -1."""

A_NUMBER = "torch.export makes the size a number"
"""Why sizes of some operators are fixed."""


@dataclass(frozen=True)
class Entry:
    """``name``: the operator, and after a comma which case of it. ``call``: what is exported and compared.

    ``inputs``: shapes with a type, as ``"S,3,f32"``; S is a size that may be another one. How the elements of an input
    are drawn stands behind a colon, as in ``"5,i64:below 3"``; ``make`` is for inputs without one. ``tolerance``:
    relative and absolute. ``fixed``: why S cannot be dynamic, where PyTorch itself refuses it. ``sizes``: those that S
    takes when it is dynamic.
    """

    name: str
    call: Callable[..., Any]
    inputs: tuple[str, ...]
    make: str = "normal"
    tolerance: float = 1e-5
    fixed: str = ""
    sizes: tuple[int, ...] = (3, 7)

    def __str__(self) -> str:
        return self.name

    @property
    def dynamic(self) -> bool:
        """Whether there is a size that may be another one."""
        return not self.fixed and any(self.axis_of_size(text) is not None for text in self.inputs)

    def axis_of_size(self, text: str) -> int | None:
        """Where S stands in the shape of an input."""
        sizes = text.partition(":")[0].split(",")
        return sizes.index("S") if "S" in sizes else None

    def drawn(self, size: int, seed: int = 0) -> list[torch.Tensor]:
        """Inputs with ``size`` in the place of S."""
        random = torch.Generator().manual_seed(1000 * seed + size)
        found: list[torch.Tensor] = []
        for text in self.inputs:
            shape_and_type, _, make = text.partition(":")
            *sizes, kind = shape_and_type.split(",")
            shape = [size if one == "S" else int(one) for one in sizes]
            found.append(elements(make or self.make, shape, TYPES[kind], random))
        return found


def elements(make: str, shape: list[int], kind: torch.dtype, random: torch.Generator) -> torch.Tensor:
    """A tensor whose elements are ``normal``, ``positive``, in ``unit`` (-1 to 1), ``above one``, ``integers``,
    ``special`` (with NaN and infinities), ``edges`` (those where functions turn, in a fixed order), ``below N``:
    integers from 0, ``ends`` of integer types, or ``divisors`` of these."""
    if kind is torch.bool:
        return torch.rand(shape, generator=random) > 0.5
    if make.startswith("below "):
        return torch.randint(0, int(make.removeprefix("below ")), shape, generator=random).to(kind)
    if make == "whole edges":
        count = math.prod(shape)
        return torch.tensor(_WHOLE_EDGES * (count // len(_WHOLE_EDGES) + 1))[:count].reshape(shape).to(kind)
    if make in ("ends", "divisors"):
        count, limits = math.prod(shape), torch.iinfo(kind)
        some = [limits.min, limits.min + 1, limits.max, limits.max - 1, 0, 1, 7, 100, limits.max // 2 + 1]
        some += [-1, -7, -100, -120] if limits.min else []
        if make == "divisors":
            some = [limits.max, *_DIVISORS] + ([limits.min, limits.min + 1, -2, -3, -7, -100] if limits.min else [])
        return torch.tensor(some * (count // len(some) + 1), dtype=kind)[:count].reshape(shape)
    if not (kind.is_floating_point or kind.is_complex):
        low, high = (0, 9) if kind is torch.uint8 else (1, 5) if make == "positive" else (-4, 5)
        drawn = torch.randint(low, high, shape, generator=random)
        return (drawn + (drawn == 0) * 5 if make == "nonzero" else drawn).to(kind)
    if make == "edges":
        count = math.prod(shape)
        return torch.tensor(_EDGES * (count // len(_EDGES) + 1))[:count].reshape(shape).to(kind)
    x = torch.randn(shape, generator=random, dtype=kind if kind.is_complex else torch.float32)
    if make == "special" and x.numel() > 3:
        x.view(-1)[:4] = torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0])
    ways = {
        "positive": lambda: x.abs() + 0.1,
        "unit": x.tanh,
        "share": x.sigmoid,
        "sign": x.sign,
        "above one": lambda: x.abs() + 1,
        "wide": lambda: x * 5,
        "integers": x.round,
    }
    return ways.get(make, lambda: x)().to(kind)


def signed(call: Callable[..., Any]) -> Callable[..., Any]:
    """What an operator gives, and the signs of it, which tell -0.0 from 0."""

    def both(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        result = call(*inputs)
        return result, (result == 0) & torch.signbit(result)

    return both


def one(
    call: Callable[..., Any], name: str = "", make: str = "normal", shape: str = "S,3,f32", tolerance: float = 1e-5
) -> Entry:
    """An operator on one tensor."""
    return Entry(name or getattr(call, "__name__", "?"), call, (shape,), make, tolerance)


def two(call: Callable[..., Any], name: str = "", make: str = "normal", kind: str = "f32") -> Entry:
    """An operator on two tensors, of which the second stretches."""
    name = name or call.__name__ + (f", {kind}" if kind != "f32" else "")
    return Entry(name, call, (f"S,3,{kind}", f"1,3,{kind}"), make)
