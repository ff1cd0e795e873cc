"""Networks that read texts and other sequences, small."""

from __future__ import annotations

import torch
from layers import Attention, Encoder, RmsNorm, rotated
from torch import Tensor, nn
from torch.nn import functional

WORDS = 20
"""How many words there are."""


class Tagger(nn.Module):
    """A recurrent layer, and scores for each position."""

    def __init__(self, layer: nn.Module, width: int) -> None:
        super().__init__()
        self.layer, self.head = layer, nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layer(x)[0]).log_softmax(-1)


class LastState(nn.Module):
    """A recurrent layer over words, whose last state says what the text is."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.layer, self.head = nn.Embedding(WORDS, 6), nn.GRU(6, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.layer(self.words(ids))[1][-1])


class Stateful(nn.Module):
    """Layers of an LSTM whose states come in and go out."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 6, 2, batch_first=True)

    def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layer(x, (h, c))
        return y, h, c


class Unrolled(nn.Module):
    """Cells, step by step."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.gru, self.start = nn.LSTMCell(4, 6), nn.GRUCell(6, 5), nn.Parameter(torch.randn(6))

    def forward(self, x: Tensor) -> Tensor:
        h, c, g = x[:, 0, :1] * self.start, x[:, 0, :1] * self.start, x[:, 0, :1] * self.start[:5]
        for step in x.unbind(1):
            h, c = self.lstm(step, (h, c))
            g = self.gru(h, g)
        return g


class Reader(nn.Module):
    """Lines of text in images: convolutions, then an LSTM in both directions."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d((4, 1)))
        self.layer, self.head = nn.LSTM(8, 5, bidirectional=True, batch_first=True), nn.Linear(10, 7)

    def forward(self, x: Tensor) -> Tensor:
        x = self.body(x).flatten(1, 2).transpose(1, 2)
        return self.head(self.layer(x)[0]).log_softmax(-1)


class Joiner(nn.Module):
    """Every frame of one sequence with every word of another."""

    def __init__(self) -> None:
        super().__init__()
        self.frames, self.words, self.head = nn.Linear(5, 8), nn.Linear(6, 8), nn.Linear(8, 4)

    def forward(self, frames: Tensor, words: Tensor) -> Tensor:
        return self.head(torch.tanh(self.frames(frames)[:, :, None] + self.words(words)[:, None])).log_softmax(-1)


class Bert(nn.Module):
    """Words, places and segments; a mask; a vector for each word, and one for the text."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.words, self.places, self.segments = (
            nn.Embedding(WORDS, width),
            nn.Embedding(32, width),
            nn.Embedding(2, width),
        )
        self.norm, self.layers = nn.LayerNorm(width), nn.ModuleList(Encoder(width) for _ in range(2))
        self.pooler = nn.Linear(width, width)

    def forward(self, ids: Tensor, mask: Tensor, segments: Tensor) -> tuple[Tensor, Tensor]:
        places = torch.arange(ids.shape[1])[None]
        x = self.norm(self.words(ids) + self.places(places) + self.segments(segments))
        for layer in self.layers:
            x = layer(x, (1.0 - mask[:, None, None].to(x.dtype)) * -1e4)
        return x, torch.tanh(self.pooler(x[:, 0]))


class Gpt(nn.Module):
    """Causal layers; scores of the next word, by the table of words."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, width), nn.Embedding(32, width)
        self.layers = nn.Sequential(*(Encoder(width, causal=True) for _ in range(2)), nn.LayerNorm(width))

    def forward(self, ids: Tensor) -> Tensor:
        x = self.words(ids) + self.places.weight[: ids.shape[1]]
        return self.layers(x) @ self.words.weight.T


