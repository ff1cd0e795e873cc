"""A module becomes a model, a file of ONNX, a model, an archive, a model and a file of ONNX: all give the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
import tract_torch
from torch import nn
from torch.export import Dim

import tract_core as tract


class Recurrent(nn.Module):
    """A recurrent network over [batch, time, features], and its last state."""

    def __init__(self, kind: str, **options: Any) -> None:
        super().__init__()
        self.inner = getattr(nn, kind)(5, 6, batch_first=True, **options)
        self.head = nn.Linear(6 * (1 + self.inner.bidirectional), 3)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y, last = self.inner(x)
        return self.head(y), last[0] if isinstance(last, tuple) else last


class Attention(nn.Module):
    """A layer of a transformer that sees what is before."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead, self.out = nn.Linear(8, 24), nn.Linear(8, 8)
        self.norm, self.inner, self.back = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        shape = (*x.shape[:2], 2, 4)
        q, k, v = (part.reshape(shape).transpose(1, 2) for part in self.ahead(self.norm(x)).chunk(3, -1))
        seen = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.back(nn.functional.gelu(self.inner(x)))


class Block(nn.Module):
    """Convolutions side by side, squeezed and weighted, over images of any size."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.deep = nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.Conv2d(8, 8, 3, padding=1, groups=8)
        self.norm, self.scale, self.point = nn.BatchNorm2d(8), nn.Linear(8, 8), nn.Conv2d(8, 8, 1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = nn.functional.hardswish(self.norm(self.first(x)))
        weights = nn.functional.hardsigmoid(self.scale(x.mean((2, 3))))[..., None, None]
        return self.up(torch.relu(self.point(self.deep(x) * weights)) + x)


class Normalised(nn.Module):
    """Groups, instances, layers, and means of squares."""

    def __init__(self) -> None:
        super().__init__()
        self.group, self.instance = nn.GroupNorm(2, 4), nn.InstanceNorm1d(4, affine=True)
        self.layer, self.weight = nn.LayerNorm(6), nn.Parameter(torch.rand(6))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.layer(self.instance(self.group(x)))
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class Places(nn.Module):
    """Tokens and their places, gathered, masked and added up."""

    def __init__(self) -> None:
        super().__init__()
        self.tokens, self.places = nn.Embedding(11, 6), nn.Embedding(40, 6)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) + self.places(torch.arange(ids.shape[1]))
        is_there = (ids != 0)[..., None]
        return (x * is_there).sum(1) / is_there.sum(1).clamp(min=1)


class Cut(nn.Module):
    """Parts of a signal, by sizes that depend on it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        joined = torch.cat([x[:, 3:], x[:, :3].flip(1)], 1)
        return nn.functional.pad(joined, (1, 2), mode="reflect").cumsum(1)


class Upsampled(nn.Module):
    """Images made larger, and pooled."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = nn.functional.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)
        return nn.functional.avg_pool2d(nn.functional.max_pool2d(wide, 3, stride=2, padding=1), 2)


class Activations(nn.Module):
    """Functions of one number, one after the other."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for name in ("elu", "softplus", "mish", "silu", "celu", "selu", "softsign", "leaky_relu"):
            x = getattr(nn.functional, name)(x)
        return x


@dataclass(frozen=True)
class Case:
    """A module, sizes of its input of which some are symbols, and values of these."""

    module: nn.Module
    shape: tuple[int | str, ...]
    sizes: Mapping[str, tuple[int, int]]
    tokens: int = 0

    def given(self, turn: int) -> torch.Tensor:
        """An input, with the first or the second values of the symbols."""
        shape = [size if isinstance(size, int) else self.sizes[size][turn] for size in self.shape]
        generator = torch.Generator().manual_seed(turn)
        if self.tokens:
            return torch.randint(0, self.tokens, shape, generator=generator)
        return torch.randn(shape, generator=generator)


SEQUENCE = ("B", "T", 5)
SIZES = {"B": (2, 3), "T": (7, 5)}

torch.manual_seed(0)
CASES = {
    "lstm": Case(Recurrent("LSTM"), SEQUENCE, SIZES),
    "lstm, two layers both ways": Case(Recurrent("LSTM", num_layers=2, bidirectional=True), SEQUENCE, SIZES),
    "gru": Case(Recurrent("GRU"), SEQUENCE, SIZES),
    "gru both ways": Case(Recurrent("GRU", bidirectional=True), SEQUENCE, SIZES),
    "rnn": Case(Recurrent("RNN"), SEQUENCE, SIZES),
    "attention": Case(Attention(), ("B", "T", 8), SIZES),
    "block": Case(Block(), ("B", 3, 16, 24), {"B": (2, 3)}),
    "normalised": Case(Normalised(), ("B", 4, 6), {"B": (2, 3)}),
    "places": Case(Places(), ("B", "T"), SIZES, tokens=11),
    "cut": Case(Cut(), ("B", "T"), {"B": (2, 3), "T": (8, 11)}),
    "upsampled": Case(Upsampled(), ("B", 3, 8, 8), {"B": (2, 3)}),
    "activations": Case(Activations(), ("B", 5), {"B": (2, 3)}),
    "products": Case(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)), ("B", 4), {"B": (2, 5)}),
}


def in_onnx_runtime(path: Path, x: np.ndarray) -> list[Any]:
    """The outputs of a file that ONNX's own checks take."""
    onnx.checker.check_model(path, full_check=True)
    session = onnxruntime.InferenceSession(path)
    (given,) = session.get_inputs()
    return session.run(None, {given.name: x})


def agree(found: list[Any], wanted: list[np.ndarray]) -> None:
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(one), other, rtol=1e-4, atol=1e-5 * max(1, np.abs(other).max()))


@pytest.mark.parametrize("name", CASES)
def test_there_and_back(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    module = case.module.eval()
    axes = {
        axis: Dim(size, min=5 if size == "T" else 2, max=64)
        for axis, size in enumerate(case.shape)
        if isinstance(size, str)
    }
    model = tract_torch.load(module, (case.given(0),), dynamic_shapes=(axes,))
    one, archive, two = (tmp_path / name for name in ("one.onnx", "model.nnef.tar", "two.onnx"))
    model.clone().save(one)
    tract.load(one).save(archive)
    tract.load(archive).save(two)
    for turn in (0, 1):
        x = case.given(turn)
        with torch.no_grad():
            made = module(x)
        wanted = [part.numpy() for part in (made if isinstance(made, tuple) else (made,))]
        agree(model.clone().into_runnable().run([x]), wanted)
        for file in (one, archive, two):
            agree(list(tract.load(file).into_runnable().run([x.numpy()])), wanted)
        for file in (one, two):
            agree(in_onnx_runtime(file, x.numpy()), wanted)
