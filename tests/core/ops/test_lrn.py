"""Local response normalisation: against ONNX Runtime, and its costs, axes and refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.lrn import Lrn
from tract_core.plugins import default_registry
from tract_core.plugins.keys import AXES, COST


@pytest.mark.parametrize("size", [1, 3, 5, 7])
def test_agrees_with_onnx_runtime(run_op: Any, run_onnx: Any, size: int) -> None:
    x = np.random.default_rng(3).standard_normal((2, 5, 3, 3)).astype(np.float32)
    (found,) = run_op(Lrn(size, 0.3, 0.6, 1.2), [x])
    (wanted,) = run_onnx("LRN", [x], size=size, alpha=0.3, beta=0.6, bias=1.2)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def test_cost_and_axes() -> None:
    op, inputs = Lrn(5), [parse_typed_fact("B,C,S,f32")]
    cost = default_registry()[COST][Lrn](op, inputs, op.output_facts(inputs))
    assert {kind: str(count) for kind, count in cost.items()} == {"FMA(F32)": "5*B*C*S", "DIV(F32)": "2*B*C*S"}
    axes = default_registry()[AXES][Lrn](op, inputs, op.output_facts(inputs))
    (source,), (result,) = axes.inputs, axes.outputs
    assert (source[0], source[2]) == (result[0], result[2])
    assert source[1] != result[1]


@pytest.mark.parametrize(
    ("op", "x", "message"),
    [
        (Lrn(3), "5,f32", "Lrn: axis 1 is outside a tensor of rank 1"),
        (Lrn(0), "1,5,f32", "Lrn: a size of 0 channels; at least 1 is wanted"),
        (Lrn(3), "1,5,i32", "Lrn wants floating-point numbers, found 1,5,i32"),
    ],
)
def test_refusals(op: Lrn, x: str, message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(x)])