class Llama(nn.Module):
    """Rotary positions, groups of queries, gated layers; keys and values come in and go out longer."""

    def __init__(self, width: int = 8, heads: int = 2) -> None:
        super().__init__()
        self.heads, self.words = heads, nn.Embedding(WORDS, width)
        self.norm, self.last = RmsNorm(width), RmsNorm(width)
        self.q, self.k, self.v = (nn.Linear(width, size, bias=False) for size in (width, width // 2, width // 2))
        self.gate, self.up, self.down = nn.Linear(width, 16), nn.Linear(width, 16), nn.Linear(16, width)

    def forward(self, ids: Tensor, past_k: Tensor, past_v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x, past = self.words(ids), past_k.shape[2]
        places = torch.arange(past, past + ids.shape[1])
        angles = places[:, None] * torch.tensor([1.0, 0.1]).repeat(2)
        y = self.norm(x)
        q, k, v = (one(y).unflatten(-1, (-1, 4)).transpose(1, 2) for one in (self.q, self.k, self.v))
        q, k = rotated(q, angles.cos(), angles.sin()), rotated(k, angles.cos(), angles.sin())
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], 2)
        mask = places[:, None] >= torch.arange(k.shape[2])
        scores = (q @ k.repeat_interleave(2, 1).transpose(-1, -2) / 2).masked_fill(~mask, -1e9)
        x = x + (scores.softmax(-1) @ v.repeat_interleave(2, 1)).transpose(1, 2).flatten(2)
        y = self.last(x)
        return (x + self.down(functional.silu(self.gate(y)) * self.up(y))) @ self.words.weight.T, k, v


class T5(nn.Module):
    """An encoder and a decoder that looks at it; positions are biases of the scores."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.words, self.near = nn.Embedding(WORDS, width), nn.Embedding(9, 2)
        self.encoder, self.decoder, self.across = Attention(width), Attention(width, causal=True), Attention(width)
        self.norms = nn.ModuleList(RmsNorm(width) for _ in range(3))

    def bias(self, length: int) -> Tensor:
        places = torch.arange(length)
        return self.near((places[None] - places[:, None]).clamp(-4, 4) + 4).permute(2, 0, 1)

    def forward(self, ids: Tensor, so_far: Tensor) -> Tensor:
        x, y = self.words(ids), self.words(so_far)
        x = x + self.encoder(self.norms[0](x), mask=self.bias(ids.shape[1]))
        y = y + self.decoder(self.norms[1](y))
        return (y + self.across(self.norms[2](y), x)) @ self.words.weight.T


class Sdpa(nn.Module):
    """PyTorch's own attention: causal, with a mask, and plain."""

    def __init__(self, kind: str, width: int = 8) -> None:
        super().__init__()
        self.kind, self.inputs = kind, nn.Linear(width, 3 * width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (one.unflatten(-1, (2, -1)).transpose(1, 2) for one in self.inputs(x).chunk(3, -1))
        mask = (x.mean(-1) > -1)[:, None, None] if self.kind == "mask" else None
        y = functional.scaled_dot_product_attention(q, k, v, mask, is_causal=self.kind == "causal")
        return y.transpose(1, 2).flatten(2)


class Performer(nn.Module):
    """Attention without a softmax, by running sums."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.q, self.k, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = functional.elu(self.q(x)) + 1, functional.elu(self.k(x)) + 1, self.v(x)
        sums = torch.cumsum(torch.einsum("bsi,bsj->bsij", k, v), 1)
        return torch.einsum("bsi,bsij->bsj", q, sums) / (q * torch.cumsum(k, 1)).sum(-1, keepdim=True)


class Perceiver(nn.Module):
    """A few learned queries look at a sequence of any length."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.queries = nn.Parameter(torch.randn(3, width))
        self.look = nn.MultiheadAttention(width, 2, batch_first=True)
        self.head = nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        queries = self.queries.expand(x.shape[0], -1, -1)
        return self.head(self.look(queries, x, x, need_weights=False)[0])


class Experts(nn.Module):
    """The two experts that a router likes best, of four."""

    def __init__(self, width: int = 6) -> None:
        super().__init__()
        self.router = nn.Linear(width, 4)
        self.experts = nn.Parameter(torch.randn(4, width, width))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        scores, chosen = self.router(x).topk(2, -1)
        all_of_them = torch.einsum("bsi,eij->bsej", x, self.experts)
        places = chosen.unsqueeze(-1).expand(-1, -1, -1, x.shape[-1])
        return (all_of_them.gather(2, places) * scores.softmax(-1).unsqueeze(-1)).sum(2), chosen


class Clip(nn.Module):
    """An image and texts, and how well each of them fits."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.image = nn.Sequential(nn.Conv2d(3, width, 4, 4), nn.Flatten(2))
        self.words, self.text = nn.Embedding(WORDS, width), Encoder(width)
        self.scale = nn.Parameter(torch.tensor(1.5))

    def forward(self, image: Tensor, ids: Tensor) -> Tensor:
        seen, read = self.image(image).mean(-1), self.text(self.words(ids)).amax(1)
        seen, read = (y / y.pow(2).sum(-1, keepdim=True).sqrt() for y in (seen, read))
        return self.scale.exp() * seen @ read.T


def transformer() -> nn.Module:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, activation="gelu", norm_first=True)
    return nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)


class Pointer(nn.Module):
    """Sorts what it reads, and picks from it by place."""

    def forward(self, x: Tensor, places: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ordered, order = torch.sort(x, -1, descending=True)
        return ordered, order, torch.gather(x, 1, places % 5)
