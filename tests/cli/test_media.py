"""``--input NAME=FILE`` with images and sounds: what the model is given, in which shape, and what is refused."""

from __future__ import annotations

import json
import struct
import wave
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from onnx import TensorProto, helper
from PIL import Image

from tract_core.cli import app
from tract_core.cli.media import Scaling, read_image, read_sound
from tract_core.errors import InputError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel

PIXELS = np.random.default_rng(0).integers(0, 256, (6, 4, 3), np.uint8)  # lines, columns, channels


def fact(text: str) -> Any:
    return parse_typed_fact(text, TypedModel().symbols)


@pytest.fixture
def image(tmp_path: Path) -> Path:
    path = tmp_path / "small.png"
    Image.fromarray(PIXELS).save(path)
    return path


def sound(path: Path, content: bytes, *, width: int = 2, channels: int = 1) -> Path:
    with wave.open(str(path), "wb") as file:
        file.setparams((channels, width, 16000, 0, "NONE", "not compressed"))
        file.writeframes(content)
    return path


@pytest.mark.parametrize("shape", ["1,3,6,4", "B,3,6,4", "B,3,H,W", "3,6,4"])
def test_channels_in_front(image: Path, shape: str) -> None:
    array, told = read_image(image, fact(f"{shape},f32"), Scaling())
    assert array.dtype == np.float32
    assert array.ndim == len(shape.split(","))
    np.testing.assert_allclose(array.reshape(3, 6, 4), PIXELS.transpose(2, 0, 1) / 255.0, rtol=1e-6)
    assert told == "4x6 RGB became 4x6 RGB, from 0 to 1"


@pytest.mark.parametrize("shape", ["1,6,4,3", "B,H,W,3", "6,4,3"])
def test_channels_behind(image: Path, shape: str) -> None:
    array, told = read_image(image, fact(f"{shape},u8"), Scaling())
    np.testing.assert_array_equal(array.reshape(6, 4, 3), PIXELS)
    assert told.endswith("from 0 to 255")


def test_grey(image: Path) -> None:
    weights = np.array([299, 587, 114]) / 1000  # of the luma of ITU-R 601
    for shape in ("6,4", "1,1,6,4", "1,6,4,1"):
        array, _ = read_image(image, fact(f"{shape},f32"), Scaling())
        assert np.abs(array.reshape(6, 4) * 255 - PIXELS @ weights).max() <= 1


def test_scaling(image: Path) -> None:
    mean, std = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
    array, told = read_image(image, fact("1,3,6,4,f32"), Scaling(mean, std))
    np.testing.assert_allclose(array[0], ((PIXELS / 255 - mean) / std).transpose(2, 0, 1), rtol=1e-5, atol=1e-6)
    assert told.endswith("scaled")
    with pytest.raises(InputError, match="--image-mean has 2 numbers, the image 3 channels"):
        read_image(image, fact("1,3,6,4,f32"), Scaling((1.0, 2.0)))


