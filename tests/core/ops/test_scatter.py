"""What scattering refuses, and how it compares."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError, RunError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.ops.scatter import ScatterElements, ScatterNd

Array = np.ndarray[Any, Any]


@pytest.mark.parametrize(
    ("op", "facts", "message"),
    [
        (ScatterElements(0), ["2,f32", "2,i64", "2,f16"], r"wants inputs of one element type, found f32, f16"),
        (ScatterElements(0), ["2,f32", "2,f32", "2,f32"], r"wants integers as indices, found 2,f32"),
        (ScatterElements(0), ["2,f32", "2,i64", "3,f32"], r"indices 2,i64 and updates 3,f32 differ in shape"),
        (ScatterElements(0), ["2,2,f32", "2,3,i64", "2,3,f32"], r"the indices 2,3,i64 go beyond axis 1 of 2,2,f32"),
        (
            ScatterNd(),
            ["2,2,f32", "3,1,i64", "3,3,f32"],
            r"updates are 3,3,f32, wanted 3,2,f32 for indices 3,1,i64 into 2,2,f32",
        ),
        (ScatterNd(), ["2,f32", "3,2,i64", "3,f32"], r"ScatterNd: indices 3,2,i64 with 0 batch axes do not fit 2,f32"),
        (ScatterNd(), ["2,f32", "3,K,i64", "f32"], r"ScatterNd: indices 3,2,i64 with 0 batch axes do not fit 2,f32"),
        (ScatterNd(), ["2,5,f32", "3,K,i64", "3,4,f32"], r"updates are 3,4,f32, wanted 3,5,f32 for indices 3,1,i64"),
    ],
)
def test_facts_that_do_not_fit(op: Any, facts: Sequence[str], message: str) -> None:
    with pytest.raises(FactError, match=message):
        op.output_facts([parse_typed_fact(fact) for fact in facts])


@pytest.mark.parametrize("index", [3, -4])
def test_index_outside_is_refused(run_op: Callable[..., list[Array]], index: int) -> None:
    x, one = np.zeros(3, dtype=np.float32), np.ones(1, dtype=np.float32)
    for op, indices in ((ScatterElements(0), np.array([index])), (ScatterNd(), np.array([[index]]))):
        with pytest.raises(RunError, match=f"index {index} is outside axis 0, which has size 3"):
            run_op(op, [x, indices, one])


def test_data_is_not_written_to(run_op: Callable[..., list[Array]]) -> None:
    x = np.zeros(3, dtype=np.float32)
    for reduction in ("none", "add"):
        run_op(ScatterElements(0, reduction), [x, np.array([1]), np.ones(1, dtype=np.float32)])
    assert x.tolist() == [0, 0, 0]


@pytest.mark.parametrize("reduction", ["none", "add", "mul", "min", "max"])
def test_agrees_with_onnx_runtime(
    run_op: Callable[..., list[Array]], run_onnx: Callable[..., list[Array]], reduction: Any
) -> None:
    random = np.random.default_rng(1)
    x, updates = random.normal(size=(4, 5)).astype(np.float32), random.normal(size=(3, 5)).astype(np.float32)
    indices = random.permuted(np.tile(np.arange(-4, 0), (5, 1)), axis=1).T[:3]
    (wanted,) = run_onnx("ScatterElements", [x, indices, updates], opset=18, axis=0, reduction=reduction)
    (found,) = run_op(ScatterElements(0, reduction), [x, indices, updates])
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
    places = np.array([[2], [0], [3]])
    (wanted,) = run_onnx("ScatterND", [x, places, updates], opset=18, reduction=reduction)
    (found,) = run_op(ScatterNd(reduction), [x, places, updates])
    np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_texts_cannot_be_combined() -> None:
    facts = [parse_typed_fact(text) for text in ("3,string", "1,i64", "1,string")]
    with pytest.raises(FactError, match="texts cannot be combined by 'mul'"):
        ScatterElements(0, "mul").output_facts(facts)
    assert str(ScatterElements(0).output_facts(facts)[0]) == "3,string"
