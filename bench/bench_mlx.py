"""The runtime ``metal`` beside the same network written by hand with `mlx.nn`: ``python bench/bench_mlx.py [--json]``

ResNet-50 and BERT-base with the weights of the bench, both compiled by MLX, on MLX's CPU build or, with ``--device
gpu``, on a GPU. Prints the medians of rounds in turn in milliseconds, how many times as long ours takes, with the
quartiles of that ratio, and the largest difference of an output relative to its largest number. ``--small``: smaller
networks of the same kinds.

Needs what `make test-metal` installs.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from statistics import median, quantiles
from typing import Any

import mlx.core as mx
import numpy as np
import onnx
from mlx import nn

import tract_core as tract
from networks import transformers, vision
from networks.builder import Network


def weights_of(network: Network) -> Iterator[mx.array]:
    """The weights in the order in which the network was built."""
    return iter([mx.array(onnx.numpy_helper.to_array(one)) for one in network.model.graph.initializer])


class Convolved(nn.Module):
    """A convolution with the weights of the network, channels last."""

    def __init__(self, weights: Iterator[mx.array], kernel: int, stride: int = 1) -> None:
        super().__init__()
        weight, bias = next(weights), next(weights)
        self.layer = nn.Conv2d(weight.shape[1], weight.shape[0], kernel, stride=stride, padding=kernel // 2)
        self.layer.weight, self.layer.bias = mx.contiguous(mx.transpose(weight, (0, 2, 3, 1))), bias

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)


class Bottleneck(nn.Module):
    def __init__(self, weights: Iterator[mx.array], *, stride: int, widens: bool) -> None:
        super().__init__()
        self.first, self.second = Convolved(weights, 1), Convolved(weights, 3, stride)
        self.third = Convolved(weights, 1)
        self.beside = Convolved(weights, 1, stride) if widens else None

    def __call__(self, x: mx.array) -> mx.array:
        y = self.third(nn.relu(self.second(nn.relu(self.first(x)))))
        return nn.relu(y + (x if self.beside is None else self.beside(x)))


class ResNet50(nn.Module):
    def __init__(self, network: Network, stages: int) -> None:
        super().__init__()
        weights = weights_of(network)
        self.stem, self.pool = Convolved(weights, 7, 2), nn.MaxPool2d(3, 2, padding=1)
        self.blocks = [
            Bottleneck(weights, stride=2 if stage and not block else 1, widens=not block)
            for stage, blocks in enumerate((3, 4, 6, 3)[:stages])
            for block in range(blocks)
        ]
        weight, bias = next(weights), next(weights)
        self.last = nn.Linear(*weight.shape[::-1])
        self.last.weight, self.last.bias = weight, bias

    def __call__(self, image: mx.array) -> list[mx.array]:
        x = self.pool(nn.relu(self.stem(mx.transpose(image, (0, 2, 3, 1)))))
        for block in self.blocks:
            x = block(x)
        return [self.last(mx.mean(x, axis=(1, 2)))]


class Norm(nn.Module):
    def __init__(self, weights: Iterator[mx.array]) -> None:
        super().__init__()
        scale, bias = next(weights), next(weights)
        self.layer = nn.LayerNorm(scale.size, eps=1e-5)
        self.layer.weight, self.layer.bias = scale, bias

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)


class Dense(nn.Module):
    def __init__(self, weights: Iterator[mx.array], *, transposed: bool = False) -> None:
        super().__init__()
        weight, bias = next(weights), next(weights)
        weight = weight if transposed else mx.contiguous(weight.T)
        self.layer = nn.Linear(*weight.shape[::-1])
        self.layer.weight, self.layer.bias = weight, bias

    def __call__(self, x: mx.array) -> mx.array:
        return self.layer(x)


class Layer(nn.Module):
    def __init__(self, weights: Iterator[mx.array], heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.to_queries, self.to_keys, self.to_values, self.joined = (Dense(weights) for _ in range(4))
        self.first, self.up, self.down, self.second = Norm(weights), Dense(weights), Dense(weights), Norm(weights)

    def __call__(self, x: mx.array, mask: mx.array) -> mx.array:
        batch, tokens, width = x.shape
        size = width // self.heads
        q, k, v = (
            mx.transpose(mx.reshape(part(x), (batch, tokens, self.heads, size)), (0, 2, 1, 3))
            for part in (self.to_queries, self.to_keys, self.to_values)
        )
        mixed = mx.fast.scaled_dot_product_attention(q, k, v, scale=size**-0.5, mask=mask)
        x = self.first(x + self.joined(mx.reshape(mx.transpose(mixed, (0, 2, 1, 3)), x.shape)))
        return self.second(x + self.down(nn.gelu(self.up(x))))


class Bert(nn.Module):
    def __init__(self, network: Network, depth: int) -> None:
        super().__init__()
        weights = (one for one in weights_of(network) if one.ndim and one.dtype == mx.float32)
        self.of_words, self.of_segments, self.of_places = next(weights), next(weights), next(weights)
        self.norm = Norm(weights)
        self.layers = [Layer(weights, self.of_words.shape[1] // 64) for _ in range(depth)]
        self.last = Dense(weights, transposed=True)

    def __call__(self, ids: mx.array, segments: mx.array, mask: mx.array) -> list[mx.array]:
        added = (1 - mask.astype(mx.float32))[:, None, None, :] * -10000
        x = self.norm(self.of_words[ids] + self.of_segments[segments] + self.of_places)
        for layer in self.layers:
            x = layer(x, added)
        return [x, mx.tanh(self.last(x[:, 0]))]


def compared(network: Network, by_hand: Any, device: str, rounds: int) -> dict[str, Any]:
    """Medians of both, in milliseconds, and how far apart their outputs are."""
    runtime = tract.runtime_for_name("metal", device=device)
    inputs = list(network.inputs.values())
    state = runtime.prepare(tract.onnx().load_bytes(network.model.SerializeToString()).into_model()).spawn_state()
    with mx.stream(mx.gpu if device == "gpu" else mx.cpu):
        function = mx.compile(by_hand)
        theirs = _computed(function, inputs)
        ours = [np.asarray(one) for one in state.run(inputs)]
        error = max(abs(a - b).max() / abs(b).max() for a, b in zip(ours, theirs, strict=True))
        pairs = [
            (_seconds(lambda: state.run(inputs)), _seconds(lambda: _computed(function, inputs))) for _ in range(rounds)
        ]
    ratios = [a / b for a, b in pairs]
    return {
        "ours": 1e3 * median(a for a, _ in pairs),
        "by hand": 1e3 * median(b for _, b in pairs),
        "ratio": median(ratios),
        "quartiles": quantiles(ratios)[::2],
        "error": float(error),
    }


def _computed(function: Callable[..., Any], inputs: list[np.ndarray]) -> list[np.ndarray]:
    given = function(*map(mx.array, inputs))
    mx.eval(given)
    return [np.array(one) for one in given]


def _seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    size, stages, tokens, depth = (64, 2, 16, 2) if given.small else (224, 4, 128, 12)
    image, text = vision.resnet50(size, stages), transformers.bert(tokens, depth)
    found = {
        "ResNet-50": compared(image, ResNet50(image, stages), given.device, given.rounds),
        "BERT-base": compared(text, Bert(text, depth), given.device, given.rounds),
    }
    if given.json:
        print(json.dumps(found))
        return
    for name, one in found.items():
        low, high = one["quartiles"]
        shown = f"{one['ours']:8.1f} ms, by hand {one['by hand']:8.1f} ms: {one['ratio']:.2f} ({low:.2f} to {high:.2f})"
        print(f"{name}: {shown}, outputs {one['error']:.1e} apart")


if __name__ == "__main__":
    main()
