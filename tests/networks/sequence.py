"""Text and signal networks in plain PyTorch, with random weights."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from vision import Attention, EncoderLayer


class BertLayer(nn.Module):
    """Attention, norm, feed-forward, norm, with shortcuts."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.attention = Attention(width, heads)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        x = self.norm1(x + self.attention(x, mask))
        return self.norm2(x + self.feed(x))


class Bert(nn.Module):
    """Devlin et al. 2018, base: 12 layers of width 768, 109 million parameters."""

    def __init__(self, vocabulary: int = 30522, width: int = 768, depth: int = 12, heads: int = 12) -> None:
        super().__init__()
        self.words = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(512, width)
        self.segments = nn.Embedding(2, width)
        self.norm = nn.LayerNorm(width, eps=1e-12)
        self.layers = nn.ModuleList(BertLayer(width, heads) for _ in range(depth))
        self.pooler = nn.Linear(width, width)

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(ids.shape[1], device=ids.device).unsqueeze(0)
        x = self.norm(self.words(ids) + self.places(places) + self.segments(segments))
        bias = (1.0 - mask[:, None, None, :].to(x.dtype)) * -10000.0
        for layer in self.layers:
            x = layer(x, bias)
        return x, torch.tanh(self.pooler(x[:, 0]))


class SpeechEncoder(nn.Module):
    """1-D convolutions over log-mel frames, then transformer layers (the front of Radford et al. 2022)."""

    def __init__(self, mels: int = 80, width: int = 128, depth: int = 2, heads: int = 4) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(mels, width, 3, padding=1)
        self.conv2 = nn.Conv1d(width, width, 3, stride=2, padding=1)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)

    def forward(self, x: Tensor) -> Tensor:
        x = nn.functional.gelu(self.conv1(x))
        x = nn.functional.gelu(self.conv2(x)).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)


class TwoLayerLstm(nn.Module):
    """A 2-layer LSTM and a linear layer, batch first."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(20, 32, num_layers=2, batch_first=True)
        self.head = nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0])


class BidirectionalGru(nn.Module):
    """A bidirectional GRU and a linear layer over the last states, time first."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(12, 24, bidirectional=True)
        self.head = nn.Linear(48, 6)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        sequence, last = self.gru(x)
        return sequence, self.head(last.transpose(0, 1).flatten(1))


class DilatedNetwork(nn.Module):
    """Causal convolutions with growing dilation and gated activations (van den Oord et al. 2016)."""

    def __init__(self, width: int = 24, layers: int = 6) -> None:
        super().__init__()
        self.entry = nn.Conv1d(1, width, 1)
        self.filters = nn.ModuleList(nn.Conv1d(width, 2 * width, 2, dilation=2**n) for n in range(layers))
        self.mixes = nn.ModuleList(nn.Conv1d(width, 2 * width, 1) for _ in range(layers))
        self.head = nn.Sequential(nn.ReLU(), nn.Conv1d(width, 16, 1))

    def forward(self, x: Tensor) -> Tensor:
        x = self.entry(x)
        skips = torch.zeros_like(x)
        for filters, mix in zip(self.filters, self.mixes, strict=True):
            padded = nn.functional.pad(x, (filters.dilation[0], 0))
            signal, gate = filters(padded).chunk(2, dim=1)
            residual, skip = mix(torch.tanh(signal) * torch.sigmoid(gate)).chunk(2, dim=1)
            x, skips = x + residual, skips + skip
        return self.head(skips)


class Mlp(nn.Module):
    """Three linear layers."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 5))

    def forward(self, x: Tensor) -> Tensor:
        return torch.log_softmax(self.layers(x), dim=-1)


class RmsNorm(nn.Module):
    """Scale by the root of the mean of squares."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(width) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary position embedding (Su et al. 2021) on the last axis."""
    a, b = x.chunk(2, dim=-1)
    return x * cos + torch.cat([-b, a], dim=-1) * sin


class LlamaLayer(nn.Module):
    """Grouped-query attention over past and present, and a gated feed-forward layer."""

    def __init__(self, width: int, heads: int, kv_heads: int) -> None:
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v = nn.Linear(width, kv_heads * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, 3 * width, bias=False)
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(
        self, x: Tensor, cos: Tensor, sin: Tensor, mask: Tensor, past_k: Tensor, past_v: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        batch, length, width = x.shape
        y = self.norm1(x)
        q = self.q(y).view(batch, length, self.heads, self.size).transpose(1, 2)
        k = self.k(y).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        v = self.v(y).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        k = torch.cat([past_k, rotate(k, cos, sin)], dim=2)
        v = torch.cat([past_v, v], dim=2)
        repeat = self.heads // self.kv_heads
        scores = rotate(q, cos, sin) @ k.repeat_interleave(repeat, dim=1).transpose(-1, -2) / self.size**0.5
        mixed = torch.softmax(scores + mask, dim=-1) @ v.repeat_interleave(repeat, dim=1)
        x = x + self.o(mixed.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y)), k, v


class Llama(nn.Module):
    """Touvron et al. 2023, small: one step of decoding, with past keys and values as inputs and outputs."""

    def __init__(
        self, width: int = 64, depth: int = 2, heads: int = 4, kv_heads: int = 2, vocabulary: int = 256
    ) -> None:
        super().__init__()
        self.size = width // heads
        self.embed = nn.Embedding(vocabulary, width)
        self.layers = nn.ModuleList(LlamaLayer(width, heads, kv_heads) for _ in range(depth))
        self.norm = RmsNorm(width)
        self.head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, ids: Tensor, *past: Tensor) -> tuple[Tensor, ...]:
        done, length = past[0].shape[2], ids.shape[1]
        places = torch.arange(done, done + length)
        angles = places[:, None] * 10000.0 ** (-torch.arange(0, self.size, 2) / self.size)[None, :]
        cos, sin = torch.cat([angles.cos()] * 2, dim=-1), torch.cat([angles.sin()] * 2, dim=-1)
        future = torch.arange(done + length)[None, :] > places[:, None]
        mask = torch.zeros(1, dtype=torch.float32).masked_fill(future, -1e9)
        x = self.embed(ids)
        present: list[Tensor] = []
        for index, layer in enumerate(self.layers):
            x, k, v = layer(x, cos, sin, mask, past[2 * index], past[2 * index + 1])
            present += [k, v]
        return (self.head(self.norm(x)), *present)
