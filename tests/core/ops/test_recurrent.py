"""LSTM, GRU and RNN against ONNX Runtime, and against loops written by hand in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tract_core.errors import FactError
from tract_core.model.fact_text import parse_typed_fact
from tract_core.model.typed import TypedModel
from tract_core.ops.activation import Activation, parse_activations
from tract_core.ops.recurrent import GruEpilogue, LstmEpilogue
from tract_core.ops.recurrent_wiring import (
    Direction,
    RecurrentInputs,
    RecurrentOptions,
    wire_gru,
    wire_lstm,
    wire_rnn,
)
from tract_core.ops.scan import Scan
from tract_core.runtime.plan import TypedSimplePlan

Array = np.ndarray[Any, Any]

T, B, I, H = 6, 3, 4, 5
GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
GIVEN = {"x": "T,B,4,f32", "lengths": "B,i32", "initial_h": "{d},B,5,f32", "initial_c": "{d},B,5,f32"}
BATCH_FIRST = {"x": "B,T,4,f32", "initial_h": "B,{d},5,f32", "initial_c": "B,{d},5,f32"}


def tensors(kind: str, directions: int, *options: str, steps: int = T) -> dict[str, Array]:
    """Random tensors; ``options`` names those of lengths, initial, peepholes, bias that are wanted."""
    random, gates = np.random.default_rng(directions), GATES[kind] * H

    def normal(*shape: int) -> Array:
        return random.normal(scale=0.7, size=shape).astype(np.float32)

    found = {"x": normal(steps, B, I), "w": normal(directions, gates, I), "r": normal(directions, gates, H)}
    if "bias" in options:
        found["bias"] = normal(directions, 2 * gates)
    if "lengths" in options:
        found["lengths"] = np.array([2, steps, 4], np.int32)
    if "initial" in options:
        found["initial_h"] = normal(directions, B, H)
        if kind == "LSTM":
            found["initial_c"] = normal(directions, B, H)
    if "peepholes" in options and kind == "LSTM":
        found["peepholes"] = normal(directions, 3 * H)
    return found


def wired(kind: str, arrays: dict[str, Array], options: RecurrentOptions, **flags: bool) -> TypedModel:
    """A model of symbolic batch and number of steps; weights are constants."""
    model = TypedModel()
    texts = {**GIVEN, **(BATCH_FIRST if options.batch_first else {})}
    directions = len(options.direction.backward)
    outlets = {
        name: model.add_source(name, parse_typed_fact(texts[name].format(d=directions), model.symbols))
        if name in texts
        else model.add_const(name, array)
        for name, array in arrays.items()
    }
    inputs = RecurrentInputs(**outlets)
    wire: dict[str, Callable[..., Any]] = {"LSTM": wire_lstm, "GRU": wire_gru, "RNN": wire_rnn}
    model.set_outputs(wire[kind](model, "net", options, inputs, **flags))
    model.check_consistency()
    return model


def run(model: TypedModel, arrays: dict[str, Array]) -> list[Array]:
    return TypedSimplePlan(model).run([array for name, array in arrays.items() if name in GIVEN])


def onnx_order(kind: str, arrays: dict[str, Array]) -> list[Array | None]:
    names = ["x", "w", "r", "bias", "lengths", "initial_h", *(["initial_c", "peepholes"] if kind == "LSTM" else [])]
    return [arrays.get(name) for name in names]


def agree(found: Sequence[Array], wanted: Sequence[Array], bound: float = 2e-5) -> None:
    assert [array.shape for array in found] == [array.shape for array in wanted]
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=bound)


@pytest.mark.parametrize("declutter", [False, True])
@pytest.mark.parametrize("extras", [(), ("bias",), ("bias", "initial"), ("bias", "lengths"), ("lengths", "initial")])
@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize("kind", list(GATES))
def test_plain_networks_agree_with_onnx(
    run_onnx: Callable[..., Any], kind: str, direction: Direction, extras: tuple[str, ...], declutter: bool
) -> None:
    arrays = tensors(kind, len(direction.backward), *extras)
    model = wired(kind, arrays, RecurrentOptions(direction))
    if declutter:
        model.declutter()
        model.check_consistency()
    outputs = 3 if kind == "LSTM" else 2
    wanted = run_onnx(
        kind, onnx_order(kind, arrays), opset=14, outputs=outputs, hidden_size=H, direction=direction.value
    )
    agree(run(model, arrays), wanted)


@pytest.mark.parametrize("direction", list(Direction))
@pytest.mark.parametrize(
    ("kind", "extras", "options", "flags"),
    [
        ("LSTM", ("bias", "peepholes"), {}, {}),
        ("LSTM", ("bias", "peepholes", "initial", "lengths"), {"clip": 0.3}, {}),
        ("LSTM", ("bias",), {}, {"input_forget": 1}),
        ("LSTM", ("bias",), {"clip": 0.3}, {"input_forget": 1}),
        ("GRU", ("bias",), {}, {"linear_before_reset": 1}),
        ("GRU", (), {}, {"linear_before_reset": 1}),
        ("GRU", ("bias", "lengths"), {"clip": 0.3}, {"linear_before_reset": 1}),
        ("GRU", ("bias", "initial"), {"clip": 0.3}, {}),
        ("RNN", ("bias", "initial"), {"clip": 0.3}, {}),
    ],
)
def test_options_agree_with_onnx(
    run_onnx: Callable[..., Any],
    *,
    direction: Direction,
    kind: str,
    extras: tuple[str, ...],
    options: dict[str, Any],
    flags: dict[str, int],
) -> None:
    arrays = tensors(kind, len(direction.backward), *extras)
    found = run(
        wired(kind, arrays, RecurrentOptions(direction, **options), **{k: bool(v) for k, v in flags.items()}), arrays
    )
    attributes = {"hidden_size": H, "direction": direction.value, **options, **flags}
    wanted = run_onnx(kind, onnx_order(kind, arrays), opset=14, outputs=3 if kind == "LSTM" else 2, **attributes)
    agree(found, wanted)


ACTIVATIONS = [
    ("Relu", (), ()),
    ("Affine", (0.7,), (0.2,)),
    ("LeakyRelu", (0.1,), ()),
    ("LeakyRelu", (), ()),
    ("ThresholdedRelu", (0.4,), ()),
    ("ScaledTanh", (0.8,), (1.3,)),
    ("HardSigmoid", (0.3,), (0.4,)),
    ("HardSigmoid", (), ()),
    ("Elu", (0.6,), ()),
    ("Softsign", (), ()),
    ("Softplus", (), ()),
]


@pytest.mark.parametrize(("name", "alphas", "betas"), ACTIVATIONS)
@pytest.mark.parametrize(("kind", "others"), [("RNN", ()), ("GRU", ("Sigmoid",)), ("LSTM", ("Sigmoid", "Tanh"))])
def test_activations_agree_with_onnx(
    run_onnx: Callable[..., Any],
    *,
    kind: str,
    others: tuple[str, ...],
    name: str,
    alphas: tuple[float, ...],
    betas: tuple[float, ...],
) -> None:
    names = [*others[:1], name, *others[1:]]
    arrays = tensors(kind, 1, "bias")
    options = RecurrentOptions(activations=parse_activations(names, alphas, betas))
    parameters = {key: list(v) for key, v in (("activation_alpha", alphas), ("activation_beta", betas)) if v}
    outputs = 3 if kind == "LSTM" else 2
    wanted = run_onnx(
        kind, onnx_order(kind, arrays), opset=14, outputs=outputs, hidden_size=H, activations=names, **parameters
    )
    agree(run(wired(kind, arrays, options), arrays), wanted)


def test_each_direction_has_activations_of_its_own(run_onnx: Callable[..., Any]) -> None:
    arrays = tensors("RNN", 2, "bias")
    activations = parse_activations(["LeakyRelu", "Affine"], [0.3, 0.7], [0.1])
    found = run(wired("RNN", arrays, RecurrentOptions(Direction.BIDIRECTIONAL, activations)), arrays)
    wanted = run_onnx(
        "RNN",
        onnx_order("RNN", arrays),
        opset=14,
        outputs=2,
        hidden_size=H,
        direction="bidirectional",
        activations=["LeakyRelu", "Affine"],
        activation_alpha=[0.3, 0.7],
        activation_beta=[0.1],
    )
    agree(found, wanted)


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def lstm_by_hand(arrays: dict[str, Array], backward: Sequence[bool]) -> list[Array]:
    a = {name: array.astype(np.float64) for name, array in arrays.items()}
    steps = len(a["x"])
    y = np.zeros((steps, len(backward), B, H))
    last_h, last_c = (np.zeros((len(backward), B, H)) for _ in range(2))
    for d, back in enumerate(backward):
        for item in range(B):
            h, c = a["initial_h"][d, item], a["initial_c"][d, item]
            for t in reversed(range(steps)) if back else range(steps):
                gates = a["w"][d] @ a["x"][t, item] + a["r"][d] @ h + a["bias"][d, : 4 * H] + a["bias"][d, 4 * H :]
                i, o, f, g = gates[:H], gates[H : 2 * H], gates[2 * H : 3 * H], gates[3 * H :]
                c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
                h = sigmoid(o) * np.tanh(c)
                y[t, d, item] = h
            last_h[d, item], last_c[d, item] = h, c
    return [y, last_h, last_c]


def gru_by_hand(arrays: dict[str, Array], backward: Sequence[bool], late: bool) -> list[Array]:
    a = {name: array.astype(np.float64) for name, array in arrays.items()}
    steps = len(a["x"])
    y, last = np.zeros((steps, len(backward), B, H)), np.zeros((len(backward), B, H))
    for d, back in enumerate(backward):
        w, r, wb, rb = a["w"][d], a["r"][d], a["bias"][d, : 3 * H], a["bias"][d, 3 * H :]
        for item in range(B):
            h = a["initial_h"][d, item]
            for t in reversed(range(steps)) if back else range(steps):
                x = w @ a["x"][t, item] + wb
                z = sigmoid(x[:H] + r[:H] @ h + rb[:H])
                reset = sigmoid(x[H : 2 * H] + r[H : 2 * H] @ h + rb[H : 2 * H])
                after, before = reset * (r[2 * H :] @ h + rb[2 * H :]), r[2 * H :] @ (reset * h) + rb[2 * H :]
                h = (1 - z) * np.tanh(x[2 * H :] + (after if late else before)) + z * h
                y[t, d, item] = h
            last[d, item] = h
    return [y, last]


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("direction", list(Direction))
def test_lstm_by_hand(direction: Direction, batch_first: bool) -> None:
    arrays = tensors("LSTM", len(direction.backward), "bias", "initial")
    wanted = lstm_by_hand(arrays, direction.backward)
    if batch_first:
        swapped = {k: np.ascontiguousarray(arrays[k].swapaxes(0, 1)) for k in ("x", "initial_h", "initial_c")}
        arrays = {**arrays, **swapped}
        wanted = [np.moveaxis(wanted[0], 2, 0), *(array.swapaxes(0, 1) for array in wanted[1:])]
    model = wired("LSTM", arrays, RecurrentOptions(direction, batch_first=batch_first))
    agree(run(model, arrays), wanted)


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("direction", list(Direction))
def test_gru_by_hand(direction: Direction, late: bool) -> None:
    arrays = tensors("GRU", len(direction.backward), "bias", "initial")
    model = wired("GRU", arrays, RecurrentOptions(direction), linear_before_reset=late)
    agree(run(model, arrays), gru_by_hand(arrays, direction.backward, late))


def body_ops(model: TypedModel) -> set[type]:
    (loop,) = [node.op for node in model.live_nodes() if isinstance(node.op, Scan)]
    return {type(node.op) for node in loop.body.live_nodes()}


def test_usual_gates_are_one_operator() -> None:
    arrays = tensors("LSTM", 1, "bias")
    assert LstmEpilogue in body_ops(wired("LSTM", arrays, RecurrentOptions()))
    assert LstmEpilogue not in body_ops(wired("LSTM", arrays, RecurrentOptions(clip=1.0)))
    arrays = tensors("GRU", 1, "bias")
    assert GruEpilogue in body_ops(wired("GRU", arrays, RecurrentOptions(), linear_before_reset=True))
    assert GruEpilogue not in body_ops(wired("GRU", arrays, RecurrentOptions()))


def test_facts_are_symbolic() -> None:
    arrays = tensors("LSTM", 2, "bias")
    model = wired("LSTM", arrays, RecurrentOptions(Direction.BIDIRECTIONAL))
    assert [str(model.outlet_fact(o)) for o in model.outputs] == ["T,2,B,5,f32", "2,B,5,f32", "2,B,5,f32"]
    assert model.outlet_name(model.outputs[0]) == "net"


@pytest.mark.parametrize("kind", list(GATES))
def test_a_sequence_in_pieces_gives_what_the_whole_gives(kind: str) -> None:
    arrays = tensors(kind, 1, "bias", steps=9)
    plan = TypedSimplePlan(wired(kind, arrays, RecurrentOptions()))
    whole, *last = plan.run([arrays["x"]])
    state = plan.spawn()
    turns = [state.run([piece]) for piece in np.split(arrays["x"], [2, 3, 7])]
    agree([np.concatenate([turn[0] for turn in turns]), *turns[-1][1:]], [whole, *last], 1e-6)


@pytest.mark.parametrize(
    ("extras", "options"),
    [
        (("initial",), RecurrentOptions()),
        (("lengths",), RecurrentOptions()),
        ((), RecurrentOptions(Direction.REVERSE)),
        ((), RecurrentOptions(reset_every_turn=True)),
    ],
)
def test_what_is_given_for_a_turn_or_ends_with_it_is_not_kept(
    extras: tuple[str, ...], options: RecurrentOptions
) -> None:
    arrays = tensors("LSTM", 1, *extras)
    state = TypedSimplePlan(wired("LSTM", arrays, options)).spawn()
    given = [array for name, array in arrays.items() if name in GIVEN]
    agree(state.run(given), state.run(given), 0)


def test_an_lstm_in_half_precision() -> None:
    arrays = tensors("LSTM", 1, "bias", "initial")
    half = {name: array.astype(np.float16) for name, array in arrays.items()}
    model = TypedModel()
    outlets = {
        name: model.add_source(name, parse_typed_fact(GIVEN[name].format(d=1).replace("f32", "f16"), model.symbols))
        if name in GIVEN
        else model.add_const(name, array)
        for name, array in half.items()
    }
    model.set_outputs(wire_lstm(model, "net", RecurrentOptions(), RecurrentInputs(**outlets)))
    found = run(model, half)
    assert {array.dtype for array in found} == {np.dtype(np.float16)}
    for one, other in zip(found, lstm_by_hand(half, [False]), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3)


@pytest.mark.parametrize(
    ("name", "shape", "message"),
    [
        ("w", (1, 19, 4), "the w of LSTM is 1,19,4,f32, wanted sizes 1,20,4"),
        ("r", (1, 20, 6), "the w of LSTM is 1,20,4,f32, wanted sizes 1,24,4"),
        ("r", (20, 5), "LSTM: x and r of rank 3 are wanted, found T,B,4,f32 and 20,5,f32"),
        ("bias", (1, 20), "the bias of LSTM is 1,20,f32, wanted sizes 1,40"),
        ("peepholes", (2, 15), "the peepholes of LSTM is 2,15,f32, wanted sizes 1,15"),
    ],
)
def test_weights_of_other_shapes_are_refused(name: str, shape: tuple[int, ...], message: str) -> None:
    arrays = {**tensors("LSTM", 1, "bias"), name: np.zeros(shape, np.float32)}
    with pytest.raises(FactError, match=message):
        wired("LSTM", arrays, RecurrentOptions())


def test_activations_are_counted_and_known() -> None:
    with pytest.raises(FactError, match="LSTM: 3 activations are wanted, found 1"):
        wired("LSTM", tensors("LSTM", 1), RecurrentOptions(activations=(Activation("relu"),)))
    with pytest.raises(FactError, match="unknown activation 'wavy'; known: affine, elu, hardsigmoid"):
        parse_activations(["Wavy"])


def test_epilogues_refuse_other_sizes() -> None:
    preact, c = parse_typed_fact("2,12,f32"), parse_typed_fact("2,3,f32")
    with pytest.raises(FactError, match="LstmEpilogue: input 0 is 2,12,f32, wanted 16 on its last axis"):
        LstmEpilogue(4).output_facts([preact, parse_typed_fact("2,4,f32")])
    with pytest.raises(FactError, match="inputs differ before their last axis: 2,12,f32, 5,3,f32"):
        LstmEpilogue(3).output_facts([preact, parse_typed_fact("5,3,f32")])
    with pytest.raises(FactError, match="GruEpilogue takes 3 inputs, 2 were given"):
        GruEpilogue(3).output_facts([preact, c])
