"""Attention of 16 bits with masks that are added: what is no number is so in the same places on every runtime."""

from __future__ import annotations

from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import helper, numpy_helper

import tract_core as tract

Array = np.ndarray[Any, Any]

FORMS = {
    "scores": [("MatMul", "q", "kt"), ("Mul", "", "c"), ("Add", "", "m")],
    "queries": [("Mul", "q", "c"), ("MatMul", "", "kt"), ("Add", "", "m")],
    "masked scores": [("MatMul", "q", "kt"), ("Add", "", "m"), ("Mul", "", "c")],
    "masked twice": [("MatMul", "q", "kt"), ("Mul", "", "c"), ("Add", "", "m"), ("Add", "", "m")],
}
"""What is scaled, and when the mask comes: operators, of which an empty name is what the one before gave."""

SIZES = [(0, 3), (3, 0), (1, 1), (2, 2), (1, 129), (33, 33)]
"""Of queries, and of keys."""
MASKS = (-1e4, 1e4, -6e4, -np.inf, None)
"""What is added in some places; random numbers of about 1e4 where there is none."""


def model_of(form: str, type_: Any, depth: int) -> bytes:
    kind = helper.np_dtype_to_tensor_dtype(np.dtype(type_))
    scale = numpy_helper.from_array(np.array(depth**-0.5).astype(type_), "c")
    nodes, before = [helper.make_node("Transpose", ["k"], ["kt"], perm=[0, 1, 3, 2])], ""
    for place, (name, a, b) in enumerate(FORMS[form]):
        nodes.append(helper.make_node(name, [a or before, b], [f"s{place}"]))
        before = f"s{place}"
    nodes += [helper.make_node("Softmax", [before], ["p"], axis=-1), helper.make_node("MatMul", ["p", "v"], ["y"])]
    shapes = {"q": ["B", 2, "Q", depth], "k": ["B", 2, "K", depth], "v": ["B", 2, "K", depth], "m": ["B", 1, "Q", "K"]}
    inputs = [helper.make_tensor_value_info(name, kind, shape) for name, shape in shapes.items()]
    outputs = [helper.make_tensor_value_info("y", kind, ["B", 2, "Q", depth])]
    graph = helper.make_graph(nodes, "attention", inputs, outputs, [scale])
    opsets = [helper.make_opsetid("", 22)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def step_by_step(form: str, type_: Any, given: dict[str, Array]) -> Array:
    """By NumPy: each operator in f32, and rounded to the type."""

    def rounded(x: Array) -> Array:
        return x.astype(type_).astype(np.float32)

    known = {name: x.astype(np.float32) for name, x in given.items()}
    known |= {"kt": known["k"].swapaxes(-1, -2), "c": rounded(np.float32(known["q"].shape[-1] ** -0.5))}
    functions = {"MatMul": np.matmul, "Mul": np.multiply, "Add": np.add}
    with np.errstate(all="ignore"):
        for name, a, b in FORMS[form]:
            known[""] = rounded(functions[name](known[a], known[b]))
        powers = np.exp(known[""] - known[""].max(-1, keepdims=True, initial=-np.inf))
        return rounded(rounded(powers / powers.sum(-1, keepdims=True)) @ known["v"])


@pytest.mark.parametrize("runtime", ["reference", "cpu"])
@pytest.mark.parametrize("type_", [np.float16, ml_dtypes.bfloat16], ids=["f16", "bf16"])
@pytest.mark.parametrize("form", FORMS)
def test_additive_masks(form: str, type_: Any, runtime: str) -> None:
    random, depth = np.random.default_rng(3), 16
    runnable = tract.runtime_for_name(runtime).prepare(
        tract.onnx().load_bytes(model_of(form, type_, depth)).into_model()
    )
    some_are_no_numbers = False
    for (queries, keys), scale, added in product(SIZES, (1, 40, 100), MASKS):
        shapes = {"q": queries, "k": keys, "v": keys}
        given = {name: random.normal(size=(2, 2, size, depth)) * scale for name, size in shapes.items()}
        mask = random.normal(size=(2, 1, queries, keys)) * 1e4
        given["m"] = mask if added is None else np.where(mask < 0, added, 0)
        given = {name: x.astype(type_) for name, x in given.items()}
        (found,) = runnable.run([*given.values()])
        ours, wanted = np.asarray(found).astype(np.float32), step_by_step(form, type_, given)
        np.testing.assert_array_equal(np.isnan(ours), np.isnan(wanted))
        some_are_no_numbers |= bool(np.isnan(wanted).any())
        if scale == 1:  # of larger scores one unit more or less is another row of weights
            np.testing.assert_allclose(ours, wanted, atol=8 * float(ml_dtypes.finfo(type_).eps))
    assert some_are_no_numbers
