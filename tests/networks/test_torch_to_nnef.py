"""Archives of another producer: what torch-to-nnef writes of modules and networks agrees with PyTorch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tract_core as tract

pytestmark = pytest.mark.networks

RELATIVE = 1e-4
ENGINE = "0.23.8"
"""The version of the engine that archives are written for."""


def attention(nn: Any, width: int, heads: int) -> Any:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inputs = nn.Linear(width, 3 * width)
            self.output = nn.Linear(width, width)

        def forward(self, x: Any) -> Any:
            q, k, v = (
                part.reshape(*x.shape[:2], heads, width // heads).transpose(1, 2)
                for part in self.inputs(x).chunk(3, -1)
            )
            scores = (q @ k.transpose(-1, -2) / (width // heads) ** 0.5).softmax(-1)
            return self.output((scores @ v).transpose(1, 2).reshape(x.shape))

    return Attention()


def itself_thrice(nn: Any) -> Any:
    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, x: Any) -> Any:
            return self.attention(x, x, x, need_weights=False)[0]

    return Attention()


def residual(nn: Any, *layers: Any) -> Any:
    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*layers)

        def forward(self, x: Any) -> Any:
            return x + self.layers(x)

    return Residual()


def transformer(nn: Any) -> Any:
    width = 32
    blocks: list[Any] = []
    for _ in range(2):
        blocks.append(residual(nn, nn.LayerNorm(width), attention(nn, width, 4)))
        blocks.append(residual(nn, nn.LayerNorm(width), nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width)))
    return nn.Sequential(*blocks, nn.LayerNorm(width))


def image_network(nn: Any) -> Any:
    def conv(inputs: int, outputs: int, stride: int = 1) -> list[Any]:
        return [nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU()]

    return nn.Sequential(
        *conv(3, 8, 2),
        nn.MaxPool2d(3, 2, 1),
        residual(nn, *conv(8, 8)),
        *conv(8, 16, 2),
        residual(nn, *conv(16, 16)),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, 10),
    )


def tagger(nn: Any) -> Any:
    class Tagger(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.LSTM(8, 16, 2, batch_first=True)
            self.output = nn.Linear(16, 5)

        def forward(self, x: Any) -> Any:
            return self.output(self.layers(x)[0]).log_softmax(-1)

    return Tagger()


MODULES: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "Linear": (lambda nn: nn.Linear(8, 5), (3, 8)),
    "Conv1d": (lambda nn: nn.Conv1d(4, 6, 3, padding=2, dilation=2), (2, 4, 11)),
    "Conv2d depthwise": (lambda nn: nn.Conv2d(6, 6, 3, stride=2, padding=1, groups=6), (1, 6, 9, 10)),
    "ConvTranspose2d": (
        lambda nn: nn.ConvTranspose2d(4, 3, 3, stride=2, padding=1, output_padding=1),
        (1, 4, 5, 6),
    ),
    "MaxPool2d": (lambda nn: nn.MaxPool2d(3, 2, 1), (1, 3, 9, 9)),
    "AvgPool2d": (lambda nn: nn.AvgPool2d(2), (1, 3, 8, 8)),
    "AdaptiveAvgPool2d": (lambda nn: nn.AdaptiveAvgPool2d(1), (2, 3, 7, 5)),
    "BatchNorm2d": (lambda nn: nn.BatchNorm2d(4), (2, 4, 5, 5)),
    "LayerNorm": (lambda nn: nn.LayerNorm([6, 7]), (3, 6, 7)),
    "GroupNorm": (lambda nn: nn.GroupNorm(2, 6), (2, 6, 5)),
    "GELU": (lambda nn: nn.GELU(), (4, 5)),
    "GELU by tanh": (lambda nn: nn.GELU(approximate="tanh"), (4, 5)),
    "SiLU": (lambda nn: nn.SiLU(), (4, 5)),
    "ELU": (lambda nn: nn.ELU(0.7), (4, 5)),
    "PReLU": (lambda nn: nn.PReLU(5), (4, 5, 3)),
    "Hardswish": (lambda nn: nn.Hardswish(), (4, 5)),
    "Softmax": (lambda nn: nn.Softmax(-1), (4, 5)),
    "LSTM": (lambda nn: nn.LSTM(6, 7, batch_first=True), (2, 5, 6)),
    "GRU": (lambda nn: nn.GRU(6, 7, batch_first=True), (2, 5, 6)),
    "Upsample": (lambda nn: nn.Upsample(scale_factor=2, mode="nearest"), (1, 2, 3, 4)),
    "InstanceNorm2d": (lambda nn: nn.InstanceNorm2d(3, affine=True), (2, 3, 5, 6)),
    "BatchNorm1d": (lambda nn: nn.BatchNorm1d(4), (3, 4, 7)),
    "ConvTranspose1d": (lambda nn: nn.ConvTranspose1d(4, 6, 4, stride=2, padding=1, groups=2), (2, 4, 7)),
    "ReflectionPad2d": (lambda nn: nn.ReflectionPad2d((1, 2, 0, 1)), (1, 2, 5, 6)),
    "Upsample, linear": (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear"), (1, 2, 3, 4)),
    "LSTM both ways": (lambda nn: nn.LSTM(6, 7, 2, batch_first=True, bidirectional=True), (2, 5, 6)),
    "RNN": (lambda nn: nn.RNN(6, 7, batch_first=True), (2, 5, 6)),
    "MultiheadAttention": (itself_thrice, (2, 5, 8)),
    "TransformerEncoderLayer": (
        lambda nn: nn.TransformerEncoderLayer(8, 2, 16, activation="gelu", batch_first=True),
        (2, 5, 8),
    ),
    "GLU": (lambda nn: nn.GLU(1), (3, 8, 5)),
    "PixelShuffle": (lambda nn: nn.PixelShuffle(2), (1, 8, 3, 4)),
    "an image network": (image_network, (1, 3, 32, 32)),
    "a transformer": (transformer, (2, 9, 32)),
    "a tagger": (tagger, (2, 12, 8)),
}


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What says the version that archives are for, in place of the program that would be downloaded to check them."""
    path = tmp_path_factory.mktemp("engine") / "tract"
    path.write_text(f"#!/bin/sh\necho 'tract {ENGINE}'\n")
    path.chmod(0o755)
    return path


