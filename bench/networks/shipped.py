"""Trained files that packages ship, as `make test-shipped` fetches them, with data of the kind that they are made for.

Images are photographs that scikit-image and scikit-learn ship; sounds are tones in noise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnxruntime
import skimage
from onnx import version_converter
from PIL import Image
from sklearn.datasets import load_sample_images

ROOT = Path(__file__).parents[2]
FILES = ROOT / ".shipped" / "files"
VERSION = 17
"""Of ONNX's operators: quantisers want 13 at least for weights by channel."""

Array = np.ndarray[Any, Any]

PHOTOGRAPHS = ("astronaut.png", "chelsea.png", "coffee.png", "motorcycle_left.png", "rocket.jpg")


class Shipped(NamedTuple):
    """A file of a package: its ``name``, and examples of its one input, a turn each, by the number of a first one."""

    name: str
    examples: Callable[[int], Iterator[Array]]


def file_of(name: str) -> Path:
    """Where a file is. Raises FileNotFoundError where it was not fetched."""
    found = sorted(FILES.rglob(f"{name}.onnx"))
    if not found:
        raise FileNotFoundError(f"{name}.onnx is not in {FILES}: 'make test-shipped' fetches it")
    return found[0]


def in_new_words(path: Path, example: Array) -> onnx.ModelProto:
    """A file in operators of `VERSION`, its weights no inputs, and its input as large as an example."""
    model = onnx.load(path)
    held = {one.name for one in model.graph.initializer}
    inputs = [one for one in model.graph.input if one.name not in held]
    del model.graph.input[:], model.graph.value_info[:]
    model.graph.input.extend(inputs)
    for size, wanted in zip(model.graph.input[0].type.tensor_type.shape.dim, example.shape, strict=True):
        size.dim_value = wanted
    for output in model.graph.output:
        output.type.tensor_type.ClearField("shape")
    read = {name for node in model.graph.node for name in node.input}
    kept = [one for one in model.graph.initializer if one.name in read]
    del model.graph.initializer[:]
    model.graph.initializer.extend(kept)
    model.ir_version = 8
    return version_converter.convert_version(model, VERSION)


def images(size: int, largest: float) -> Callable[[int], Iterator[Array]]:
    """Squares out of photographs, as (1, 3, size, size), from 0 (black) to ``largest``."""

    def examples(first: int) -> Iterator[Array]:
        generator, photographs = np.random.default_rng(first), _photographs()
        while True:
            for photograph in photographs:
                yield _square(photograph, generator, size) * np.float32(largest / 255)

    return examples


def _photographs() -> Sequence[Array]:
    folder = Path(skimage.__file__).parent / "data"
    found: Any = load_sample_images()
    return [*(np.asarray(Image.open(folder / name).convert("RGB")) for name in PHOTOGRAPHS), *found.images]


def _square(photograph: Array, generator: np.random.Generator, size: int) -> Array:
    height, width = photograph.shape[:2]
    side = int(min(height, width) * generator.uniform(0.6, 1))
    top, left = (int(generator.integers(0, whole - side + 1)) for whole in (height, width))
    part = Image.fromarray(photograph[top : top + side, left : left + side]).resize((size, size))
    return np.ascontiguousarray(np.asarray(part).transpose(2, 0, 1)[None].astype(np.float32))


def spectrograms(first: int) -> Iterator[Array]:
    """Tones that rise and fall in noise, as (16, 76, 32, 1): what the package's own file makes of sound."""
    made = onnxruntime.InferenceSession(str(file_of("melspectrogram")))
    generator, seconds = np.random.default_rng(first), np.arange(16_000 * 14) / 16_000
    while True:
        pitch = generator.uniform(100, 3000) * (1 + 0.3 * np.sin(2 * np.pi * generator.uniform(0.3, 4) * seconds))
        loud = 0.3 + 0.7 * np.abs(np.sin(2 * np.pi * generator.uniform(0.2, 3) * seconds))
        sound = loud * np.sin(2 * np.pi * np.cumsum(pitch) / 16_000)
        sound = sound * 8_000 + generator.standard_normal(len(sound)) * generator.uniform(50, 2_000)
        (found,) = made.run(None, {made.get_inputs()[0].name: sound[None].astype(np.float32)})
        rows: Array = np.squeeze(np.asarray(found)) / 10 + 2
        yield np.stack([rows[start : start + 76] for start in range(0, 16 * 76, 76)])[..., None].astype(np.float32)


NETWORKS: Sequence[Shipped] = (
    Shipped("320n", images(320, 1)),
    Shipped("common_det", images(416, 255)),
    Shipped("centerface", images(320, 255)),
    Shipped("embedding_model", spectrograms),
)
"""Detectors of parts of bodies, of characters and of faces, and what listens for words."""
