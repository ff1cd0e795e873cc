"""Inferers give every agent what a plain loop over its rows gives."""

from __future__ import annotations

import numpy as np
from onnx_policies import mlp
from tract_inferers import DynamicInferer

import tract_core as tract


def test_any_batch_in_front_becomes_the_agents() -> None:
    for batch in ("unk__126", "N", None, 1):
        content = mlp(batch)
        model = tract.onnx().load_bytes(content)
        inferer = DynamicInferer.from_model(model)
        rows = np.random.default_rng(0).standard_normal((5, 64)).astype(np.float32)
        plain = tract.onnx().load_bytes(content).into_model().into_runnable()
        expected = np.concatenate([plain.run([row[None]])[0].to_numpy() for row in rows])
        found = inferer.infer_many(range(5), {"obs": rows}).arrays["action"]
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)
