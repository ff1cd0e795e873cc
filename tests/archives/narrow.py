"""Networks that compute in fewer bits, small."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.ao import quantization


class Quantised(nn.Module):
    """Layers between a quantisation and its opposite."""

    def __init__(self, *layers: nn.Module) -> None:
        super().__init__()
        self.enter, self.body, self.leave = quantization.QuantStub(), nn.Sequential(*layers), quantization.DeQuantStub()

    def forward(self, x: Tensor) -> Tensor:
        return self.leave(self.body(self.enter(x)))


def quantised(shape: tuple[int, ...], *layers: nn.Module) -> nn.Module:
    """Layers on bytes, with the ranges that random inputs of that shape have."""
    module = Quantised(*layers).eval()
    weights = quantization.MinMaxObserver.with_args(dtype=torch.qint8, qscheme=torch.per_tensor_symmetric)
    module.qconfig = quantization.QConfig(quantization.MinMaxObserver.with_args(dtype=torch.quint8), weights)
    quantization.prepare(module, inplace=True)
    module(torch.randn(shape))
    quantization.convert(module, inplace=True)
    return module


def quantised_images() -> nn.Module:
    return quantised((2, 3, 9, 9), nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 4, 3, 2, groups=2))


def quantised_layers() -> nn.Module:
    return quantised((8, 6), nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 4))


def in_blocks() -> nn.Module:
    """Linear layers whose weights are kept in blocks of four bits."""
    from torch_to_nnef.compress import DEFAULT_COMPRESSION

    module = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32)).eval()
    return DEFAULT_COMPRESSION["min_max_q4_0"](module)


def half() -> nn.Module:
    body = [nn.Conv1d(3, 4, 3), nn.BatchNorm1d(4), nn.ReLU(), nn.Conv1d(4, 4, 3), nn.Flatten(), nn.Linear(20, 4)]
    return nn.Sequential(*body).half()
