"""Other inputs of the same kind as an example, and other sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

import torch

MASK_VALUES: Final = 4
"""An input of so few different values, as masks have them, gets no others."""

SMALLEST: Final = 64
"""Where the smallest size that is allowed is looked for, from 1 on."""

FEW: Final = 8
"""How much larger than the example other sizes are at most, unless sizes must be multiples."""


def drawn(example: torch.Tensor, shape: Sequence[int], seed: int) -> torch.Tensor:
    """A tensor of that shape whose values are like those of the example. The process's random numbers stay as they are.

    Integers are between the smallest and the largest of the example, so that indices stay valid; where they rise along
    their one axis, as places at which parts begin, so do others, between the same ends. Floats are between those of the
    example too, or about the one value that it has. Masks, of truth values or of few others, have the values of the
    example, and in each row something but zeros if so has each of the example's.
    """
    generator = torch.Generator().manual_seed(seed)
    values = example.detach().cpu()
    if values.is_complex():
        parts = [drawn(part, shape, seed + number) for number, part in enumerate((values.real, values.imag))]
        return torch.complex(*parts).to(values.dtype).to(example.device)
    distinct = torch.unique(values.float() if values.is_floating_point() else values)
    count = values.numel()
    if values.dtype is torch.bool or (1 < len(distinct) <= MASK_VALUES and 2 * len(distinct) <= count):
        found = _mask(values, shape, generator)
    elif values.is_floating_point():
        found = _floats(distinct, shape, generator).to(values.dtype)
    else:
        found = _integers(values, shape, generator).to(values.dtype)
    return found.to(example.device)


def _mask(values: torch.Tensor, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    flat = values.flatten()
    found = flat[torch.randint(len(flat), tuple(shape), generator=generator)] if len(flat) else values.new_zeros(shape)
    if values.dim() and found.numel() and bool((values != 0).any(-1).all()):
        empty = ~(found != 0).any(-1)
        found[..., 0][empty] = flat[flat != 0][0]
    return found


def _integers(values: torch.Tensor, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    ends = [int(values.min()), int(values.max())] if values.numel() else [0, 0]
    found = torch.randint(ends[0], ends[1] + 1, tuple(shape), generator=generator, dtype=torch.int64)
    if values.dim() == 1 and values.numel() > 1 and found.numel() > 1 and bool((values.diff() >= 0).all()):
        found = found.sort().values
        found[0], found[-1] = ends
    return found


def _floats(distinct: torch.Tensor, shape: Sequence[int], generator: torch.Generator) -> torch.Tensor:
    finite = distinct[torch.isfinite(distinct)]
    if len(finite) < 2:  # as of zeros: nothing is known of what may come
        middle = float(finite[0]) if len(finite) else 0.0
        return middle + torch.randn(tuple(shape), generator=generator)
    low, high = float(finite.min()), float(finite.max())
    return low + (high - low) * torch.rand(tuple(shape), generator=generator)


Allowed = Callable[[Mapping[str, int]], bool]
"""Whether symbols may have these values; those that are not named, any."""


def larger_sizes(example: Mapping[str, int], allowed: Allowed) -> Iterator[dict[str, int]]:
    """Values of all symbols at once, none of them that of the example, and different ones where they can be."""
    ways = {name: _values(size, place, name, allowed) for place, (name, size) in enumerate(example.items())}
    for values in zip(*ways.values(), strict=False):
        found = dict(zip(ways, values, strict=True))
        if allowed(found):
            yield found


def sizes_of(name: str, example: Mapping[str, int], allowed: Allowed) -> Iterator[dict[str, int]]:
    """Other values of one symbol; the rest as in the example."""
    for value in _values(example[name], 0, name, allowed):
        found = {**example, name: value}
        if allowed(found):
            yield found


def smallest_sizes(example: Mapping[str, int], allowed: Allowed) -> Iterator[dict[str, int]]:
    """The smallest values: of all symbols at once, then of each."""
    small = {
        name: next((size for size in range(1, SMALLEST) if allowed({name: size})), value)
        for name, value in example.items()
    }
    ways = [small, *({**example, name: value} for name, value in small.items())]
    seen: list[dict[str, int]] = [dict(example)]
    for way in ways:
        if way not in seen and allowed(way):
            seen.append(way)
            yield way


def _values(size: int, place: int, name: str, allowed: Allowed) -> Iterator[int]:
    """Sizes but that of the example, the likely ones first; ``place``: that of the symbol among the others."""
    near = min(size, FEW)
    ways = [
        size + 1 + place,
        size + near + 2 + 2 * place,
        size - 1 - place,
        size + 2,
        2 * size,
        3 * size,
        *(size + power for power in (4, 8, 16, 32)),
        *(size - step for step in range(1, FEW)),
    ]
    good = (way for way in dict.fromkeys(ways) if way >= 1 and way != size and allowed({name: way}))
    return islice(good, 2 * FEW)
