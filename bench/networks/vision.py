"""Networks for images: convolutions with batch normalisation folded in, as exporters write them."""

from __future__ import annotations

from networks.builder import Builder, Network


def _image(b: Builder, size: int) -> str:
    return b.input("image", b.normal(1, 3, size, size))


def _classify(b: Builder, x: str, channels: int) -> Network:
    x = b.add("Flatten", b.add("GlobalAveragePool", x), axis=1)
    return b.finish(b.gemm(x, channels, 1000))


def _relu6(b: Builder, x: str) -> str:
    return b.add("Clip", x, b.float(0), b.float(6))


def _silu(b: Builder, x: str) -> str:
    return b.add("Mul", x, b.add("Sigmoid", x))


MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Factor of expansion, channels, blocks, stride: Sandler et al. 2018."""


def mobilenet_v2(size: int = 224, stages: int = 7) -> Network:
    b = Builder(1)
    x = _relu6(b, b.conv(_image(b, size), (3, 32), 3, strides=[2, 2]))
    channels = 32
    for expand, outputs, blocks, stride in MOBILENET[:stages]:
        for block in range(blocks):
            x = _inverted(b, x, (channels, channels * expand, outputs), stride if block == 0 else 1)
            channels = outputs
    return _classify(b, _relu6(b, b.conv(x, (channels, 1280), 1)), 1280)


def _inverted(b: Builder, x: str, channels: tuple[int, int, int], stride: int) -> str:
    before, inside, after = channels
    y = x if inside == before else _relu6(b, b.conv(x, (before, inside), 1))
    y = _relu6(b, b.conv(y, (inside, inside), 3, group=inside, strides=[stride] * 2))
    y = b.conv(y, (inside, after), 1)
    return b.add("Add", x, y) if stride == 1 and before == after else y


EFFICIENTNET = (
    (1, 16, 1, 1, 3),
    (6, 24, 2, 2, 3),
    (6, 40, 2, 2, 5),
    (6, 80, 3, 2, 3),
    (6, 112, 3, 1, 5),
    (6, 192, 4, 2, 5),
    (6, 320, 1, 1, 3),
)
"""Factor of expansion, channels, blocks, stride, filter: Tan and Le 2019, B0."""


def efficientnet(size: int = 224, stages: int = 7) -> Network:
    """Depthwise and pointwise convolutions with squeeze-and-excite and SiLU."""
    b = Builder(2)
    x = _silu(b, b.conv(_image(b, size), (3, 32), 3, strides=[2, 2]))
    channels = 32
    for expand, outputs, blocks, stride, kernel in EFFICIENTNET[:stages]:
        for block in range(blocks):
            x = _excited(b, x, (channels, channels * expand, outputs), stride if block == 0 else 1, kernel)
            channels = outputs
    return _classify(b, _silu(b, b.conv(x, (channels, 1280), 1)), 1280)


def _excited(b: Builder, x: str, channels: tuple[int, int, int], stride: int, kernel: int) -> str:
    before, inside, after = channels
    y = x if inside == before else _silu(b, b.conv(x, (before, inside), 1))
    y = _silu(b, b.conv(y, (inside, inside), kernel, group=inside, strides=[stride] * 2))
    squeezed = _silu(b, b.conv(b.add("GlobalAveragePool", y), (inside, before // 4), 1))
    y = b.add("Mul", y, b.add("Sigmoid", b.conv(squeezed, (before // 4, inside), 1)))
    y = b.conv(y, (inside, after), 1)
    return b.add("Add", x, y) if stride == 1 and before == after else y


def resnet50(size: int = 224, stages: int = 4) -> Network:
    """He et al. 2015."""
    b = Builder(3)
    x = b.add("Relu", b.conv(_image(b, size), (3, 64), 7, strides=[2, 2]))
    x = b.add("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)[:stages]):
        for block in range(blocks):
            x = _bottleneck(b, x, channels, 64 << stage, 2 if stage and not block else 1)
            channels = 256 << stage
    return _classify(b, x, channels)


def _bottleneck(b: Builder, x: str, before: int, inside: int, stride: int) -> str:
    y = b.add("Relu", b.conv(x, (before, inside), 1))
    y = b.add("Relu", b.conv(y, (inside, inside), 3, strides=[stride] * 2))
    y = b.conv(y, (inside, 4 * inside), 1)
    if before != 4 * inside:
        x = b.conv(x, (before, 4 * inside), 1, strides=[stride] * 2)
    return b.add("Relu", b.add("Add", y, x))


def vgg(size: int = 128, widths: tuple[int, ...] = (64, 64, 0, 128, 128, 0, 256, 256, 0, 512, 512, 0)) -> Network:
    """3x3 convolutions one after another, with pooling (a zero among ``widths``) in between."""
    b = Builder(4)
    x, channels = _image(b, size), 3
    for width in widths:
        if width == 0:
            x = b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        else:
            x, channels = b.add("Relu", b.conv(x, (channels, width), 3)), width
    return _classify(b, x, channels)


def unet(size: int = 128, widths: tuple[int, ...] = (32, 64, 128, 256)) -> Network:
    """Ronneberger et al. 2015, padded: down by pooling, up by deconvolution, with what was before put beside."""
    b = Builder(5)
    x, channels = _image(b, size), 3
    skips: list[str] = []
    for depth, width in enumerate(widths):
        x = x if depth == 0 else b.add("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
        x = _twice(b, x, channels, width)
        skips.append(x)
        channels = width
    for width, skip in zip(widths[-2::-1], skips[-2::-1], strict=True):
        weights = b.weight(channels, width, 2, 2, summed=channels, gain=1.3)
        x = b.add("ConvTranspose", x, weights, b.bias(width), strides=[2, 2], kernel_shape=[2, 2])
        x = _twice(b, b.add("Concat", skip, x, axis=1), 2 * width, width)
        channels = width
    return b.finish(b.add("Sigmoid", b.conv(x, (channels, 4), 1)))


def _twice(b: Builder, x: str, before: int, after: int) -> str:
    x = b.add("Relu", b.conv(x, (before, after), 3))
    return b.add("Relu", b.conv(x, (after, after), 3))
