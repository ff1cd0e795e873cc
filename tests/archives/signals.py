"""Networks that listen, and those over tables, sets and points, small."""

from __future__ import annotations

import torch
from layers import Attention, Does, Residual, padded
from sequences import WORDS
from torch import Tensor, nn
from torch.nn import functional


class WaveNet(nn.Module):
    """Causal convolutions, ever more dilated, with gates and two sums."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.entry, self.head = nn.Conv1d(1, width, 1), nn.Conv1d(width, 3, 1)
        self.filters = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=rate) for rate in (1, 2, 4))
        self.mixes = nn.ModuleList(nn.Conv1d(width, width, 1) for _ in range(3))

    def forward(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        skips = torch.zeros_like(x)
        for filters, mix in zip(self.filters, self.mixes, strict=True):
            signal, gate = filters(padded(x, filters.dilation[0])).chunk(2, 1)
            y = mix(torch.tanh(signal) * torch.sigmoid(gate))
            x, skips = x + y, skips + y
        return self.head(functional.relu(skips))


class Cropped(nn.Module):
    """Convolutions without padding, whose shortcuts are cut to size."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Conv1d(width, width, 3, dilation=rate) for rate in (1, 2, 1))

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            cut = layer.dilation[0]
            x = x[..., cut:-cut] + functional.relu(layer(x))
        return x


class Separator(nn.Module):
    """A mixture of sounds as two: learned frames, masks, and back."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, width, 4, 2, bias=False), nn.ConvTranspose1d(width, 1, 4, 2, bias=False)
        block = Residual(nn.Conv1d(width, width, 3, padding=1, groups=width), nn.PReLU(), nn.GroupNorm(1, width))
        self.masks = nn.Sequential(nn.GroupNorm(1, width), block, nn.Conv1d(width, 2 * width, 1), nn.ReLU())

    def forward(self, x: Tensor) -> Tensor:
        frames = self.encode(x)
        masks = self.masks(frames).unflatten(1, (2, -1))
        return self.decode((masks * frames[:, None]).flatten(0, 1)).unflatten(0, (-1, 2)).squeeze(2)


class Spectrum(nn.Module):
    """Loudness by frequency, in logarithms."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("window", torch.hann_window(16))
        self.register_buffer("bands", torch.rand(9, 5))

    def forward(self, x: Tensor) -> Tensor:
        spectrum = torch.stft(x, 16, 8, window=self.window, center=False, return_complex=True)
        power = torch.view_as_real(spectrum).pow(2).sum(-1)
        return torch.log(torch.matmul(power.transpose(1, 2), self.bands) + 1e-6)


class Wav2Vec(nn.Module):
    """Strided convolutions over samples, then attention with convolutional positions."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv1d(1, width, 5, 3),
            nn.GroupNorm(width, width),
            nn.GELU("tanh"),
            nn.Conv1d(width, width, 3, 2),
            nn.GELU("tanh"),
        )
        self.places, self.attention, self.norm = (
            nn.Conv1d(width, width, 4, padding=2, groups=2),
            Attention(width),
            nn.LayerNorm(width),
        )

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x)
        x = (x + functional.gelu(self.places(x)[..., :-1], approximate="tanh")).transpose(1, 2)
        return self.norm(x + self.attention(x))


class Conformer(nn.Module):
    """Half a feed-forward, attention, a gated depthwise convolution, and the other half."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()

        def feed() -> nn.Module:
            return nn.Sequential(
                nn.LayerNorm(width), nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width)
            )

        turn = Does(lambda x: x.transpose(1, 2))
        depthwise = [nn.Conv1d(width, width, 5, padding=2, groups=width), nn.BatchNorm1d(width), nn.SiLU()]
        mixed = [nn.LayerNorm(width), turn, nn.Conv1d(width, 2 * width, 1), nn.GLU(1), *depthwise, turn]
        self.before, self.after, self.conv = feed(), feed(), Residual(*mixed)
        self.norms, self.attention = nn.ModuleList(nn.LayerNorm(width) for _ in range(2)), Attention(width)

    def forward(self, x: Tensor) -> Tensor:
        x = x + 0.5 * self.before(x)
        x = self.conv(x + self.attention(self.norms[0](x)))
        return self.norms[1](x + 0.5 * self.after(x))


