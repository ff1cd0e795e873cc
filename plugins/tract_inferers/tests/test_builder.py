from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx_policies import mlp
from plain_loop import plain_rows
from tract_inferers import InfererBuilder, ModelApi

import tract_core as tract
from tract_core.errors import MissingFile, PluginError

Observations = dict[str, np.ndarray[Any, Any]]


@pytest.fixture
def observations() -> Observations:
    return {"obs": np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)}


def check(builder: InfererBuilder, observations: Observations) -> None:
    expected = plain_rows(mlp("N"), observations)["action"]
    built = [
        builder.build_basic(),
        builder.build_fixed([2]),
        builder.build_memoizing([5]),
        builder.build_memoizing(capacity=1, background=True),
        builder.build_dynamic(),
        builder.build_dynamic(),
    ]
    for inferer in built:
        found = inferer.infer_many(range(5), observations).arrays["action"]
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("batch", ["N", 1])
def test_one_builder_makes_as_many_as_one_likes(tmp_path: Path, batch: str | int, observations: Observations) -> None:
    content = mlp(batch)
    path = tmp_path / "policy.onnx"
    path.write_bytes(content)
    check(InfererBuilder.from_path(path), observations)
    check(InfererBuilder.from_path(os.fspath(path), format_name="onnx"), observations)
    check(InfererBuilder.from_bytes(content, "onnx", runtime="reference"), observations)


def test_from_an_archive(tmp_path: Path, observations: Observations) -> None:
    path = tmp_path / "policy.nnef.tar"
    tract.onnx().load_bytes(mlp("N")).into_model().save(path)
    check(InfererBuilder.from_path(path), observations)
    check(InfererBuilder.from_bytes(path.read_bytes(), "nnef"), observations)


def test_what_cannot_be_loaded_is_said_at_once(tmp_path: Path) -> None:
    with pytest.raises(MissingFile, match="nowhere"):
        InfererBuilder.from_path(tmp_path / "nowhere.onnx")
    with pytest.raises(PluginError, match="caffe"):
        InfererBuilder.from_bytes(b"", "caffe")


def test_the_api_of_a_model_is_that_of_one_agent() -> None:
    for batch in ("batch", None, 1):
        model = tract.onnx().load_bytes(mlp(batch, kind=np.float16))
        api = ModelApi.for_model(model)
        assert [str(slot) for slot in (*api.inputs, *api.outputs)] == ["obs: 64,float16", "action: 8,float16"]
        assert ModelApi.for_typed_model(model.into_model()) == api
