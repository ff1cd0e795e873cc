"""A model with a cache as a file of ONNX: the cache is an input and an output, once it is unfolded."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from tract_onnx.writing.saver import OnnxWriter
from tract_transformers.ops.kv_cache import DynKvCache
from tract_transformers.transforms.kv_cache import UnfoldKvCache

from tract_core.errors import Unwritable
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.elementwise import Exp
from tract_core.transforms.apply import apply_transform


def cached() -> TypedModel:
    """exp of all that came so far, [1, positions, 2]."""
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("1,S,2,f32", model.symbols))
    past = parse_typed_fact("P,f32", model.symbols).shape[0]
    (whole,) = model.wire_node("cache", DynKvCache("k", 1, past), [x])
    model.set_outputs(model.wire_node("y", Exp(), [whole]))
    return model


def test_a_cache_inside_is_refused() -> None:
    with pytest.raises(Unwritable, match="DynKvCache has no words"):
        OnnxWriter().to_bytes(cached())


def test_a_cache_that_is_unfolded_goes_on_from_run_to_run() -> None:
    content = OnnxWriter().to_bytes(apply_transform(cached(), UnfoldKvCache()))
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    session = onnxruntime.InferenceSession(content)
    kept, x = np.zeros((1, 0, 2), np.float32), np.random.default_rng(0).standard_normal((1, 6, 2)).astype(np.float32)
    for start, end in ((0, 3), (3, 4), (4, 6)):
        y, kept = session.run(None, {"x": x[:, start:end], "k": kept})
        np.testing.assert_allclose(y, np.exp(x[:, :end]), rtol=1e-6)
        np.testing.assert_array_equal(kept, x[:, :end])
