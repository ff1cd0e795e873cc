"""Networks on images, most of torchvision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from with_torchvision import torchvision

from torch_networks.network import Network, Sizes

_models = torchvision.models


class Values(nn.Module):
    """What a network of torchvision returns under names, as a tuple."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        return tuple(self.network(x).values())


class Heads(nn.Module):
    """A detector up to its heads: what each anchor says about box and class, and the anchors where it has them."""

    def __init__(self, detector: Any) -> None:
        super().__init__()
        self.backbone, self.head = detector.backbone, detector.head
        self.anchors = detector.anchor_generator

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        features = list(self.backbone(x).values())
        images = _detection.image_list.ImageList(x[:1], [(x.shape[2], x.shape[3])])
        anchors = self.anchors(images, features)
        return *self.head(features).values(), anchors[0]


class UNet(nn.Module):
    """Ronneberger et al. 2015, small: down with pools, up with transposed convolutions, joined at each level."""

    def __init__(self, width: int = 8, levels: int = 3) -> None:
        super().__init__()
        widths = [width * 2**level for level in range(levels)]
        self.down = nn.ModuleList(_twice(a, b) for a, b in zip([3, *widths], widths, strict=False))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * w, w, 2, stride=2) for w in reversed(widths[:-1]))
        self.join = nn.ModuleList(_twice(2 * w, w) for w in reversed(widths[:-1]))
        self.head = nn.Conv2d(width, 2, 1)

    def forward(self, x: Tensor) -> Tensor:
        kept: list[Tensor] = []
        for level, down in enumerate(self.down):
            x = down(nn.functional.max_pool2d(x, 2) if level else x)
            kept.append(x)
        for up, join, other in zip(self.up, self.join, reversed(kept[:-1]), strict=True):
            x = join(torch.cat([up(x), other], dim=1))
        return self.head(x)


def _twice(inputs: int, outputs: int) -> nn.Module:
    layers = [(nn.Conv2d(a, outputs, 3, padding=1), nn.BatchNorm2d(outputs), nn.ReLU()) for a in (inputs, outputs)]
    return nn.Sequential(*(one for several in layers for one in several))


def _images(size: int, channels: int = 3) -> Callable[..., dict[str, Tensor]]:
    """Images of one size, or with the height and width that are asked for."""

    def drawn(B: int, H: int = 0, W: int = 0) -> dict[str, Tensor]:
        return {"x": torch.randn(B, channels, H or size, W or size)}

    return drawn


def _scaled(factor: int) -> Callable[..., dict[str, Tensor]]:
    """Images whose height and width are so many times H and W."""
    return lambda B, H, W: {"x": torch.randn(B, 3, factor * H, factor * W)}


_BATCH = {"x": {0: "B"}}
_AREA = {"x": {0: "B", 2: "H", 3: "W"}}
_B: tuple[Sizes, Sizes, Sizes] = ({"B": 2}, {"B": 1}, {"B": 3})


def _of(name: str, size: int, build: Callable[[], nn.Module] | None = None, **options: Any) -> Network:
    """A network of torchvision on images of one size."""
    build = build or partial(getattr(_models, name), weights=None, num_classes=10)
    return Network(name, build, _images(size), _BATCH, _B, **options)


def _any_area(name: str, sizes: list[tuple[int, int, int]], build: Callable[[], nn.Module], **options: Any) -> Network:
    """A network of torchvision on images of any height and width, from 33 up."""
    first, second, third = ({"B": b, "H": h, "W": w} for b, h, w in sizes)
    ranges: Mapping[str, tuple[int, int]] = {"H": (33, 600), "W": (33, 600)}
    return Network(name, build, _images(0), _AREA, (first, second, third), ranges=ranges, **options)


def _swin(version: str) -> nn.Module:
    block = getattr(_models.swin_transformer, f"SwinTransformerBlock{version}")
    merging = getattr(_models.swin_transformer, f"PatchMerging{version}")
    return _models.SwinTransformer(
        [4, 4], 24, [2, 2], [3, 6], [7, 7], num_classes=10, block=block, downsample_layer=merging
    )


