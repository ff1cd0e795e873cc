"""The networks, how each is exported, and which of its sizes are symbolic."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import sequence
import torch
import vision

Axes = dict[str, dict[int, str]]
OPSET = 17


@dataclass(frozen=True)
class Network:
    """One network. ``inputs``: for the sizes of its symbols, the tensors to run it on.

    ``axes``: symbols by input and axis. ``sizes``: values of the symbols for export, and ``others``: further values to
    run with.
    """

    name: str
    build: Callable[[], torch.nn.Module]
    inputs: Callable[..., dict[str, torch.Tensor]]
    outputs: tuple[str, ...]
    axes: Axes = field(default_factory=dict)
    sizes: dict[str, int] = field(default_factory=dict)
    others: dict[str, int] = field(default_factory=dict)

    def export(self, folder: Path, *, symbolic: bool) -> Path:
        """Write the network as ONNX; weights depend on the name only."""
        torch.manual_seed(sum(map(ord, self.name)))
        model = self.build()
        settle(model)
        given = self.inputs(**self.sizes)
        path = folder / f"{self.name}-{'symbolic' if symbolic else 'fixed'}.onnx"
        torch.onnx.export(
            model,
            tuple(given.values()),
            path,
            input_names=list(given),
            output_names=list(self.outputs),
            dynamic_axes=self.axes if symbolic else None,
            opset_version=OPSET,
            dynamo=False,
        )
        return path


def settle(model: torch.nn.Module) -> None:
    """Evaluation mode, with statistics of batch normalisation that are not all zero and one."""
    model.eval()
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.5, 1.5)


def image(name: str, size: int) -> Callable[..., dict[str, torch.Tensor]]:
    return lambda B=2: {name: torch.randn(B, 3, size, size)}


def _bert(B: int, S: int) -> dict[str, torch.Tensor]:
    mask = torch.ones(B, S, dtype=torch.int64)
    mask[0, S // 2 :] = 0
    return {"ids": torch.randint(0, 30522, (B, S)), "mask": mask, "segments": torch.randint(0, 2, (B, S))}


def _llama(B: int, S: int, P: int) -> dict[str, torch.Tensor]:
    past = {f"past_{kind}{layer}": torch.randn(B, 2, P, 16) for layer in range(2) for kind in "kv"}
    return {"ids": torch.randint(0, 256, (B, S)), **past}


def _batched(*names: str) -> Axes:
    return {name: {0: "B"} for name in names}


def _all(names: list[str], axes: dict[int, str]) -> Axes:
    return dict.fromkeys(names, axes)


_PAST = [f"past_{kind}{layer}" for layer in range(2) for kind in "kv"]
_B = {"sizes": {"B": 2}, "others": {"B": 3}}

NETWORKS: tuple[Network, ...] = (
    Network("mobilenet_v2", vision.MobileNetV2, image("x", 224), ("y",), _batched("x", "y"), **_B),
    Network("resnet50", vision.ResNet50, image("x", 224), ("y",), _batched("x", "y"), **_B),
    Network(
        "unet",
        vision.UNet,
        lambda B, H, W: {"x": torch.randn(B, 3, H, W)},
        ("y",),
        {"x": {0: "B", 2: "H", 3: "W"}, "y": {0: "B"}},
        {"B": 2, "H": 64, "W": 48},
        {"B": 1, "H": 32, "W": 80},
    ),
    Network("efficientnet", vision.EfficientNet, image("x", 224), ("y",), _batched("x", "y"), **_B),
    Network(
        "bert_base",
        sequence.Bert,
        _bert,
        ("hidden", "pooled"),
        {**_all(["ids", "mask", "segments", "hidden"], {0: "B", 1: "S"}), "pooled": {0: "B"}},
        {"B": 2, "S": 24},
        {"B": 1, "S": 17},
    ),
    Network("vision_transformer", vision.VisionTransformer, image("x", 224), ("y",), _batched("x", "y"), **_B),
    Network(
        "speech_encoder",
        sequence.SpeechEncoder,
        lambda B, S: {"mels": torch.randn(B, 80, S)},
        ("y",),
        {"mels": {0: "B", 2: "S"}, "y": {0: "B"}},
        {"B": 2, "S": 50},
        {"B": 1, "S": 37},
    ),
    Network(
        "lstm",
        sequence.TwoLayerLstm,
        lambda B, S: {"x": torch.randn(B, S, 20)},
        ("y",),
        _all(["x", "y"], {0: "B", 1: "S"}),
        {"B": 2, "S": 9},
        {"B": 3, "S": 5},
    ),
    Network(
        "bidirectional_gru",
        sequence.BidirectionalGru,
        lambda B, S: {"x": torch.randn(S, B, 12)},
        ("y", "last"),
        {**_all(["x", "y"], {0: "S", 1: "B"}), "last": {0: "B"}},
        {"B": 2, "S": 7},
        {"B": 1, "S": 11},
    ),
    Network(
        "dilated",
        sequence.DilatedNetwork,
        lambda B, S: {"x": torch.randn(B, 1, S)},
        ("y",),
        _all(["x", "y"], {0: "B", 2: "S"}),
        {"B": 2, "S": 80},
        {"B": 1, "S": 33},
    ),
    Network(
        "llama",
        sequence.Llama,
        _llama,
        ("logits", *(name.replace("past", "present") for name in _PAST)),
        {"ids": {0: "B", 1: "S"}, **_all(_PAST, {0: "B", 2: "P"}), "logits": {0: "B", 1: "S"}},
        {"B": 1, "S": 2, "P": 5},
        {"B": 2, "S": 1, "P": 8},
    ),
    Network("mlp", sequence.Mlp, lambda B: {"x": torch.randn(B, 16)}, ("y",), _batched("x", "y"), **_B),
)


def arrays(network: Network, sizes: dict[str, int]) -> dict[str, Any]:
    """Input arrays by name, for given values of the symbols; the same ones each time."""
    torch.manual_seed(7)
    return {name: tensor.numpy() for name, tensor in network.inputs(**sizes).items()}
