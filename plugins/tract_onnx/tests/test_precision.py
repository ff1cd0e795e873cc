"""Operators of the standard that are several here: of narrow floats, what is between is no narrow float."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from onnx_single import node_model

import tract_core as tract

LARGE = np.random.default_rng(0).normal(size=(2, 4, 6)) * 2e4
SMALL = LARGE * 1e-10
LAST = np.array([2], np.int64)

CASES: dict[str, tuple[str, Any, list[Any], dict[str, Any]]] = {
    "the root of squares": ("ReduceL2", LARGE, [LAST], {}),
    "the sum of squares that are hardly any": ("ReduceSumSquare", SMALL, [LAST], {}),
    "the logarithm of a sum": ("ReduceLogSum", np.abs(LARGE), [LAST], {}),
    "the norm of places": ("GlobalLpPool", LARGE, [], {}),
    "the norm of windows": ("LpPool", LARGE, [], {"kernel_shape": [2]}),
    "standardised": ("MeanVarianceNormalization", LARGE, [], {"axes": [0, 2]}),
    "standardised, small": ("MeanVarianceNormalization", SMALL * 100, [], {"axes": [0, 2]}),
    "normalised": ("LpNormalization", LARGE, [], {}),
    "Mish": ("Mish", LARGE / 5e3, [], {}),
    "Softplus": ("Softplus", LARGE / 5e3, [], {}),
    "Elu": ("Elu", LARGE / 5e3, [], {}),
    "a product made smaller": ("Gemm", LARGE[0, :3, :4], [LARGE[1, :4, :3], LARGE[0, :3, :3]], {"alpha": 1e-5}),
}


def model_of(kind: str, inputs: list[Any], attributes: dict[str, Any]) -> bytes:
    return node_model(kind, inputs, "", **attributes).SerializeToString()


def wanted(kind: str, inputs: list[Any], attributes: dict[str, Any]) -> Any:
    """What ONNX Runtime makes of these numbers in f32."""
    wide = [one if one.dtype.kind == "i" else one.astype(np.float32) for one in inputs]
    session = onnxruntime.InferenceSession(model_of(kind, wide, attributes), providers=["CPUExecutionProvider"])
    return session.run(None, dict(zip((one.name for one in session.get_inputs()), wide, strict=True)))[0]


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("type_", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("name", CASES)
def test_narrow_floats_are_rounded_once(name: str, type_: Any, runtime: str) -> None:
    kind, x, others, attributes = CASES[name]
    inputs = [one if one.dtype.kind == "i" else one.astype(type_) for one in (x, *others)]
    model = tract.onnx().load_bytes(model_of(kind, inputs, attributes)).into_model()
    (found,) = tract.runtime_for_name(runtime).prepare(model).run(inputs)
    right = wanted(kind, inputs, attributes)
    one_unit = float(ml_dtypes.finfo(type_).eps)
    least = float(ml_dtypes.finfo(type_).smallest_subnormal)
    np.testing.assert_allclose(np.asarray(found).astype(np.float64), right, rtol=0.51 * one_unit, atol=least)
