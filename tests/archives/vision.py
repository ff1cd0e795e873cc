"""Networks that look at images, small."""

from __future__ import annotations

import torch
from layers import Attention, Does, Encoder, Joined, Kind, Residual, SqueezeExcite, conv
from torch import Tensor, nn
from torch.nn import functional


def lenet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(1, 4, 5), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(4, 6, 3), nn.Tanh(), nn.AvgPool2d(2)),
        *(nn.Flatten(), nn.Linear(54, 16), nn.Tanh(), nn.Linear(16, 10), nn.LogSoftmax(-1)),
    )


def vgg() -> nn.Module:
    body = [*conv(3, 4), *conv(4, 4), nn.MaxPool2d(2), *conv(4, 8), nn.MaxPool2d(2)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 5))


def alexnet() -> nn.Module:
    return nn.Sequential(
        *(nn.Conv2d(3, 8, 5, 2, 2), nn.ReLU(), nn.LocalResponseNorm(3, k=2.0), nn.MaxPool2d(3, 2)),
        *(nn.Conv2d(8, 8, 3, padding=1, groups=2), nn.ReLU(), nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(8, 5)),
    )


class Basic(nn.Module):
    """Two convolutions with a shortcut, which is projected where the size changes."""

    def __init__(self, inputs: int, outputs: int, stride: int = 1, groups: int = 1) -> None:
        super().__init__()
        self.body = nn.Sequential(conv(inputs, outputs, 3, stride), conv(outputs, outputs, groups=groups))
        same = inputs == outputs and stride == 1
        self.shortcut = nn.Identity() if same else nn.Conv2d(inputs, outputs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return torch.relu(self.body(x) + self.shortcut(x))


def resnet(groups: int = 1) -> nn.Module:
    body = [conv(3, 4, 7, 2), nn.MaxPool2d(3, 2, 1), Basic(4, 4, groups=groups), Basic(4, 8, 2, groups)]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 5))


def inverted(inputs: int, outputs: int, stride: int, act: Kind, *, gates: Kind | None = None) -> nn.Module:
    hidden = 2 * inputs
    gated = [SqueezeExcite(hidden, gates)] if gates else []
    last = [nn.Conv2d(hidden, outputs, 1, bias=False), nn.BatchNorm2d(outputs)]
    layers = [conv(inputs, hidden, 1, 1, act), conv(hidden, hidden, 3, stride, act, groups=hidden), *gated, *last]
    return Residual(*layers) if inputs == outputs and stride == 1 else nn.Sequential(*layers)


def mobilenet(act: Kind, gates: Kind | None = None) -> nn.Module:
    blocks = [inverted(4, 4, 1, act, gates=gates), inverted(4, 6, 2, act, gates=gates)]
    head = [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(6, 5)]
    return nn.Sequential(conv(3, 4, 3, 2, act), *blocks, *head)


class Dense(nn.Module):
    """Each layer reads all before it."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            nn.Sequential(nn.BatchNorm2d(n), nn.ReLU(), nn.Conv2d(n, 3, 3, 1, 1)) for n in (4, 7, 10)
        )
        self.head = nn.Linear(13, 5)

    def forward(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = torch.cat([x, layer(x)], 1)
        return self.head(functional.avg_pool2d(x, 2).mean((2, 3)))


def inception() -> nn.Module:
    pooled = nn.Sequential(nn.AvgPool2d(3, 1, 1), conv(4, 2, 1))
    mixed = Joined(conv(4, 2, 1), nn.Sequential(conv(4, 2, 1), conv(2, 3, 5)), pooled, nn.MaxPool2d(3, 1, 1))
    return nn.Sequential(conv(3, 4, 3, 2), mixed, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(11, 5))


class Shuffle(nn.Module):
    """Half of the channels is computed, then both are shuffled."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        half = channels // 2
        self.body = nn.Sequential(conv(half, half, 1), conv(half, half, 3, groups=half), conv(half, half, 1))

    def forward(self, x: Tensor) -> Tensor:
        left, right = x.chunk(2, 1)
        return torch.cat([left, self.body(right)], 1).unflatten(1, (2, -1)).transpose(1, 2).flatten(1, 2)


def squeezenet() -> nn.Module:
    fire = nn.Sequential(conv(4, 2, 1), Joined(conv(2, 3, 1), conv(2, 3)))
    return nn.Sequential(conv(3, 4, 3, 2), nn.MaxPool2d(3, 2), fire, nn.Conv2d(6, 5, 1), nn.AdaptiveAvgPool2d(1))


def convnext() -> nn.Module:
    to_last, to_first = Does(lambda x: x.permute(0, 2, 3, 1)), Does(lambda x: x.permute(0, 3, 1, 2))
    layers = [nn.Conv2d(8, 8, 7, padding=3, groups=8), to_last, nn.LayerNorm(8), nn.Linear(8, 16), nn.GELU("tanh")]
    block = Residual(*layers, nn.Linear(16, 8), to_first)
    return nn.Sequential(
        nn.Conv2d(3, 8, 4, 4), block, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.LayerNorm(8), nn.Linear(8, 5)
    )


