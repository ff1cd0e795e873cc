"""Networks that make things, or choose among parts of themselves, in plain PyTorch."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812 - as everybody calls it

from torch_networks.network import Network


class ResidualBlock(nn.Module):
    """Two convolutions with group norms beside a shortcut; what time says is added between them"""

    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(4, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(4, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, outputs)
        self.shortcut = nn.Conv2d(inputs, outputs, 1)

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(y)))


class SpatialAttention(nn.Module):
    """Attention of each place to all places, and to a text"""

    def __init__(self, width: int, text: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(4, width)
        self.own = nn.MultiheadAttention(width, 2, batch_first=True)
        self.cross = nn.MultiheadAttention(width, 2, kdim=text, vdim=text, batch_first=True)

    def forward(self, x: Tensor, text: Tensor) -> Tensor:
        batch, width, height, length = x.shape
        y = self.norm(x).flatten(2).transpose(1, 2)
        y = y + self.own(y, y, y, need_weights=False)[0]
        y = y + self.cross(y, text, text, need_weights=False)[0]
        return x + y.transpose(1, 2).reshape(batch, width, height, length)


class Denoiser(nn.Module):
    """Rombach et al. 2022, small: a U-Net with attention to a text, told how much noise there is"""

    def __init__(self, width: int = 16, text: int = 12) -> None:
        super().__init__()
        self.entry = nn.Conv2d(4, width, 3, padding=1)
        self.down1, self.down2 = ResidualBlock(width, width, 32), ResidualBlock(width, 2 * width, 32)
        self.halve = nn.Conv2d(width, width, 3, stride=2, padding=1)
        self.middle = SpatialAttention(2 * width, text)
        self.up1, self.up2 = ResidualBlock(3 * width, width, 32), ResidualBlock(2 * width, width, 32)
        self.time = nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 32))
        self.norm, self.exit = nn.GroupNorm(4, width), nn.Conv2d(width, 4, 3, padding=1)

    def forward(self, x: Tensor, step: Tensor, text: Tensor) -> Tensor:
        speeds = torch.exp(-math.log(10000) * torch.arange(8) / 8)
        angles = step[:, None].float() * speeds[None, :]
        time = self.time(torch.cat([torch.cos(angles), torch.sin(angles)], dim=-1))
        first = self.down1(self.entry(x), time)
        second = self.halve(first)
        y = self.middle(self.down2(second, time), text)
        y = self.up1(torch.cat([y, second], dim=1), time)
        y = F.interpolate(y, scale_factor=2, mode="nearest")
        y = self.up2(torch.cat([y, first], dim=1), time)
        return self.exit(F.silu(self.norm(y)))


class Autoencoder(nn.Module):
    """Kingma and Welling 2014: an image, noise as an input, and what is made of both"""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2, padding=1), nn.ELU(), nn.Conv2d(8, 16, 3, stride=2, padding=1), nn.ELU()
        )
        self.describe, self.decode = nn.Linear(16 * 4 * 4, 2 * 6), nn.Linear(6, 16 * 4 * 4)
        self.grow = nn.Sequential(
            nn.ConvTranspose2d(16, 8, 4, stride=2, padding=1),
            nn.LeakyReLU(0.2),
            nn.Upsample(scale_factor=2, mode="bilinear"),
            nn.Conv2d(8, 4, 3, padding=1, padding_mode="reflect"),
            nn.PixelShuffle(2),
            nn.AvgPool2d(2),
        )

    def forward(self, image: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
        mean, spread = self.describe(self.encode(image).flatten(1)).chunk(2, dim=1)
        code = mean + torch.exp(spread / 2) * noise
        distance = -0.5 * torch.sum(1 + spread - mean.pow(2) - spread.exp(), dim=1)
        return torch.sigmoid(self.grow(self.decode(code).view(-1, 16, 4, 4))), distance


class SelectiveScan(nn.Module):
    """Gu and Dao 2023 (Mamba): a state whose decay depends on what comes, step after step in a plain loop"""

    def __init__(self, width: int = 12, state: int = 4) -> None:
        super().__init__()
        self.norm, self.entry = nn.LayerNorm(width), nn.Linear(width, 4 * width)
        self.mix = nn.Conv1d(2 * width, 2 * width, 4, padding=3, groups=2 * width)
        self.select, self.step = nn.Linear(2 * width, 2 * state + 1), nn.Linear(1, 2 * width)
        self.decay = nn.Parameter(torch.log(torch.arange(1.0, state + 1)).repeat(2 * width, 1))
        self.skip, self.exit = nn.Parameter(torch.ones(2 * width)), nn.Linear(2 * width, width)
        self.state = state

    def forward(self, x: Tensor) -> Tensor:
        length = x.shape[1]
        y, gate = self.entry(self.norm(x)).chunk(2, dim=-1)
        y = F.silu(self.mix(y.transpose(1, 2))[..., :length]).transpose(1, 2)
        step, into, out = self.select(y).split([1, self.state, self.state], dim=-1)
        step = F.softplus(self.step(step))
        kept = torch.exp(-step[..., None] * torch.exp(self.decay))
        added = step[..., None] * into[:, :, None, :] * y[..., None]
        state, found = torch.zeros_like(kept[:, 0]), []
        for place in range(length):
            state = kept[:, place] * state + added[:, place]
            found.append((state * out[:, place, None, :]).sum(-1))
        return x + self.exit((torch.stack(found, dim=1) + self.skip * y) * F.silu(gate))


class Experts(nn.Module):
    """Shazeer et al. 2017: each position through the two of six layers that a router thinks best of"""

    def __init__(self, width: int = 8, experts: int = 6) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.up = nn.Parameter(torch.randn(experts, width, 16) / 3)
        self.down = nn.Parameter(torch.randn(experts, 16, width) / 4)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        weights, chosen = torch.topk(torch.softmax(self.router(x), dim=-1), 2, dim=-1)
        weights = weights / weights.sum(-1, keepdim=True)
        y = torch.einsum("bsw,bskwh->bskh", x, self.up[chosen])
        y = torch.einsum("bskh,bskhw->bskw", F.gelu(y), self.down[chosen])
        return (y * weights[..., None]).sum(2), chosen


class MaskedExperts(nn.Module):
    """The same, as it is often written: every expert on all positions, weighed by a mask of who was chosen"""

    def __init__(self, width: int = 8, experts: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, experts)
        self.experts = nn.ModuleList(
            nn.Sequential(nn.Linear(width, 16), nn.SiLU(), nn.Linear(16, width)) for _ in range(experts)
        )

    def forward(self, x: Tensor) -> Tensor:
        flat = x.reshape(-1, x.shape[-1])
        best, chosen = torch.topk(self.router(flat), 2, dim=-1)
        weights = torch.zeros(flat.shape[0], len(self.experts)).scatter(1, chosen, torch.softmax(best, -1))
        found = sum(expert(flat) * weights[:, place, None] for place, expert in enumerate(self.experts))
        return found.view(x.shape)


_THREE = ({"B": 2, "S": 6}, {"B": 1, "S": 3}, {"B": 3, "S": 11})
_AREAS = ({"B": 2, "H": 4, "W": 3, "S": 5}, {"B": 1, "H": 3, "W": 5, "S": 7}, {"B": 3, "H": 2, "W": 4, "S": 2})

NETWORKS = (
    Network(
        "denoiser",
        Denoiser,
        lambda B, H, W, S: {
            "x": torch.randn(B, 4, 2 * H, 2 * W),
            "step": torch.randint(0, 1000, (B,)),
            "text": torch.randn(B, S, 12),
        },
        {"x": {0: "B", 2: "2*H", 3: "2*W"}, "step": {0: "B"}, "text": {0: "B", 1: "S"}},
        _AREAS,
    ),
    Network(
        "autoencoder",
        Autoencoder,
        lambda B: {"image": torch.randn(B, 1, 16, 16), "noise": torch.randn(B, 6)},
        {"image": {0: "B"}, "noise": {0: "B"}},
        ({"B": 2}, {"B": 1}, {"B": 3}),
    ),
    Network(
        "selective_scan",
        SelectiveScan,
        lambda B: {"x": torch.randn(B, 7, 12)},
        {"x": {0: "B"}},
        ({"B": 2}, {"B": 1}, {"B": 3}),
    ),
    Network("experts", Experts, lambda B, S: {"x": torch.randn(B, S, 8)}, {"x": {0: "B", 1: "S"}}, _THREE, small=True),
    Network("masked_experts", MaskedExperts, lambda B, S: {"x": torch.randn(B, S, 8)}, {"x": {0: "B", 1: "S"}}, _THREE),
)
