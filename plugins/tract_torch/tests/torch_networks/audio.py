"""Networks on sound, in plain PyTorch."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from torch_networks.network import Network


class ConformerLayer(nn.Module):
    """Gulati et al. 2020: half a feed-forward, attention, a convolution, the other half, each beside a shortcut."""

    def __init__(self, width: int, heads: int, kernel: int) -> None:
        super().__init__()
        self.feeds = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.SiLU(), nn.Linear(4 * width, width))
            for _ in range(2)
        )
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm = nn.LayerNorm(width)
        self.gated = nn.Conv1d(width, 2 * width, 1)
        self.depthwise = nn.Conv1d(width, width, kernel, padding=kernel // 2, groups=width)
        self.batch, self.mix = nn.BatchNorm1d(width), nn.Conv1d(width, width, 1)

    def forward(self, x: Tensor, padded: Tensor) -> Tensor:
        x = x + self.feeds[0](x) / 2
        y = self.before(x)
        x = x + self.attention(y, y, y, key_padding_mask=padded, need_weights=False)[0]
        y = F.glu(self.gated(self.norm(x).transpose(1, 2)), dim=1)
        y = self.mix(F.silu(self.batch(self.depthwise(y))))
        x = x + y.transpose(1, 2)
        return self.after(x + self.feeds[1](x) / 2)


class Conformer(nn.Module):
    """Frames of mels (batch, length, 20), each item with a length, as (batch, length / 4, 10)"""

    def __init__(self, mels: int = 20, width: int = 32, depth: int = 2) -> None:
        super().__init__()
        self.halve = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ReLU(), nn.Conv2d(8, 8, 3, stride=2, padding=1), nn.ReLU()
        )
        self.entry = nn.Linear(8 * (mels // 4), width)
        self.layers = nn.ModuleList(ConformerLayer(width, 4, 7) for _ in range(depth))
        self.head = nn.Linear(width, 10)

    def forward(self, mels: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        x = self.halve(mels.unsqueeze(1)).transpose(1, 2).flatten(2)
        x, lengths = self.entry(x), (lengths + 3) // 4
        padded = torch.arange(x.shape[1])[None, :] >= lengths[:, None]
        for layer in self.layers:
            x = layer(x, padded)
        return F.log_softmax(self.head(x), -1), lengths


class WaveNet(nn.Module):
    """van den Oord et al. 2016: causal convolutions with growing dilation and gates"""

    def __init__(self, width: int = 12, layers: int = 6) -> None:
        super().__init__()
        self.entry = nn.Conv1d(1, width, 1)
        self.filters = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**n) for n in range(layers))
        self.mixes = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(layers))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, 16, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        skips = torch.zeros_like(x)
        for filters, mix in zip(self.filters, self.mixes, strict=True):
            signal, gate = filters(F.pad(x, (filters.dilation[0], 0))).chunk(2, dim=1)
            residual, skip = mix(torch.tanh(signal) * torch.sigmoid(gate)).chunk(2, dim=1)
            x, skips = x + residual, skips + skip
        return self.head(skips)


class Res2Block(nn.Module):
    """Convolutions of parts of the channels, each with what the one before gave, then channels weighed by their mean"""

    def __init__(self, width: int, parts: int, dilation: int) -> None:
        super().__init__()
        self.parts, part = parts, width // parts
        self.entry, self.exit = _convolved(width, width, 1), _convolved(width, width, 1)
        self.steps = nn.ModuleList(_convolved(part, part, 3, dilation) for _ in range(parts - 1))
        self.weigh = nn.Sequential(nn.Conv1d(width, 8, 1), nn.ReLU(), nn.Conv1d(8, width, 1), nn.Sigmoid())

    def forward(self, x: Tensor) -> Tensor:
        first, *rest = self.entry(x).chunk(self.parts, dim=1)
        done = [first]
        for place, (step, part) in enumerate(zip(self.steps, rest, strict=True)):
            done.append(step(part + done[-1] if place else part))
        y = self.exit(torch.cat(done, dim=1))
        return x + y * self.weigh(y.mean(2, keepdim=True))


def _convolved(inputs: int, outputs: int, kernel: int, dilation: int = 1) -> nn.Module:
    padding = dilation * (kernel // 2)
    layer = nn.Conv1d(inputs, outputs, kernel, padding=padding, dilation=dilation)
    return nn.Sequential(layer, nn.ReLU(), nn.BatchNorm1d(outputs))


class SpeakerNetwork(nn.Module):
    """Desplanques et al. 2020 (ECAPA-TDNN): mean and deviation over time, weighed by attention for each channel"""

    def __init__(self, mels: int = 20, width: int = 32) -> None:
        super().__init__()
        self.entry = _convolved(mels, width, 5)
        self.blocks = nn.ModuleList(Res2Block(width, 4, dilation) for dilation in (2, 3, 4))
        self.join = nn.Conv1d(3 * width, 48, 1)
        self.attention = nn.Sequential(
            nn.Conv1d(3 * 48, 16, 1), nn.ReLU(), nn.BatchNorm1d(16), nn.Tanh(), nn.Conv1d(16, 48, 1), nn.Softmax(2)
        )
        self.norm, self.head = nn.BatchNorm1d(96), nn.Linear(96, 12)

    def forward(self, mels: Tensor) -> Tensor:
        x, kept = self.entry(mels), []
        for block in self.blocks:
            x = block(x)
            kept.append(x)
        x = F.relu(self.join(torch.cat(kept, dim=1)))
        mean, deviation = x.mean(2, keepdim=True), x.std(2, keepdim=True)
        weights = self.attention(torch.cat([x, mean.expand_as(x), deviation.expand_as(x)], dim=1))
        mean = (weights * x).sum(2)
        deviation = ((weights * x**2).sum(2) - mean**2).clamp(min=1e-9).sqrt()
        return F.normalize(self.head(self.norm(torch.cat([mean, deviation], dim=1))))


class ConvTasNet(nn.Module):
    """Luo and Mesgarani 2019: a sound of two voices, as (batch, 2, samples)"""

    def __init__(self, width: int = 16, filters: int = 32, layers: int = 3) -> None:
        super().__init__()
        self.encode = nn.Conv1d(1, filters, 8, stride=4, bias=False)
        self.norm, self.entry = nn.GroupNorm(1, filters), nn.Conv1d(filters, width, 1)
        self.blocks = nn.ModuleList(_separable(width, 24, 2**n) for n in range(layers))
        self.masks = nn.Sequential(nn.PReLU(), nn.Conv1d(width, 2 * filters, 1), nn.Sigmoid())
        self.decode = nn.ConvTranspose1d(filters, 1, 8, stride=4, bias=False)

    def forward(self, sound: Tensor) -> Tensor:
        found = self.encode(sound)
        x = self.entry(self.norm(found))
        for block in self.blocks:
            x = x + block(x)
        masks = self.masks(x).unflatten(1, (2, -1))
        parts = found.unsqueeze(1) * masks
        decoded = self.decode(parts.flatten(0, 1))
        return decoded.unflatten(0, (-1, 2)).squeeze(2)


def _separable(width: int, inner: int, dilation: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv1d(width, inner, 1),
        nn.PReLU(),
        nn.GroupNorm(1, inner),
        nn.Conv1d(inner, inner, 3, padding=dilation, dilation=dilation, groups=inner),
        nn.PReLU(),
        nn.GroupNorm(1, inner),
        nn.Conv1d(inner, width, 1),
    )


class WaveEncoder(nn.Module):
    """Baevski et al. 2020 (wav2vec 2.0): convolutions of a sound, then transformer layers"""

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        layers = [(1, 16, 10, 5), (16, 16, 3, 2), (16, 24, 2, 2)]
        self.features = nn.ModuleList(nn.Conv1d(a, b, kernel, stride, bias=False) for a, b, kernel, stride in layers)
        self.first, self.norm = nn.GroupNorm(16, 16), nn.LayerNorm(24)
        self.entry = nn.Linear(24, width)
        places = nn.Conv1d(width, width, 8, padding=4, groups=4)
        self.places = nn.utils.parametrizations.weight_norm(places, dim=2)
        layer = nn.TransformerEncoderLayer(width, 4, 64, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, sound: Tensor) -> Tensor:
        x = sound.unsqueeze(1)
        for place, layer in enumerate(self.features):
            x = layer(x)
            x = F.gelu(x if place else self.first(x))
        x = self.entry(self.norm(x.transpose(1, 2)))
        x = x + F.gelu(self.places(x.transpose(1, 2))[:, :, :-1]).transpose(1, 2)
        return self.layers(x)


class DeepSpeech(nn.Module):
    """Amodei et al. 2016: 2-D convolutions of a spectrogram, then recurrent layers in both directions"""

    def __init__(self) -> None:
        super().__init__()
        self.front = nn.Sequential(
            nn.Conv2d(1, 4, (5, 3), stride=(2, 2), padding=(2, 1)), nn.BatchNorm2d(4), nn.Hardtanh(0, 20)
        )
        self.recurrent = nn.GRU(4 * 8, 24, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(48, 11)

    def forward(self, spectrogram: Tensor) -> Tensor:
        x = self.front(spectrogram).flatten(1, 2).transpose(1, 2)
        return F.log_softmax(self.head(self.recurrent(x)[0]), -1)


class LstmStack(nn.Module):
    """Frames (batch, length, 8) through two LSTM layers with a projection, with the states before and after"""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(8, 12, num_layers=2, batch_first=True, proj_size=6)
        self.head = nn.Linear(6, 5)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.lstm(x, (h, c))
        return self.head(y), h, c


class GruStack(nn.Module):
    """Frames (length, batch, 8) through two GRU layers in both directions"""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(8, 12, num_layers=2, bidirectional=True)
        self.each, self.last = nn.Linear(24, 5), nn.Linear(24, 5)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y, last = self.gru(x)
        return self.each(y), self.last(last[-2:].transpose(0, 1).flatten(1))


class SpectralMask(nn.Module):
    """A sound without its noise: a spectrum, a mask that an LSTM finds, and the sound of what is left"""

    def __init__(self, window: int = 32) -> None:
        super().__init__()
        self.window = window
        self.register_buffer("hann", torch.hann_window(window))
        self.lstm = nn.LSTM(window // 2 + 1, 16, batch_first=True)
        self.mask = nn.Linear(16, window // 2 + 1)

    def forward(self, sound: Tensor) -> Tensor:
        options = {"hop_length": self.window // 4, "window": self.hann}
        spectrum = torch.stft(sound, self.window, return_complex=True, **options)
        found, _ = self.lstm(torch.log(spectrum.abs() + 1e-3).transpose(1, 2))
        mask = torch.sigmoid(self.mask(found)).transpose(1, 2)
        return torch.istft(spectrum * mask, self.window, length=sound.shape[1], **options)


def _mels(B: int, T: int) -> dict[str, Tensor]:
    lengths = torch.randint(2 * T, 4 * T, (B,))
    lengths[0] = 4 * T
    return {"mels": torch.randn(B, 4 * T, 20), "lengths": lengths}


_LENGTHS = ({"B": 2, "S": 40}, {"B": 1, "S": 33}, {"B": 3, "S": 54})
_FRAMES = ({"B": 2, "T": 40}, {"B": 1, "T": 33}, {"B": 3, "T": 54})  # PyTorch multiplies no symbol that is named S
_SAMPLES = ({"B": 2, "S": 400}, {"B": 1, "S": 333}, {"B": 3, "S": 541})

NETWORKS = (
    Network(
        "conformer",
        Conformer,
        _mels,
        {"mels": {0: "B", 1: "4*T"}, "lengths": {0: "B"}},
        _FRAMES,
        {"T": (2, 3000)},
    ),
    Network(
        "wavenet", WaveNet, lambda B, S: {"x": torch.randn(B, 1, S)}, {"x": {0: "B", 2: "S"}}, _LENGTHS, small=True
    ),
    Network(
        "speaker",
        SpeakerNetwork,
        lambda B, S: {"mels": torch.randn(B, 20, S)},
        {"mels": {0: "B", 2: "S"}},
        _LENGTHS,
        {"S": (8, 3000)},
    ),
    Network(
        "convtasnet",
        ConvTasNet,
        lambda B, T: {"sound": torch.randn(B, 1, 4 * T)},
        {"sound": {0: "B", 2: "4*T"}},
        _FRAMES,
        {"T": (8, 3000)},
        small=True,
    ),
    Network(
        "wave_encoder",
        WaveEncoder,
        lambda B, S: {"sound": torch.randn(B, S)},
        {"sound": {0: "B", 1: "S"}},
        _SAMPLES,
        {"S": (100, 3000)},
    ),
    Network(
        "deep_speech",
        DeepSpeech,
        lambda B, T: {"spectrogram": torch.randn(B, 1, 16, 2 * T)},
        {"spectrogram": {0: "B", 3: "2*T"}},
        _FRAMES,
        {"T": (2, 3000)},
    ),
    Network(
        "lstm_stack",
        LstmStack,
        lambda B, S: {"x": torch.randn(B, S, 8), "h": torch.randn(2, B, 6), "c": torch.randn(2, B, 12)},
        {"x": {0: "B", 1: "S"}, "h": {1: "B"}, "c": {1: "B"}},
        _LENGTHS,
        small=True,
    ),
    Network("gru_stack", GruStack, lambda B, S: {"x": torch.randn(S, B, 8)}, {"x": {0: "S", 1: "B"}}, _LENGTHS),
    Network(
        "spectral_mask",
        SpectralMask,
        lambda B, T: {"sound": torch.randn(B, 8 * T)},
        {"sound": {0: "B", 1: "8*T"}},
        _FRAMES,
        {"T": (8, 3000)},
    ),
)