class UNet(nn.Module):
    """Down by pooling, up by a deconvolution or by interpolation, with skips."""

    def __init__(self, mode: str = "deconv") -> None:
        super().__init__()
        self.first, self.second, self.merge = conv(3, 4), conv(4, 8), conv(8, 4)
        corners = {"align_corners": True} if mode == "bilinear" else {}
        interpolated = nn.Sequential(nn.Upsample(scale_factor=2, mode=mode, **corners), nn.Conv2d(8, 4, 1))
        self.up = nn.ConvTranspose2d(8, 4, 2, 2) if mode == "deconv" else interpolated
        self.head = nn.Conv2d(4, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        skip = self.first(x)
        up = self.up(self.second(functional.max_pool2d(skip, 2)))
        return torch.sigmoid(self.head(self.merge(torch.cat([skip, up], 1))))


def super_resolution() -> nn.Module:
    return nn.Sequential(nn.Conv2d(1, 8, 5, padding=2), nn.PReLU(8), nn.Conv2d(8, 9, 3, padding=1), nn.PixelShuffle(3))


def generator() -> nn.Module:
    return nn.Sequential(
        *(nn.Unflatten(1, (6, 1, 1)), nn.ConvTranspose2d(6, 8, 4), nn.BatchNorm2d(8), nn.ReLU()),
        *(nn.ConvTranspose2d(8, 4, 4, 2, 1, bias=False), nn.BatchNorm2d(4), nn.LeakyReLU(0.2)),
        *(nn.ConvTranspose2d(4, 3, 3, 2, 1, output_padding=1, groups=1), nn.Tanh()),
    )


def style() -> nn.Module:
    def block(inputs: int, outputs: int, kernel: int, stride: int = 1) -> list[nn.Module]:
        pad = nn.ReflectionPad2d(kernel // 2)
        return [pad, nn.Conv2d(inputs, outputs, kernel, stride), nn.InstanceNorm2d(outputs, affine=True), nn.ReLU()]

    up = nn.Upsample(scale_factor=2)
    return nn.Sequential(
        *block(3, 4, 5), *block(4, 6, 3, 2), Residual(*block(6, 6, 3)), up, *block(6, 4, 3), nn.Conv2d(4, 3, 1)
    )


class Variational(nn.Module):
    """An image, and noise, become an image, means and spreads."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Flatten(), nn.Linear(64, 16), nn.ELU())
        self.mean, self.spread = nn.Linear(16, 4), nn.Linear(16, 4)
        self.decode = nn.Sequential(nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 64), nn.Sigmoid())

    def forward(self, x: Tensor, noise: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        h = self.encode(x)
        mean, spread = self.mean(h), self.spread(h)
        return self.decode(mean + noise * torch.exp(0.5 * spread)).view(-1, 1, 8, 8), mean, spread


def video() -> nn.Module:
    body = [nn.Conv3d(2, 4, (1, 3, 3), padding=(0, 1, 1)), nn.BatchNorm3d(4), nn.ReLU(), nn.MaxPool3d((1, 2, 2))]
    return nn.Sequential(
        *body, nn.Conv3d(4, 4, (3, 1, 1), padding=(1, 0, 0)), nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(4, 5)
    )


class Siamese(nn.Module):
    """How alike two images are."""

    def __init__(self) -> None:
        super().__init__()
        self.tower = nn.Sequential(conv(1, 4, 3, 2), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(16, 6))

    def forward(self, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        a, b = (y / y.pow(2).sum(1, keepdim=True).sqrt() for y in (self.tower(a), self.tower(b)))
        return (a * b).sum(1), (a - b).abs().amax(1)


class Detector(nn.Module):
    """Boxes and scores at two scales, made of all places."""

    def __init__(self) -> None:
        super().__init__()
        self.near, self.far = conv(3, 6, 3, 2), conv(6, 6, 3, 2)
        self.boxes, self.scores = nn.Conv2d(6, 8, 3, 1, 1), nn.Conv2d(6, 6, 3, 1, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        maps = [near := self.near(x), self.far(near)]
        boxes = [self.boxes(m).permute(0, 2, 3, 1).reshape(m.shape[0], -1, 4) for m in maps]
        scores = [self.scores(m).permute(0, 2, 3, 1).reshape(m.shape[0], -1, 3) for m in maps]
        return torch.cat(boxes, 1), torch.cat(scores, 1).softmax(-1)


class Yolo(nn.Module):
    """Pools of several sizes, and two maps of predictions, of which one is upsampled."""

    def __init__(self) -> None:
        super().__init__()
        act = nn.SiLU
        self.stem, self.down, self.join = conv(3, 4, 3, 2, act), conv(4, 4, 3, 2, act), conv(16, 4, 1, 1, act)
        self.near, self.far = nn.Conv2d(8, 7, 1), nn.Conv2d(4, 7, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        stem = self.stem(x)
        down = self.down(stem)
        pools = [functional.max_pool2d(down, size, 1, size // 2) for size in (3, 5, 7)]
        far = self.join(torch.cat([down, *pools], 1))
        near = torch.cat([stem, functional.interpolate(far, scale_factor=2.0, mode="nearest")], 1)
        return self.near(near).sigmoid(), self.far(far).sigmoid()


class Pyramid(nn.Module):
    """Maps at three scales, each with what the coarser one says."""

    def __init__(self) -> None:
        super().__init__()
        self.down = nn.ModuleList([conv(3, 4, 3, 2), conv(4, 4, 3, 2), conv(4, 4, 3, 2)])
        self.lateral = nn.ModuleList(nn.Conv2d(4, 4, 1) for _ in range(3))

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        maps: list[Tensor] = []
        for down, lateral in zip(self.down, self.lateral, strict=True):
            x = down(x)
            maps.append(lateral(x))
        for place in (1, 0):
            maps[place] = maps[place] + functional.interpolate(maps[place + 1], scale_factor=2.0, mode="nearest")
        return tuple(maps)


class DeepLab(nn.Module):
    """Dilated convolutions side by side, and the mean of all; as large as the image at last."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = conv(3, 4, 3, 2)
        self.sides = nn.ModuleList(nn.Conv2d(4, 3, 3, padding=rate, dilation=rate) for rate in (1, 2, 3))
        self.all, self.head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(4, 3, 1)), nn.Conv2d(12, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        y = self.stem(x)
        whole = self.all(y).expand(-1, -1, y.shape[2], y.shape[3])
        y = self.head(torch.cat([*(side(y) for side in self.sides), whole], 1))
        return functional.interpolate(y, size=(16, 16), mode="bilinear", align_corners=False)


class SpatialTransformer(nn.Module):
    """An image, moved as a network says."""

    def __init__(self) -> None:
        super().__init__()
        self.where = nn.Sequential(
            nn.Conv2d(1, 2, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(8, 6)
        )

    def forward(self, x: Tensor) -> Tensor:
        theta = self.where(x).view(-1, 2, 3)
        return functional.grid_sample(
            x, functional.affine_grid(theta, [2, 1, 9, 9], align_corners=False), align_corners=False
        )


class ViT(nn.Module):
    """Patches, a token for the class, positions, transformer layers."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        self.token, self.places = nn.Parameter(torch.randn(1, 1, width)), nn.Parameter(torch.randn(1, 10, width))
        self.layers = nn.Sequential(Encoder(width), Encoder(width), nn.LayerNorm(width))
        self.head = nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.shape[0], -1, -1), x], 1) + self.places
        return self.head(self.layers(x)[:, 0])


class Swin(nn.Module):
    """Attention within windows, which are shifted by half of their size."""

    def __init__(self, width: int = 8, size: int = 4) -> None:
        super().__init__()
        self.size, self.norm, self.attention = size, nn.LayerNorm(width), Attention(width)
        self.patches, self.head = nn.Conv2d(3, width, 2, 2), nn.Linear(width, 5)
        self.bias = nn.Parameter(torch.randn(2, size * size, size * size))

    def forward(self, x: Tensor) -> Tensor:
        x = self.patches(x).permute(0, 2, 3, 1)
        y = torch.roll(self.norm(x), (-2, -2), (1, 2))
        b, h, w, c = y.shape
        s = self.size
        windows = y.view(b, h // s, s, w // s, s, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, s * s, c)
        y = self.attention(windows, mask=self.bias)
        y = y.view(b, h // s, w // s, s, s, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return self.head((x + torch.roll(y, (2, 2), (1, 2))).mean((1, 2)))


class Mixer(nn.Module):
    """Layers over the places and layers over the channels, in turn."""

    def __init__(self, width: int = 8, places: int = 9) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, width, 4, 4)
        turn = Does(lambda x: x.transpose(1, 2))
        over_places = Residual(
            nn.LayerNorm(width), turn, nn.Linear(places, 6), nn.GELU("tanh"), nn.Linear(6, places), turn
        )
        over_channels = Residual(nn.LayerNorm(width), nn.Linear(width, 12), nn.GELU("tanh"), nn.Linear(12, width))
        self.layers, self.head = nn.Sequential(over_places, over_channels), nn.Linear(width, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.layers(self.patches(x).flatten(2).transpose(1, 2)).mean(1))


class Denoiser(nn.Module):
    """A step of diffusion: an image and a time, group norms, attention over the places."""

    def __init__(self, width: int = 8) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(6, width), nn.SiLU(), nn.Linear(width, width))
        self.entry, self.exit = nn.Conv2d(3, width, 3, padding=1), nn.Conv2d(width, 3, 3, padding=1)
        self.body = nn.Sequential(nn.GroupNorm(2, width), nn.SiLU(), nn.Conv2d(width, width, 3, padding=1))
        self.attention = Attention(width, 1)
        self.register_buffer("rates", torch.exp(-torch.arange(3.0)))

    def forward(self, x: Tensor, time: Tensor) -> Tensor:
        angles = time[:, None] * self.rates
        x = self.entry(x) + self.time(torch.cat([angles.sin(), angles.cos()], 1))[:, :, None, None]
        x = x + self.body(x)
        places = x.flatten(2).transpose(1, 2)
        return self.exit(x + self.attention(places).transpose(1, 2).reshape(x.shape))
