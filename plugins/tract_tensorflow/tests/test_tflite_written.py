"""Files of TFLite become archives, and files of ONNX, which compute the same: integers to the bit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from test_tflite_cases import archive, compare

import tract_core as tract

CASES = [
    ("conv", "conv INT8 per channel same stride 2 dilation 1 activation 1"),
    ("conv", "conv UINT8 valid stride 1 dilation 1 activation 0"),
    ("conv", "depthwise INT8 per channel same stride 1 dilation 1 x 2"),
    ("conv", "depthwise FLOAT32 valid stride 2 dilation 1 x 1"),
    ("control", "loop 5 times"),
    ("control", "growing 5 times"),
    ("control_states", "lstm in a loop 4 times"),
    *[
        (family, name)
        for family, step in (("quantized_arithmetic", 6), ("quantized_product", 6), ("quantized_functions", 12))
        for name in [one for one in archive(family) if "INT8" in one and not one.startswith("div ")][::step]
    ],
]
"""Loops, and of each family of integers, some. What is divided by is known in a run alone, and has no words in ONNX."""


def parts_of(family: str, case: str) -> tuple[bytes, list[Any], list[Any]]:
    """The file, what it is given, and what comes out."""
    parts = archive(family)[case]
    given = [parts[f"in{slot}"] for slot in range(sum(name.startswith("in") for name in parts))]
    return (
        parts["model"].tobytes(),
        given,
        [parts[name] for name in sorted(parts) if name.startswith("out") and "/" not in name],
    )


@pytest.mark.parametrize(("family", "case"), CASES)
def test_files_of_onnx(family: str, case: str, tmp_path: Path) -> None:
    content, given, wanted = parts_of(family, case)
    tract.load_bytes(content).save(tmp_path / "model.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "model.onnx"), full_check=True)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    found = session.run(None, dict(zip([one.name for one in session.get_inputs()], given, strict=True)))
    for one, other in zip(found, wanted, strict=True):
        compare(one, other, (family, case))


@pytest.mark.parametrize(("family", "case"), CASES)
def test_archives(family: str, case: str, tmp_path: Path) -> None:
    content, given, wanted = parts_of(family, case)
    tract.load_bytes(content).save(tmp_path / "model.nnef.tar")
    found = tract.runtime_for_name("reference").prepare(tract.load(tmp_path / "model.nnef.tar")).run(given)
    for one, other in zip(found, wanted, strict=True):
        compare(np.asarray(one), other, (family, case))
