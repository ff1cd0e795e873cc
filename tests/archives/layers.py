"""Layers that several networks are made of, in plain PyTorch."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional


class Residual(nn.Module):
    """``x + layers(x)``."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x)


class Joined(nn.Module):
    """What branches make of one tensor, along the channels."""

    def __init__(self, *branches: nn.Module) -> None:
        super().__init__()
        self.branches = nn.ModuleList(branches)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.branches], 1)


class Does(nn.Module):
    """A function of tensors as a layer."""

    def __init__(self, function: Callable[..., Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *x: Tensor) -> Tensor:
        return self.function(*x)


Kind = Callable[[], nn.Module]
"""What makes a layer: each place has one of its own."""


def conv(
    inputs: int, outputs: int, kernel: int = 3, stride: int = 1, act: Kind = nn.ReLU, *, groups: int = 1
) -> nn.Module:
    """Convolution that keeps the size, normalisation, activation."""
    layers = [nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)]
    return nn.Sequential(*layers, nn.BatchNorm2d(outputs), act())


class SqueezeExcite(nn.Module):
    """Channels scaled by gates that are computed of the means of all."""

    def __init__(self, channels: int, gate: Kind) -> None:
        super().__init__()
        self.gates = nn.Sequential(
            nn.AdaptiveAvgPool2d(1),
            nn.Conv2d(channels, 2, 1),
            nn.ReLU(),
            nn.Conv2d(2, channels, 1),
            gate(),
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gates(x)


class Attention(nn.Module):
    """Attention of several heads, spelled out. ``mask`` is added to the scores; ``causal``: nothing looks ahead."""

    def __init__(self, width: int = 8, heads: int = 2, *, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))

    def forward(self, x: Tensor, of: Tensor | None = None, mask: Tensor | None = None) -> Tensor:
        of = x if of is None else of
        q, k, v = (self.split(layer(y)) for layer, y in ((self.q, x), (self.k, of), (self.v, of)))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        if self.causal:
            scores = scores + torch.full(scores.shape[-2:], -1e9).triu(1)
        if mask is not None:
            scores = scores + mask
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).flatten(2))

    def split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)


def feed_forward(width: int, act: Kind = lambda: nn.GELU("tanh")) -> list[nn.Module]:
    """Two linear layers, twice as wide between them."""
    return [nn.Linear(width, 2 * width), act(), nn.Linear(2 * width, width)]


class Encoder(nn.Module):
    """Norm, attention, norm, two linear layers, with shortcuts."""

    def __init__(self, width: int = 8, heads: int = 2, *, causal: bool = False) -> None:
        super().__init__()
        self.attention = Attention(width, heads, causal=causal)
        self.norm = nn.LayerNorm(width)
        self.feed = Residual(
            nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.GELU("tanh"), nn.Linear(2 * width, width)
        )

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.feed(x + self.attention(self.norm(x), mask=mask))


class RmsNorm(nn.Module):
    """Division by the root of the mean of squares, and a weight."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary positions on the last axis."""
    a, b = x.chunk(2, -1)
    return x * cos + torch.cat([-b, a], -1) * sin


def padded(x: Tensor, before: int, after: int = 0) -> Tensor:
    """Zeros around the last axis."""
    return functional.pad(x, (before, after))
