"""The picture in an image file, decoded by Pillow where that is installed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from io import BytesIO
from types import ModuleType
from typing import Any, ClassVar, Final

import numpy as np

from tract_core.data import DatumType
from tract_core.dims import Dim
from tract_core.errors import FactError, Unsupported
from tract_core.frozen import frozen
from tract_core.limits import check_tensor
from tract_core.model.axes import AxesMapping
from tract_core.model.fact import TypedFact
from tract_core.model.op import TypedOp
from tract_core.ops.expect import arity
from tract_core.plugins.keys import AXES, COST, REFERENCE, Array
from tract_core.plugins.tables import Rows

ROWS = Rows()

CHANNELS: Final = {"RGB": 3, "BGR": 3, "Grayscale": 1}
"""By pixel format, the values of a pixel."""

FORMATS: Final = ("BMP", "JPEG", "JPEG2000", "TIFF", "PNG", "WEBP", "PPM")
"""What is decoded, as Pillow names it: what the standard lists, and no format that starts another program."""


@frozen
class ImageDecoder(TypedOp):
    """The pixels of an encoded image.

    Input: u8 [bytes], the content of an image file. Output: u8 [``height``, ``width``, channels], the rows from the
    top; without rows and columns when the file cannot be decoded. ``pixel_format``: a key of `CHANNELS`.
    """

    pixel_format: str
    height: Dim
    width: Dim
    announces: ClassVar[tuple[str, ...]] = ("height", "width")

    def output_facts(self, inputs: Sequence[TypedFact]) -> tuple[TypedFact, ...]:
        """Rows, columns and channels. Raises FactError for anything but a list of bytes."""
        (x,) = arity(self, inputs, 1)
        if x.rank != 1 or x.datum_type != DatumType.U8:
            raise FactError(f"{self.name} wants the bytes of a file, as a list of u8, found {x}")
        return (TypedFact.of(DatumType.U8, (self.height, self.width, CHANNELS[self.pixel_format])),)


def pillow() -> ModuleType:
    """Pillow's module of images. Raises Unsupported where it is not installed."""
    try:
        from PIL import Image
    except ImportError:
        raise Unsupported(
            "ImageDecoder is not supported without Pillow, which is not installed",
            hint="pip install 'tract-onnx[images]'; or decode images before they reach the model",
        ) from None
    return Image


@ROWS.row(REFERENCE, ImageDecoder)
def reference(op: ImageDecoder, x: Array) -> Array:
    """Pillow's decoder. Raises RunError for an image of too many pixels."""
    image_module: Any = pillow()
    channels, mode = CHANNELS[op.pixel_format], "L" if op.pixel_format == "Grayscale" else "RGB"
    try:
        image = image_module.open(BytesIO(x.tobytes()), formats=FORMATS)
    except Exception:  # the standard: no image for whatever reason is an empty one
        return _nothing(channels)
    check_tensor((image.height, image.width, channels), 1)
    try:
        pixels = np.asarray(image if image.mode == mode else image.convert(mode))
    except MemoryError:
        raise
    except Exception:  # as above
        return _nothing(channels)
    pixels = pixels.reshape(image.height, image.width, channels)
    return np.ascontiguousarray(pixels[..., ::-1] if op.pixel_format == "BGR" else pixels)


def _nothing(channels: int) -> Array:
    return np.zeros((0, 0, channels), np.uint8)


@ROWS.row(COST, ImageDecoder)
def cost(op: ImageDecoder, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> Mapping[str, Dim]:
    """No arithmetic on tensors."""
    return {}


@ROWS.row(AXES, ImageDecoder)
def axes(op: ImageDecoder, inputs: Sequence[TypedFact], outputs: Sequence[TypedFact]) -> AxesMapping:
    """Nothing can be said."""
    return AxesMapping.disconnected([1], [3])