def _convnext() -> nn.Module:
    settings = _models.convnext.CNBlockConfig
    return _models.ConvNeXt([settings(24, 48, 2), settings(48, None, 2)], num_classes=10)


_bare = {"weights": None, "weights_backbone": None, "num_classes": 5}
_segmentation, _detection = _models.segmentation, _models.detection

NETWORKS = (
    _any_area("resnet50", [(2, 64, 96), (1, 65, 33), (3, 50, 70)], partial(_models.resnet50, num_classes=10)),
    _of("resnet50 at 224", 224, partial(_models.resnet50, num_classes=1000)),
    _any_area("resnet18", [(2, 40, 48), (1, 33, 65), (3, 37, 50)], partial(_models.resnet18, num_classes=10)),
    _any_area("efficientnet_b0", [(2, 64, 96), (1, 65, 33), (3, 50, 70)], partial(_models.efficientnet_b0)),
    _of("efficientnet_v2_s", 64),
    _any_area("mobilenet_v3_small", [(2, 64, 96), (1, 65, 33), (3, 50, 70)], _models.mobilenet_v3_small),
    _of("mobilenet_v3_large", 64),
    _of("mobilenet_v2", 64),
    _of("mnasnet1_0", 64),
    _of("shufflenet_v2_x0_5", 64),
    _of("squeezenet1_1", 64),
    _of("alexnet", 64, partial(_models.alexnet, num_classes=10)),
    _of("vgg11_bn", 32, partial(_models.vgg11_bn, num_classes=10)),
    _of("densenet121", 64),
    _of("googlenet", 64, partial(_models.googlenet, num_classes=10, init_weights=False, aux_logits=False)),
    _of("inception_v3", 96, partial(_models.inception_v3, num_classes=10, init_weights=False, aux_logits=False)),
    _of("regnet_y_400mf", 64),
    Network(
        "vision_transformer",
        lambda: _models.VisionTransformer(32, 8, 2, 4, 48, 96, num_classes=10),
        _images(32),
        _BATCH,
        _B,
    ),
    Network("swin", lambda: _swin(""), _images(64), _BATCH, _B),
    Network("swin_v2", lambda: _swin("V2"), _images(64), _BATCH, _B),
    _of("swin_t", 96),
    _of("maxvit", 64, lambda: _models.MaxVit((64, 64), 16, 4, [16, 32], [1, 1], 8, 0.0, num_classes=10)),
    Network("convnext", _convnext, _images(32), _BATCH, _B, small=True),
    _of("convnext_tiny", 64),
    _any_area(
        "deeplabv3",
        [(2, 64, 96), (1, 65, 33), (3, 50, 70)],
        lambda: Values(_segmentation.deeplabv3_mobilenet_v3_large(**_bare)),
    ),
    _of("deeplabv3_resnet50", 64, lambda: Values(_segmentation.deeplabv3_resnet50(**_bare))),
    _of("fcn_resnet50", 64, lambda: Values(_segmentation.fcn_resnet50(**_bare))),
    _of("lraspp", 64, lambda: Values(_segmentation.lraspp_mobilenet_v3_large(**_bare))),
    _of("ssd", 300, lambda: Heads(_detection.ssd300_vgg16(**_bare))),
    _of("ssdlite", 320, lambda: Heads(_detection.ssdlite320_mobilenet_v3_large(**_bare))),
    _of("retinanet", 128, lambda: Heads(_detection.retinanet_resnet50_fpn(**_bare))),
    _of("fcos", 128, lambda: Heads(_detection.fcos_resnet50_fpn(**_bare))),
    Network(
        "video_resnet",
        lambda: _models.video.r3d_18(num_classes=10),
        lambda B: {"x": torch.randn(B, 3, 8, 32, 32)},
        _BATCH,
        _B,
    ),
    Network(
        "unet",
        UNet,
        _scaled(4),
        {"x": {0: "B", 2: "4*H", 3: "4*W"}},
        ({"B": 2, "H": 4, "W": 6}, {"B": 1, "H": 3, "W": 5}, {"B": 3, "H": 8, "W": 2}),
        small=True,
    ),
)