def flat(value: Any) -> list[np.ndarray]:
    if isinstance(value, tuple | list):
        return [array for one in value for array in flat(one)]
    return [value.detach().numpy()]


@pytest.mark.parametrize("level", [0, 3, None], ids=["tar", "tgz", "folder"])
@pytest.mark.parametrize("name", MODULES)
def test_modules(name: str, level: int | None, engine: Path, tmp_path: Path) -> None:
    exporter = pytest.importorskip("torch_to_nnef")
    logging.getLogger("torch_to_nnef").setLevel(logging.ERROR)
    import torch

    torch.manual_seed(0)
    make, shape = MODULES[name]
    module, x = make(torch.nn).eval(), torch.randn(*shape)
    wanted = flat(module(x))
    written = exporter.export_model_to_nnef(
        module,
        (x,),
        tmp_path / "m.nnef",
        inference_target=exporter.TractNNEF(ENGINE, check_io=False, specific_tract_binary_path=engine),
        input_names=["x"],
        output_names=[f"y{number}" for number in range(len(wanted))],
        compression_level=level,
    )
    model = tract.load(written)
    assert model.input_name(0) == "x"
    found = [one.to_numpy() for one in model.into_runnable().run([x.numpy()])]
    for one, other in zip(found, wanted, strict=True):
        assert one.shape == other.shape
        assert np.abs(one - other).max() <= RELATIVE * np.abs(other).max()
