"""Scan, against ONNX Runtime; over a batch (version 8) against the pseudo-code of the standard."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_check import load
from onnx_containers import check_text, model_of

from tract_core.errors import CorruptModel

IN_THE_BODY = "all, y_i = LSTM <hidden_size = 2> (x_i, w, r)"

IN_A_BRANCH = """
    sum = ReduceSum <keepdims = 0> (x_i)
    zero = Constant <value_float = 0.0> ()
    positive = Greater (sum, zero)
    y_i = If (positive) <
      then_branch = yes () => (float[1, 1, 2] y_t) { all_t, y_t = LSTM <hidden_size = 2> (x_i, w, r) },
      else_branch = no () => (float[1, 1, 2] y_e) { all_e, y_e = LSTM <hidden_size = 2> (x_i, r, w) }
    >
"""


@pytest.mark.parametrize("layer", [IN_THE_BODY, IN_A_BRANCH], ids=["in the body", "in a branch in the body"])
def test_a_recurrent_layer_in_a_scan_begins_afresh(layer):
    model = f"""f (float[3, T, 1, 2] x, float[1, 8, 2] w, float[1, 8, 2] r) => (float[3, 1, 1, 2] y) {{
        y = Scan <num_scan_inputs = 1, body = b (float[T, 1, 2] x_i) => (float[1, 1, 2] y_i) {{ {layer} }}> (x)
    }}"""
    draw = np.random.default_rng(3)
    check_text(model, *(draw.normal(size=size).astype(np.float32) for size in ((3, 4, 1, 2), (1, 8, 2), (1, 8, 2))))


BATCHES = """f ({lengths}float[B, 2] h, float[B, T, 2] x) => (float[B, 2] last, float[B, T, 2] all) {{
    last, all = Scan <num_scan_inputs = 1, directions = [{directions}], body =
        b (float[2] p, float[2] s) => (float[2] q, float[2] r) {{
            two = Constant <value_float = 2.0> ()
            t = Mul (p, two)
            q = Add (t, s)
            r = Identity (q)
        }}> ({slot}, h, x)
}}"""


def by_hand(h, x, lengths, *, backward=False):
    """The pseudo-code of the standard; zeros behind the end of a sequence, which it leaves open."""
    last, every = h.astype(np.float64), np.zeros(x.shape)
    for entry, length in enumerate(lengths):
        steps = x[entry, :length][::-1] if backward else x[entry, :length]
        for step, row in enumerate(steps):
            last[entry] = last[entry] * 2 + row
            every[entry, step] = last[entry]
    return [last.astype(np.float32), every.astype(np.float32)]


@pytest.mark.parametrize("backward", [False, True])
def test_over_a_batch(backward):
    h, x = np.ones((3, 2), np.float32), np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    whole = BATCHES.format(lengths="", slot='""', directions=int(backward))
    check_text(whole, h, x, wanted=by_hand(h, x, [4, 4, 4], backward=backward), opset=8)
    parts = BATCHES.format(lengths="int64[B] n, ", slot="n", directions=int(backward))
    given = [np.array([4, 1, 0]), h, x]
    check_text(parts, *given, wanted=by_hand(h, x, [4, 1, 0], backward=backward), opset=8)


def test_over_a_batch_wants_its_inputs():
    body = BATCHES.format(lengths="", slot='""', directions="0, 1")
    with pytest.raises(CorruptModel, match="Scan has 1 inputs to cut, 2 directions"):
        load(model_of(body, opset=8)).into_typed()
