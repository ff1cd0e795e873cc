"""Graphs as pt2e quantisation leaves them: integers between quantising and dequantising operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed  # the operators of pt2e
import tract_torch
from agreement import agree, same

import tract_core as tract

Q = torch.ops.quantized_decomposed
X, W, Y = 0.02, 0.01, 0.05
"""Scales."""


def fake(x: torch.Tensor, scale: float, zero: int = 0) -> torch.Tensor:
    """Through eight bits and back."""
    q = Q.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
    return Q.dequantize_per_tensor(q, scale, zero, -128, 127, torch.int8)


class Quantised(torch.nn.Module):
    """A layer of int8, whose weights have one scale per output."""

    def __init__(self, layer: Any) -> None:
        super().__init__()
        self.layer = layer
        weight = layer.weight.detach()
        self.register_buffer("scales", torch.linspace(0.005, 0.01, weight.shape[0]))
        self.register_buffer("zeros", torch.zeros(weight.shape[0], dtype=torch.int64))
        ends = (0, -127, 127, torch.int8)
        self.register_buffer("weight", Q.quantize_per_channel(weight, self.scales, self.zeros, *ends))
        self.register_buffer("bias", layer.bias.detach().clone())
        del self.layer.weight, self.layer.bias

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weight = Q.dequantize_per_channel(self.weight, self.scales, self.zeros, 0, -127, 127, torch.int8)
        x = fake(x, X, 3)
        if isinstance(self.layer, torch.nn.Conv2d):
            y = torch.nn.functional.conv2d(x, weight, self.bias, padding=1)
        else:
            y = torch.nn.functional.linear(x, weight, self.bias)
        return fake(torch.relu(y), Y, -128)


def inputs(count: int, *sizes: int) -> list[torch.Tensor]:
    """Away from the middle between two steps, where rounding depends on the last bit of a division."""
    random = torch.Generator().manual_seed(count)
    return [torch.randint(-100, 100, (count, *sizes), generator=random) * X + X / 5]


@pytest.mark.parametrize(
    ("layer", "sizes", "name"),
    [(torch.nn.Linear(16, 8), (16,), "EinSum"), (torch.nn.Conv2d(3, 4, 3), (3, 6, 6), "Conv")],
    ids=["linear", "conv"],
)
def test_a_layer_of_int8_computes_with_int8(layer: Any, sizes: tuple[int, ...], name: str) -> None:
    torch.manual_seed(0)
    module = Quantised(layer)
    batch = torch.export.Dim("B", min=1)
    model = tract_torch.load(module, tuple(inputs(2, *sizes)), dynamic_shapes=({0: batch},))
    explained = tract.runtime_for_name("cpu").prepare(model.clone()).explain()
    groups = [one.ops for one in explained.placements]
    (product,) = [place for place, ops in enumerate(groups) if name in ops]
    assert {"Cast", "Quantize"} <= set(groups[product])  # sums of integers, then numbers, then bytes again, at once
    assert not any("Dequantize" in ops for ops in groups[: product + 1])
    for runtime in ("reference", "cpu"):
        runnable = tract.runtime_for_name(runtime).prepare(model.clone())
        for count in (1, 5):
            x = inputs(count, *sizes)
            (found,) = runnable.run([one.numpy() for one in x])
            off = np.abs(np.asarray(found) - module(*x).detach().numpy()) / Y
            assert off.max() < 1.01  # a step, where a sum in floats lies in the middle between two
            assert np.mean(off > 0.01) < 0.05


def test_ends_that_are_not_those_of_the_type() -> None:
    class Narrow(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            q = Q.quantize_per_tensor(x, 0.1, 2, -5, 6, torch.int8)
            u = Q.quantize_per_tensor(x, 0.1, 100, 0, 255, torch.uint8)
            return q, Q.dequantize_per_tensor(u, 0.1, 100, 0, 255, torch.uint8)

    agree(Narrow(), [torch.linspace(-2.03, 2.03, 24).reshape(4, 6)])


def test_weights_alone() -> None:
    class WeightOnly(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randint(-128, 127, (4, 6), dtype=torch.int8))
            self.register_buffer("scales", torch.rand(4) * 0.1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            weight = Q.dequantize_per_channel(self.weight, self.scales, None, 0, -128, 127, torch.int8)
            return torch.nn.functional.linear(x, weight)

    agree(WeightOnly(), [torch.randn(3, 6)], tolerance=1e-4)


def test_ranges_that_the_data_has() -> None:
    class Dynamic(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> Any:
            scale, zero = Q.choose_qparams(x, -128, 127, 1e-5, torch.int8)
            q = Q.quantize_per_tensor(x, scale, zero, -128, 127, torch.int8)
            return scale, zero, Q.dequantize_per_tensor(q, scale, zero, -128, 127, torch.int8)

    module = Dynamic()
    x = torch.tensor([[0.11, -1.0, 2.03], [0.5, 1.51, -0.2]])
    model = tract_torch.load(module, x)
    same(model.into_runnable().run([x.numpy()]), module(x), 1e-6)
