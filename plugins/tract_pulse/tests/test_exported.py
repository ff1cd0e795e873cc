"""Attention as PyTorch exports it, in both of its ways, streams: masks are made of ranges, triangles and fills."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from stream_runs import assert_agrees, pulsed

import tract_core as tract
from tract_core.model.typed import TypedModel
from tract_core.runtime.streams import Streams

torch = pytest.importorskip("torch", reason="PyTorch exports the models: run `make test-networks`")
pytestmark = pytest.mark.networks

SIZE = 8
Mask = Callable[[Any, Any], Any]
"""From the positions of rows and columns, as [S,1] and [1,S]: true where a column counts."""


def near(rows: Any, columns: Any) -> Any:
    return (rows - columns).abs() <= 2


def back(rows: Any, columns: Any) -> Any:
    return (columns <= rows) & (columns > rows - 4)


def blocks(rows: Any, columns: Any) -> Any:
    return rows // 4 == columns // 4


def chunks_back(rows: Any, columns: Any) -> Any:
    chunks = [torch.div(one, 2, rounding_mode="floor") for one in (rows, columns)]
    distance = chunks[0] - chunks[1]
    return (distance >= 0) & (distance <= 2)


class Attention(torch.nn.Module):
    """Of one head; ``masked``: from scores, rows and columns to scores."""

    def __init__(self, masked: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.masked = masked
        self.parts = torch.nn.ModuleList([torch.nn.Linear(SIZE, SIZE) for _ in range(3)])
        self.far = torch.nn.Embedding(9, SIZE)

    def forward(self, x: Any) -> Any:
        q, k, v = (part(x) for part in self.parts)
        places = torch.arange(x.shape[1])
        scores = q @ k.transpose(1, 2) / SIZE**0.5
        scores = self.masked(self, q, scores, places[:, None], places[None, :])
        return scores.softmax(-1) @ v


def filled(mask: Mask, fill: float = float("-inf")) -> Callable[..., Any]:
    return lambda _net, _q, scores, rows, columns: scores.masked_fill(~mask(rows, columns), fill)


def added(mask: Mask, fill: float) -> Callable[..., Any]:
    return lambda _net, _q, scores, rows, columns: scores + (1.0 - mask(rows, columns).float()) * fill


def triangles(_net: Any, _q: Any, scores: Any, rows: Any, columns: Any) -> Any:
    size = scores.shape[1]
    lowest = torch.full((size, size), torch.finfo(torch.float32).min)
    return scores + torch.triu(lowest, 1) + torch.tril(lowest, -5)


def distances(net: Any, q: Any, scores: Any, rows: Any, columns: Any) -> Any:
    """Scores of how far away a key is, as Shaw et al. 2018 add them."""
    far = net.far((columns - rows).clamp(-4, 4) + 4)
    return filled(near)(net, q, scores + torch.einsum("bqd,qkd->bqk", q, far), rows, columns)


def slopes(net: Any, q: Any, scores: Any, rows: Any, columns: Any) -> Any:
    """Scores that fall with the distance, as of ALiBi."""
    return filled(back)(net, q, scores + 0.3 * (columns - rows).float(), rows, columns)


class Heads(torch.nn.Module):
    """PyTorch's own attention of several heads, behind a strided convolution."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv1d(SIZE, SIZE, 3, stride=2, padding=1)
        self.parts = torch.nn.ModuleList([torch.nn.Linear(SIZE, SIZE) for _ in range(3)])

    def forward(self, x: Any) -> Any:
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        places = torch.arange(x.shape[1])
        q, k, v = (part(x).unflatten(2, (2, SIZE // 2)).transpose(1, 2) for part in self.parts)
        mask = blocks(places[:, None], places[None, :])
        found = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return x + found.transpose(1, 2).flatten(2)


class Layers(torch.nn.Module):
    """Two encoder layers that share a mask."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        options: dict[str, Any] = {"batch_first": True, "dropout": 0.0}
        self.layers = torch.nn.ModuleList([torch.nn.TransformerEncoderLayer(SIZE, 2, 16, **options) for _ in "ab"])

    def forward(self, x: Any) -> Any:
        places = torch.arange(x.shape[1])
        for layer in self.layers:
            x = layer(x, src_mask=~near(places[:, None], places[None, :]))
        return x


class Relative(torch.nn.Module):
    """Scores by relative position, as Transformer-XL skews them, of two heads, behind a strided convolution."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv1d(SIZE, SIZE, 3, stride=2, padding=1)
        self.parts = torch.nn.ModuleList([torch.nn.Linear(SIZE, SIZE) for _ in range(4)])
        self.far = torch.nn.Parameter(torch.randn(1, 63, SIZE))

    def forward(self, x: Any) -> Any:
        x = self.conv(x.transpose(1, 2)).transpose(1, 2)
        size = x.shape[1]
        inputs = [x, x, x, self.far[:, 32 - size : 31 + size]]
        q, k, v, far = (
            part(one).unflatten(2, (2, SIZE // 2)).transpose(1, 2) for part, one in zip(self.parts, inputs, strict=True)
        )
        skewed = torch.nn.functional.pad(q @ far.transpose(2, 3), (1, 0)).reshape(1, 2, -1, size)
        skewed = skewed[:, :, 1:].reshape(1, 2, size, -1)[:, :, :, :size]
        places = torch.arange(size)
        scores = filled(back)(self, q, q @ k.transpose(2, 3) + skewed, places[:, None], places[None, :])
        return (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)


def exported(module: Any, folder: Path, *, traced: bool) -> TypedModel:
    path = folder / "model.onnx"
    example = (torch.zeros(1, 12, SIZE),)
    options: dict[str, Any] = (
        {"dynamo": False, "dynamic_axes": {"x": {1: "S"}}}
        if traced
        else {"dynamo": True, "dynamic_shapes": {"x": {1: torch.export.Dim("S", min=2)}}, "verbose": False}
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.onnx.export(module.eval(), example, str(path), input_names=["x"], **options)
    model = tract.onnx().load(path)
    model.set_input_fact(0, f"1,S,{SIZE},f32")
    return model.into_model().typed


BOTH: dict[str, tuple[Callable[[], Any], int]] = {
    "near": (lambda: Attention(filled(near)), 2),
    "back": (lambda: Attention(filled(back, -1e9)), 0),
    "blocks": (lambda: Attention(filled(blocks)), 0),
    "chunks back": (lambda: Attention(filled(chunks_back)), 0),
    "added": (lambda: Attention(added(blocks, -10000.0)), 0),
    "triangles": (lambda: Attention(triangles), 0),
    "distances": (lambda: Attention(distances), 2),
    "slopes": (lambda: Attention(slopes), 0),
}
"""Modules, and the delay of their outputs in pulses of eight."""

CASES = [
    *(pytest.param(*case, traced, id=f"{name}-{traced}") for name, case in BOTH.items() for traced in (True, False)),
    pytest.param(Heads, 0, True, id="heads"),
    pytest.param(Relative, 0, True, id="by relative position"),
    pytest.param(Layers, 4, False, id="layers"),  # the older exporter fixes the length of the signal in this module
]


@pytest.mark.parametrize(("module", "delay", "traced"), CASES)
def test_attention_as_pytorch_exports_it(module: Callable[[], Any], delay: int, traced: bool, tmp_path: Path):
    model = exported(module(), tmp_path, traced=traced)
    streaming = pulsed(model, 8)
    streams = Streams.of(streaming)
    assert streams is not None
    assert [end and end.delay for end in streams.outputs] == [delay]
    for length in (1, 2, 13, 24):
        x = np.random.default_rng(length).normal(size=(1, length, SIZE)).astype(np.float32)
        for runtime in ("reference", "cpu"):
            assert_agrees(model, streaming, [x], runtime=runtime)