def test_another_size(tmp_path: Path) -> None:
    path = tmp_path / "one.png"
    Image.new("L", (10, 20), 51).save(path)
    array, told = read_image(path, fact("1,3,8,5,f32"), Scaling())
    np.testing.assert_allclose(array, np.full((1, 3, 8, 5), 0.2), rtol=1e-6)
    assert told == "10x20 L became 5x8 RGB, from 0 to 1"


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("2,3,6,4", "the input wants 2 images at once"),
        ("1,5,6,7", "none for one image, of 1, 3 or 4 channels"),
        ("7", "none for one image"),
        ("1,1,3,6,4", "none for one image"),
    ],
)
def test_inputs_that_take_no_image(image: Path, shape: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_image(image, fact(f"{shape},f32"), Scaling())


def test_files_that_are_no_images(image: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cut.png").write_bytes(image.read_bytes()[:60])
    (tmp_path / "text.png").write_text("no image")
    for name in ("cut.png", "text.png"):
        with pytest.raises(InputError, match="it is no image that can be read"):
            read_image(tmp_path / name, fact("1,3,6,4,f32"), Scaling())
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 5)
    with pytest.raises(InputError, match="decompression bomb"):
        read_image(image, fact("1,3,6,4,f32"), Scaling())


WIDTHS: dict[int, tuple[bytes, list[float]]] = {
    1: (bytes([0, 128, 255]), [-1, 0, 127 / 128]),
    2: (struct.pack("<3h", -(2**15), 0, 2**14), [-1, 0, 0.5]),
    3: (b"\0\0\x80\0\0\0\0\0\x40", [-1, 0, 0.5]),
    4: (struct.pack("<3i", -(2**31), 0, 2**30), [-1, 0, 0.5]),
}


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("shape", ["S", "1,S", "B,1,S", "3", "1,3"])
def test_sounds(tmp_path: Path, width: int, shape: str) -> None:
    content, wanted = WIDTHS[width]
    array, told = read_sound(sound(tmp_path / "a.wav", content, width=width), fact(f"{shape},f32"))
    assert array.ndim == len(shape.split(","))
    np.testing.assert_allclose(array.reshape(-1), wanted, rtol=1e-6)
    assert told == "3 samples, 16000 a second, one channel"


def test_two_channels(tmp_path: Path) -> None:
    path = sound(tmp_path / "a.wav", struct.pack("<4h", 100, 200, -100, 300), channels=2)
    array, told = read_sound(path, fact("1,S,f32"))
    np.testing.assert_allclose(array, [[150 / 2**15, 100 / 2**15]], rtol=1e-6)
    assert told.endswith("2 channels as their mean")
    apart, _ = read_sound(path, fact("1,2,S,i16"))
    assert apart.tolist() == [[[100, -100], [200, 300]]]


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        ("S,i32", "takes no sound: wanted floats, or i16"),
        ("4,f32", "the sound has 3 samples, the input wants 4"),
        ("2,1,S,f32", "none for one sound"),
        ("f32", "none for one sound"),
    ],
)
def test_inputs_that_take_no_sound(tmp_path: Path, shape: str, message: str) -> None:
    path = sound(tmp_path / "a.wav", WIDTHS[2][0])
    with pytest.raises(InputError, match=message):
        read_sound(path, fact(shape))


def test_no_samples_and_no_sound(tmp_path: Path) -> None:
    array, _ = read_sound(sound(tmp_path / "empty.wav", b""), fact("1,S,f32"))
    assert array.shape == (1, 0)
    (tmp_path / "text.wav").write_text("no sound")
    with pytest.raises(InputError, match=r"it is no sound in PCM.*\n.*pcm_s16le"):
        read_sound(tmp_path / "text.wav", fact("1,S,f32"))


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """image: 1,3,6,4,f32 -> its largest element, with a mean and a deviation for one channel of three."""
    ends = [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 6, 4])]
    ends.append(helper.make_tensor_value_info("y", TensorProto.FLOAT, []))
    graph = helper.make_graph([helper.make_node("ReduceMax", ["image"], ["y"], keepdims=0)], "g", ends[:1], ends[1:])
    path = tmp_path / "largest.onnx"
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    path.write_bytes(proto.SerializeToString())
    return path


def test_the_command(model: Path, image: Path) -> None:
    line = [str(model), "--input", f"image={image}", "--image-mean", "0.5", "--image-std", "0.25", "run", "--json"]
    found = CliRunner().invoke(app, line)
    assert found.exit_code == 0, found.output
    assert "input image: small.png, 4x6 RGB became 4x6 RGB, scaled" in found.stderr
    (output,) = json.loads(found.stdout)["outputs"] if "outputs" in found.stdout else [found.stdout]
    assert f"{(PIXELS.max() / 255 - 0.5) / 0.25:.4f}"[:5] in str(output)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--image-mean", "a,b"], "'a,b' is no list of numbers"),
        (["--image-std", "0.2,0,0.2"], "has a zero in it"),
        (["--image-mean", "nan"], "is no list of numbers"),
    ],
)
def test_wrong_flags(model: Path, image: Path, flags: list[str], message: str) -> None:
    found = CliRunner().invoke(app, [str(model), "--input", f"image={image}", *flags, "run"])
    assert (found.exit_code, message in found.output) == (2, True)


def test_a_file_that_is_not_there(model: Path) -> None:
    found = CliRunner().invoke(app, [str(model), "--input", "image=absent.png", "run"])
    assert (found.exit_code, "there is no file 'absent.png'" in found.output) == (2, True)