class DualPath(nn.Module):
    """Recurrent layers along frames, then along bands."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.along, self.across = nn.GRU(width, width, batch_first=True), nn.LSTM(width, width, batch_first=True)

    def forward(self, x: Tensor) -> Tensor:
        bands, width = x.shape[2:]
        y = self.along(x.transpose(1, 2).reshape(-1, x.shape[1], width))[0]
        x = x + y.reshape(x.shape[0], bands, -1, width).transpose(1, 2)
        return x + self.across(x.reshape(-1, bands, width))[0].reshape(x.shape)


class Sets(nn.Module):
    """A set of points, by what holds for all and what holds for the largest."""

    def __init__(self) -> None:
        super().__init__()
        self.each, self.all = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 8)), nn.Linear(24, 4)

    def forward(self, x: Tensor) -> Tensor:
        h = self.each(x)
        return self.all(torch.cat([h.mean(1), h.amax(1), h.std(1)], -1))


class Graph(nn.Module):
    """Nodes with the means of their neighbours."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 6), nn.Linear(6, 3)
        self.register_buffer("own", torch.eye(5))

    def forward(self, x: Tensor, edges: Tensor) -> Tensor:
        weights = edges.abs() + self.own
        weights = weights / weights.sum(-1, keepdim=True)
        return weights @ self.second(functional.relu(weights @ self.first(x)))


class Recommender(nn.Module):
    """Numbers and kinds, and the products of all pairs of them."""

    def __init__(self, width: int = 4) -> None:
        super().__init__()
        self.kinds = nn.ModuleList(nn.Embedding(WORDS, width) for _ in range(2))
        self.numbers, self.head = nn.Linear(5, width), nn.Linear(width + 9, 1)

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        dense = self.numbers(numbers)
        found = torch.stack([dense, *(table(ids[:, place]) for place, table in enumerate(self.kinds))], 1)
        return torch.sigmoid(self.head(torch.cat([dense, torch.bmm(found, found.transpose(1, 2)).flatten(1)], 1)))


class Radiance(nn.Module):
    """Places by sines and cosines, to colours and a density."""

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Sequential(nn.Linear(15, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU()), nn.Linear(8, 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        waves = [f(x * 2.0**power) for power in range(2) for f in (torch.sin, torch.cos)]
        y = self.head(self.body(torch.cat([x, *waves], -1)))
        return torch.sigmoid(y[..., :3]), functional.softplus(y[..., 3])


class Flow(nn.Module):
    """Half of the numbers, scaled and shifted by what the other half says; with the logarithm of the volume."""

    def __init__(self) -> None:
        super().__init__()
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 6)) for _ in range(2))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        volume = torch.zeros(x.shape[0])
        for net in self.nets:
            a, b = x.split(3, -1)
            scale, shift = net(a).chunk(2, -1)
            x = torch.cat([b * torch.exp(torch.tanh(scale)) + shift, a], -1)
            volume = volume + torch.tanh(scale).sum(-1)
        return x, volume


class Policy(nn.Module):
    """What to do: a distribution that is bounded, and a value."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 8), nn.Mish(), nn.Linear(8, 8), nn.Softsign())
        self.mean, self.spread, self.value = nn.Linear(8, 2), nn.Linear(8, 2), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.body(x)
        return torch.tanh(self.mean(h)), self.spread(h).clamp(-5, 2).exp(), self.value(h).squeeze(-1)


class Activations(nn.Module):
    """One of each kind of activation, one after the other."""

    KINDS = (
        *(nn.ReLU6, nn.ELU, nn.SELU, nn.CELU, nn.Hardswish, nn.Hardsigmoid, nn.Softplus, nn.Mish, nn.LogSigmoid),
        *(nn.Hardtanh, nn.Softshrink, nn.Tanhshrink, nn.SiLU),
    )

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Sequential(nn.Linear(5, 5), kind()) for kind in self.KINDS)

    def forward(self, x: Tensor) -> Tensor:
        return torch.stack([layer(x) for layer in self.layers], 1)


class Integers(nn.Module):
    """Arithmetic on integers and truth values."""

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        high = (a > b) & ((a + b) > 12)
        return a * b - 3, torch.where(high, a, b), high.to(torch.float32).mean(0)


class Scattered(nn.Module):
    """Rows that are added to the rows that indices name."""

    def forward(self, x: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        sums = torch.zeros(WORDS, 3).index_add(0, ids, x)
        return sums, x[ids % 6] + x.flip(0)


def mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.BatchNorm1d(8), nn.Linear(8, 5), nn.Softmax(-1))
