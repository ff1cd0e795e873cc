"""ImageDecoder, on files written here byte by byte."""

from __future__ import annotations

import struct
import sys
import zlib

import numpy as np
import pytest
from onnx_check import run
from onnx_single import feeds, node_model, refused

from tract_core.errors import FactError, RunError, Unsupported

PIXELS = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 13
"""Two rows of three pixels: red, green, blue."""


def portable(pixels):
    """A PPM or PGM file."""
    height, width, channels = pixels.shape
    return f"P{6 if channels == 3 else 5} {width} {height} 255 ".encode() + pixels.tobytes()


def png(pixels, *, height=None, width=None):
    """A PNG file, which may claim to be larger than it is."""
    size = (width or pixels.shape[1], height or pixels.shape[0])
    header = struct.pack(">IIBBBBB", *size, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )


def decoded(content, **attributes):
    inputs = [np.frombuffer(content, np.uint8)]
    model = node_model("ImageDecoder", inputs, "", opset=20, batch="BYTES", **attributes)
    (found,) = run(model, feeds(inputs))
    return found


@pytest.mark.parametrize("file", [portable, png])
def test_the_pixels_of_a_file(file):
    np.testing.assert_array_equal(decoded(file(PIXELS)), PIXELS)
    np.testing.assert_array_equal(decoded(file(PIXELS), pixel_format="BGR"), PIXELS[..., ::-1])


def test_colours_become_brightness():
    # ITU-R 601: 299/1000 red, 587/1000 green, 114/1000 blue
    wanted = PIXELS @ np.array([0.299, 0.587, 0.114])
    found = decoded(portable(PIXELS), pixel_format="Grayscale")
    assert found.shape == (2, 3, 1)
    np.testing.assert_allclose(found[..., 0], wanted, atol=1)


def test_brightness_becomes_equal_colours():
    grey = PIXELS[..., :1]
    np.testing.assert_array_equal(decoded(portable(grey)), np.repeat(grey, 3, axis=2))
    np.testing.assert_array_equal(decoded(portable(grey), pixel_format="Grayscale"), grey)


@pytest.mark.parametrize(
    "content",
    [b"", b"\0", b"GIF89a" + bytes(20), b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", png(PIXELS)[:40]],
    ids=["empty", "a byte", "another format", "a program", "cut off"],
)
def test_what_cannot_be_decoded_is_an_empty_image(content):
    assert decoded(content).shape == (0, 0, 3)
    assert decoded(content, pixel_format="Grayscale").shape == (0, 0, 1)


def test_a_file_that_claims_to_be_huge():
    assert decoded(png(PIXELS, height=1 << 30, width=1 << 30)).shape == (0, 0, 3)


def test_no_more_pixels_than_a_tensor_may_have(monkeypatch):
    monkeypatch.setattr("tract_core.runtime.turn.run_limit", lambda _: 1 << 12)
    with pytest.raises(RunError, match=r"a tensor of shape \[100,99,3\] would take 29700 bytes, 4096 are allowed"):
        decoded(png(PIXELS, height=100, width=99))


def test_what_is_refused(monkeypatch):
    data = [np.zeros(3, np.uint8)]
    refused(FactError, "wants the bytes of a file", "ImageDecoder", [np.zeros(3, np.int8)], "", opset=20)
    refused(Unsupported, "'CMYK', wanted one of", "ImageDecoder", data, "", opset=20, pixel_format="CMYK")
    monkeypatch.setitem(sys.modules, "PIL", None)
    refused(Unsupported, "not supported without Pillow", "ImageDecoder", data, "", opset=20)
