"""Small networks that are trained in minutes, for what only shows on trained ones. PyTorch and scikit-learn are needed.

Images are scikit-learn's handwritten digits, made 32 pixels wide; sounds are the tones of a telephone's keys in noise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn

HELD_OUT = 5
"""Every fifth example is never shown in training."""


class Examples(NamedTuple):
    """What a network is shown, f32, and the class of each."""

    given: np.ndarray[Any, Any]
    labels: np.ndarray[Any, Any]

    def split(self) -> tuple[Examples, Examples]:
        """The part to train on, and the part held out."""
        held = np.arange(len(self.given)) % HELD_OUT == 0
        return Examples(self.given[~held], self.labels[~held]), Examples(self.given[held], self.labels[held])


class Trained(NamedTuple):
    """A network: how it is made, what it learns of, and for how many rounds."""

    name: str
    module: Callable[[], nn.Module]
    examples: Callable[[], Examples]
    rounds: int


def images() -> Examples:
    """Digits of shape (number, 1, 32, 32), from 0 (paper) to 1 (ink)."""
    bunch: Any = load_digits()
    small = torch.from_numpy((bunch.images / 16).astype(np.float32))[:, None]
    large = nn.functional.interpolate(small, size=32, mode="bilinear", align_corners=False)
    return Examples(large.numpy(), bunch.target)


def flat_images() -> Examples:
    """The same as rows of 1,024 numbers."""
    given, labels = images()
    return Examples(given.reshape(len(given), -1), labels)


def tones() -> Examples:
    """A tenth of a second of a key's two tones at 8 kHz, in noise as loud: (number, 1, 800)."""
    generator = np.random.default_rng(0)
    keys = generator.integers(0, 12, 2000)
    low, high = np.array([697, 770, 852, 941])[keys // 3], np.array([1209, 1336, 1477])[keys % 3]
    time, phase = np.arange(800) / 8000, generator.uniform(0, 2 * np.pi, (2, 2000, 1))
    clean = sum(np.sin(2 * np.pi * one[:, None] * time + start) for one, start in zip((low, high), phase, strict=True))
    loud = generator.uniform(0.2, 1, (2000, 1))
    sound = loud * clean + generator.normal(0, 0.7, clean.shape)
    return Examples(sound[:, None].astype(np.float32), keys)


def _conv(inputs: int, outputs: int, size: int = 3, stride: int = 1, groups: int = 1) -> list[nn.Module]:
    return [
        nn.Conv2d(inputs, outputs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]


def mlp() -> nn.Module:
    """Three layers."""
    return nn.Sequential(nn.Linear(1024, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


class _Residual(nn.Module):
    def __init__(self, inside: Sequence[nn.Module]) -> None:
        super().__init__()
        self.inside = nn.Sequential(*inside)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.inside(x)


def cnn() -> nn.Module:
    """Convolutions of 3 x 3 with two residual blocks."""

    def block(width: int) -> list[nn.Module]:
        return [_Residual([*_conv(width, width), nn.ReLU(), *_conv(width, width)]), nn.ReLU()]

    return nn.Sequential(
        *[*_conv(1, 32), nn.ReLU(), *block(32), nn.MaxPool2d(2)],
        *[*_conv(32, 64), nn.ReLU(), *block(64), nn.MaxPool2d(2)],
        *[nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)],
    )


def mobile() -> nn.Module:
    """Inverted residual blocks with depthwise convolutions, as MobileNet v2 has them."""

    def block(inputs: int, outputs: int, stride: int = 1) -> nn.Module:
        wide = 4 * inputs
        inside = [*_conv(inputs, wide, 1), nn.ReLU6(), *_conv(wide, wide, 3, stride, wide), nn.ReLU6()]
        inside += _conv(wide, outputs, 1)
        return _Residual(inside) if stride == 1 and inputs == outputs else nn.Sequential(*inside)

    blocks = [block(16, 24, 2), block(24, 24), block(24, 48, 2), block(48, 48), block(48, 48)]
    return nn.Sequential(
        *[*_conv(1, 16), nn.ReLU6(), *blocks, *_conv(48, 192, 1), nn.ReLU6()],
        *[nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(192, 10)],
    )


class Encoder(nn.Module):
    """A transformer over 64 patches of 4 x 4 pixels."""

    def __init__(self) -> None:
        super().__init__()
        self.patches, self.place = nn.Conv2d(1, 96, 4, 4), nn.Parameter(torch.randn(64, 96) * 0.1)
        layer = nn.TransformerEncoderLayer(96, 4, 192, dropout=0.0, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 3, enable_nested_tensor=False)
        self.head = nn.Linear(96, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.layers(self.patches(x).flatten(2).transpose(1, 2) + self.place).mean(1))


def sound() -> nn.Module:
    """Convolutions along time."""

    def conv(inputs: int, outputs: int, size: int, stride: int) -> list[nn.Module]:
        return [nn.Conv1d(inputs, outputs, size, stride, size // 2), nn.BatchNorm1d(outputs), nn.ReLU()]

    layers = [*conv(1, 64, 25, 4), *conv(64, 64, 9, 2), *conv(64, 96, 5, 2), *conv(96, 128, 3, 2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(128, 12))


NETWORKS = [
    Trained("mlp", mlp, flat_images, 8),
    Trained("cnn", cnn, images, 4),
    Trained("mobile", mobile, images, 8),
    Trained("encoder", Encoder, images, 12),
    Trained("sound", sound, tones, 6),
]


def train(network: Trained) -> nn.Module:
    """The network, trained; the same one each time."""
    torch.manual_seed(0)
    module, (shown, _) = network.module(), network.examples().split()
    given, labels = torch.from_numpy(shown.given), torch.from_numpy(shown.labels)
    optimizer = torch.optim.AdamW(module.parameters(), lr=2e-3)
    steps = network.rounds * -(-len(given) // 64)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 2e-3, steps)
    for _ in range(network.rounds):
        for batch in torch.randperm(len(given)).split(64):
            optimizer.zero_grad()
            nn.functional.cross_entropy(module(given[batch]), labels[batch]).backward()
            optimizer.step()
            schedule.step()
    return module.eval()


def export(network: Trained, path: Path) -> None:
    """Train it, and write it as ONNX, with batches of any size."""
    module = train(network)
    (shown, _) = network.examples().split()
    torch.onnx.export(
        module,
        (torch.from_numpy(shown.given[:1]),),
        path,
        input_names=["x"],
        output_names=["scores"],
        dynamic_axes={"x": {0: "B"}, "scores": {0: "B"}},
        opset_version=17,
        dynamo=False,
    )
