"""What ``docs/coming-from.md`` puts side by side is run: ours here, theirs where they are installed."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "coming-from.md").read_text()

PARTS = {
    title: [row.split("|")[1:-1] for row in re.findall(r"^\| (?!what \| there).*\|$", text, re.MULTILINE)]
    for title, text in re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)
}
SETUP = "import numpy as np; image = np.ones((2, 3, 8, 8), np.float32)"
OURS = "import tract_core as tract; from tract_core.plugins import default_registry"
PYTHONS = [
    Path(sys.executable),
    *(ROOT / f".venv-{name}" / "bin" / "python" for name in ("peers", "interchange", "archives", "tensorflow")),
]
"""Where packages of others may be."""

CODE = re.compile(r"`([^`]*(?:[(=.]|^import )[^`]*)`")
"""What can be run: calls, assignments, attributes, imports; single words are names in a sentence."""


def test_the_page_has_its_parts() -> None:
    assert list(PARTS) == ["ONNX Runtime", "OpenVINO", "tract", "TensorFlow and TFLite", "torch-to-nnef", "cervo"]
    assert sum(map(len, PARTS.values())) >= 50


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a classifier, image: B,3,8,8,f32 to logits: B,10,f32, and the examples."""
    weights = {"filters": np.ones((4, 3, 3, 3), np.float32), "matrix": np.ones((144, 10), np.float32)}
    nodes = [
        helper.make_node("Conv", ["image", "filters"], ["features"]),
        helper.make_node("Flatten", ["features"], ["flat"]),
        helper.make_node("MatMul", ["flat", "matrix"], ["logits"]),
    ]
    taken = helper.make_tensor_value_info("image", TensorProto.FLOAT, ["B", 3, 8, 8])
    given = helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["B", 10])
    held = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "graph", [taken], [given], held)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "model.onnx")
    add_models_of_tensorflow(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    return tmp_path


def add_models_of_tensorflow(folder: Path) -> None:
    """A file of TFLite, a SavedModel and a frozen graph, of the cases of tract-tensorflow."""
    held = ROOT / "plugins" / "tract_tensorflow" / "tests"
    with np.load(held / "tflite_cases" / "conv.npz") as cases:
        content = cases["conv FLOAT32 same stride 1 dilation 1 activation 0/model"]
        (folder / "model.tflite").write_bytes(content.tobytes())
    with np.load(held / "graphdef" / "binary.npz") as cases:
        name = next(name for name in cases.files if name.endswith("/graph"))
        (folder / "frozen.pb").write_bytes(cases[name].tobytes())
    with np.load(held / "saved_models.npz") as cases:
        for name in cases.files:
            if name.startswith("dense/file/"):
                path = folder / "saved" / name.removeprefix("dense/file/")
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(cases[name].tobytes())


def run(python: Path, lines: list[str], folder: Path) -> None:
    done = subprocess.run(
        [python, "-c", "\n".join(lines)], cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, f"{done.stderr}\n{chr(10).join(lines)}"


def code(column: int, part: str) -> list[str]:
    """What a column of a table has, in order."""
    return [text for row in PARTS[part] for text in CODE.findall(row[column]) if not text.startswith(("tract ", "--"))]


@pytest.mark.parametrize(
    "part", [pytest.param(part, marks=[pytest.mark.torch] if part == "torch-to-nnef" else []) for part in PARTS]
)
def test_ours(part: str, folder: Path) -> None:
    imported = {"torch-to-nnef": "tract_torch, torch", "cervo": "tract_inferers"}.get(part, "tract_core")
    if find_spec(imported.partition(",")[0]) is None:
        pytest.skip("needs PyTorch: run `make test-torch`")
    lines = code(2, part)
    assert len(lines) >= 6
    run(Path(sys.executable), [SETUP, OURS, f"import {imported}", *lines], folder)


@pytest.mark.parametrize(
    ("part", "line"),
    [
        ("ONNX Runtime", "import onnxruntime as ort"),
        ("OpenVINO", "import openvino as ov; core = ov.Core()"),
        ("tract", "import tract; assert not hasattr(tract, '__all__')"),
        ("TensorFlow and TFLite", "import tensorflow as tf"),
        ("torch-to-nnef", "import torch; import torch_to_nnef"),
    ],
)
def test_theirs(part: str, line: str, folder: Path) -> None:
    """In whichever of our environments has them; ``tract`` is a name of ours too, and not that one."""
    for python in PYTHONS:
        if python.is_file() and subprocess.run([python, "-c", line], capture_output=True, check=False).returncode == 0:
            run(python, [SETUP, line, *code(1, part)], folder)
            return
    pytest.skip("not installed: make .venv-peers/.installed, or make test-torch-networks")
