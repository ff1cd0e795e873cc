"""Vision networks in plain PyTorch, with random weights: the usual architectures at their usual sizes."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def conv_norm(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1, act: type | None = nn.ReLU6):
    layers: list[nn.Module] = [
        nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outputs),
    ]
    return nn.Sequential(*layers, *([act()] if act is not None else []))


class InvertedResidual(nn.Module):
    """Expand, filter each channel, project; squeeze-and-excite in between when asked for."""

    def __init__(
        self,
        inputs: int,
        outputs: int,
        stride: int,
        expand: int,
        kernel: int = 3,
        act: type = nn.ReLU6,
        se: bool = False,
    ) -> None:
        super().__init__()
        hidden = inputs * expand
        self.residual = stride == 1 and inputs == outputs
        layers = [conv_norm(inputs, hidden, 1, act=act)] if expand != 1 else []
        layers.append(conv_norm(hidden, hidden, kernel, stride, groups=hidden, act=act))
        if se:
            layers.append(SqueezeExcite(hidden, max(1, inputs // 4)))
        layers.append(conv_norm(hidden, outputs, 1, act=None))
        self.layers = nn.Sequential(*layers)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.residual else self.layers(x)


class SqueezeExcite(nn.Module):
    """Scale each channel by a gate computed from the means of all channels."""

    def __init__(self, channels: int, squeezed: int) -> None:
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.gate = nn.Sequential(
            nn.Conv2d(channels, squeezed, 1), nn.SiLU(), nn.Conv2d(squeezed, channels, 1), nn.Sigmoid()
        )

    def forward(self, x: Tensor) -> Tensor:
        return x * self.gate(self.pool(x))


class MobileNetV2(nn.Module):
    """Sandler et al. 2018, width 1.0."""

    SETTINGS = (
        (1, 16, 1, 1),
        (6, 24, 2, 2),
        (6, 32, 3, 2),
        (6, 64, 4, 2),
        (6, 96, 3, 1),
        (6, 160, 3, 2),
        (6, 320, 1, 1),
    )

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 32, 3, 2)]
        channels = 32
        for expand, outputs, count, stride in self.SETTINGS:
            for index in range(count):
                layers.append(InvertedResidual(channels, outputs, stride if index == 0 else 1, expand))
                channels = outputs
        layers.append(conv_norm(channels, 1280, 1))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.features(x).mean((2, 3)))


class EfficientNet(nn.Module):
    """Tan and Le 2019, the B0 settings: squeeze-and-excite, SiLU, 5x5 filters."""

    SETTINGS = (
        (1, 16, 1, 1, 3),
        (6, 24, 2, 2, 3),
        (6, 40, 2, 2, 5),
        (6, 80, 3, 2, 3),
        (6, 112, 3, 1, 5),
        (6, 192, 4, 2, 5),
        (6, 320, 1, 1, 3),
    )

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 32, 3, 2, act=nn.SiLU)]
        channels = 32
        for expand, outputs, count, stride, kernel in self.SETTINGS:
            for index in range(count):
                step = stride if index == 0 else 1
                layers.append(InvertedResidual(channels, outputs, step, expand, kernel, nn.SiLU, se=True))
                channels = outputs
        layers.append(conv_norm(channels, 1280, 1, act=nn.SiLU))
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(1280, 1000))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


class Bottleneck(nn.Module):
    """1x1, 3x3, 1x1 with a shortcut."""

    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            conv_norm(inputs, width, 1, act=nn.ReLU),
            conv_norm(width, width, 3, stride, act=nn.ReLU),
            conv_norm(width, 4 * width, 1, act=None),
        )
        same = stride == 1 and inputs == 4 * width
        self.shortcut = nn.Identity() if same else conv_norm(inputs, 4 * width, 1, stride, act=None)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet50(nn.Module):
    """He et al. 2015."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [conv_norm(3, 64, 7, 2, act=nn.ReLU), nn.MaxPool2d(3, 2, 1)]
        channels = 64
        for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
            for index in range(count):
                layers.append(Bottleneck(channels, width, stride if index == 0 else 1))
                channels = 4 * width
        self.features = nn.Sequential(*layers)
        self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.features(x))


class UNet(nn.Module):
    """Ronneberger et al. 2015, padded: down by pooling, up by deconvolution, with skips."""

    def __init__(self, widths: tuple[int, ...] = (16, 32, 64, 128)) -> None:
        super().__init__()
        self.down = nn.ModuleList(self.block(i, o) for i, o in zip((3, *widths), widths, strict=False))
        pairs = list(zip(widths[::-1], widths[-2::-1], strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(i, o, 2, 2) for i, o in pairs)
        self.merge = nn.ModuleList(self.block(i, o) for i, o in pairs)
        self.head = nn.Conv2d(widths[0], 4, 1)

    @staticmethod
    def block(inputs: int, outputs: int) -> nn.Module:
        first = conv_norm(inputs, outputs, 3, act=nn.ReLU)
        return nn.Sequential(first, conv_norm(outputs, outputs, 3, act=nn.ReLU))

    def forward(self, x: Tensor) -> Tensor:
        skips: list[Tensor] = []
        for index, block in enumerate(self.down):
            x = block(x if index == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        for up, merge, skip in zip(self.up, self.merge, skips[-2::-1], strict=True):
            x = merge(torch.cat([skip, up(x)], dim=1))
        return torch.sigmoid(self.head(x))


class VisionTransformer(nn.Module):
    """Dosovitskiy et al. 2020, small: patches, a class token, pre-norm encoder layers."""

    def __init__(self, width: int = 192, depth: int = 4, heads: int = 3, patch: int = 16, size: int = 224) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, patch, patch)
        self.token = nn.Parameter(torch.randn(1, 1, width) * 0.02)
        self.position = nn.Parameter(torch.randn(1, (size // patch) ** 2 + 1, width) * 0.02)
        self.layers = nn.ModuleList(EncoderLayer(width, heads) for _ in range(depth))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], dim=1) + self.position
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x)[:, 0])


class Attention(nn.Module):
    """Multi-head self-attention, spelled out; ``mask`` is added to the scores."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(x).reshape(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        weights = torch.softmax(scores if mask is None else scores + mask, dim=-1)
        return self.out((weights @ v).transpose(1, 2).reshape(batch, length, width))


class EncoderLayer(nn.Module):
    """Norm, attention, norm, feed-forward, each with a shortcut."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width, heads)
        self.feed = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.attention(self.norm1(x))
        return x + self.feed(self.norm2(x))
