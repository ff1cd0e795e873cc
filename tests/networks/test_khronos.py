"""Archives as the NNEF 1.0.5 specification describes them compute what the tools of its authors say."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from khronos import GRAPHS, QUANTIZATION, QUANTIZED

import tract_core as tract

pytestmark = pytest.mark.networks

Array = np.ndarray[Any, Any]
Weight = Callable[[str, Sequence[int]], Array]


def written(text: str, folder: Path, weight: Weight) -> Mapping[str, Sequence[int]]:
    """Write the files of a network, whose weights are made by label and shape. Returns the shapes of its inputs."""
    nnef = pytest.importorskip("nnef")
    (folder / "graph.nnef").write_text(text)
    inputs: dict[str, Sequence[int]] = {}
    for node in nnef.parse_string(text).operations:
        if node.name == "variable":
            array = weight(node.attribs["label"], node.attribs["shape"])
            path = folder / f"{node.attribs['label']}.dat"
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("wb") as file:
                nnef.write_tensor(file, array, quantized=array.dtype != np.float32)
        elif node.name == "external":
            inputs[f"{node.dtype} {node.outputs['output']}"] = node.attribs["shape"]
    return inputs


def drawn(inputs: Mapping[str, Sequence[int]], rng: np.random.Generator) -> list[Array]:
    kinds: dict[str, Callable[[Sequence[int]], Array]] = {
        "scalar": lambda shape: rng.standard_normal(shape, np.float32),
        "integer": lambda shape: rng.integers(0, 11, shape),
        "logical": lambda shape: rng.random(shape) < 0.5,
    }
    return [kinds[name.split()[0]](shape) for name, shape in inputs.items()]


def run(folder: Path, inputs: Sequence[Array]) -> list[Array]:
    return [one.to_numpy() for one in tract.load(folder).into_runnable().run(inputs)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", GRAPHS)
def test_networks(name: str, tmp_path: Path) -> None:
    interpreter = pytest.importorskip("nnef_tools.interpreter.pytorch").Interpreter
    rng = np.random.default_rng(3)

    def weight(_: str, shape: Sequence[int]) -> Array:
        return rng.standard_normal(shape, np.float32) / np.sqrt(np.float32(np.prod(shape[1:])))

    text = GRAPHS[name]
    inputs = drawn(written(text, tmp_path, weight), rng)
    known = re.findall(r"fragment (\w+)", text)
    expected = list(interpreter(str(tmp_path), decomposed=known)(inputs).values())
    for found, wanted in zip(run(tmp_path, inputs), expected, strict=True):
        assert found.shape == wanted.shape
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_quantised_networks(tmp_path: Path) -> None:
    """Weights are stored as integers, what is computed is rounded: within one step, as rounding may go either way."""
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(5)
    stored = {
        "conv/kernel": rng.integers(60, 190, (4, 3, 3, 3), np.uint8),
        "conv/point": rng.integers(-100, 100, (5, 4, 1, 1), np.int8),
    }
    inputs = drawn(written(QUANTIZED, tmp_path, lambda label, _: stored[label]), rng)
    (tmp_path / "graph.quant").write_text(QUANTIZATION)

    def rounded(x: Any, zero: int, scale: float) -> Any:
        return (torch.clamp(torch.round(x / scale) + zero, 0, 255) - zero) * scale

    kernel, point = (torch.tensor(stored[label].astype(np.float64)) for label in stored)
    x = torch.tensor(inputs[0].astype(np.float64))
    a = rounded(torch.relu(torch.conv2d(x, (kernel - 121) * 0.01, padding=1)), 0, 0.025)
    b = rounded(torch.conv2d(a, point * 0.0125), 100, 0.02)
    expected = torch.max_pool2d(b, 2).mean((2, 3), keepdim=True).numpy()
    (found,) = run(tmp_path, inputs)
    np.testing.assert_allclose(found, expected, atol=0.02)
