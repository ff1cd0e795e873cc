"""The networks, and the inputs that they are exported with and run on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narrow
import sequences
import signals
import torch
import vision
from torch import nn

Sizes = Mapping[str, int]


@dataclass(frozen=True)
class Network:
    """``inputs``: by name, as ``B,3,S``, with the element type behind where that is not f32. ``sizes``: of the symbols.

    It is exported with the first of ``sizes``, and run with all of them.
    """

    name: str
    build: Callable[[], nn.Module]
    inputs: Mapping[str, str]
    outputs: Sequence[str] = ("y",)
    sizes: Sequence[Sizes] = ({},)

    def module(self) -> nn.Module:
        """It has the same weights each time."""
        torch.manual_seed(sum(map(ord, self.name)))
        module = self.build().eval()
        for one in module.modules():
            if isinstance(one, nn.modules.batchnorm._BatchNorm):
                one.running_mean.normal_(0, 0.1)
                one.running_var.uniform_(0.5, 1.5)
        return module

    def given(self, sizes: Sizes) -> dict[str, torch.Tensor]:
        """Inputs, the same ones each time."""
        torch.manual_seed(7)
        return {name: _tensor(text, sizes) for name, text in self.inputs.items()}

    def axes(self) -> dict[str, dict[int, str]]:
        """The symbols by input and axis."""
        parts = {name: text.split(",") for name, text in self.inputs.items()}
        found = {
            name: {axis: one for axis, one in enumerate(all_of) if one.isupper()} for name, all_of in parts.items()
        }
        return {name: axes for name, axes in found.items() if axes}


def _tensor(text: str, sizes: Sizes) -> torch.Tensor:
    parts = text.split(",")
    kind = parts.pop() if parts[-1] in _KINDS else "f32"
    return _KINDS[kind]([sizes[one] if one.isupper() else int(one) for one in parts])


_KINDS: Mapping[str, Callable[[list[int]], torch.Tensor]] = {
    "f32": torch.randn,
    "f16": lambda shape: torch.randn(shape).half(),
    "i64": lambda shape: torch.randint(0, sequences.WORDS, shape),
    "bit": lambda shape: torch.randint(0, 2, shape),
}

_B = ({"B": 2}, {"B": 1}, {"B": 5})
_BS = ({"B": 2, "S": 9}, {"B": 1, "S": 4}, {"B": 3, "S": 12})
_X, _IMAGE, _SEQUENCE = {"x": "B,6"}, {"x": "B,3,12,12"}, {"x": "B,S,8"}


def _image(name: str, build: Callable[[], nn.Module], size: int = 12, channels: int = 3, **more: Any) -> Network:
    return Network(name, build, {"x": f"B,{channels},{size},{size}"}, sizes=_B, **more)


def _sequence(name: str, build: Callable[[], nn.Module], width: int = 8, **more: Any) -> Network:
    return Network(name, build, {"x": f"B,S,{width}"}, sizes=_BS, **more)


NETWORKS: Sequence[Network] = (
    Network("mlp", signals.mlp, _X, sizes=_B),
    # images
    _image("lenet", vision.lenet, 20, 1),
    _image("vgg", vision.vgg),
    _image("alexnet", vision.alexnet, 17),
    _image("resnet", vision.resnet, 20),
    _image("resnext", lambda: vision.resnet(2), 20),
    _image("mobilenet v2", lambda: vision.mobilenet(nn.ReLU6)),
    _image("mobilenet v3", lambda: vision.mobilenet(nn.Hardswish, nn.Hardsigmoid)),
    _image("efficientnet", lambda: vision.mobilenet(nn.SiLU, nn.Sigmoid)),
    _image("densenet", vision.Dense, channels=4),
    _image("inception", vision.inception),
    _image("shufflenet", lambda: vision.Shuffle(6), channels=6),
    _image("squeezenet", vision.squeezenet, 15),
    _image("convnext", vision.convnext),
    Network(
        "unet",
        vision.UNet,
        {"x": "B,3,H,W"},
        sizes=({"B": 2, "H": 8, "W": 12}, {"B": 1, "H": 16, "W": 6}),
    ),
    _image("unet, nearest", lambda: vision.UNet("nearest")),
    _image("unet, bilinear", lambda: vision.UNet("bilinear")),
    _image("super resolution", vision.super_resolution, 6, 1),
    Network("generator", vision.generator, _X, sizes=_B),
    _image("style transfer", vision.style),
    Network("variational", vision.Variational, {"x": "B,1,8,8", "noise": "B,4"}, ("y", "mean", "spread"), _B),
    Network("video", vision.video, {"x": "B,2,5,6,6"}, sizes=_B),
    Network("siamese", vision.Siamese, {"a": "B,1,9,9", "b": "B,1,9,9"}, ("alike", "far"), _B),
    _image("detector", vision.Detector, outputs=("boxes", "scores")),
    _image("yolo", vision.Yolo, outputs=("near", "far")),
    _image("pyramid", vision.Pyramid, 16, outputs=("fine", "middle", "coarse")),
    _image("deeplab", vision.DeepLab, 16),
    Network("spatial transformer", vision.SpatialTransformer, {"x": "2,1,9,9"}),
    _image("vit", vision.ViT),
    _image("swin", vision.Swin, 16),
    _image("mixer", vision.Mixer),
    Network("denoiser", vision.Denoiser, {"x": "B,3,6,6", "time": "B"}, sizes=_B),
    # recurrent
    _sequence("lstm", lambda: sequences.Tagger(nn.LSTM(8, 6, batch_first=True), 6)),
    _sequence("lstm, both ways", lambda: sequences.Tagger(nn.LSTM(8, 6, 2, batch_first=True, bidirectional=True), 12)),
    _sequence("lstm, projected", lambda: sequences.Tagger(nn.LSTM(8, 6, batch_first=True, proj_size=3), 3)),
    _sequence("gru", lambda: sequences.Tagger(nn.GRU(8, 6, 2, batch_first=True), 6)),
    _sequence("gru, both ways", lambda: sequences.Tagger(nn.GRU(8, 6, batch_first=True, bidirectional=True), 12)),
    _sequence("rnn", lambda: sequences.Tagger(nn.RNN(8, 6, nonlinearity="tanh"), 6)),
    Network("last state", sequences.LastState, {"ids": "B,S,i64"}, sizes=_BS),
    Network("stateful", sequences.Stateful, {"x": "B,S,4", "h": "2,B,6", "c": "2,B,6"}, ("y", "hn", "cn"), _BS),
    Network("unrolled", sequences.Unrolled, {"x": "B,5,4"}, sizes=_B),
    Network("reader", sequences.Reader, {"x": "B,1,8,S"}, sizes=_BS),
    Network(
        "joiner",
        sequences.Joiner,
        {"frames": "B,S,5", "words": "B,U,6"},
        sizes=({"B": 2, "S": 4, "U": 3}, {"B": 1, "S": 7, "U": 1}),
    ),
    # attention
    _sequence("transformer", sequences.transformer),
    Network("bert", sequences.Bert, {"ids": "B,S,i64", "mask": "B,S,bit", "segments": "B,S,bit"}, ("y", "pooled"), _BS),
    Network("gpt", sequences.Gpt, {"ids": "B,S,i64"}, sizes=_BS),
    Network(
        "llama",
        sequences.Llama,
        {"ids": "B,S,i64", "past_k": "B,1,P,4", "past_v": "B,1,P,4"},
        ("y", "k", "v"),
        ({"B": 2, "S": 3, "P": 4}, {"B": 1, "S": 1, "P": 6}),
    ),
    Network(
        "t5",
        sequences.T5,
        {"ids": "B,S,i64", "so_far": "B,T,i64"},
        sizes=({"B": 2, "S": 5, "T": 3}, {"B": 1, "S": 3, "T": 6}),
    ),
    *(_sequence(f"sdpa, {kind}", lambda kind=kind: sequences.Sdpa(kind)) for kind in ("plain", "causal", "mask")),
    _sequence("performer", sequences.Performer, 6),
    _sequence("perceiver", sequences.Perceiver),
    _sequence("experts", sequences.Experts, 6, outputs=("y", "chosen")),
    Network(
        "clip",
        sequences.Clip,
        {"image": "B,3,8,8", "ids": "T,S,i64"},
        sizes=({"B": 2, "T": 3, "S": 4}, {"B": 1, "T": 2, "S": 6}),
    ),
    Network("pointer", sequences.Pointer, {"x": "B,5", "places": "B,2,i64"}, ("ordered", "order", "picked"), _B),
    # signals
    Network("wavenet", signals.WaveNet, {"x": "B,1,S"}, sizes=_BS),
    Network("cropped", signals.Cropped, {"x": "B,4,S"}, sizes=({"B": 2, "S": 12}, {"B": 1, "S": 15})),
    Network("separator", signals.Separator, {"x": "B,1,S"}, sizes=({"B": 2, "S": 20}, {"B": 1, "S": 32})),
    Network("spectrum", signals.Spectrum, {"x": "B,S"}, sizes=({"B": 2, "S": 40}, {"B": 1, "S": 64})),
    Network("wav2vec", signals.Wav2Vec, {"x": "B,1,S"}, sizes=({"B": 2, "S": 47}, {"B": 1, "S": 62})),
    _sequence("conformer", signals.Conformer),
    Network("dual path", signals.DualPath, {"x": "B,S,3,4"}, sizes=_BS),
    # tables, sets, points
    Network("sets", signals.Sets, {"x": "B,S,3"}, sizes=_BS),
    Network("graph", signals.Graph, {"x": "B,5,4", "edges": "B,5,5"}, sizes=_B),
    Network("recommender", signals.Recommender, {"numbers": "B,5", "ids": "B,2,i64"}, sizes=_B),
    Network("radiance", signals.Radiance, {"x": "B,S,3"}, ("colour", "density"), _BS),
    Network("flow", signals.Flow, _X, ("y", "volume"), _B),
    Network("policy", signals.Policy, _X, ("mean", "spread", "value"), _B),
    Network("activations", signals.Activations, {"x": "B,5"}, sizes=_B),
    Network("integers", signals.Integers, {"a": "B,4,i64", "b": "B,4,i64"}, ("product", "chosen", "high"), _B),
    # few bits
    Network("quantised images", narrow.quantised_images, {"x": "2,3,9,9"}),
    Network("quantised layers", narrow.quantised_layers, {"x": "B,6"}, sizes=_B),
    Network("in blocks", narrow.in_blocks, {"x": "B,32"}, sizes=_B),
    Network("half", narrow.half, {"x": "2,3,9,f16"}),
    Network("scattered", signals.Scattered, {"x": "6,3", "ids": "6,i64"}, ("sums", "picked")),
)
