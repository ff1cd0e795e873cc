"""Modules that change their buffers, each in a way of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations


class Counter(nn.Module):
    """Calls, counted"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("at", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.at += 1
        return x * self.at


class Ring(nn.Module):
    """The last four sums, in a ring"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("at", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        self.rows.index_copy_(0, self.at, x.sum(0, keepdim=True))
        self.at.copy_((self.at + 1) % 4)
        return self.rows * torch.arange(1, 5)[:, None]


class Shifted(nn.Module):
    """The last four sums, in order, written by slices"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        self.rows[:-1] = self.rows[1:].clone()
        self.rows[-1] = x.sum(0)
        return 2 * self.rows


class Stream(nn.Module):
    """A convolution that remembers its last frames, in a buffer that is not saved and that is replaced"""

    def __init__(self) -> None:
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 3)
        self.register_buffer("last", torch.zeros(1, 2, 2), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.cat([self.last, x], 2)
        self.last = x[:, :, -2:]
        return self.conv(x)


class Recurrent(nn.Module):
    """A recurrent layer, inside another module, that goes on where it ended"""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.GRU(3, 4, batch_first=True)
        self.memory = nn.Module()
        self.memory.register_buffer("hidden", torch.zeros(1, 1, 4))

    def forward(self, x: Tensor) -> Tensor:
        y, hidden = self.layer(x, self.memory.hidden)
        self.memory.hidden.copy_(hidden)
        return y


class Total(nn.Module):
    """A sum so far, which is what is returned"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        self.total += x.sum(0)
        return self.total


class ByViews(nn.Module):
    """A buffer that is changed by views of it"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))

    def forward(self, x: Tensor) -> Tensor:
        self.rows.view(-1)[2:5].add_(x.sum())
        self.rows.t()[0].mul_(0.5)
        return self.rows + 1


class Cache(nn.Module):
    """Causal attention to this and all earlier positions, whose keys and values are kept"""

    def __init__(self) -> None:
        super().__init__()
        self.qkv = nn.Linear(4, 12)
        self.register_buffer("keys", torch.zeros(1, 64, 4))
        self.register_buffer("values", torch.zeros(1, 64, 4), persistent=False)
        self.register_buffer("at", torch.zeros((), dtype=torch.int64))

    def forward(self, x: Tensor) -> Tensor:
        query, key, value = self.qkv(x).chunk(3, 2)
        places = self.at + torch.arange(x.shape[1])
        self.keys.index_copy_(1, places, key)
        self.values[:, places] = value
        self.at += x.shape[1]
        mask = torch.arange(64) <= places[:, None]
        return nn.functional.scaled_dot_product_attention(query, self.keys, self.values, mask)


class Tied(nn.Module):
    """A buffer with two names, written by one and read by the other"""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(3))
        self.reader = nn.Module()
        self.reader.register_buffer("same", self.total)

    def forward(self, x: Tensor) -> Tensor:
        self.total += x.sum(0)
        return 2 * self.reader.same


class Training(nn.Module):
    """A module that stays in training mode"""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def train(self, mode: bool = True) -> Training:
        """Whatever is asked."""
        return super().train(True)

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


def rows(count: int) -> Tensor:
    """Of three numbers each."""
    return torch.randn(count, 3)


MODULES: dict[str, tuple[Callable[[], nn.Module], Callable[[int], Tensor], int]] = {
    "counter": (Counter, rows, 0),
    "ring": (Ring, rows, 0),
    "slices": (Shifted, rows, 0),
    "stream": (Stream, lambda count: torch.randn(1, 2, count + 3), 2),
    "recurrent": (Recurrent, lambda count: torch.randn(1, count, 3), 1),
    "total": (Total, rows, 0),
    "views": (ByViews, rows, 0),
    "cache": (Cache, lambda count: torch.randn(1, count, 4), 1),
    "two names": (Tied, rows, 0),
    "batch norm": (
        lambda: Training(nn.Sequential(nn.Conv1d(2, 3, 1), nn.BatchNorm1d(3))),
        lambda count: torch.randn(count, 2, 4),
        0,
    ),
    "spectral norm": (lambda: Training(parametrizations.spectral_norm(nn.Linear(3, 4))), rows, 0),
}
"""By name: what makes one, what makes its argument of some size, and which axis has that size."""


def buffers_of(module: nn.Module) -> dict[str, Any]:
    """Each buffer with its identity, by the name that it has in archives."""
    found = module.named_buffers(remove_duplicate=False)
    return {name.replace(".", "_"): (id(one), one.clone()) for name, one in found}
