"""Many threads use one plan: MLX knows of what is still to be computed only in the thread that asked for it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import ml_dtypes
import numpy as np
import pytest
from on_mlx import model_of, parsed, plan_of

from tract_core.data import DatumType
from tract_core.data.blocks import encode_q4_0
from tract_core.model.axes import AxesMapping
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.binary import Add
from tract_core.ops.blocks import UnpackBlocks
from tract_core.ops.einsum import EinSum
from tract_core.ops.scan import FullOutput, OutputMapping, Scan, ScannedInput
from tract_core.runtime.plan import TypedSimplePlan

THREADS, ROUNDS = 4, 5
BF16 = ml_dtypes.bfloat16


def halves() -> TypedModel:
    return model_of(Add(), "B,3,bf16", "1,3,bf16", constants={1: np.ones((1, 3), BF16)})


def loop() -> TypedModel:
    body = model_of(Add(), "1,3,bf16", "1,3,bf16", constants={1: np.arange(3).reshape(1, 3).astype(BF16)})
    op = Scan(body, (ScannedInput(0),), (OutputMapping(full=FullOutput(0, 0)),))
    return model_of(op, "B,3,bf16")


def blocks() -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact("B,32,bf16", model.symbols))
    packed = encode_q4_0(np.linspace(-1, 1, 4 * 32, dtype="f4").reshape(4, 32)).content.reshape(4, 1, 18)
    weights = model.wire_node("weights", UnpackBlocks("q4_0", DatumType.BF16), [model.add_const("packed", packed)])
    product = EinSum(AxesMapping(("bk", "nk"), ("bn",)), DatumType.F32)
    model.set_outputs(model.wire_node("y", product, [x, *weights]))
    return model


@pytest.mark.parametrize("make", [halves, loop, blocks], ids=lambda make: make.__name__)
def test_weights_are_those_of_all_threads(make: Callable[[], TypedModel]) -> None:
    model = make()
    width = model.outlet_fact(model.inputs[0]).shape[1]
    inputs = [np.full((rows, int(str(width))), 0.5, BF16) for rows in (2, 3)]
    right = [TypedSimplePlan(model).run([one])[0].astype("f4") for one in inputs]
    for _ in range(ROUNDS):
        plan, barrier = plan_of(model), Barrier(THREADS, timeout=60)

        def use(_: int, plan=plan, barrier=barrier) -> list[np.ndarray]:
            barrier.wait()
            return [plan.run([one])[0].astype("f4") for one in inputs]

        with ThreadPoolExecutor(THREADS) as pool:
            for found in pool.map(use, range(THREADS)):
                for one, other in zip(found, right, strict=True):
                    np.testing.assert_allclose(one, other, rtol=2e-2, atol=2e-2)


def test_a_state_goes_on_in_another_thread() -> None:
    graph = "(float[B,2] x) => (float[B,3] y) <float[2,3] w = {1,2,3,4,5,6}> { y = MatMul(x, w) }"
    state = plan_of(parsed(graph)).spawn()
    x = np.ones((2, 2), "f4")
    (first,) = state.run([x])
    for _ in range(3):
        with ThreadPoolExecutor(1) as pool:
            np.testing.assert_array_equal(pool.submit(state.run, [x]).result()[0], first)
