"""Small models with state for the tests of sequences, and what they give without a server."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from servers import network, put

import tract_core as tract

PULSE = 8
FLOAT = TensorProto.FLOAT


def parameter(name: str, value: str) -> str:
    """A parameter of a configuration."""
    return f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}\n'


def smoothing(seed: int = 0) -> Any:
    """Two convolutions over a signal ``x`` [1, 2, S], which look three positions ahead: ``y`` [1, 2, S]."""
    numbers = np.random.default_rng(seed)
    weights = {name: numbers.normal(size=(2, 2, 5 if name == "w1" else 3)).astype(np.float32) for name in ("w1", "w2")}
    nodes = [
        helper.make_node("Conv", ["x", "w1"], ["h"], pads=[2, 2]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("Conv", ["t", "w2"], ["y"], pads=[1, 1]),
    ]
    made = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    return network(nodes, [("x", FLOAT, [1, 2, "S"])], [("y", FLOAT, [1, 2, "S"])], made)


def with_gain() -> Any:
    """``y`` = ``x`` [1, S] smoothed, times ``gain`` [1, 1], which does not stream; and ``twice``, twice the gain."""
    nodes = [
        helper.make_node("Unsqueeze", ["x", "axis"], ["x3"]),
        helper.make_node("Conv", ["x3", "w"], ["h3"], pads=[1, 1]),
        helper.make_node("Squeeze", ["h3", "axis"], ["h"]),
        helper.make_node("Mul", ["h", "gain"], ["y"]),
        helper.make_node("Add", ["gain", "gain"], ["twice"]),
    ]
    made = [
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
        numpy_helper.from_array(np.array([[[0.25, 0.5, 0.25]]], np.float32), "w"),
    ]
    inputs = [("x", FLOAT, [1, "S"]), ("gain", FLOAT, [1, 1])]
    return network(nodes, inputs, [("y", FLOAT, [1, "S"]), ("twice", FLOAT, [1, 1])], made)


def recurrent(seed: int = 1) -> Any:
    """One step of a recurrent network: ``y``, ``h_out`` [N, 4] = tanh(``x`` [N, 3] W + ``h`` [N, 4] R)."""
    numbers = np.random.default_rng(seed)
    made = [
        numpy_helper.from_array(numbers.normal(size=shape).astype(np.float32), name)
        for name, shape in (("w", (3, 4)), ("r", (4, 4)))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["xw"]),
        helper.make_node("MatMul", ["h", "r"], ["hr"]),
        helper.make_node("Add", ["xw", "hr"], ["sum"]),
        helper.make_node("Tanh", ["sum"], ["h_out"]),
        helper.make_node("Identity", ["h_out"], ["y"]),
    ]
    inputs = [("x", FLOAT, ["N", 3]), ("h", FLOAT, ["N", 4])]
    return network(nodes, inputs, [("y", FLOAT, ["N", 4]), ("h_out", FLOAT, ["N", 4])], made)


STATE = 'sequence_batching {{ state [ {{ input_name: "h" output_name: "h_out" {} }} ] }}'
"""How a configuration names the state of `recurrent`."""


def put_models(folder: Path) -> Path:
    """A repository of these: ``smoothing`` and ``gain`` in pulses, ``recurrent`` with its state named."""
    put(folder, "smoothing", smoothing(), config=parameter("pulse", f"S={PULSE}"))
    put(folder, "gain", with_gain(), config=parameter("pulse", f"S={PULSE}"))
    put(folder, "recurrent", recurrent(), config=STATE.format(""))
    return folder


def pulsed(model: Any) -> tract.Runnable:
    """A model in pulses, run here."""
    made = tract.load_bytes(model.SerializeToString())
    made.transform(tract.Pulse(PULSE, symbol="S"))
    return made.into_runnable()


def streamed(model: Any, x: Any) -> Any:
    """What a whole signal gives, in pulses."""
    return np.concatenate([np.asarray(piece) for piece in pulsed(model).stream([x])], 2)


def steps(model: Any, turns: list[Any]) -> list[Any]:
    """What a recurrent network gives, turn after turn, from a state of zeros on."""
    runnable = tract.load_bytes(model.SerializeToString()).into_runnable()
    state, found = np.zeros((len(turns[0]), 4), np.float32), list[Any]()
    for x in turns:
        y, state = (np.array(one) for one in runnable.run({"x": x, "h": state}))
        found.append(y)
    return found


def signal(length: int, seed: int = 2) -> Any:
    """A signal for `smoothing`."""
    return np.random.default_rng(seed).normal(size=(1, 2, length)).astype(np.float32)


def cut(x: Any, *sizes: int) -> list[Any]:
    """A signal in chunks of these sizes, over and over again."""
    found, begin = list[Any](), 0
    while begin < x.shape[-1]:
        end = begin + sizes[len(found) % len(sizes)]
        found.append(np.ascontiguousarray(x[..., begin:end]))
        begin = end
    return found


def tensors(client: Any, given: Mapping[str, Any]) -> list[Any]:
    """Inputs for a client of Triton. ``client``: its module."""
    found: list[Any] = []
    for name, array in given.items():
        one = client.InferInput(name, list(array.shape), "FP32")
        one.set_data_from_numpy(array)
        found.append(one)
    return found
