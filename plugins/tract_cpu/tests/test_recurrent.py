"""The gates of recurrent networks, in one kernel with the product before them, at every size."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tract_cpu.plan import CpuPlan
from tract_cpu.program.program import NativeStep
from tract_llvm.isa import Isa

from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.recurrent_wiring import Direction, RecurrentInputs, RecurrentOptions, wire_gru, wire_lstm

GATES = {"lstm": 4, "gru": 3}
SIZES = [(0, 2, 3, 4), (1, 1, 1, 1), (3, 1, 5, 16), (4, 1, 2, 33), (2, 3, 4, 17), (3, 7, 2, 20), (2, 19, 3, 16)]
"""Steps, items, inputs, hidden units."""


def weights(kind: str, directions: int, inputs: int, hidden: int) -> dict[str, np.ndarray]:
    rng, rows = np.random.default_rng(hidden), GATES[kind] * hidden
    shapes = {"w": (directions, rows, inputs), "r": (directions, rows, hidden), "bias": (directions, 2 * rows)}
    return {name: rng.standard_normal(shape) / 2 for name, shape in shapes.items()}


def network(kind: str, arrays: dict[str, np.ndarray], shape: str, element: str, direction: Direction) -> TypedModel:
    model = TypedModel()
    x = model.add_source("x", parse_typed_fact(f"{shape},{element}", model.symbols))
    made = {name: model.add_const(name, array.astype(element.replace("f", "float"))) for name, array in arrays.items()}
    inputs = RecurrentInputs(x, made["w"], made["r"], made["bias"])
    options = RecurrentOptions(direction, reset_every_turn=True)
    if kind == "lstm":
        model.set_outputs(list(wire_lstm(model, "net", options, inputs)))
    else:
        model.set_outputs(list(wire_gru(model, "net", options, inputs, linear_before_reset=True)))
    return model.declutter()


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def lstm(x: Any, h: Any, c: Any) -> Any:
    i, o, f, g = np.split(x, 4, -1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def by_hand(kind: str, arrays: dict[str, np.ndarray], x: np.ndarray, *, back: bool, one: int) -> list[np.ndarray]:
    """One direction, in float64: all states, and the last ones."""
    w, r, (bias_w, bias_r) = arrays["w"][one], arrays["r"][one], np.split(arrays["bias"][one], 2)
    h = c = np.zeros((x.shape[1], r.shape[1]))
    states: list[np.ndarray] = []
    for step in x[::-1] if back else x:
        given, late = step @ w.T + bias_w, h @ r.T + bias_r
        if kind == "lstm":
            h, c = lstm(given + late, h, c)
        else:
            z, reset = (
                sigmoid(a + b) for a, b in zip(np.split(given, 3, -1)[:2], np.split(late, 3, -1)[:2], strict=True)
            )
            new = np.tanh(np.split(given, 3, -1)[2] + reset * np.split(late, 3, -1)[2])
            h = (1 - z) * new + z * h
        states.append(h)
    y = np.array(states[::-1] if back else states).reshape(len(x), 1, *h.shape)
    return [y, h[None], *([c[None]] if kind == "lstm" else [])]


def kernels(plan: CpuPlan) -> list[str]:
    return [step.kernel.name for step in plan.program.steps if isinstance(step, NativeStep) and step.body]


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("kind", GATES)
def test_gates_and_their_product_are_one_kernel_which_computes_them(
    isa: Isa, kind: str, sizes: tuple[int, ...], symbolic: bool
) -> None:
    steps, items, inputs, hidden = sizes
    arrays = weights(kind, 2, inputs, hidden)
    shape = f"T,B,{inputs}" if symbolic else f"{steps},{items},{inputs}"
    plan = CpuPlan(network(kind, arrays, shape, "f32", Direction.BIDIRECTIONAL), isa)
    x = np.random.default_rng(0).standard_normal((steps, items, inputs))
    found = plan.spawn().run([x.astype("f4")])
    sides = [by_hand(kind, arrays, x, back=bool(one), one=one) for one in range(2)]
    for axis, array, *parts in zip((1, 0, 0), found, *sides, strict=False):
        np.testing.assert_allclose(array, np.concatenate(parts, axis), rtol=1e-5, atol=1e-5)
    if steps and hidden > 1:
        assert kernels(plan) == ["gates", "gates"], "each iteration is one step: the state is not copied either"


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(("element", "error"), [("f16", 1e-2), ("f64", 1e-12)])
def test_narrow_and_wide_floats_have_gates_too(isa: Isa, kind: str, element: str, error: float) -> None:
    arrays = weights(kind, 1, 4, 19)
    plan = CpuPlan(network(kind, arrays, "3,2,4", element, Direction.FORWARD), isa)
    x = np.random.default_rng(0).standard_normal((3, 2, 4)).astype(element.replace("f", "float"))
    for found, wanted in zip(
        plan.spawn().run([x]), by_hand(kind, arrays, x.astype("f8"), back=False, one=0), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=error, atol=error)
    assert kernels(plan) == [*["map"] * (element == "f16"), "gates"], "what is narrow is converted for all gates"


@pytest.mark.parametrize("kind", GATES)
def test_what_is_no_number_stays_in_its_row(isa: Isa, kind: str) -> None:
    arrays = weights(kind, 1, 4, 19)
    plan = CpuPlan(network(kind, arrays, "2,3,4", "f32", Direction.FORWARD), isa)
    x = np.ones((2, 3, 4), "f4")
    x[0, 1], x[1, 2] = np.nan, np.inf
    y = plan.spawn().run([x])[0]
    assert np.isfinite(y[:, :, 0]).all()
    assert np.isnan(y[:, :, 1]).all()
    assert np.isfinite(y[0, 0, 2]).all()
